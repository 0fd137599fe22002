//! `enum perf_event_type` and perf's `enum perf_user_event_type`, and the bits of a record's
//! `misc`.

use super::constants::constants;

constants! {
    /// The type of a record: the first field of its header.
    ///
    /// It prints the name that `perf report --stats` uses.
    pub struct RecordType(u32) {
        /// A file mapped executable (`PERF_RECORD_MMAP`).
        MMAP = 1;
        /// Records that the ring had no room for.
        LOST = 2;
        /// A thread's name changed.
        COMM = 3;
        /// A task ended.
        EXIT = 4;
        /// The kernel began to hold an event back.
        THROTTLE = 5;
        /// The kernel let an event run again.
        UNTHROTTLE = 6;
        /// A task began.
        FORK = 7;
        /// A counter's value.
        READ = 8;
        /// A sample.
        SAMPLE = 9;
        /// A mapping with device and inode, or with a build ID.
        MMAP2 = 10;
        /// New data in the AUX area.
        AUX = 11;
        /// Instruction tracing began for a task.
        ITRACE_START = 12;
        /// Samples that were lost.
        LOST_SAMPLES = 13;
        /// A context switch, from the task's side.
        SWITCH = 14;
        /// A context switch, from the CPU's side.
        SWITCH_CPU_WIDE = 15;
        /// The namespaces of a task.
        NAMESPACES = 16;
        /// A kernel symbol came or went.
        KSYMBOL = 17;
        /// A BPF program came or went.
        BPF_EVENT = 18;
        /// A cgroup's id and path.
        CGROUP = 19;
        /// The kernel changed its own text.
        TEXT_POKE = 20;
        /// The hardware id behind AUX output.
        AUX_OUTPUT_HW_ID = 21;
        /// A user callchain that was deferred until the return to user space.
        CALLCHAIN_DEFERRED = 22;
        /// An attr and its ids (`PERF_RECORD_HEADER_ATTR`; pipe mode).
        ATTR = 64;
        /// A tracepoint's id and name (deprecated).
        EVENT_TYPE = 65;
        /// The formats of tracepoints.
        TRACING_DATA = 66;
        /// The build ID of a file.
        BUILD_ID = 67;
        /// No record after it is older than the round before it.
        FINISHED_ROUND = 68;
        /// The CPU and thread of each id.
        ID_INDEX = 69;
        /// The kind of AUX data.
        AUXTRACE_INFO = 70;
        /// AUX data; the payload follows the record.
        AUXTRACE = 71;
        /// An error in hardware tracing.
        AUXTRACE_ERROR = 72;
        /// The threads that were recorded.
        THREAD_MAP = 73;
        /// The CPUs that were recorded.
        CPU_MAP = 74;
        /// The settings of `perf stat record`.
        STAT_CONFIG = 75;
        /// A count of `perf stat record`.
        STAT = 76;
        /// An interval of `perf stat record`.
        STAT_ROUND = 77;
        /// An event's unit, scale, name or CPUs.
        EVENT_UPDATE = 78;
        /// The conversion between time-stamp counter and perf clock.
        TIME_CONV = 79;
        /// A header feature (pipe mode).
        FEATURE = 80;
        /// Compressed records (zstd).
        COMPRESSED = 81;
        /// The synthesized records are over.
        FINISHED_INIT = 82;
        /// Compressed records, padded to 8 bytes.
        COMPRESSED2 = 83;
        /// Facts about a BPF program, by the program itself.
        BPF_METADATA = 84;
        /// Counts of a CPU's scheduler, from `/proc/schedstat`.
        SCHEDSTAT_CPU = 85;
        /// Counts of a scheduling domain.
        SCHEDSTAT_DOMAIN = 86;
    }
}

impl RecordType {
    /// The first type that is perf's own, not the kernel's.
    pub const USER_TYPE_START: u32 = 64;

