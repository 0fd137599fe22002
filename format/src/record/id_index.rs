//! The counters' ids with their CPUs and threads: ID_INDEX.

use crate::abi::{Cpu, Pid, Tid};
use crate::bytes::{Encoder, U64s};
use crate::endian::Endian;
use crate::fields::named;
use crate::wire;

wire! {
    /// The CPU and thread of each id (`PERF_RECORD_ID_INDEX`).
    pub struct IdIndex<'a> {
        /// Number of entries, as the record says.
        pub nr: u64,
        /// Four words for each entry (id, index, CPU, thread); then, of guests, two more for each
        /// (process, virtual CPU). [`IdIndex::iter`] joins them.
        pub words: U64s<'a>,
    }
}

named! {
    /// One counter of an [`IdIndex`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct IdIndexEntry {
        /// The event's id.
        pub id: u64,
        /// The ring: the place of its CPU or thread among those recorded.
        pub idx: u64,
        /// The CPU.
        pub cpu: Cpu,
        /// The thread.
        pub tid: Tid,
        /// The guest; `None` if the record has no guests.
        pub guest: Option<Guest>,
    }
}

named! {
    /// A virtual CPU of a guest, as the host knows it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Guest {
        /// The process of the hypervisor (`machine_pid`); 0 for the host itself.
        pub machine_pid: Pid,
        /// The virtual CPU; -1 for none in particular.
        pub vcpu: Cpu,
    }
}

impl IdIndex<'_> {
    /// Returns the words of a record with these entries; guests only if any entry has one.
    pub fn words_of(entries: &[IdIndexEntry], endian: Endian) -> Vec<u8> {
        let wide = |id: u32| if id == u32::MAX { u64::MAX } else { id.into() };
        let mut e = Encoder::new(endian);
        for entry in entries {
            for word in [entry.id, entry.idx, wide(entry.cpu.0), wide(entry.tid.0)] {
                e.u64(word);
            }
        }
        let has_guests = entries.iter().any(|entry| entry.guest.is_some());
        for entry in entries.iter().filter(|_| has_guests) {
            let guest = entry.guest.unwrap_or(Guest { machine_pid: Pid(0), vcpu: Cpu::ANY });
            e.u64(wide(guest.machine_pid.0));
            e.u64(wide(guest.vcpu.0));
        }
        e.into_bytes()
    }

    /// Returns the entries: as many as the record says, or fewer if it is too short.
    pub fn iter(&self) -> impl Iterator<Item = IdIndexEntry> {
        let words = self.words;
        let count = usize::try_from(self.nr).unwrap_or(usize::MAX).min(words.len() / 4);
        (0..count).filter_map(move |i| {
            let (at, guest_at) = (4 * i, 4 * count + 2 * i);
            let guest = words.get(guest_at).zip(words.get(guest_at + 1));
            Some(IdIndexEntry {
                id: words.get(at)?,
                idx: words.get(at + 1)?,
                cpu: Cpu::from_wide(words.get(at + 2)?),
                tid: Tid::from_wide(words.get(at + 3)?),
                guest: guest.map(|(pid, vcpu)| Guest {
                    machine_pid: Pid::from_wide(pid),
                    vcpu: Cpu::from_wide(vcpu),
                }),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::wire::Wire;

    const ANY: [u8; 8] = [255; 8];

    fn word(low: u8) -> [u8; 8] {
        [0, 0, 0, 0, 0, 0, 0, low]
    }

    #[test]
    fn guests_follow_all_entries() {
        let entries = [[word(7), word(0), word(2), ANY], [word(8), word(1), ANY, word(9)]].concat();
        let host = [vec![word(2)], entries].concat();
        let guests = [word(70), word(3), word(0), ANY];
        let bytes = [&host[..], &guests].concat().concat();
        let index = IdIndex::from_bytes(&bytes, Endian::Big).unwrap();
        let entry = |id, idx, cpu, tid, machine_pid, vcpu| {
            let guest = Some(Guest { machine_pid: Pid(machine_pid), vcpu });
            IdIndexEntry { id, idx, cpu, tid, guest }
        };
        let all: Vec<_> = index.iter().collect();
        assert_eq!(IdIndex::words_of(&all, Endian::Big), bytes[8..]);
        assert_eq!(
            all,
            [entry(7, 0, Cpu(2), Tid::ANY, 70, Cpu(3)), entry(8, 1, Cpu::ANY, Tid(9), 0, Cpu::ANY)]
        );
        let bytes = host.concat();
        let index = IdIndex::from_bytes(&bytes, Endian::Big).unwrap();
        assert!(index.iter().all(|entry| entry.guest.is_none()));
        assert_eq!(IdIndex::words_of(&index.iter().collect::<Vec<_>>(), Endian::Big), bytes[8..]);
        assert_eq!(IdIndex { nr: u64::MAX, ..index }.iter().count(), 2);
    }
}
