//! Recorded times as times of the day, for comparing them with those of files and processes.
//!
//! Only recordings with a chosen clock (`-k`) say what time it was. For the others there are two
//! estimates:
//!
//! ```text
//!   record time ──────┬──────────────── last record
//!                     │                      │ at most the time at which the file was last written
//!   by the file       ├──────────────────────┘          never too early; later if the file was copied
//!   by the clock      └── now, less CLOCK_MONOTONIC since then: perf's clock drifts from it by 20 ppm at most
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use recrep_format::abi::AttrFlags;
use recrep_format::feature::ClockData;
use recrep_format::read::File;

const CLOCK_MONOTONIC: u32 = 1;

/// Difference to be expected at once, and for each unit of time since the boot (one in so many).
const ERROR: Duration = Duration::from_millis(100);
const DRIFT: u32 = 50_000;

/// Times of the day of recorded times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WallClock {
    /// A recorded time, and the time of the day that is not before it.
    file: Option<(u64, SystemTime)>,
    /// A recorded time, and its time of the day by the clock; with the error to be expected.
    clock: Option<(u64, SystemTime, Duration)>,
}

impl WallClock {
    /// Returns the clock of a recording whose last record has the time `last`; `written` is the
    /// time at which the file was last written.
    pub(crate) fn of(file: &File<'_>, last: u64, written: Option<SystemTime>) -> Self {
        let data =
            file.feature::<ClockData>().and_then(Result::ok).filter(|data| data.wall_clock > 0);
        if let Some(data) = data
            && let Some(wall) = UNIX_EPOCH.checked_add(Duration::from_nanos(data.wall_clock))
        {
            return Self {
                file: Some((data.clock, wall + ERROR)),
                clock: Some((data.clock, wall, ERROR)),
            };
        }
        let attr = file.attrs.entries().first().map(|entry| &entry.attr);
        let is_since_boot = attr.is_some_and(|attr| {
            !attr.flags.contains(AttrFlags::USE_CLOCKID)
                || attr.clockid.cast_unsigned() == CLOCK_MONOTONIC
        });
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now =
            Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0));
        let now_record = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        // Later times are of another boot.
        let clock = (is_since_boot && last <= now_record)
            .then(|| (now_record, SystemTime::now(), ERROR + now / DRIFT));
        Self { file: written.map(|written| (last, written)), clock }
    }

    /// Returns a time of the day that is not before the record with this time.
    pub(crate) fn latest(&self, time: u64) -> Option<SystemTime> {
        let (known, wall) = self.file?;
        at(known, wall, time)
    }

    /// Returns a time of the day that is not after the record with this time.
    pub(crate) fn earliest(&self, time: u64) -> Option<SystemTime> {
        let by_clock =
            self.clock.and_then(|(known, wall, error)| at(known, wall, time)?.checked_sub(error));
        [self.latest(time), by_clock].into_iter().flatten().min()
    }
}

/// Returns the time of the day of a record, given that of another.
fn at(known: u64, wall: SystemTime, time: u64) -> Option<SystemTime> {
    let [before, after] =
        [known.saturating_sub(time), time.saturating_sub(known)].map(Duration::from_nanos);
    wall.checked_sub(before)?.checked_add(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_two_estimates_are_bounds() {
        let written = UNIX_EPOCH + Duration::from_secs(1000);
        let by_clock = UNIX_EPOCH + Duration::from_secs(990);
        let clock = WallClock {
            file: Some((50 * SECOND, written)),
            clock: Some((45 * SECOND, by_clock, Duration::from_secs(1))),
        };
        assert_eq!(clock.latest(40 * SECOND), Some(UNIX_EPOCH + Duration::from_secs(990)));
        assert_eq!(clock.earliest(40 * SECOND), Some(UNIX_EPOCH + Duration::from_secs(984)));
        assert_eq!(clock.latest(60 * SECOND), Some(UNIX_EPOCH + Duration::from_secs(1010)));
        let of_file = WallClock { clock: None, ..clock };
        assert_eq!(of_file.earliest(40 * SECOND), of_file.latest(40 * SECOND));
        assert_eq!(WallClock::default().earliest(1), None);
    }
}
