//! One moment by two clocks: that of the samples, and the wall clock.
//!
//! The samples' usual clock is the scheduler's, which no process can read, and which drifts from
//! all clocks that can be read. But the kernel puts its time into each record, so a record is made:
//!
//! ```text
//!   wall clock ─► prctl(PR_SET_NAME) ─► COMM record with the time of the samples' clock ─► wall clock
//! ```
//!
//! The event is of this thread alone and counts nothing, and the name is the one that the thread
//! has, so nothing else notices.

use std::os::fd::AsFd as _;

use recrep_format::abi::{AttrFlags, EventType, RecordType, SampleType, SwEvent};
use recrep_format::attr::{Attr, AttrEntry, AttrTable};
use recrep_format::endian::Endian;
use rustix::time::{ClockId, clock_gettime};

use crate::kernel::{ClockMoment, Kernel, Place};

/// Returns now, by the wall clock and the clock of samples (`clock`: that of `-k`); `None` if the
/// kernel refuses the event.
pub(super) fn now(kernel: &impl Kernel, clock: Option<i32>) -> Option<ClockMoment> {
    let mut attr = Attr {
        size: Attr::KNOWN_SIZE.try_into().ok()?,
        kind: EventType::SOFTWARE,
        config: SwEvent::DUMMY.0,
        sample_type: SampleType::TIME,
        // Without the kernel's part, any user may open it.
        flags: AttrFlags::COMM
            | AttrFlags::SAMPLE_ID_ALL
            | AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_HV,
        ..Attr::default()
    };
    if let Some(clock) = clock {
        attr.flags |= AttrFlags::USE_CLOCKID;
        attr.clockid = clock;
    }
    let own = Place { thread: Some(0), cpu: None, cgroup: None };
    let event = kernel.open(&attr, own, None).ok()?;
    let ring = kernel.map(event.as_fd(), 1, false).ok()?;
    let before = wall_clock();
    rustix::thread::set_name(&rustix::thread::name().ok()?).ok()?;
    let after = wall_clock();
    let attrs =
        AttrTable::new(vec![AttrEntry { attr, ids: Vec::new(), name: None }], Endian::NATIVE);
    let (mut found, mut scratch) = (None, Vec::new());
    ring.pending().ok()?.records(&mut scratch, |raw| {
        let time = attrs.time_of(raw).filter(|_| raw.header.kind == RecordType::COMM);
        found = time.or(found);
    });
    Some(ClockMoment { wall_clock: before.midpoint(after), clock: found? })
}

fn wall_clock() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::sys::Perf;

    #[test]
    fn clocks_run_together() {
        // Without the right to open events there is nothing to read.
        let Some(first) = now(&Perf, None) else { return };
        std::thread::sleep(std::time::Duration::from_millis(20));
        let second = now(&Perf, None).unwrap();
        let [wall, clock] = [second.wall_clock - first.wall_clock, second.clock - first.clock]
            .map(u64::cast_signed);
        assert!(clock >= 20_000_000 && (wall - clock).abs() < 1_000_000_000, "{wall} {clock}");
        // A clock that can be read otherwise, too.
        let monotonic = || {
            let time = clock_gettime(ClockId::Monotonic);
            u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
        };
        let before = monotonic();
        let read = now(&Perf, Some(ClockId::Monotonic as i32)).unwrap();
        assert!((before..=monotonic()).contains(&read.clock), "{read:?}");
    }
}
