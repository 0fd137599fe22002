//! Features that this crate hands on as bytes or words: the formats of tracepoints, the index of AUX data, marks.

use crate::bytes::U64s;
use crate::wire;

wire! {
    /// The formats of tracepoints (`TRACING_DATA`), in the form that trace-cmd defined.
    pub struct TracingData<'a> {
        /// The bytes.
        pub data: &'a [u8],
    }

    /// Where the AUXTRACE records are (`AUXTRACE`).
    pub struct AuxtraceIndex<'a> {
        /// How many entries there are, by the file's word.
        pub total: u64,
        /// Two words for each: where in the file, and how long the record is without the data behind it.
        pub words: U64s<'a>,
    }

    /// The mark that branch stacks are there (`BRANCH_STACK`); its section is empty.
    pub struct BranchStackMark<'a> {
        /// Nothing, as a rule.
        pub data: &'a [u8],
    }

    /// The mark of `perf stat record` (`STAT`); its section is empty.
    pub struct StatMark<'a> {
        /// Nothing, as a rule.
        pub data: &'a [u8],
    }
}

wire_features! {
    TracingData<'a> = TRACING_DATA;
    AuxtraceIndex<'a> = AUXTRACE;
    BranchStackMark<'a> = BRANCH_STACK;
    StatMark<'a> = STAT;
}

impl AuxtraceIndex<'_> {
    /// The entries, as many as the file says and holds: where in the file, and how long without the data behind it.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let words = self.words;
        let count = usize::try_from(self.total).unwrap_or(usize::MAX).min(words.len() / 2);
        (0..count).filter_map(move |i| Some((words.get(2 * i)?, words.get(2 * i + 1)?)))
    }
}
