//! The numbers of the features.

use std::fmt;

/// A header feature's number: its bit in the header's bitmap. It prints perf's name in capitals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeatureId(pub u8);

macro_rules! features {
    ($($(#[$meta:meta])* $name:ident = $number:literal;)*) => {
        impl FeatureId {
            $( $(#[$meta])* pub const $name: Self = Self($number); )*

            /// The feature's name, if it has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $number => Some(stringify!($name)), )*
                    _ => None,
                }
            }
        }
    };
}

features! {
    /// The formats of tracepoints.
    TRACING_DATA = 1;
    /// Build IDs of the files that samples hit.
    BUILD_ID = 2;
    /// The machine's name.
    HOSTNAME = 3;
    /// The kernel's release.
    OSRELEASE = 4;
    /// The recorder's version.
    VERSION = 5;
    /// The machine's architecture.
    ARCH = 6;
    /// How many CPUs there are.
    NRCPUS = 7;
    /// The CPU's description.
    CPUDESC = 8;
    /// The CPU's exact type.
    CPUID = 9;
    /// The memory, in KiB.
    TOTAL_MEM = 10;
    /// The recorder's command line.
    CMDLINE = 11;
    /// The events with their names and ids.
    EVENT_DESC = 12;
    /// Cores, threads, dies.
    CPU_TOPOLOGY = 13;
    /// Memory nodes.
    NUMA_TOPOLOGY = 14;
    /// A mark: branch stacks are there.
    BRANCH_STACK = 15;
    /// PMU numbers and names.
    PMU_MAPPINGS = 16;
    /// Groups of events.
    GROUP_DESC = 17;
    /// The index of AUX data.
    AUXTRACE = 18;
    /// A mark: made by `perf stat record`.
    STAT = 19;
    /// The caches.
    CACHE = 20;
    /// First and last sample.
    SAMPLE_TIME = 21;
    /// Memory blocks and their nodes.
    MEM_TOPOLOGY = 22;
    /// The clock's resolution.
    CLOCKID = 23;
    /// The data is in files of a directory.
    DIR_FORMAT = 24;
    /// BPF programs.
    BPF_PROG_INFO = 25;
    /// BPF types.
    BPF_BTF = 26;
    /// How records are compressed.
    COMPRESSED = 27;
    /// What the CPU's PMU can do.
    CPU_PMU_CAPS = 28;
    /// The clock beside wall-clock time.
    CLOCK_DATA = 29;
    /// The kinds of cores.
    HYBRID_TOPOLOGY = 30;
    /// What the PMUs can do.
    PMU_CAPS = 31;
}

impl FeatureId {
    /// The features whose bits are set, in bit order.
    pub fn in_bitmap(words: [u64; 4]) -> impl Iterator<Item = Self> {
        (0..=u8::MAX)
            .filter(move |bit| words.get(usize::from(bit / 64)).is_some_and(|word| word >> (bit % 64) & 1 == 1))
            .map(Self)
    }

    /// Sets the feature's bit.
    pub fn set_in(self, words: &mut [u64; 4]) {
        if let Some(word) = words.get_mut(usize::from(self.0 / 64)) {
            *word |= 1 << (self.0 % 64);
        }
    }
}

impl fmt::Display for FeatureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("FEATURE_{}", self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_numbers() {
        let mut words = [0; 4];
        for id in [FeatureId::BUILD_ID, FeatureId::PMU_CAPS, FeatureId(64), FeatureId(255)] {
            id.set_in(&mut words);
        }
        let found: Vec<_> = FeatureId::in_bitmap(words).map(|id| id.to_string()).collect();
        assert_eq!(found, ["BUILD_ID", "PMU_CAPS", "FEATURE_64", "FEATURE_255"]);
    }
}
