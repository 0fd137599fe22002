//! Unwinds stacks, one frame at a time.

use std::mem;
use std::sync::OnceLock;

use framehop::aarch64::{CacheAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwinderX86_64};
use framehop::{Error, FrameAddress, Module as Unwindable, Unwinder};
use recrep_format::abi::{CpuMode, RegsArch, SampleType};
use recrep_format::attr::AttrEntry;
use recrep_format::endian::Endian;
use recrep_format::feature::Arch;
use recrep_format::read::File;
use recrep_format::record::SampleFields;

use super::registers::{ReadError, Registers, UserStack};
use crate::symbols::{CallFrames, Modules, Resolver};
use crate::timeline::{Moment, Place, SpaceId, Timeline};

/// Unwinds samples of one perf.data file; each mapped file is prepared at its first use.
pub struct StackUnwinder<'s> {
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
    /// Creates an unwinder for the samples of a file. `None` if no event has user registers and copied stacks, or if
    /// the CPU is not supported.
    pub fn new(file: &File<'_>, timeline: &'s Timeline, modules: &'s Modules, resolver: &'s Resolver) -> Option<Self> {
        let needed = SampleType::REGS_USER | SampleType::STACK_USER;
        let has = |entry: &AttrEntry| entry.attr.sample_type.contains(needed);
        file.attrs.entries().iter().any(has).then_some(())?;
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

    /// Writes the addresses of at most `most` frames of a sample into `ips`, innermost first. Returns whether they
    /// end where the copy of the stack ends; `None` if the sample lacks a copied stack or registers to unwind it with.
    pub(super) fn sample(
        &self,
        fields: &SampleFields<'_>,
        (space, at): (Option<SpaceId>, Moment),
        most: usize,
        (scratch, ips): (&mut Scratch, &mut Vec<u64>),
    ) -> Option<bool> {
        ips.clear();
        let (mut registers, mut ip, sp) = Registers::of(self.arch, fields.regs_user.as_ref()?)?;
        let stack = UserStack::of(fields.stack_user.as_ref()?, sp, self.endian);
        let mut is_return = false;
        while ips.len() < most {
            // The call instruction is before the return address.
            let shown = if is_return { ip.wrapping_sub(1) } else { ip };
            let place = self.timeline.place(CpuMode::User, space, shown, at);
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
        let make = || {
            let module = self.modules.get_index(index)?;
            Prepared::new(self.resolver.call_frames(module)?, self.arch)
        };
        let file = self.files.get(index)?.get_or_init(make).as_ref()?;
        Some((file, file.frames.address_of(place.address)?))
    }
}

impl Prepared {
    fn new(mut frames: CallFrames, arch: RegsArch) -> Option<Self> {
        if frames.arch != arch {
            return None;
        }
        // Mapped at the file's own addresses (bias 0).
        let module = Unwindable::new(String::new(), frames.span(), 0, mem::take(&mut frames.sections));
        let unwinder = match arch {
            RegsArch::X86 => ArchUnwinder::X86(unwinder_of(module)),
            _ => ArchUnwinder::Arm(unwinder_of(module)),
        };
        Some(Self { frames, unwinder })
    }

    /// Returns the return address of the frame at `address`, and sets `registers` to those of its caller. If the chain
    /// ends here, returns whether the reason is the end of the copied stack.
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

fn unwinder_of<U: Unwinder<Module = Unwindable<Vec<u8>>> + Default>(module: Unwindable<Vec<u8>>) -> U {
    let mut unwinder = U::default();
    unwinder.add_module(module);
    unwinder
}
