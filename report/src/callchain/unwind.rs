//! Callchains from copied stacks (`--call-graph dwarf`): unwinds the copy of the user stack with
//! the call frame information of the mapped files.
//!
//! ```text
//!   registers at the sample ─► ip ─► mapping at that moment ─► its file's rules  ─► the caller's registers ─► ip …
//!                                    (timeline)                (once per file)      (from the copied stack)
//! ```
//!
//! Rules to unwind a frame are looked up by the file's own addresses, so that a file is prepared
//! once, even if processes map it at different addresses. The timeline says which file was mapped
//! at the sample's moment. Nothing is kept per sample. As in perf, the address of a caller is that
//! of the last byte of its call instruction: return address − 1.
//!
//! A chain ends at the outermost frame, at an unmapped address, in a file without call frame
//! information, or at the end of the copied stack. In the last case it is truncated, and a larger
//! copy would give more frames.

use std::mem;
use std::sync::OnceLock;

use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{Error, FrameAddress, Module as Unwindable, Unwinder};
use recrep_format::abi::{CpuMode, RegsAbi, RegsArch, SampleType};
use recrep_format::endian::Endian;
use recrep_format::feature::Arch;
use recrep_format::read::File;
use recrep_format::record::{Regs, SampleFields, StackUser};

use crate::symbols::{CallFrames, Modules, Resolver};
use crate::timeline::{Place, SampleContext, Timeline};

/// Unwinds samples of one perf.data file; each mapped file is prepared at its first use.
pub(crate) struct StackUnwinder<'s> {
    timeline: &'s Timeline,
    modules: &'s Modules,
    endian: Endian,
    resolver: &'s Resolver,
    arch: RegsArch,
    files: Vec<OnceLock<Option<Prepared>>>,
}

/// A mapped file, prepared for unwinding.
struct Prepared {
    frames: CallFrames,
    unwinder: ArchUnwinder,
}

enum ArchUnwinder {
    X86(UnwinderX86_64<Vec<u8>>),
    Arm(UnwinderAarch64<Vec<u8>>),
}

/// Caches of one worker: unwind rules found before.
#[derive(Default)]
pub(super) struct Scratch {
    x86: CacheX86_64,
    arm: CacheAarch64,
}

impl<'s> StackUnwinder<'s> {
    /// Creates an unwinder for the samples of a file. `None` if no event has user registers and
    /// copied stacks, or if the CPU is not supported.
    pub(crate) fn new(
        file: &File<'_>,
        timeline: &'s Timeline,
        modules: &'s Modules,
        resolver: &'s Resolver,
    ) -> Option<Self> {
        let needed = SampleType::REGS_USER | SampleType::STACK_USER;
        let mut attrs = file.attrs.entries().iter().map(|entry| &entry.attr);
        attrs.any(|attr| attr.sample_type.contains(needed)).then_some(())?;
        let arch = file.feature::<Arch<'_>>().and_then(Result::ok);
        let arch = match arch.as_ref().map(|arch| arch.0.to_text()).as_deref() {
            // A truncated file lacks this feature.
            Some("x86_64") | None => RegsArch::X86,
            Some("aarch64" | "arm64") => RegsArch::Arm64,
            Some(_) => return None,
        };
        let files = (0..modules.len()).map(|_| OnceLock::new()).collect();
        Some(Self { timeline, modules, endian: file.endian, resolver, arch, files })
    }

    /// Writes the addresses of at most `most` frames of a sample into `ips`, innermost first.
    /// Returns whether they end where the copy of the stack ends; `None` if the sample lacks a
    /// copied stack or registers to unwind it with.
    pub(super) fn sample(
        &self,
        fields: &SampleFields<'_>,
        at: SampleContext,
        most: usize,
        scratch: &mut Scratch,
        ips: &mut Vec<u64>,
    ) -> Option<bool> {
        ips.clear();
        let (mut registers, mut ip, sp) = Registers::of(self.arch, fields.regs_user.as_ref()?)?;
        let stack = UserStack::of(fields.stack_user.as_ref()?, sp, self.endian);
        let mut is_return = false;
        while ips.len() < most {
            // The call instruction is before the return address.
            let shown = if is_return { ip.wrapping_sub(1) } else { ip };
            let place = self.timeline.place(CpuMode::User, at.space, shown, at.moment);
            if is_return && place.module.is_none() {
                break;
            }
            ips.push(shown);
            let Some((file, address)) = self.prepared_at(place) else { break };
            let address = if is_return { address.wrapping_add(1) } else { address };
            match file.caller(address, is_return, &mut registers, &stack, scratch) {
                Ok(next) => (ip, is_return) = (next, true),
                Err(is_truncated) => return Some(is_truncated),
            }
        }
        Some(false)
    }

    /// Returns the file mapped at a place, and the place's address in it.
    fn prepared_at(&self, place: Place) -> Option<(&Prepared, u64)> {
        let index = place.module?.0 as usize;
        let file = self.files.get(index)?.get_or_init(|| {
            let module = self.modules.get_index(index)?;
            Prepared::new(self.resolver.call_frames(module)?, self.arch)
        });
        let file = file.as_ref()?;
        Some((file, file.frames.address_of(place.address)?))
    }
}

