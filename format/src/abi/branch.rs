//! `struct perf_branch_entry`: one taken branch of a branch stack.

use super::constants::constants;
use super::record_type::CpuMode;
use crate::endian::Endian;

constants! {
    /// The type of a branch (`PERF_BR_*`).
    pub struct BranchKind(u8) {
        /// Not known.
        UNKNOWN = 0;
        /// Conditional.
        COND = 1;
        /// Unconditional.
        UNCOND = 2;
        /// Indirect.
        IND = 3;
        /// A call.
        CALL = 4;
        /// An indirect call.
        IND_CALL = 5;
        /// A return.
        RET = 6;
        /// A system call.
        SYSCALL = 7;
        /// The return from a system call.
        SYSRET = 8;
        /// A conditional call.
        COND_CALL = 9;
        /// A conditional return.
        COND_RET = 10;
        /// The return from an exception.
        ERET = 11;
        /// An interrupt.
        IRQ = 12;
        /// A system error.
        SERROR = 13;
        /// Not in a transaction.
        NO_TX = 14;
        /// One of [`BranchNewKind`].
        EXTEND_ABI = 15;
    }

    /// The type of a branch whose [`BranchKind`] is `EXTEND_ABI` (`PERF_BR_NEW_*`).
    pub struct BranchNewKind(u8) {
        /// An alignment fault.
        FAULT_ALGN = 0;
        /// A data fault.
        FAULT_DATA = 1;
        /// An instruction fault.
        FAULT_INST = 2;
        /// Defined by the architecture; on arm64 a fast interrupt.
        ARCH_1 = 3;
        /// Defined by the architecture; on arm64 the entry into debug halt.
        ARCH_2 = 4;
        /// Defined by the architecture; on arm64 the exit from debug halt.
        ARCH_3 = 5;
        /// Defined by the architecture; on arm64 an instruction debug exception.
        ARCH_4 = 6;
        /// Defined by the architecture; on arm64 a data debug exception.
        ARCH_5 = 7;
    }

    /// The speculation of a branch (`PERF_BR_SPEC_*`).
    pub struct BranchSpec(u8) {
        /// Not available.
        NA = 0;
        /// Speculative, on the wrong path.
        SPEC_WRONG_PATH = 1;
        /// Not speculative, on the correct path.
        NON_SPEC_CORRECT_PATH = 2;
        /// Speculative, on the correct path.
        SPEC_CORRECT_PATH = 3;
    }

    /// The privilege level of a branch's target (`PERF_BR_PRIV_*`).
    pub struct BranchPrivilege(u8) {
        /// Not known.
        UNKNOWN = 0;
        /// User space.
        USER = 1;
        /// The kernel.
        KERNEL = 2;
        /// The hypervisor.
        HV = 3;
    }
}

impl BranchPrivilege {
    /// Returns the CPU mode of the level.
    pub const fn cpu_mode(self) -> CpuMode {
        match self {
            Self::USER => CpuMode::User,
            Self::KERNEL => CpuMode::Kernel,
            Self::HV => CpuMode::Hypervisor,
            _ => CpuMode::Unknown,
        }
    }
}

/// The properties of a branch beside its ends: the third word of `perf_branch_entry`, with the
/// first declared bit as bit 0, whatever the byte order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchFlags(pub u64);

/// A taken branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BranchEntry {
    /// The branch instruction.
    pub from: u64,
    /// Its target.
    pub to: u64,
    /// The rest.
    pub flags: BranchFlags,
}

/// The widths of the fields, in the order of their declaration; the last is reserved.
const WIDTHS: [u32; 10] = [1, 1, 1, 1, 16, 4, 2, 4, 3, 31];

impl BranchFlags {
    /// The bits of [`BranchFlags::mispred`] and [`BranchFlags::predicted`].
    pub const PREDICTION: u64 = 0b11;
    /// The bit of [`BranchFlags::in_tx`].
    pub const IN_TX: u64 = 1 << 2;
    /// The bit of [`BranchFlags::abort`].
    pub const ABORT: u64 = 1 << 3;
    /// The bits of [`BranchFlags::cycles`].
    pub const CYCLES: u64 = 0xffff << 4;

    /// Returns the flags in the word of a file with this byte order: on big-endian machines the
    /// fields are laid out from the other end, each with its own bits in order.
    #[inline]
    pub fn from_word(word: u64, endian: Endian) -> Self {
        match endian {
            Endian::Little => Self(word),
            Endian::Big => Self::from_other_end(word),
        }
    }

