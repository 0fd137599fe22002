//! Reading of counters: values, times, lost samples.

use std::os::fd::AsFd as _;
use std::thread::sleep;
use std::time::Duration;

use recrep_format::abi::ReadFormat;
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::record::ReadValues;

use rustix::io::Errno;

use super::counter::{Counter, Counters};
use crate::kernel::Kernel;
use crate::messages::error::Error;

/// Number of times that a counter is read whose inherited ones are just ending, and the time
/// between.
const READS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// Values read from a counter at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub id: u64,
    pub value: u64,
    pub lost: u64,
    /// Time enabled, in nanoseconds; 0 if not requested in `read_format`.
    pub enabled: u64,
    /// Time running on the PMU, in nanoseconds; 0 if not requested in `read_format`.
    pub running: u64,
    /// `true` if the counter is in error state: pinned, and without room on its PMU. It has no
    /// value then.
    pub failed: bool,
}

impl Counters {
    /// Reads all counters; those of a group through its leader.
    pub fn read<K: Kernel>(&self, kernel: &K) -> Result<Vec<Reading>, Error> {
        let mut all = Vec::new();
        let mut members = vec![1; self.events.len()];
        for leader in self.events.iter().filter_map(|event| event.leader) {
            if let Some(members) = members.get_mut(leader) {
                *members += 1;
            }
        }
        for counter in &self.all {
            let Some(event) = self.events.get(counter.event) else { continue };
            let format = event.attr.read_format;
            if event.leader.is_some() && format.contains(ReadFormat::GROUP) {
                continue;
            }
            let grouped = format.contains(ReadFormat::GROUP);
            let members = members.get(counter.event).filter(|_| grouped).unwrap_or(&1);
            // Maximum: number of members, two times, and value, id and lost samples of each member.
            let mut numbers = vec![0; 3 + 3 * members];
            let found = match read_settled(kernel, counter, &mut numbers) {
                // The other counters' losses are still known.
                Err(Errno::CHILD) => continue,
                found => found.map_err(|e| Error::io("cannot read the value of a counter", e))?,
            };
            if found == 0 {
                // As perf_event_open(2) says of pinned counters that could not be put on the PMU.
                all.push(Reading { id: counter.id, failed: true, ..Reading::default() });
                continue;
            }
            numbers.truncate(found);
            all.extend(readings(&numbers, format, counter.id));
        }
        Ok(all)
    }
}

/// Reads a counter. Those of a group that a task inherited go one by one when the task ends; the
/// kernel does not add them up in between (ECHILD).
fn read_settled<K: Kernel>(
    kernel: &K,
    counter: &Counter,
    numbers: &mut [u64],
) -> Result<usize, Errno> {
    for _ in 0..READS {
        match kernel.read(counter.as_fd(), numbers) {
            Err(Errno::CHILD) => sleep(PAUSE),
            read => return read,
        }
    }
    kernel.read(counter.as_fd(), numbers)
}

/// Parses the result of read(2), in the layout of perf_event_open(2).
fn readings(numbers: &[u64], format: ReadFormat, own_id: u64) -> Vec<Reading> {
    let mut e = Encoder::new(Endian::NATIVE);
    for number in numbers {
        e.u64(*number);
    }
    let read = ReadValues { format, words: U64s::new(e.as_bytes(), Endian::NATIVE) };
    let [enabled, running] =
        [read.time_enabled(), read.time_running()].map(|time| time.unwrap_or(0));
    read.counters()
        .map(|counter| {
            let (id, lost) = (counter.id.unwrap_or(own_id), counter.lost.unwrap_or(0));
            Reading { id, value: counter.value, lost, enabled, running, failed: false }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_one_and_of_a_group() {
        let one = ReadFormat::ID | ReadFormat::LOST;
        assert_eq!(
            readings(&[5, 7, 2], one, 7),
            [Reading { id: 7, value: 5, lost: 2, ..Reading::default() }]
        );
        let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
        let timed = Reading { id: 9, value: 5, enabled: 10, running: 4, ..Reading::default() };
        assert_eq!(readings(&[5, 10, 4], times, 9), [timed]);
        let group = readings(&[2, 10, 4, 5, 7, 2, 6, 8, 0], one | times | ReadFormat::GROUP, 7);
        let first = Reading { id: 7, lost: 2, ..timed };
        assert_eq!(group, [first, Reading { id: 8, value: 6, lost: 0, ..first }]);
    }
}
