//! `sample_type`, `read_format`, `branch_sample_type`, and the marks inside callchains.

use bitflags::bitflags;

use super::constants::{constants, wire_bits};
use super::record_type::CpuMode;

bitflags! {
    /// The fields of a sample (`enum perf_event_sample_format`). Unknown bits are kept.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SampleType: u64 {
        /// The sampled instruction.
        const IP = 1 << 0;
        /// Process and thread.
        const TID = 1 << 1;
        /// The time.
        const TIME = 1 << 2;
        /// The data address, or what the event defines.
        const ADDR = 1 << 3;
        /// The values of the counter or of its group.
        const READ = 1 << 4;
        /// The stack, by frame pointers or LBR.
        const CALLCHAIN = 1 << 5;
        /// The id of the event (of the group leader's, for inherited ones).
        const ID = 1 << 6;
        /// The CPU.
        const CPU = 1 << 7;
        /// The number of events that the sample stands for.
        const PERIOD = 1 << 8;
        /// The id of the event that took the sample.
        const STREAM_ID = 1 << 9;
        /// Bytes that the event defines (a tracepoint's fields).
        const RAW = 1 << 10;
        /// The last branches.
        const BRANCH_STACK = 1 << 11;
        /// The user registers.
        const REGS_USER = 1 << 12;
        /// A copy of the top of the user stack.
        const STACK_USER = 1 << 13;
        /// The cost, as one number.
        const WEIGHT = 1 << 14;
        /// The source of the data.
        const DATA_SRC = 1 << 15;
        /// The id, at a fixed place.
        const IDENTIFIER = 1 << 16;
        /// The reason why a transaction aborted.
        const TRANSACTION = 1 << 17;
        /// The registers at the interrupt.
        const REGS_INTR = 1 << 18;
        /// The physical data address.
        const PHYS_ADDR = 1 << 19;
        /// A piece of the AUX area.
        const AUX = 1 << 20;
        /// The cgroup's id.
        const CGROUP = 1 << 21;
        /// The page size behind the data address.
        const DATA_PAGE_SIZE = 1 << 22;
        /// The page size behind the ip.
        const CODE_PAGE_SIZE = 1 << 23;
        /// The cost, as three numbers.
        const WEIGHT_STRUCT = 1 << 24;
        const _ = !0;
    }
}

bitflags! {
    /// The fields of a read of a counter (`enum perf_event_read_format`). Unknown bits are kept.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ReadFormat: u64 {
        /// The time that the event was enabled.
        const TOTAL_TIME_ENABLED = 1 << 0;
        /// The time that it was on the PMU.
        const TOTAL_TIME_RUNNING = 1 << 1;
        /// Its id.
        const ID = 1 << 2;
        /// The values of its whole group.
        const GROUP = 1 << 3;
        /// The number of its lost samples.
        const LOST = 1 << 4;
        const _ = !0;
    }
}

bitflags! {
    /// The branches in a branch stack, and their fields (`enum perf_branch_sample_type`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct BranchSampleType: u64 {
        /// User branches.
        const USER = 1 << 0;
        /// Kernel branches.
        const KERNEL = 1 << 1;
        /// Hypervisor branches.
        const HV = 1 << 2;
        /// Any branch.
        const ANY = 1 << 3;
        /// Any call.
        const ANY_CALL = 1 << 4;
        /// Any return.
        const ANY_RETURN = 1 << 5;
        /// Indirect calls.
        const IND_CALL = 1 << 6;
        /// Transaction aborts.
        const ABORT_TX = 1 << 7;
        /// Returns whether the branch was in a transaction.
        const IN_TX = 1 << 8;
        /// Not in a transaction.
        const NO_TX = 1 << 9;
        /// Conditional branches.
        const COND = 1 << 10;
        /// The hardware keeps a call stack.
        const CALL_STACK = 1 << 11;
        /// Indirect jumps.
        const IND_JUMP = 1 << 12;
        /// Direct calls.
        const CALL = 1 << 13;
        /// No flags.
        const NO_FLAGS = 1 << 14;
        /// No cycles.
        const NO_CYCLES = 1 << 15;
        /// The type of each branch.
        const TYPE_SAVE = 1 << 16;
        /// The stack is preceded by its hardware index.
        const HW_INDEX = 1 << 17;
        /// The privilege level of each branch.
        const PRIV_SAVE = 1 << 18;
        /// The stack is followed by a word of counters for each branch.
        const COUNTERS = 1 << 19;
        const _ = !0;
    }
}

