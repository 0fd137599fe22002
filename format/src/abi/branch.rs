//! `struct perf_branch_entry`: one taken branch of a branch stack.

use crate::endian::Endian;

/// What is known of a branch beside its ends: the third word of `perf_branch_entry`, with the first declared bit as
/// bit 0, whatever the byte order of the file.
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

    /// The flags in the word of a file with this byte order: on big-endian machines the fields are laid out
    /// from the other end, each with its own bits in order.
    #[inline]
    #[must_use]
    pub fn from_word(word: u64, endian: Endian) -> Self {
        match endian {
            Endian::Little => Self(word),
            Endian::Big => Self::from_other_end(word),
        }
    }

    /// The word for a file with this byte order.
    #[must_use]
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

    /// The target was mispredicted.
    #[must_use]
    pub const fn mispred(self) -> bool {
        self.bit(0)
    }

    /// The target was predicted.
    #[must_use]
    pub const fn predicted(self) -> bool {
        self.bit(1)
    }

    /// In a transaction.
    #[must_use]
    pub const fn in_tx(self) -> bool {
        self.bit(2)
    }

    /// A transaction abort.
    #[must_use]
    pub const fn abort(self) -> bool {
        self.bit(3)
    }

    /// Cycles since the branch before it.
    #[must_use]
    pub const fn cycles(self) -> u16 {
        (self.0 >> 4 & 0xffff) as u16
    }

    /// The type (`PERF_BR_*`).
    #[must_use]
    pub const fn kind(self) -> u8 {
        (self.0 >> 20 & 15) as u8
    }

    /// Speculation (`PERF_BR_SPEC_*`).
    #[must_use]
    pub const fn spec(self) -> u8 {
        (self.0 >> 24 & 3) as u8
    }

    /// The additional type (`PERF_BR_NEW_*`), where the type is EXTEND_ABI.
    #[must_use]
    pub const fn new_kind(self) -> u8 {
        (self.0 >> 26 & 15) as u8
    }

    /// The privilege level: 1 user, 2 kernel, 3 hypervisor.
    #[must_use]
    pub const fn privilege(self) -> u8 {
        (self.0 >> 30 & 7) as u8
    }

    /// The name of the type; empty where it is not known.
    #[must_use]
    pub const fn kind_name(self) -> &'static str {
        match self.kind() {
            1 => "COND",
            2 => "UNCOND",
            3 => "IND",
            4 => "CALL",
            5 => "IND_CALL",
            6 => "RET",
            7 => "SYSCALL",
            8 => "SYSRET",
            9 => "COND_CALL",
            10 => "COND_RET",
            11 => "ERET",
            12 => "IRQ",
            13 => "SERROR",
            14 => "NO_TX",
            15 => match self.new_kind() {
                0 => "FAULT_ALGN",
                1 => "FAULT_DATA",
                2 => "FAULT_INST",
                3 => "ARCH_1",
                4 => "ARCH_2",
                5 => "ARCH_3",
                6 => "ARCH_4",
                7 => "ARCH_5",
                _ => "",
            },
            _ => "",
        }
    }

    /// The name of the speculation; `-` where it is not known.
    #[must_use]
    pub const fn spec_name(self) -> &'static str {
        match self.spec() {
            1 => "SPEC_WRONG_PATH",
            2 => "NON_SPEC_CORRECT_PATH",
            3 => "SPEC_CORRECT_PATH",
            _ => "-",
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
        assert_eq!((flags.cycles(), flags.kind(), flags.spec(), flags.new_kind(), flags.privilege()), (7, 15, 2, 1, 2));
        assert_eq!((flags.kind_name(), flags.spec_name()), ("FAULT_DATA", "NON_SPEC_CORRECT_PATH"));
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
