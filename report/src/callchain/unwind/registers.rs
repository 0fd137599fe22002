//! User registers and copied stacks of samples.

use framehop::aarch64::UnwindRegsAarch64;
use framehop::x86_64::{Reg, UnwindRegsX86_64};
use recrep_format::abi::{RegsAbi, RegsArch};
use recrep_format::endian::Endian;
use recrep_format::record::{Regs, StackUser};

/// Numbers of `x29` and `lr` in [`RegsArch::Arm64`].
const ARM_FP: u32 = 29;
const ARM_LR: u32 = 30;

/// Iterates over the registers of x86-64 and their numbers in [`RegsArch::X86`].
fn x86_regs() -> impl Iterator<Item = (Reg, u32)> {
    let old = [Reg::RAX, Reg::RBX, Reg::RCX, Reg::RDX, Reg::RSI, Reg::RDI, Reg::RBP, Reg::RSP];
    let new = [Reg::R8, Reg::R9, Reg::R10, Reg::R11, Reg::R12, Reg::R13, Reg::R14, Reg::R15];
    old.into_iter().zip(0..).chain(new.into_iter().zip(16..))
}

/// A task's registers, but for the program counter of arm64.
#[derive(Clone, Copy, Debug)]
pub(super) enum Registers {
    X86(UnwindRegsX86_64),
    Arm(UnwindRegsAarch64),
}

impl Registers {
    /// Returns a sample's user registers, the instruction pointer and the stack pointer; `None` if the sample has none,
    /// is of a 32-bit task, or lacks a required register.
    pub(super) fn of(arch: RegsArch, regs: &Regs<'_>) -> Option<(Self, u64, u64)> {
        if regs.abi != RegsAbi::ABI_64 {
            return None;
        }
        let (ip, sp) = (regs.get(arch.instruction_pointer())?, regs.get(arch.stack_pointer())?);
        let registers = match arch {
            RegsArch::X86 => {
                let mut all = UnwindRegsX86_64::new(ip, sp, 0);
                for (reg, number) in x86_regs() {
                    all.set(reg, regs.get(number).unwrap_or(0));
                }
                Self::X86(all)
            }
            _ => Self::Arm(UnwindRegsAarch64::new(regs.get(ARM_LR)?, sp, regs.get(ARM_FP)?)),
        };
        Some((registers, ip, sp))
    }
}

/// A copy of the top of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct UserStack<'a> {
    start: u64,
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> UserStack<'a> {
    /// Returns a sample's copy of a stack; `sp` is the stack pointer.
    pub(super) fn of(stack: &StackUser<'a>, sp: u64, endian: Endian) -> Self {
        let copied = stack.dyn_size.unwrap_or(stack.bytes.len() as u64);
        let copied = usize::try_from(copied).unwrap_or(usize::MAX).min(stack.bytes.len());
        Self { start: sp, bytes: stack.bytes.get(..copied).unwrap_or_default(), endian }
    }

    /// Returns the word at an address.
    pub(super) fn word(&self, address: u64) -> Result<u64, ReadError> {
        let at = address.checked_sub(self.start).ok_or(ReadError::Elsewhere)?;
        let word = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)?.first_chunk::<8>());
        match word {
            Some(word) => Ok(self.endian.u64(*word)),
            None if at < MAX_STACK_SIZE => Err(ReadError::Copy),
            None => Err(ReadError::Elsewhere),
        }
    }
}

/// Default limit of the stack size (8 MiB): addresses farther from the stack pointer are not on this stack.
const MAX_STACK_SIZE: u64 = 8 << 20;

/// Reason why a word cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadError {
    /// It is on the stack, but was not copied.
    Copy,
    /// It is not on the stack.
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use recrep_format::bytes::U64s;

    use super::*;

    #[test]
    fn registers_are_found_by_their_bits() {
        // BX, SP, IP, R8.
        let mask = 1 << 1 | 1 << 7 | 1 << 8 | 1 << 16;
        let words: Vec<u8> = [11u64, 0x7000, 0x400, 88].iter().flat_map(|word| word.to_le_bytes()).collect();
        let regs = Regs { abi: RegsAbi::ABI_64, mask, values: U64s::new(&words, Endian::Little) };
        let (found, ip, sp) = Registers::of(RegsArch::X86, &regs).unwrap();
        assert_eq!((ip, sp), (0x400, 0x7000));
        let Registers::X86(all) = found else { panic!("{found:?}") };
        assert_eq!((all.ip(), all.sp()), (0x400, 0x7000));
        assert_eq!((all.get(Reg::RBX), all.get(Reg::R8), all.get(Reg::RAX)), (11, 88, 0));
        assert!(Registers::of(RegsArch::X86, &Regs { mask: mask & !(1 << 7), ..regs }).is_none());
        assert!(Registers::of(RegsArch::Arm64, &regs).is_none());
        assert!(Registers::of(RegsArch::X86, &Regs { abi: RegsAbi::ABI_32, ..regs }).is_none());
    }

    #[test]
    fn numbers_are_those_of_the_names() {
        let name = |arch: RegsArch, number| arch.register(number).unwrap().name;
        for (reg, number) in x86_regs() {
            assert_eq!(format!("{reg:?}").trim_start_matches('R'), name(RegsArch::X86, number).trim_start_matches('R'));
        }
        assert_eq!((name(RegsArch::Arm64, ARM_FP), name(RegsArch::Arm64, ARM_LR)), ("x29", "lr"));
    }

    #[test]
    fn words_beyond_the_copy_are_distinguished_from_other_addresses() {
        let bytes: Vec<u8> = [1u64, 2, 3].iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = UserStack::of(&StackUser { bytes: &bytes, dyn_size: Some(16) }, 0x1000, Endian::Little);
        assert_eq!((stack.word(0x1000), stack.word(0x1008)), (Ok(1), Ok(2)));
        assert_eq!(stack.word(0x1010), Err(ReadError::Copy));
        assert_eq!(stack.word(0xff8), Err(ReadError::Elsewhere));
        assert_eq!(stack.word(1 << 40), Err(ReadError::Elsewhere));
    }
}
