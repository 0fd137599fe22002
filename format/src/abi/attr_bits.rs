//! The numbers of `struct perf_event_attr`: event types, configs, flags.

use bitflags::bitflags;

use crate::endian::Endian;

/// `perf_event_attr.type` (`enum perf_type_id`); numbers from 6 up are PMUs that the kernel registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventType(pub u32);

impl EventType {
    /// Generalized hardware events ([`hw`]).
    pub const HARDWARE: Self = Self(0);
    /// Events of the kernel itself ([`sw`]).
    pub const SOFTWARE: Self = Self(1);
    /// Tracepoints: `config` is the id in tracefs.
    pub const TRACEPOINT: Self = Self(2);
    /// Generalized cache events.
    pub const HW_CACHE: Self = Self(3);
    /// A number that the CPU's PMU knows.
    pub const RAW: Self = Self(4);
    /// Breakpoints.
    pub const BREAKPOINT: Self = Self(5);
}

/// `config` of [`EventType::HARDWARE`] (`enum perf_hw_id`).
pub mod hw {
    /// Cycles.
    pub const CPU_CYCLES: u64 = 0;
    /// Retired instructions.
    pub const INSTRUCTIONS: u64 = 1;
    /// Cache accesses.
    pub const CACHE_REFERENCES: u64 = 2;
    /// Cache misses.
    pub const CACHE_MISSES: u64 = 3;
    /// Retired branches.
    pub const BRANCH_INSTRUCTIONS: u64 = 4;
    /// Mispredicted branches.
    pub const BRANCH_MISSES: u64 = 5;
    /// Bus cycles.
    pub const BUS_CYCLES: u64 = 6;
    /// Cycles in which the front end was stalled.
    pub const STALLED_CYCLES_FRONTEND: u64 = 7;
    /// Cycles in which the back end was stalled.
    pub const STALLED_CYCLES_BACKEND: u64 = 8;
    /// Cycles at a constant rate.
    pub const REF_CPU_CYCLES: u64 = 9;
}

/// `config` of [`EventType::SOFTWARE`] (`enum perf_sw_ids`).
pub mod sw {
    /// Time, of a CPU.
    pub const CPU_CLOCK: u64 = 0;
    /// Time, of a task.
    pub const TASK_CLOCK: u64 = 1;
    /// Page faults.
    pub const PAGE_FAULTS: u64 = 2;
    /// Context switches.
    pub const CONTEXT_SWITCHES: u64 = 3;
    /// Moves to another CPU.
    pub const CPU_MIGRATIONS: u64 = 4;
    /// Page faults without I/O.
    pub const PAGE_FAULTS_MIN: u64 = 5;
    /// Page faults with I/O.
    pub const PAGE_FAULTS_MAJ: u64 = 6;
    /// Unaligned accesses that the kernel mended.
    pub const ALIGNMENT_FAULTS: u64 = 7;
    /// Instructions that the kernel emulated.
    pub const EMULATION_FAULTS: u64 = 8;
    /// Nothing: carries side-band only.
    pub const DUMMY: u64 = 9;
    /// What BPF programs write.
    pub const BPF_OUTPUT: u64 = 10;
    /// Context switches between cgroups.
    pub const CGROUP_SWITCHES: u64 = 11;
}

bitflags! {
    /// The bit-fields of `perf_event_attr`, `disabled` as bit 0, whatever the byte order of the file.
    /// Bits that have no name yet are kept.
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
    /// How exact the ip must be: 0 (any skid) to 3 (none).
    #[must_use]
    pub const fn precise_ip(self) -> u8 {
        ((self.bits() >> 15) & 3) as u8
    }

    /// The same flags with this `precise_ip` (of which the low two bits count).
    #[must_use]
    pub const fn with_precise_ip(self, level: u8) -> Self {
        let cleared = self.bits() & !(3 << 15);
        Self::from_bits_retain(cleared | ((level as u64 & 3) << 15))
    }

    /// The flags in the word of a file with this byte order: on big-endian machines bit-fields are laid out from the other
    /// end, each with its own bits in order.
    #[must_use]
    pub const fn from_word(word: u64, endian: Endian) -> Self {
        match endian {
            Endian::Little => Self::from_bits_retain(word),
            Endian::Big => Self::from_bits_retain(word.reverse_bits()).with_precise_ip_swapped(),
        }
    }

    /// The word for a file with this byte order.
    #[must_use]
    pub const fn to_word(self, endian: Endian) -> u64 {
        match endian {
            Endian::Little => self.bits(),
            Endian::Big => self.with_precise_ip_swapped().bits().reverse_bits(),
        }
    }

    /// The two bits of `precise_ip` the other way round.
    const fn with_precise_ip_swapped(self) -> Self {
        let level = self.precise_ip();
        self.with_precise_ip(level << 1 | level >> 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precise_ip_is_two_bits() {
        let flags = AttrFlags::FREQ.with_precise_ip(3);
        assert_eq!(flags.precise_ip(), 3);
        assert_eq!(flags.with_precise_ip(0), AttrFlags::FREQ);
    }
}
