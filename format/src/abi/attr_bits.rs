//! The numbers of `struct perf_event_attr`: event types, configs, flags.

use bitflags::bitflags;

use super::constants::constants;
use crate::endian::Endian;

constants! {
    /// `perf_event_attr.type` (`enum perf_type_id`); numbers from 6 up are PMUs that the kernel
    /// registered.
    pub struct EventType(u32) {
        /// Generalized hardware events ([`HwEvent`]).
        HARDWARE = 0;
        /// Events of the kernel itself ([`SwEvent`]).
        SOFTWARE = 1;
        /// Tracepoints: `config` is the id in tracefs.
        TRACEPOINT = 2;
        /// Generalized cache events ([`HwCache`]).
        HW_CACHE = 3;
        /// A number that the CPU's PMU knows.
        RAW = 4;
        /// Breakpoints.
        BREAKPOINT = 5;
        /// perf's own number of events that it makes of traces ([`SynthEvent`]).
        SYNTH = 0x8000_0000;
    }

    /// `config` of [`EventType::SYNTH`] (`enum perf_synth_id` of perf): events of Intel PT. Raw data of their samples says more.
    pub struct SynthEvent(u64) {
        /// A value that the program wrote.
        INTEL_PTWRITE = 0;
        /// Execution of `mwait`.
        INTEL_MWAIT = 1;
        /// Entry to a C-state.
        INTEL_PWRE = 2;
        /// The core's clock stopped.
        INTEL_EXSTOP = 3;
        /// Exit from a C-state.
        INTEL_PWRX = 4;
        /// Another ratio of the core's clock to the bus clock.
        INTEL_CBR = 5;
        /// A place in the trace where decoding can begin.
        INTEL_PSB = 6;
        /// An event of the flow of control.
        INTEL_EVT = 7;
        /// Interrupts were enabled or disabled.
        INTEL_IFLAG_CHG = 8;
    }

    /// `config` of [`EventType::HARDWARE`] (`enum perf_hw_id`); the high 32 bits may hold the PMU.
    pub struct HwEvent(u64) {
        /// Cycles.
        CPU_CYCLES = 0;
        /// Retired instructions.
        INSTRUCTIONS = 1;
        /// Cache accesses.
        CACHE_REFERENCES = 2;
        /// Cache misses.
        CACHE_MISSES = 3;
        /// Retired branches.
        BRANCH_INSTRUCTIONS = 4;
        /// Mispredicted branches.
        BRANCH_MISSES = 5;
        /// Bus cycles.
        BUS_CYCLES = 6;
        /// Cycles in which the front end was stalled.
        STALLED_CYCLES_FRONTEND = 7;
        /// Cycles in which the back end was stalled.
        STALLED_CYCLES_BACKEND = 8;
        /// Cycles at a constant rate.
        REF_CPU_CYCLES = 9;
    }

    /// `config` of [`EventType::SOFTWARE`] (`enum perf_sw_ids`).
    pub struct SwEvent(u64) {
        /// Time of a CPU, in nanoseconds.
        CPU_CLOCK = 0;
        /// Time of a task, in nanoseconds.
        TASK_CLOCK = 1;
        /// Page faults.
        PAGE_FAULTS = 2;
        /// Context switches.
        CONTEXT_SWITCHES = 3;
        /// Moves to another CPU.
        CPU_MIGRATIONS = 4;
        /// Page faults without I/O.
        PAGE_FAULTS_MIN = 5;
        /// Page faults with I/O.
        PAGE_FAULTS_MAJ = 6;
        /// Unaligned accesses that the kernel handled.
        ALIGNMENT_FAULTS = 7;
        /// Instructions that the kernel emulated.
        EMULATION_FAULTS = 8;
        /// Nothing: carries side-band only.
        DUMMY = 9;
        /// Output of BPF programs.
        BPF_OUTPUT = 10;
        /// Context switches between cgroups.
        CGROUP_SWITCHES = 11;
    }

    /// The cache of a cache event: bits 0 to 7 of `config` (`enum perf_hw_cache_id`).
    pub struct HwCache(u8) {
        /// Level 1, data.
        L1D = 0;
        /// Level 1, instructions.
        L1I = 1;
        /// The last level.
        LL = 2;
        /// The TLB of data.
        DTLB = 3;
        /// The TLB of instructions.
        ITLB = 4;
        /// The branch prediction unit.
        BPU = 5;
        /// Local memory.
        NODE = 6;
    }

    /// The operation of a cache event: bits 8 to 15 of `config` (`enum perf_hw_cache_op_id`).
    pub struct HwCacheOp(u8) {
        /// Reads.
        READ = 0;
        /// Writes.
        WRITE = 1;
        /// Prefetches.
        PREFETCH = 2;
    }

    /// The result of a cache event: bits 16 to 23 of `config` (`enum perf_hw_cache_op_result_id`).
    pub struct HwCacheResult(u8) {
        /// All accesses.
        ACCESS = 0;
        /// Misses.
        MISS = 1;
    }
}

