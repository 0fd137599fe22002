//! Values of counters: the field READ of samples, and the READ record.

use crate::abi::ReadFormat;
use crate::bytes::{Cursor, Encoder, U64s};
use crate::error::{Error, Result};
use crate::fields::{Value, named, shown};
use crate::wire::Wire;

/// The values of a counter or of its group (`struct read_format` in perf_event_open(2)).
///
/// ```text
///   alone   value  [time_enabled]  [time_running]  [id]  [lost]
///   group   nr     [time_enabled]  [time_running]  { value  [id]  [lost] } × nr
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadValues<'a> {
    /// The attr's `read_format`: the fields that the values have.
    pub format: ReadFormat,
    /// The words as they lie in the record.
    pub words: U64s<'a>,
}

shown! {
    ReadValues<'_>: |values| Value::Words(values.words);
}

impl<'a> ReadValues<'a> {
    /// Returns the number of words for so many counters.
    fn len(format: ReadFormat, counters: u64) -> u64 {
        let has = |bit| u64::from(format.contains(bit));
        let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
        let each = 1 + has(ReadFormat::ID) + has(ReadFormat::LOST);
        counters.saturating_mul(each).saturating_add(has(ReadFormat::GROUP) + times)
    }

    pub(super) fn decode(c: &mut Cursor<'a>, format: ReadFormat) -> Result<Self> {
        let mut ahead = *c;
        let counters =
            if format.contains(ReadFormat::GROUP) { ahead.u64("sample.read.nr")? } else { 1 };
        Ok(Self { format, words: c.take_u64s(Self::len(format, counters), "sample.read")? })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        let counters = self.nr();
        if Self::len(self.format, counters) != self.words.len() as u64 {
            let detail = format!(
                "{} words for {counters} counters with {:?}",
                self.words.len(),
                self.format
            );
            return Err(Error::invalid(e.len() as u64, "sample.read", detail));
        }
        self.words.encode(e)
    }

    /// Returns whether the values are those of a group.
    pub fn is_group(&self) -> bool {
        self.format.contains(ReadFormat::GROUP)
    }

    /// Returns the number of counters: 1 if the values are not those of a group.
    pub fn nr(&self) -> u64 {
        if self.is_group() { self.words.get(0).unwrap_or(0) } else { 1 }
    }

    /// Returns the time that the event was enabled, in nanoseconds; `None` if the format has no
    /// such field.
    pub fn time_enabled(&self) -> Option<u64> {
        self.format.contains(ReadFormat::TOTAL_TIME_ENABLED).then(|| self.words.get(1)).flatten()
    }

    /// Returns the time that the event was on the PMU, in nanoseconds; `None` if the format has no
    /// such field.
    pub fn time_running(&self) -> Option<u64> {
        let place = 1 + usize::from(self.format.contains(ReadFormat::TOTAL_TIME_ENABLED));
        self.format
            .contains(ReadFormat::TOTAL_TIME_RUNNING)
            .then(|| self.words.get(place))
            .flatten()
    }

    /// Returns the counters.
    pub fn counters(&self) -> impl Iterator<Item = Counter> + use<'a> {
        let has = |bit| usize::from(self.format.contains(bit));
        let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
        let (before, behind) = if self.is_group() { (1 + times, 0) } else { (0, times) };
        let (id, lost) = (has(ReadFormat::ID), has(ReadFormat::LOST));
        let (words, each) = (self.words, 1 + behind + id + lost);
        (0..words.len().saturating_sub(before) / each).filter_map(move |i| {
            let at = before + i * each;
            let rest = at + 1 + behind;
            Some(Counter {
                value: words.get(at)?,
                id: (id == 1).then(|| words.get(rest)).flatten(),
                lost: (lost == 1).then(|| words.get(rest + id)).flatten(),
            })
        })
    }
}

/// One counter of [`ReadValues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its count.
    pub value: u64,
    /// Its id; `None` if the format has no such field.
    pub id: Option<u64>,
    /// Number of its samples that were lost; `None` if the format has no such field.
    pub lost: Option<u64>,
}

