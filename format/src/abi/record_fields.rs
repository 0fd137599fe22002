//! The numbers in the fields of records: kinds, tags and flags.
//!
//! Source: `include/uapi/linux/perf_event.h` for the kernel's records; perf's
//! `tools/lib/perf/include/perf/event.h` and `tools/perf/util/auxtrace.h` for its own.

use bitflags::bitflags;

use super::constants::{constants, wire_bits};

bitflags! {
    /// Flags of an AUX record (`PERF_AUX_FLAG_*`). Unknown bits are kept.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct AuxFlags: u64 {
        /// The area was full: the data was cut short.
        const TRUNCATED = 1 << 0;
        /// The data was taken from an area that is overwritten.
        const OVERWRITE = 1 << 1;
        /// The data has gaps.
        const PARTIAL = 1 << 2;
        /// A sample collided with another one.
        const COLLISION = 1 << 3;
        const _ = !0;
    }

    /// Flags of a KSYMBOL record (`PERF_RECORD_KSYMBOL_FLAGS_*`). Unknown bits are kept.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct KSymbolFlags: u16 {
        /// The symbol was removed.
        const UNREGISTER = 1 << 0;
        const _ = !0;
    }
}

impl AuxFlags {
    /// The bits of [`AuxFlags::pmu_format`].
    pub const PMU_FORMAT_TYPE_MASK: u64 = 0xff00;

    /// Returns the format of the data, as a number that the PMU defines
    /// (`PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK`).
    pub const fn pmu_format(self) -> u8 {
        (self.bits() >> 8 & 0xff) as u8
    }
}

/// Bits of [`Mmap2::prot`](crate::record::Mmap2::prot) (`PROT_*`, mmap(2)).
pub mod prot {
    /// The pages can be read.
    pub const READ: u32 = 1 << 0;
    /// The pages can be written.
    pub const WRITE: u32 = 1 << 1;
    /// The pages can be executed.
    pub const EXEC: u32 = 1 << 2;
}

/// Bits of [`Mmap2::flags`](crate::record::Mmap2::flags) (`MAP_*`, mmap(2)), with the numbers that
/// nearly all architectures use.
pub mod map_flags {
    /// Changes are shared with others that map the file.
    pub const SHARED: u32 = 1 << 0;
    /// Changes are private to the process.
    pub const PRIVATE: u32 = 1 << 1;
    /// The pages are huge.
    pub const HUGETLB: u32 = 0x40000;
}

wire_bits! { AuxFlags(u64); KSymbolFlags(u16); }

constants! {
    /// The origin of a kernel symbol (`enum perf_record_ksymbol_type`).
    pub struct KSymbolType(u16) {
        /// Not known.
        UNKNOWN = 0;
        /// A BPF program.
        BPF = 1;
        /// Out-of-line code: kprobes, ftrace trampolines.
        OOL = 2;
    }

    /// The change that a BPF_EVENT record reports (`enum perf_bpf_event_type`).
    pub struct BpfEventType(u16) {
        /// Not known.
        UNKNOWN = 0;
        /// A program was loaded.
        PROG_LOAD = 1;
        /// A program was unloaded.
        PROG_UNLOAD = 2;
    }

    /// The kind of AUX data (perf's `enum auxtrace_type`).
    pub struct AuxtraceKind(u32) {
        /// Not known.
        UNKNOWN = 0;
        /// Intel Processor Trace.
        INTEL_PT = 1;
        /// Intel Branch Trace Store.
        INTEL_BTS = 2;
        /// Arm CoreSight ETM and ETE.
        CS_ETM = 3;
        /// Arm Statistical Profiling Extension.
        ARM_SPE = 4;
        /// The sampling facility of s390.
        S390_CPUMSF = 5;
        /// HiSilicon PCIe Tune and Trace.
        HISI_PTT = 6;
        /// Dispatch trace log of PowerPC virtual processor areas.
        VPA_DTL = 7;
    }

    /// The kind of an error in hardware tracing (perf's `enum auxtrace_error_type`).
    pub struct AuxtraceErrorKind(u32) {
        /// Instruction tracing.
        ITRACE = 1;
    }

    /// The encoding of a set of CPUs (`PERF_CPU_MAP__*`).
    pub struct CpuMapKind(u16) {
        /// A list of CPUs.
        CPUS = 0;
        /// A mask.
        MASK = 1;
        /// The first and the last CPU.
        RANGE_CPUS = 2;
    }

    /// The property of an event that an EVENT_UPDATE record gives (`PERF_EVENT_UPDATE__*`).
    pub struct EventUpdateKind(u64) {
        /// The unit of its counts.
        UNIT = 0;
        /// The factor from its counts to that unit.
        SCALE = 1;
        /// Its name.
        NAME = 2;
        /// The CPUs that it counts on.
        CPUS = 3;
    }

    /// The tag of a setting of `perf stat record` (`PERF_STAT_CONFIG_TERM__*`).
    pub struct StatConfigTag(u64) {
        /// The parts of the machine that counts are summed over (perf's `enum aggr_mode`, whose
        /// numbers have changed between versions).
        AGGR_MODE = 0;
        /// Length of an interval in milliseconds; 0 without intervals.
        INTERVAL = 1;
        /// Whether counts are scaled to the time that the event was enabled.
        SCALE = 2;
        /// The cache level that counts are summed over.
        AGGR_LEVEL = 3;
    }

    /// The reason for a STAT_ROUND record (`PERF_STAT_ROUND_TYPE__*`).
    pub struct StatRoundKind(u64) {
        /// The end of an interval.
        INTERVAL = 0;
        /// The end of the run.
        FINAL = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::endian::Endian;
    use crate::wire::Wire;

    #[test]
    fn constants_print_their_names() {
        assert_eq!(AuxtraceKind(4).to_string(), "ARM_SPE");
        assert_eq!(AuxtraceKind(99).to_string(), "UNKNOWN_99");
        assert_eq!(format!("{:>6}|", EventUpdateKind::UNIT), "  UNIT|");
        assert_eq!((StatConfigTag(3).name(), StatConfigTag(4).name()), (Some("AGGR_LEVEL"), None));
        assert_eq!(StatRoundKind::NAMED, [StatRoundKind::INTERVAL, StatRoundKind::FINAL]);
        assert_eq!([CpuMapKind(2).to_string(), KSymbolType(2).to_string()], ["RANGE_CPUS", "OOL"]);
        assert_eq!(
            [BpfEventType(1).to_string(), AuxtraceErrorKind(1).to_string()],
            ["PROG_LOAD", "ITRACE"]
        );
    }

    #[test]
    fn flags_keep_unknown_bits_in_both_byte_orders() {
        let bytes = [0, 0, 0, 0, 0, 0, 0x12, 0x05];
        let flags = AuxFlags::from_bytes(&bytes, Endian::Big).unwrap();
        assert!(
            flags.contains(AuxFlags::TRUNCATED | AuxFlags::PARTIAL)
                && !flags.contains(AuxFlags::COLLISION)
        );
        assert_eq!(flags.pmu_format(), 0x12);
        assert_eq!(flags.to_bytes(Endian::Little).unwrap(), [5, 0x12, 0, 0, 0, 0, 0, 0]);
    }
}