/// A cache event: the three parts of `config` of [`EventType::HW_CACHE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheEvent {
    /// The cache.
    pub cache: HwCache,
    /// The operation.
    pub op: HwCacheOp,
    /// The result.
    pub result: HwCacheResult,
}

impl CacheEvent {
    /// Returns the parts of a `config`.
    pub const fn of(config: u64) -> Self {
        Self {
            cache: HwCache((config & 0xff) as u8),
            op: HwCacheOp((config >> 8 & 0xff) as u8),
            result: HwCacheResult((config >> 16 & 0xff) as u8),
        }
    }

    /// Returns the `config`.
    pub const fn config(self) -> u64 {
        self.cache.0 as u64 | (self.op.0 as u64) << 8 | (self.result.0 as u64) << 16
    }

    /// Returns whether the combination exists: nothing writes to the level 1 cache of instructions,
    /// and the TLB of instructions and the branch prediction unit are only read.
    pub fn is_valid(self) -> bool {
        match self.cache {
            HwCache::L1I => self.op != HwCacheOp::WRITE,
            HwCache::ITLB | HwCache::BPU => self.op == HwCacheOp::READ,
            _ => true,
        }
    }
}

bitflags! {
    /// The bit-fields of `perf_event_attr`, `disabled` as bit 0, whatever the byte order of the
    /// file. Bits that have no name yet are kept.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct AttrFlags: u64 {
        /// Off until enabled.
        const DISABLED = 1 << 0;
        /// Children inherit it.
        const INHERIT = 1 << 1;
        /// Must always be on the PMU.
        const PINNED = 1 << 2;
        /// Alone on the PMU.
        const EXCLUSIVE = 1 << 3;
        /// Not in user space.
        const EXCLUDE_USER = 1 << 4;
        /// Not in the kernel.
        const EXCLUDE_KERNEL = 1 << 5;
        /// Not in the hypervisor.
        const EXCLUDE_HV = 1 << 6;
        /// Not when idle.
        const EXCLUDE_IDLE = 1 << 7;
        /// MMAP records of code.
        const MMAP = 1 << 8;
        /// COMM records.
        const COMM = 1 << 9;
        /// `sample_period` is a frequency.
        const FREQ = 1 << 10;
        /// Counts per task.
        const INHERIT_STAT = 1 << 11;
        /// The next exec enables it.
        const ENABLE_ON_EXEC = 1 << 12;
        /// FORK and EXIT records.
        const TASK = 1 << 13;
        /// `wakeup_watermark`, not `wakeup_events`.
        const WATERMARK = 1 << 14;
        /// The low bit of `precise_ip`.
        const PRECISE_IP_1 = 1 << 15;
        /// The high bit of `precise_ip`.
        const PRECISE_IP_2 = 1 << 16;
        /// MMAP records of data too.
        const MMAP_DATA = 1 << 17;
        /// Every record ends in a trailer.
        const SAMPLE_ID_ALL = 1 << 18;
        /// Not in the host.
        const EXCLUDE_HOST = 1 << 19;
        /// Not in guests.
        const EXCLUDE_GUEST = 1 << 20;
        /// Callchains without their kernel part.
        const EXCLUDE_CALLCHAIN_KERNEL = 1 << 21;
        /// Callchains without their user part.
        const EXCLUDE_CALLCHAIN_USER = 1 << 22;
        /// MMAP2 in the place of MMAP.
        const MMAP2 = 1 << 23;
        /// COMM records tell an exec.
        const COMM_EXEC = 1 << 24;
        /// `clockid` says which clock.
        const USE_CLOCKID = 1 << 25;
        /// SWITCH records.
        const CONTEXT_SWITCH = 1 << 26;
        /// The ring is written backwards.
        const WRITE_BACKWARD = 1 << 27;
        /// NAMESPACES records.
        const NAMESPACES = 1 << 28;
        /// KSYMBOL records.
        const KSYMBOL = 1 << 29;
        /// BPF_EVENT records.
        const BPF_EVENT = 1 << 30;
        /// AUX records in the place of samples.
        const AUX_OUTPUT = 1 << 31;
        /// CGROUP records.
        const CGROUP = 1 << 32;
        /// TEXT_POKE records.
        const TEXT_POKE = 1 << 33;
        /// Build IDs in MMAP2.
        const BUILD_ID = 1 << 34;
        /// Only threads inherit it.
        const INHERIT_THREAD = 1 << 35;
        /// An exec removes it.
        const REMOVE_ON_EXEC = 1 << 36;
        /// A synchronous SIGTRAP for each event.
        const SIGTRAP = 1 << 37;
        /// User callchains are deferred.
        const DEFER_CALLCHAIN = 1 << 38;
        /// CALLCHAIN_DEFERRED records go to this event's ring.
        const DEFER_OUTPUT = 1 << 39;
        const _ = !0;
    }
}

