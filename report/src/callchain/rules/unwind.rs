//! Callchains from copied stacks (`--call-graph dwarf`): unwinds the copy of the user stack with
//! the call frame information of the mapped files ([`recrep_unwind`]).
//!
//! ```text
//!   registers at the sample ─► ip ─► mapping at that moment ─► its file's rules  ─► the caller's registers ─► ip …
//!                                    (timeline)                (once per file)      (from the copied stack)
//! ```
//!
//! Rules to unwind a frame are looked up by the file's own addresses, so that a file is prepared
//! once, even if processes map it at different addresses; code of a JIT has the rules of its
//! moment, from the JIT's dump. The timeline says which file was mapped at the sample's moment.
//! Nothing is kept per sample. As in perf, the address of a caller is that of the last byte of its
//! call instruction: return address − 1.
//!
//! What of the stack was not copied may be in the kernel's callchain, if the sample has both: it is
//! memory, too.

use std::ops::Range;

use recrep_format::abi::{CpuMode, RegsAbi, RegsArch, SampleType};
use recrep_format::endian::Endian;
use recrep_format::feature::Arch;
use recrep_format::read::File;
use recrep_format::record::Regs;
use recrep_unwind::{
    Code, End, Frame, Machine, Memory, Place, Registers, Rules, Sections, Unreadable, Unwinder,
};

use super::frame_pointers::ModuleFrames;
use crate::callchain::tree::stacks::MISSING;
use crate::input::map::Bytes;
use crate::symbols::{JitCode, JitFrames, ModuleKind, Modules, Resolver};
use crate::timeline::{SampleContext, Timeline};

/// Unwinds samples of one perf.data file; each mapped file is prepared at its first use.
pub(crate) struct StackUnwinder<'s> {
    timeline: &'s Timeline,
    endian: Endian,
    arch: RegsArch,
    files: ModuleFrames<'s>,
    jit: JitModules,
    no_rules: Rules<Bytes>,
}

/// Code of JITs. To the unwinder each piece is a module, with a number after those of all modules.
#[derive(Default)]
struct JitModules {
    /// By module: number of the first piece of its code, and the code.
    of_modules: Vec<Option<(u32, JitFrames)>>,
    /// Numbers of the code of each module that has any, and the module.
    numbers: Vec<(Range<u32>, usize)>,
}

/// What one worker keeps: unwind rules found before, and the frames of the last chain.
#[derive(Default)]
pub(crate) struct Scratch {
    unwinder: Unwinder,
    frames: Vec<Frame>,
}

/// The stack of a sample.
#[derive(Clone, Copy)]
pub(crate) struct CopiedStack<'a> {
    pub(crate) registers: &'a Regs<'a>,
    pub(crate) bytes: &'a [u8],
    /// The user part of the kernel's callchain without the sampled address.
    pub(crate) links: &'a [u64],
}

/// The code of a process at the moment of a sample.
struct CodeAt<'u> {
    unwinder: &'u StackUnwinder<'u>,
    at: SampleContext,
}

/// Returns the architecture of sampled registers, if it is supported.
pub(crate) fn registers(file: &File<'_>) -> Option<RegsArch> {
    let arch = file.feature::<Arch<'_>>().and_then(Result::ok);
    match arch.as_ref().map(|arch| arch.0.to_text()).as_deref() {
        // A truncated file lacks this feature.
        Some("x86_64" | "i386" | "i486" | "i586" | "i686") | None => Some(RegsArch::X86),
        Some("aarch64" | "arm64") => Some(RegsArch::Arm64),
        Some(_) => None,
    }
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
        let arch = registers(file)?;
        let endian = file.endian;
        Some(Self {
            timeline,
            endian,
            arch,
            files: ModuleFrames::new(modules, resolver),
            jit: JitModules::of(modules, resolver),
            no_rules: Rules::new(Sections::none(Machine::of(arch, RegsAbi::ABI_64)?, endian)),
        })
    }

    /// Returns whether registers say that rec unwound the stack completely: the instruction pointer
    /// is 0, while the stack pointer is not.
    pub(crate) fn is_said_complete(&self, registers: &Regs<'_>) -> bool {
        registers.get(self.arch.instruction_pointer()) == Some(0)
            && registers.get(self.arch.stack_pointer()).is_some_and(|sp| sp != 0)
    }

    /// Appends at most `most` frames of a sample to `words`, innermost first, and returns how the
    /// chain ended; `None` if the stacks of the task cannot be unwound.
    pub(crate) fn sample(
        &self,
        stack: CopiedStack<'_>,
        at: SampleContext,
        most: usize,
        scratch: &mut Scratch,
        words: &mut Vec<u64>,
    ) -> Option<End> {
        let machine = Machine::of(self.arch, stack.registers.abi)?;
        let registers = Registers::of_sample(machine, stack.registers)?;
        let CopiedStack { bytes, links, .. } = stack;
        let memory = Memory { start: registers.sp(), bytes, endian: self.endian, links };
        let Scratch { unwinder, frames } = scratch;
        let end =
            unwinder.walk(&mut CodeAt { unwinder: self, at }, &registers, &memory, most, frames);
        words.extend(frames.iter().map(|frame| match frame {
            Frame::Exact(address) => *address,
            // The call instruction is before the return address.
            Frame::Return(address) => address.wrapping_sub(1),
            Frame::Missing => MISSING,
        }));
        Some(end)
    }

    /// Returns the name of a module by its number in the unwinder.
    pub(crate) fn name(&self, number: u32) -> String {
        let index = self.jit.code(number).map_or(number as usize, |(module, _)| module);
        let module = self.files.modules.get_index(index);
        module.map_or_else(String::new, |module| module.name().into_owned())
    }

    /// Returns whether stacks begin at the function of an instruction: whoever calls it is of no
    /// interest, and may be beyond the copy.
    pub(crate) fn is_entry(&self, instruction: u64, at: SampleContext) -> bool {
        let place = self.timeline.place(CpuMode::User, at.space, instruction, at.moment);
        let module = place.module.and_then(|id| self.files.modules.get_index(id.0 as usize));
        module.is_some_and(|module| self.files.is_entry(module, place.address))
    }
}