wire_bits! { SampleType(u64); ReadFormat(u64); BranchSampleType(u64); }

/// The words of a callchain that are not addresses but say what follows
/// (`enum perf_callchain_context`).
pub mod context {
    /// Hypervisor addresses follow.
    pub const HV: u64 = 32u64.wrapping_neg();
    /// Kernel addresses follow.
    pub const KERNEL: u64 = 128u64.wrapping_neg();
    /// User addresses follow.
    pub const USER: u64 = 512u64.wrapping_neg();
    /// The user part comes later, in a CALLCHAIN_DEFERRED record; its cookie follows.
    pub const USER_DEFERRED: u64 = 640u64.wrapping_neg();
    /// Guest addresses follow.
    pub const GUEST: u64 = 2048u64.wrapping_neg();
    /// Guest kernel addresses follow.
    pub const GUEST_KERNEL: u64 = 2176u64.wrapping_neg();
    /// Guest user addresses follow.
    pub const GUEST_USER: u64 = 2560u64.wrapping_neg();
    /// Every word from here up is a marker, not an address.
    pub const MAX: u64 = 4095u64.wrapping_neg();
}

constants! {
    /// A marker in a callchain: the words of [`context`], by name.
    pub struct CallchainContext(u64) {
        /// Guest user addresses follow.
        GUEST_USER = context::GUEST_USER;
        /// Guest kernel addresses follow.
        GUEST_KERNEL = context::GUEST_KERNEL;
        /// Guest addresses follow.
        GUEST = context::GUEST;
        /// The user part comes later, in a CALLCHAIN_DEFERRED record; its cookie follows.
        USER_DEFERRED = context::USER_DEFERRED;
        /// User addresses follow.
        USER = context::USER;
        /// Kernel addresses follow.
        KERNEL = context::KERNEL;
        /// Hypervisor addresses follow.
        HV = context::HV;
    }
}

impl CallchainContext {
    /// Returns the marker that a word of a callchain is; `None` for an address.
    #[inline]
    pub const fn of(word: u64) -> Option<Self> {
        if word >= context::MAX { Some(Self(word)) } else { None }
    }

    /// Returns the CPU mode of the addresses after the marker; [`CpuMode::Unknown`] for a marker
    /// without a name.
    pub const fn cpu_mode(self) -> CpuMode {
        match self {
            Self::HV => CpuMode::Hypervisor,
            Self::KERNEL => CpuMode::Kernel,
            Self::USER | Self::USER_DEFERRED => CpuMode::User,
            Self::GUEST | Self::GUEST_KERNEL => CpuMode::GuestKernel,
            Self::GUEST_USER => CpuMode::GuestUser,
            _ => CpuMode::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_have_names_and_modes() {
        let of = |word: i64| {
            CallchainContext::of(word.cast_unsigned())
                .map(|marker| (marker.name(), marker.cpu_mode()))
        };
        assert_eq!(of(-32), Some((Some("HV"), CpuMode::Hypervisor)));
        assert_eq!(of(-128), Some((Some("KERNEL"), CpuMode::Kernel)));
        assert_eq!(of(-512), Some((Some("USER"), CpuMode::User)));
        assert_eq!(of(-640), Some((Some("USER_DEFERRED"), CpuMode::User)));
        assert_eq!(of(-2048), Some((Some("GUEST"), CpuMode::GuestKernel)));
        assert_eq!(of(-2176), Some((Some("GUEST_KERNEL"), CpuMode::GuestKernel)));
        assert_eq!(of(-2560), Some((Some("GUEST_USER"), CpuMode::GuestUser)));
        assert_eq!((of(-4095), of(-4096)), (Some((None, CpuMode::Unknown)), None));
    }
}