impl AttrFlags {
    /// Returns the precision that the ip must have: 0 (any skid) to 3 (none).
    pub const fn precise_ip(self) -> u8 {
        ((self.bits() >> 15) & 3) as u8
    }

    /// Returns the same flags with this `precise_ip` (of which the low two bits count).
    #[must_use]
    pub const fn with_precise_ip(self, level: u8) -> Self {
        let cleared = self.bits() & !(3 << 15);
        Self::from_bits_retain(cleared | ((level as u64 & 3) << 15))
    }

    /// Returns the flags in the word of a file with this byte order: on big-endian machines
    /// bit-fields are laid out from the other end, each with its own bits in order.
    pub const fn from_word(word: u64, endian: Endian) -> Self {
        match endian {
            Endian::Little => Self::from_bits_retain(word),
            Endian::Big => Self::from_bits_retain(word.reverse_bits()).with_precise_ip_swapped(),
        }
    }

    /// Returns the word for a file with this byte order.
    pub const fn to_word(self, endian: Endian) -> u64 {
        match endian {
            Endian::Little => self.bits(),
            Endian::Big => self.with_precise_ip_swapped().bits().reverse_bits(),
        }
    }

    /// Returns the two bits of `precise_ip` the other way round.
    const fn with_precise_ip_swapped(self) -> Self {
        let level = self.precise_ip();
        self.with_precise_ip(level << 1 | level >> 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_configs_have_names() {
        assert_eq!(EventType::TRACEPOINT.to_string(), "TRACEPOINT");
        assert_eq!(EventType(9).to_string(), "UNKNOWN_9");
        assert_eq!(HwEvent(9).name(), Some("REF_CPU_CYCLES"));
        assert_eq!(SwEvent(10).name(), Some("BPF_OUTPUT"));
        let event = CacheEvent::of(0x1_0203);
        let parts = CacheEvent {
            cache: HwCache::DTLB,
            op: HwCacheOp::PREFETCH,
            result: HwCacheResult::MISS,
        };
        assert_eq!((event, event.config(), event.is_valid()), (parts, 0x1_0203, true));
        let invalid = [0x101, 0x104, 0x205].map(|config| CacheEvent::of(config).is_valid());
        assert_eq!(invalid, [false; 3]);
    }

    #[test]
    fn precise_ip_is_two_bits() {
        let flags = AttrFlags::FREQ.with_precise_ip(3);
        assert_eq!(flags.precise_ip(), 3);
        assert_eq!(flags.with_precise_ip(0), AttrFlags::FREQ);
    }
}