named! {
    /// The values of a counter, or of its group (`PERF_RECORD_READ`), written for `inherit_stat`
    /// when a task ends.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReadRecord<'a> {
        /// The process.
        pub pid: u32 => signed,
        /// The thread.
        pub tid: u32 => signed,
        /// The values, laid out by the attr's `read_format`.
        pub values: ReadValues<'a>,
    }
}

impl<'a> ReadRecord<'a> {
    pub(super) fn decode(c: &mut Cursor<'a>, format: ReadFormat) -> Result<Self> {
        Ok(Self {
            pid: c.u32("Read.pid")?,
            tid: c.u32("Read.tid")?,
            values: ReadValues::decode(c, format)?,
        })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u32(self.pid);
        e.u32(self.tid);
        self.values.encode(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    const TIMES: ReadFormat = ReadFormat::TOTAL_TIME_ENABLED.union(ReadFormat::TOTAL_TIME_RUNNING);

    fn read(format: ReadFormat, bytes: &[u8], endian: Endian) -> ReadValues<'_> {
        let mut c = Cursor::new(bytes, 0, endian);
        let read = ReadValues::decode(&mut c, format).unwrap();
        assert!(c.is_empty());
        read
    }

    #[test]
    fn a_counter_alone() {
        #[rustfmt::skip]
        let bytes = [
            0, 0, 0, 0, 0, 0, 3, 232, // value
            0, 0, 0, 0, 0, 0, 0, 50, // time_enabled
            0, 0, 0, 0, 0, 0, 0, 25, // time_running
            0, 0, 0, 0, 0, 0, 0, 7, // id
            0, 0, 0, 0, 0, 0, 0, 3, // lost
        ];
        let all = read(TIMES | ReadFormat::ID | ReadFormat::LOST, &bytes, Endian::Big);
        assert_eq!(
            (all.is_group(), all.nr(), all.time_enabled(), all.time_running()),
            (false, 1, Some(50), Some(25))
        );
        assert_eq!(
            all.counters().collect::<Vec<_>>(),
            [Counter { value: 1000, id: Some(7), lost: Some(3) }]
        );
        let running = read(ReadFormat::TOTAL_TIME_RUNNING, &bytes[8..24], Endian::Big);
        assert_eq!((running.time_enabled(), running.time_running()), (None, Some(25)));
        assert_eq!(
            running.counters().collect::<Vec<_>>(),
            [Counter { value: 50, id: None, lost: None }]
        );
        let value = read(ReadFormat::empty(), &bytes[..8], Endian::Big);
        assert_eq!((value.time_enabled(), value.time_running()), (None, None));
    }

    #[test]
    fn a_group() {
        #[rustfmt::skip]
        let bytes = [
            2, 0, 0, 0, 0, 0, 0, 0, // nr
            50, 0, 0, 0, 0, 0, 0, 0, // time_enabled
            25, 0, 0, 0, 0, 0, 0, 0, // time_running
            10, 0, 0, 0, 0, 0, 0, 0, // value
            1, 0, 0, 0, 0, 0, 0, 0, // id
            20, 0, 0, 0, 0, 0, 0, 0, // value
            2, 0, 0, 0, 0, 0, 0, 0, // id
        ];
        let group = read(ReadFormat::GROUP | TIMES | ReadFormat::ID, &bytes, Endian::Little);
        assert_eq!((group.is_group(), group.nr()), (true, 2));
        assert_eq!((group.time_enabled(), group.time_running()), (Some(50), Some(25)));
        let counters: Vec<_> =
            group.counters().map(|counter| (counter.value, counter.id, counter.lost)).collect();
        assert_eq!(counters, [(10, Some(1), None), (20, Some(2), None)]);
        let mut short = Cursor::new(&bytes[..48], 0, Endian::Little);
        assert!(
            ReadValues::decode(&mut short, ReadFormat::GROUP | TIMES | ReadFormat::ID).is_err()
        );
    }
}