    /// Returns the word for a file with this byte order.
    pub fn to_word(self, endian: Endian) -> u64 {
        match endian {
            Endian::Little => self.0,
            Endian::Big => {
                let (mut word, mut low, mut high) = (0, 0, 64);
                for width in WIDTHS {
                    high -= width;
                    word |= (self.0 >> low & ((1 << width) - 1)) << high;
                    low += width;
                }
                word
            }
        }
    }

    fn from_other_end(word: u64) -> Self {
        let (mut flags, mut low, mut high) = (0, 0, 64);
        for width in WIDTHS {
            high -= width;
            flags |= (word >> high & ((1 << width) - 1)) << low;
            low += width;
        }
        Self(flags)
    }

    const fn bit(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }

    /// Returns whether the target was mispredicted.
    pub const fn mispred(self) -> bool {
        self.bit(0)
    }

    /// Returns whether the target was predicted.
    pub const fn predicted(self) -> bool {
        self.bit(1)
    }

    /// Returns whether the branch was in a transaction.
    pub const fn in_tx(self) -> bool {
        self.bit(2)
    }

    /// Returns whether the branch aborted a transaction.
    pub const fn abort(self) -> bool {
        self.bit(3)
    }

    /// Cycles since the branch before it.
    pub const fn cycles(self) -> u16 {
        (self.0 >> 4 & 0xffff) as u16
    }

    /// Returns the type.
    pub const fn kind(self) -> BranchKind {
        BranchKind((self.0 >> 20 & 15) as u8)
    }

    /// Returns the speculation.
    pub const fn spec(self) -> BranchSpec {
        BranchSpec((self.0 >> 24 & 3) as u8)
    }

    /// Returns the additional type, which holds if the type is [`BranchKind::EXTEND_ABI`].
    pub const fn new_kind(self) -> BranchNewKind {
        BranchNewKind((self.0 >> 26 & 15) as u8)
    }

    /// Returns the privilege level.
    pub const fn privilege(self) -> BranchPrivilege {
        BranchPrivilege((self.0 >> 30 & 7) as u8)
    }

    /// Returns the name of the type, or of the additional type; empty if it is not known.
    pub const fn kind_name(self) -> &'static str {
        let name = match self.kind() {
            BranchKind::UNKNOWN => None,
            BranchKind::EXTEND_ABI => self.new_kind().name(),
            kind => kind.name(),
        };
        match name {
            Some(name) => name,
            None => "",
        }
    }

    /// Returns the name of the speculation; `-` if it is not available.
    pub const fn spec_name(self) -> &'static str {
        match (self.spec(), self.spec().name()) {
            (BranchSpec::NA, _) | (_, None) => "-",
            (_, Some(name)) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_fill_the_word() {
        assert_eq!(WIDTHS.iter().sum::<u32>(), 64);
        let flags = BranchFlags(0b1 | 7 << 4 | 15 << 20 | 2 << 24 | 1 << 26 | 2 << 30);
        assert!(flags.mispred() && !flags.predicted());
        assert_eq!((flags.cycles(), flags.kind(), flags.spec().0), (7, BranchKind::EXTEND_ABI, 2));
        assert_eq!(flags.new_kind(), BranchNewKind::FAULT_DATA);
        assert_eq!(flags.privilege(), BranchPrivilege::KERNEL);
        assert_eq!(flags.privilege().to_string(), "KERNEL");
        assert_eq!(flags.privilege().cpu_mode(), CpuMode::Kernel);
        assert_eq!((flags.kind_name(), flags.spec_name()), ("FAULT_DATA", "NON_SPEC_CORRECT_PATH"));
    }

    #[test]
    fn every_type_has_a_name() {
        let name = |kind: u64, new: u64| BranchFlags(kind << 20 | new << 26).kind_name();
        assert_eq!(
            [name(0, 0), name(1, 0), name(14, 0), name(15, 7), name(15, 8)],
            ["", "COND", "NO_TX", "ARCH_5", ""]
        );
        assert_eq!(
            [0, 1, 3].map(|spec| BranchFlags(spec << 24).spec_name()),
            ["-", "SPEC_WRONG_PATH", "SPEC_CORRECT_PATH"]
        );
    }

    #[test]
    fn a_big_endian_word_reads_the_same() {
        // mispred is the highest bit there, cycles the 16 bits from 59 down.
        assert_eq!(BranchFlags::from_word(1 << 63 | 7 << 44, Endian::Big), BranchFlags(1 | 7 << 4));
        for word in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            for endian in [Endian::Little, Endian::Big] {
                assert_eq!(BranchFlags::from_word(word, endian).to_word(endian), word);
            }
        }
    }
}
