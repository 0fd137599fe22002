//! The threads that were recorded: THREAD_MAP.

use crate::abi::Tid;
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::fields::named;
use crate::wire::{Wire, items, wire};

named! {
    /// The threads that were recorded (`PERF_RECORD_THREAD_MAP`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ThreadMap {
        /// Number of threads, as the record says.
        pub nr: u64,
        /// The threads: as many as the record says, or fewer if it is too short.
        pub entries: Vec<ThreadMapEntry>,
    }
}

wire! {
    /// A thread of a [`ThreadMap`].
    pub struct ThreadMapEntry {
        /// Its id, as a 64-bit number; -1 for any thread.
        pub pid: u64,
        /// Its name, ended and filled with zeroes.
        pub comm: [u8; 16] => text,
    }
}

impl ThreadMapEntry {
    /// Returns the thread with this id and name, of which 15 bytes are kept.
    pub fn new(pid: u64, name: &[u8]) -> Self {
        let mut comm = [0; 16];
        comm.iter_mut().zip(name.iter().take(15)).for_each(|(to, from)| *to = *from);
        Self { pid, comm }
    }

    /// Returns its id.
    pub fn tid(&self) -> Tid {
        Tid::from_wide(self.pid)
    }

    /// Returns its name.
    pub fn name(&self) -> &[u8] {
        self.comm.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

impl ThreadMap {
    /// Returns a record of these threads.
    pub fn new(entries: Vec<ThreadMapEntry>) -> Self {
        Self { nr: entries.len() as u64, entries }
    }
}

impl<'a> Wire<'a> for ThreadMap {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        const ENTRY: usize = 24;
        let nr = c.u64(what)?;
        let count = usize::try_from(nr).unwrap_or(usize::MAX).min(c.left() / ENTRY);
        Ok(Self { nr, entries: items(c, count as u64, what)? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u64(self.nr);
        self.entries.iter().try_for_each(|entry| entry.encode(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn threads_have_ids_and_names() {
        let little = [
            &[2, 0, 0, 0, 0, 0, 0, 0][..],
            &[9, 1, 0, 0, 0, 0, 0, 0],
            b"sleep\0\0\0\0\0\0\0\0\0\0\0",
            &[255; 8],
            &[0; 16],
        ];
        let big = [
            &[0, 0, 0, 0, 0, 0, 0, 2][..],
            &[0, 0, 0, 0, 0, 0, 1, 9],
            b"sleep\0\0\0\0\0\0\0\0\0\0\0",
            &[255; 8],
            &[0; 16],
        ];
        for (bytes, endian) in [(little.concat(), Endian::Little), (big.concat(), Endian::Big)] {
            let map = ThreadMap::from_bytes(&bytes, endian).unwrap();
            let threads: Vec<_> =
                map.entries.iter().map(|entry| (entry.tid(), entry.name())).collect();
            assert_eq!(threads, [(Tid(0x109), &b"sleep"[..]), (Tid::ANY, b"")]);
            let new = ThreadMap::new(vec![
                ThreadMapEntry::new(0x109, b"sleep"),
                ThreadMapEntry::new(u64::MAX, b""),
            ]);
            assert_eq!(new, map);
            assert_eq!(new.to_bytes(endian).unwrap(), bytes);
        }
    }

    #[test]
    fn a_count_beyond_the_record_is_kept() {
        let bytes = [&[255; 8][..], &[7; 24], &[1; 5]].concat();
        let mut c = Cursor::new(&bytes, 0, Endian::Little);
        let map = ThreadMap::decode(&mut c, "map").unwrap();
        assert_eq!((map.nr, map.entries.len(), c.left()), (u64::MAX, 1, 5));
        assert_eq!(ThreadMapEntry::new(1, &[b'a'; 20]).name(), [b'a'; 15]);
    }
}
