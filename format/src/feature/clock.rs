//! Clocks, the directory format, and how records are compressed.

use crate::wire;

wire! {
    /// The resolution of the clock that was asked for (`CLOCKID`).
    pub struct ClockId {
        /// In nanoseconds.
        pub resolution: u64,
    }

    /// The clock beside wall-clock time (`CLOCK_DATA`).
    pub struct ClockData {
        /// 1.
        pub version: u32,
        /// Which clock.
        pub clockid: u32,
        /// Wall-clock time, in nanoseconds since 1970.
        pub wall_clock: u64,
        /// The clock's time at that moment, in nanoseconds.
        pub clock: u64,
    }

    /// The data is in files `data.*` of a directory (`DIR_FORMAT`).
    pub struct DirFormat {
        /// 1.
        pub version: u64,
    }

    /// How records are compressed (`COMPRESSED`).
    pub struct Compression {
        /// 1.
        pub version: u32,
        /// 1: zstd.
        pub kind: u32,
        /// The level.
        pub level: u32,
        /// How many times smaller it made them.
        pub ratio: u32,
        /// How long the rings were, in bytes: no more is in one record.
        pub mmap_len: u32,
    }
}

wire_features! {
    ClockId = CLOCKID;
    ClockData = CLOCK_DATA;
    DirFormat = DIR_FORMAT;
    Compression = COMPRESSED;
}
