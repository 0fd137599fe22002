//! Circumstances of the recording: clocks, the directory format, compression, the places of AUX
//! data, marks.

use crate::bytes::U64s;
use crate::wire;

wire! {
    /// Resolution of the clock that was asked for (`CLOCKID`).
    pub struct ClockId {
        /// Resolution in nanoseconds.
        pub resolution: u64,
    }

    /// Clock of the records beside wall-clock time (`CLOCK_DATA`).
    pub struct ClockData {
        /// Version of the feature: 1.
        pub version: u32,
        /// Number of the clock (clock_gettime(2)).
        pub clockid: u32,
        /// Wall-clock time, in nanoseconds since 1970.
        pub wall_clock: u64 => "wall_clock_ns",
        /// Time of the clock at that moment, in nanoseconds.
        pub clock: u64 => "clockid_time_ns",
    }

    /// Mark of a directory whose files `data.*` hold the records (`DIR_FORMAT`).
    pub struct DirFormat {
        /// Version of the feature: 1.
        pub version: u64,
    }

    /// Compression of the records (`COMPRESSED`).
    pub struct Compression {
        /// Version of the feature: 1.
        pub version: u32,
        /// Compression format: 1 is zstd.
        pub kind: u32 => "type",
        /// Level of compression.
        pub level: u32,
        /// Length before compression by the length after it.
        pub ratio: u32,
        /// Length of a ring in bytes: no compressed record unpacks to more.
        pub mmap_len: u32,
    }

    /// Index of the AUXTRACE records (`AUXTRACE`).
    pub struct AuxtraceIndex<'a> {
        /// Number of entries, by the file's word.
        pub total: u64,
        /// Two words for each entry: place in the file, and length of the record without its
        /// payload, in bytes.
        pub words: U64s<'a>,
    }

    /// Mark of a file with branch stacks (`BRANCH_STACK`); its section is empty.
    pub struct BranchStackMark<'a> {
        /// Bytes of the section, as found.
        pub data: &'a [u8] => "data_bytes",
    }

    /// Mark of `perf stat record` (`STAT`); its section is empty.
    pub struct StatMark<'a> {
        /// Bytes of the section, as found.
        pub data: &'a [u8] => "data_bytes",
    }
}

impl AuxtraceIndex<'_> {
    /// Returns the entries, as many as the file says and holds: place in the file, and length of
    /// the record without its payload.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let words = self.words;
        let count = usize::try_from(self.total).unwrap_or(usize::MAX).min(words.len() / 2);
        (0..count).filter_map(move |i| Some((words.get(2 * i)?, words.get(2 * i + 1)?)))
    }
}
