//! Records of `perf stat record`: STAT_CONFIG, STAT, STAT_ROUND.

use crate::abi::{Cpu, StatConfigTag, StatRoundKind};
use crate::bytes::U64s;
use crate::fields::named;
use crate::wire;

wire! {
    /// The settings of `perf stat record` (`PERF_RECORD_STAT_CONFIG`).
    pub struct StatConfig<'a> {
        /// Number of settings, as the record says.
        pub nr: u64,
        /// Tag and value of each ([`StatConfig::iter`]).
        pub words: U64s<'a>,
    }

    /// A count (`PERF_RECORD_STAT`).
    pub struct Stat {
        /// The event's id.
        pub id: u64,
        /// The CPU.
        pub cpu: Cpu,
        /// The thread: its place in the THREAD_MAP record.
        pub thread: u32 => signed,
        /// The count.
        pub value: u64 => "val",
        /// The time that the event was enabled, in nanoseconds.
        pub enabled: u64 => "ena",
        /// The time that it was on the PMU, in nanoseconds.
        pub running: u64 => "run",
    }

    /// The end of an interval (`PERF_RECORD_STAT_ROUND`).
    pub struct StatRound {
        /// Kind: whether more intervals follow.
        pub kind: StatRoundKind => "type",
        /// The time, in nanoseconds.
        pub time: u64,
    }
}

named! {
    /// A setting in a [`StatConfig`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StatConfigEntry {
        /// The setting.
        pub tag: StatConfigTag,
        /// Its value.
        pub value: u64 => "val",
    }
}

impl StatConfig<'_> {
    /// Returns the settings: as many as the record says, or fewer if it is too short.
    pub fn iter(&self) -> impl Iterator<Item = StatConfigEntry> {
        let words = self.words;
        let count = usize::try_from(self.nr).unwrap_or(usize::MAX).min(words.len() / 2);
        (0..count).filter_map(move |i| {
            Some(StatConfigEntry {
                tag: StatConfigTag(words.get(2 * i)?),
                value: words.get(2 * i + 1)?,
            })
        })
    }

    /// Returns the value of a setting; `None` if the record does not have it.
    pub fn get(&self, tag: StatConfigTag) -> Option<u64> {
        self.iter().find(|entry| entry.tag == tag).map(|entry| entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::endian::Endian;
    use crate::wire::Wire;

    #[test]
    fn settings_have_tags() {
        #[rustfmt::skip]
        let bytes = [
            0, 0, 0, 0, 0, 0, 0, 2, // nr
            0, 0, 0, 0, 0, 0, 0, 1, // INTERVAL
            0, 0, 0, 0, 0, 0, 3, 232,
            0, 0, 0, 0, 0, 0, 0, 2, // SCALE
            0, 0, 0, 0, 0, 0, 0, 1,
            0, 0, 0, 0, 0, 0, 0, 3, // beyond `nr`
            0, 0, 0, 0, 0, 0, 0, 9,
        ];
        let config = StatConfig::from_bytes(&bytes, Endian::Big).unwrap();
        let entries: Vec<_> = config.iter().map(|entry| (entry.tag.name(), entry.value)).collect();
        assert_eq!(entries, [(Some("INTERVAL"), 1000), (Some("SCALE"), 1)]);
        assert_eq!(config.get(StatConfigTag::SCALE), Some(1));
        assert_eq!(config.get(StatConfigTag::AGGR_LEVEL), None);
        assert_eq!(StatConfig { nr: u64::MAX, ..config }.iter().count(), 3);
    }
}