impl JitModules {
    fn of(modules: &Modules, resolver: &Resolver) -> Self {
        let mut all = Self::default();
        let mut next = u32::try_from(modules.len()).unwrap_or(u32::MAX);
        for (index, module) in modules.iter().enumerate() {
            let Some(frames) = resolver.jit_frames(module) else { continue };
            let count = u32::try_from(frames.all.len()).unwrap_or(u32::MAX);
            let Some(end) = next.checked_add(count) else { break };
            all.of_modules.resize_with(index, || None);
            all.of_modules.push(Some((next, frames)));
            all.numbers.push((next..end, index));
            next = end;
        }
        all
    }

    /// Returns the code that is looked up at an address of a module, and its number.
    fn find(&self, module: usize, address: u64) -> Option<(u32, &JitCode)> {
        let (first, frames) = self.of_modules.get(module)?.as_ref()?;
        let place = frames.find(address)?;
        Some((first.checked_add(u32::try_from(place).ok()?)?, frames.all.get(place)?))
    }

    /// Returns the code with this number, and its module.
    fn code(&self, number: u32) -> Option<(usize, &JitCode)> {
        let next = self.numbers.partition_point(|(numbers, _)| numbers.start <= number);
        let (numbers, module) = self.numbers.get(next.checked_sub(1)?)?;
        let (first, frames) = self.of_modules.get(*module)?.as_ref()?;
        let place = number.checked_sub(*first).filter(|_| numbers.contains(&number))?;
        Some((*module, frames.all.get(place as usize)?))
    }
}

impl<'u> Code for CodeAt<'u> {
    type Bytes = Bytes;

    fn place(&mut self, address: u64) -> Option<Place> {
        let Self { unwinder, at } = self;
        let place = unwinder.timeline.place(CpuMode::User, at.space, address, at.moment);
        let module = place.module?.0;
        let index = module as usize;
        match unwinder.files.modules.get_index(index)?.kind {
            // There is no code.
            ModuleKind::Opaque => None,
            ModuleKind::PerfMap { .. } => Some(match unwinder.jit.find(index, place.address) {
                Some((number, code)) => {
                    Place { module: number, address: code.address_of(place.address) }
                }
                None => Place { module, address: place.address },
            }),
            _ => {
                let frames = unwinder.files.of(index);
                // What is in no segment has no rules.
                let linked = frames.map_or(Some(place.address), |of| of.address_of(place.address));
                Some(Place { module, address: linked.unwrap_or(u64::MAX) })
            }
        }
    }

    fn rules(&mut self, module: u32) -> Result<&Rules<Bytes>, Unreadable> {
        let unwinder = self.unwinder;
        if let Some((_, code)) = unwinder.jit.code(module) {
            return Ok(code.rules(unwinder.no_rules.machine(), unwinder.endian));
        }
        let index = module as usize;
        match unwinder.files.modules.get_index(index).map(|module| &module.kind) {
            Some(ModuleKind::PerfMap { .. }) => Ok(&unwinder.no_rules),
            _ => unwinder.files.of(index).map(|frames| &frames.rules).ok_or(Unreadable),
        }
    }

    fn code_before(&mut self, address: u64) -> Option<[u8; 8]> {
        let Self { unwinder, at } = self;
        let last = address.checked_sub(1)?;
        let place = unwinder.timeline.place(CpuMode::User, at.space, last, at.moment);
        let index = place.module?.0 as usize;
        if let Some((_, code)) = unwinder.jit.find(index, place.address) {
            return code.code_before(code.address_of(place.address).wrapping_add(1));
        }
        match unwinder.files.modules.get_index(index)?.kind {
            ModuleKind::File | ModuleKind::Vdso => {
                unwinder.files.of(index)?.code_before(place.address.wrapping_add(1))
            }
            _ => None,
        }
    }

    fn code_at(&mut self, address: u64, bytes: &mut [u8; 16]) -> usize {
        let Self { unwinder, at } = self;
        let place = unwinder.timeline.place(CpuMode::User, at.space, address, at.moment);
        let Some(module) = place.module else { return 0 };
        let index = module.0 as usize;
        if let Some((_, code)) = unwinder.jit.find(index, place.address) {
            return code.copy_code(code.address_of(place.address), bytes);
        }
        match unwinder.files.modules.get_index(index).map(|module| &module.kind) {
            Some(ModuleKind::File | ModuleKind::Vdso) => {
                unwinder.files.of(index).map_or(0, |file| file.copy_code(place.address, bytes))
            }
            _ => 0,
        }
    }
}