impl Prepared {
    fn new(mut frames: CallFrames, arch: RegsArch) -> Option<Self> {
        if frames.arch != arch {
            return None;
        }
        // Mapped at the file's own addresses (bias 0).
        let module =
            Unwindable::new(String::new(), frames.span(), 0, mem::take(&mut frames.sections));
        let unwinder = match arch {
            RegsArch::X86 => ArchUnwinder::X86(unwinder_of(module)),
            _ => ArchUnwinder::Arm(unwinder_of(module)),
        };
        Some(Self { frames, unwinder })
    }

    /// Returns the return address of the frame at `address`, and sets `registers` to those of its
    /// caller. If the chain ends here, returns whether the reason is the end of the copied stack.
    fn caller(
        &self,
        address: u64,
        is_return: bool,
        registers: &mut Registers,
        stack: &UserStack<'_>,
        scratch: &mut Scratch,
    ) -> Result<u64, bool> {
        let frame = if is_return {
            FrameAddress::from_return_address(address).ok_or(false)?
        } else {
            FrameAddress::from_instruction_pointer(address)
        };
        let mut cut = false;
        let mut read = |at: u64| {
            stack.word(at).map_err(|beyond| {
                cut |= beyond == ReadError::Copy;
            })
        };
        let next = match (&self.unwinder, registers) {
            (ArchUnwinder::X86(unwinder), Registers::X86(regs)) => {
                unwinder.unwind_frame(frame, regs, &mut scratch.x86, &mut read)
            }
            (ArchUnwinder::Arm(unwinder), Registers::Arm(regs)) => {
                unwinder.unwind_frame(frame, regs, &mut scratch.arm, &mut read)
            }
            _ => return Err(false),
        };
        match next {
            Ok(next) => next.filter(|next| *next != 0).ok_or(false),
            Err(error) => Err(cut && matches!(error, Error::CouldNotReadStack(_))),
        }
    }
}

fn unwinder_of<U: Unwinder<Module = Unwindable<Vec<u8>>> + Default>(
    module: Unwindable<Vec<u8>>,
) -> U {
    let mut unwinder = U::default();
    unwinder.add_module(module);
    unwinder
}

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
enum Registers {
    X86(UnwindRegsX86_64),
    Arm(UnwindRegsAarch64),
}

impl Registers {
    /// Returns a sample's user registers, the instruction pointer and the stack pointer; `None` if
    /// the sample has none, is of a 32-bit task, or lacks a required register.
    fn of(arch: RegsArch, regs: &Regs<'_>) -> Option<(Self, u64, u64)> {
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
struct UserStack<'a> {
    start: u64,
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> UserStack<'a> {
    /// Returns a sample's copy of a stack; `sp` is the stack pointer.
    fn of(stack: &StackUser<'a>, sp: u64, endian: Endian) -> Self {
        let copied = stack.dyn_size.unwrap_or(stack.bytes.len() as u64);
        let copied = usize::try_from(copied).unwrap_or(usize::MAX).min(stack.bytes.len());
        Self { start: sp, bytes: stack.bytes.get(..copied).unwrap_or_default(), endian }
    }

    /// Returns the word at an address.
    fn word(&self, address: u64) -> Result<u64, ReadError> {
        let at = address.checked_sub(self.start).ok_or(ReadError::Elsewhere)?;
        let word = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)?.first_chunk::<8>());
        match word {
            Some(word) => Ok(self.endian.u64(*word)),
            None if at < MAX_STACK_SIZE => Err(ReadError::Copy),
            None => Err(ReadError::Elsewhere),
        }
    }
}

/// Default limit of the stack size (8 MiB): addresses farther from the stack pointer are not on
/// this stack.
const MAX_STACK_SIZE: u64 = 8 << 20;

/// Reason why a word cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadError {
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
        let words: Vec<u8> =
            [11u64, 0x7000, 0x400, 88].iter().flat_map(|word| word.to_le_bytes()).collect();
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
            assert_eq!(
                format!("{reg:?}").trim_start_matches('R'),
                name(RegsArch::X86, number).trim_start_matches('R')
            );
        }
        assert_eq!((name(RegsArch::Arm64, ARM_FP), name(RegsArch::Arm64, ARM_LR)), ("x29", "lr"));
    }

    #[test]
    fn words_beyond_the_copy_are_distinguished_from_other_addresses() {
        let bytes: Vec<u8> = [1u64, 2, 3].iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack =
            UserStack::of(&StackUser { bytes: &bytes, dyn_size: Some(16) }, 0x1000, Endian::Little);
        assert_eq!((stack.word(0x1000), stack.word(0x1008)), (Ok(1), Ok(2)));
        assert_eq!(stack.word(0x1010), Err(ReadError::Copy));
        assert_eq!(stack.word(0xff8), Err(ReadError::Elsewhere));
        assert_eq!(stack.word(1 << 40), Err(ReadError::Elsewhere));
    }
}
