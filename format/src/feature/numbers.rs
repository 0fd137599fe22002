//! Features that are a few numbers: CPUs, memory, sample times, PMU numbers.

use super::HeaderString;
use crate::wire::{List, wire};

wire! {
    /// Numbers of CPUs (`NRCPUS`).
    pub struct NrCpus {
        /// Number of CPUs that the machine can have.
        pub available: u32,
        /// Number of CPUs that were online.
        pub online: u32,
    }

    /// The machine's memory (`TOTAL_MEM`).
    pub struct TotalMem {
        /// In KiB.
        pub kib: u64,
    }

    /// Instruction set of the recorded programs (`E_MACHINE`), as ELF headers have it.
    pub struct EMachine {
        /// The machine (`EM_…`).
        pub e_machine: u32,
        /// Its flags (`EF_…`).
        pub e_flags: u32 => hex,
    }

    /// Length of a cache line (`CLN_SIZE`).
    pub struct CacheLineSize {
        /// In bytes.
        pub cln_size: u32,
    }

    /// When the first and the last sample were taken (`SAMPLE_TIME`), in nanoseconds of the perf
    /// clock.
    pub struct SampleTime {
        /// The first sample.
        pub first: u64 => "first_sample_time",
        /// The last sample.
        pub last: u64 => "last_sample_time",
    }

    /// A PMU's number and name.
    pub struct PmuMapping<'a> {
        /// The number that attrs have as their type.
        pub kind: u32 => "type",
        /// Its name in sysfs.
        pub name: HeaderString<'a>,
    }
}

wire! {
    /// The numbers and names of the PMUs (`PMU_MAPPINGS`).
    pub owned struct PmuMappings<'a> {
        /// The PMUs.
        pub pmus: List<PmuMapping<'a>>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::endian::Endian;
    use crate::wire::Wire;

    #[test]
    fn pmus_come_back() {
        let pmu = |kind, name| PmuMapping { kind, name: HeaderString::new(name) };
        let all = PmuMappings { pmus: List(vec![pmu(1, "software"), pmu(5, "breakpoint")]) };
        let e = all.to_bytes(Endian::Little).unwrap();
        let back = PmuMappings::from_bytes(&e, Endian::Little).unwrap();
        let names: Vec<_> = back.pmus.0.iter().map(|p| (p.kind, p.name.to_text())).collect();
        assert_eq!(names, [(1, "software".into()), (5, "breakpoint".into())]);
    }
}