    /// simpleperf: the text of `/proc/kallsyms`.
    pub const SIMPLEPERF_KERNEL_SYMBOL: Self = Self(32769);
    /// simpleperf: ids of counters that were opened later, each with the number of its attr.
    pub const SIMPLEPERF_EVENT_ID: Self = Self(32774);
    /// simpleperf: the formats of tracepoints.
    pub const SIMPLEPERF_TRACING_DATA: Self = Self(32777);

    /// Returns whether Android's simpleperf defines the type. Its records may be longer than 16
    /// bits can say: the upper half of the size lies in the place of `misc`. Such types have no
    /// name, as in perf.
    #[inline]
    pub const fn is_simpleperf(self) -> bool {
        matches!(self.0, 32769..=32778)
    }

    /// Returns whether the kernel defines the type; only its records end in a trailer.
    #[inline]
    pub const fn is_kernel(self) -> bool {
        self.0 < Self::USER_TYPE_START
    }
}

/// The bits of a record's `misc` field (`PERF_RECORD_MISC_*`); some mean different things in
/// different records.
pub mod misc {
    /// The bits that hold the [`CpuMode`](super::CpuMode).
    pub const CPUMODE_MASK: u16 = 7;
    /// The `/proc` walk that made this record timed out.
    pub const PROC_MAP_PARSE_TIMEOUT: u16 = 1 << 12;
    /// SWITCH, SAMPLE: made by `rec` at the start of the recording, of a thread that waits. The
    /// kernel sets the bit in no record.
    pub const WAITS_AT_START: u16 = 1 << 12;
    /// MMAP, MMAP2: a mapping of data, not of code.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// COMM: the name changed because of an exec.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// FORK: made by perf for an exec.
    pub const FORK_EXEC: u16 = 1 << 13;
    /// SWITCH: the task went out.
    pub const SWITCH_OUT: u16 = 1 << 13;
    /// SAMPLE: the ip is that of the instruction which caused the sample.
    pub const EXACT_IP: u16 = 1 << 14;
    /// SWITCH: the task went out because it was preempted.
    pub const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    /// MMAP2: a build ID stands in the place of device and inode.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// LOST_SAMPLES: a BPF filter dropped the samples; they are not lost.
    pub const LOST_SAMPLES_BPF: u16 = 1 << 15;
    /// BUILD_ID: the event says how long its build ID is.
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// The CPU mode: the low three bits of `misc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuMode {
    /// Not known.
    Unknown,
    /// In the kernel.
    Kernel,
    /// In user space.
    User,
    /// In the hypervisor.
    Hypervisor,
    /// In the kernel of a guest.
    GuestKernel,
    /// In user space of a guest.
    GuestUser,
    /// A value that has no meaning (6 or 7).
    Reserved,
}

impl CpuMode {
    /// Returns the mode in a record's `misc`.
    #[inline]
    pub const fn of(misc: u16) -> Self {
        match misc & misc::CPUMODE_MASK {
            0 => Self::Unknown,
            1 => Self::Kernel,
            2 => Self::User,
            3 => Self::Hypervisor,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Reserved,
        }
    }

    /// Returns whether it is one of a guest.
    #[inline]
    pub const fn is_guest(self) -> bool {
        matches!(self, Self::GuestKernel | Self::GuestUser)
    }

    /// Returns the bits of `misc` for this mode.
    pub const fn bits(self) -> u16 {
        match self {
            Self::Unknown => 0,
            Self::Kernel => 1,
            Self::User => 2,
            Self::Hypervisor => 3,
            Self::GuestKernel => 4,
            Self::GuestUser => 5,
            Self::Reserved => 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_perfs_names() {
        assert_eq!(RecordType::SAMPLE.to_string(), "SAMPLE");
        assert_eq!(RecordType::ATTR.to_string(), "ATTR");
        assert_eq!(RecordType(999).to_string(), "UNKNOWN_999");
        assert!(RecordType::NAMED.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn cpu_modes_round_trip() {
        for bits in 0..=6 {
            assert_eq!(CpuMode::of(bits).bits(), bits);
        }
        assert_eq!(CpuMode::of(misc::EXACT_IP | 2), CpuMode::User);
    }
}
