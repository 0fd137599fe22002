//! Samples with copied stacks, rewritten as samples with callchains.

use std::ops::Range;
use std::sync::Arc;

use recrep_format::abi::{RegsAbi, RegsArch, context};
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::read::Frames;
use recrep_format::record::{Body, RawRecord, Record, Regs, Sample, SampleFields, StackUser};
use recrep_unwind::{
    Cause, Code, End, Frame, Machine, Memory, Place, Registers, Rules, Unreadable, Unwinder,
};

use super::calls::CallCache;
use super::chains::{Chains, MOST_FRAMES};
use super::code::CodeCache;
use super::jit_dumps::{self, JitDumps, Moment};
use super::modules::{self, Mapping, Module};
use super::space::Space;
use super::spaces::SpaceCache;
use super::{Unwinding, UnwoundEvent};
use crate::output::layouts::event_id;

/// Rewrites the records of a thread that writes.
pub(crate) struct Rewriter {
    shared: Arc<Unwinding>,
    unwinder: Unwinder,
    seen: SpaceCache,
    cache: Cache,
    frames: Vec<Frame>,
    links: Vec<u64>,
    chain: Vec<u8>,
    out: Encoder,
    chains: Chains,
}

impl std::fmt::Debug for Rewriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rewriter").field("chains", &self.chains).finish_non_exhaustive()
    }
}

/// Result for a sample.
enum Outcome {
    /// There is no user stack that could be unwound: the kernel's chain stays.
    Untouched,
    Unwound(End),
    /// It is not known what is mapped.
    Unknown,
}

impl Rewriter {
    pub(crate) fn new(shared: Arc<Unwinding>) -> Self {
        Self {
            shared,
            unwinder: Unwinder::default(),
            seen: SpaceCache::default(),
            cache: Cache::default(),
            frames: Vec::new(),
            links: Vec::new(),
            chain: Vec::new(),
            out: Encoder::new(Endian::NATIVE),
            chains: Chains::default(),
        }
    }

    /// Rewrites records, of which the newest sample is of this time.
    pub(crate) fn rewrite(&mut self, records: &[u8], newest: u64) -> &[u8] {
        self.shared.spaces.apply(newest);
        self.cache.jit_dumps.begin_batch();
        self.out.clear();
        let shared = Arc::clone(&self.shared);
        let mut frames = Frames::new(records, 0, Endian::NATIVE);
        for record in frames.by_ref().map_while(Result::ok) {
            let event = event_id(&record).and_then(|id| shared.events.get(&id));
            if event.is_none_or(|event| self.sample(&record, event, &shared).is_none()) {
                self.out.bytes(record.bytes);
            }
        }
        // Bytes that are no record go into the file unchanged.
        let end = usize::try_from(frames.offset()).unwrap_or(records.len());
        self.out.bytes(records.get(end..).unwrap_or_default());
        self.out.as_bytes()
    }

    /// Returns the counts since the last call.
    pub(crate) fn take_chains(&mut self) -> Chains {
        std::mem::take(&mut self.chains)
    }

    /// Writes a sample with the callchain from its stack; `None` if it is damaged.
    fn sample(
        &mut self,
        record: &RawRecord<'_>,
        event: &UnwoundEvent,
        shared: &Unwinding,
    ) -> Option<()> {
        let sample = Sample::new(*record, &event.layout, Endian::NATIVE);
        let mut fields = SampleFields::default();
        sample.read(&mut fields).ok()?;
        let chain = fields.callchain?;
        let stack = fields.stack_user?;
        let kernel = chain.iter().take_while(|word| *word != context::USER).count();
        let outcome = self.unwind(&fields, kernel, event, shared);
        let kernel_part = chain.as_bytes().get(..8 * kernel)?;
        self.chain.clear();
        self.chain.extend_from_slice(kernel_part);
        let mut keeps_registers = true;
        let mut kept = StackUser::default();
        match outcome {
            Outcome::Untouched => {
                self.chain.extend_from_slice(chain.as_bytes().get(8 * kernel..)?);
                keeps_registers = false;
            }
            Outcome::Unwound(end) => {
                keeps_registers =
                    !self.put_frames(end, event.max_stack > 0, event.copy.into(), shared);
            }
            Outcome::Unknown => {
                kept = stack.trimmed();
                self.chains.kept += 1;
            }
        }
        fields.callchain = Some(U64s::new(&self.chain, Endian::NATIVE));
        fields.stack_user = Some(kept);
        let mut values = Vec::new();
        if !keeps_registers {
            let regs = fields.regs_user?;
            let mut abi = RegsAbi::NONE;
            if event.has_arguments {
                values = without_instruction(&regs);
                abi = regs.abi;
            }
            let values = U64s::new(&values, Endian::NATIVE);
            fields.regs_user = Some(Regs { abi, values, ..regs });
        }
        let body = Body::Sample(Box::new(fields));
        Record::new(record.header.misc, body).encode(&mut self.out).ok()
    }

    /// Unwinds the stack of a sample, whose callchain begins with so many words of the kernel's.
    fn unwind(
        &mut self,
        fields: &SampleFields<'_>,
        kernel: usize,
        event: &UnwoundEvent,
        shared: &Unwinding,
    ) -> Outcome {
        let (Some(chain), Some(regs), Some(stack)) =
            (fields.callchain, fields.regs_user, fields.stack_user)
        else {
            return Outcome::Untouched;
        };
        let registers = ARCH
            .and_then(|arch| Machine::of(arch, regs.abi))
            .and_then(|machine| Some((machine, Registers::of_sample(machine, &regs)?)));
        let Some((machine, registers)) = registers else { return Outcome::Untouched };
        let (pid, time) = (fields.tid.map_or(0, |[pid, _]| pid), fields.time.unwrap_or(0));
        let Some(space) = shared.spaces.of(pid, &mut self.seen) else { return Outcome::Unknown };
        self.links.clear();
        let user = chain.iter().skip(kernel + 2).take_while(|word| *word < context::MAX);
        self.links.extend(user);
        let memory = Memory {
            start: registers.sp(),
            bytes: stack.copied(),
            endian: Endian::NATIVE,
            links: &self.links,
        };
        let most = match event.max_stack {
            0 => MOST_FRAMES,
            asked => usize::from(asked).saturating_sub(kernel.saturating_sub(1)).max(1),
        };
        let mut code =
            ProcessCode { space: &space, time, pid, machine, shared, cache: &mut self.cache };
        match self.unwinder.walk(&mut code, &registers, &memory, most, &mut self.frames) {
            End::Cut(Cause::Unreadable(_)) => Outcome::Unknown,
            // During an exec nothing is mapped yet, and the kernel sees no user stack.
            End::Cut(Cause::Unmapped) if chain.len() == kernel => Outcome::Untouched,
            end => Outcome::Unwound(end),
        }
    }

    /// Unwinds the stack of a thread that waits. Returns the user part of its callchain, as the
    /// kernel writes it, and whether it is complete.
    pub(crate) fn waiting(
        &mut self,
        pid: u32,
        time: u64,
        pointers: Pointers,
        stack: &[u8],
        max_stack: u16,
    ) -> (Vec<u8>, bool) {
        let shared = Arc::clone(&self.shared);
        self.chain.clear();
        let Some(space) = shared.spaces.of(pid, &mut self.seen) else {
            let alone = [context::USER, pointers.ip].map(u64::to_ne_bytes).concat();
            return (alone, false);
        };
        let machine = pointers.machine();
        let registers = Registers::of_pointers(machine, pointers.ip, pointers.sp);
        let (start, endian) = (pointers.sp, Endian::NATIVE);
        let memory = Memory { start, bytes: stack, endian, links: &[] };
        let is_limited = max_stack > 0;
        let most = if is_limited { usize::from(max_stack) } else { MOST_FRAMES };
        let (shared, cache) = (&*shared, &mut self.cache);
        let mut code = ProcessCode { space: &space, time, pid, machine, shared, cache };
        let end = self.unwinder.walk(&mut code, &registers, &memory, most, &mut self.frames);
        let is_whole = self.put_frames(end, is_limited, stack.len() as u64, shared);
        (self.chain.clone(), is_whole)
    }

    /// Appends the frames to the chain, as the kernel writes them, and returns whether they are all
    /// that there is to be had. `is_limited`: no more of them were asked for; `copy`: bytes of a
    /// copy of the stack.
    fn put_frames(&mut self, end: End, is_limited: bool, copy: u64, shared: &Unwinding) -> bool {
        let mut put = |word: u64| self.chain.extend_from_slice(&word.to_ne_bytes());
        put(context::USER);
        let mut has_gap = false;
        for (index, frame) in self.frames.iter().enumerate() {
            match frame {
                Frame::Exact(address) if index == 0 => put(*address),
                // Readers look up the byte before.
                Frame::Exact(address) => put(address.wrapping_add(1)),
                Frame::Return(address) => put(*address),
                Frame::Missing => {
                    has_gap = true;
                    break;
                }
            }
        }
        let chains = &mut self.chains;
        match end {
            _ if has_gap && self.unwinder.gap() == Some(Cause::Copy) => chains.add_cut(copy),
            _ if has_gap => chains.lost += 1,
            End::Limit if !is_limited => chains.deep += 1,
            End::Whole | End::Limit => {
                chains.whole += 1;
                return true;
            }
            End::Cut(Cause::Copy) => chains.add_cut(copy),
            End::Cut(Cause::NoRules(module)) => {
                let is_jit = module >= jit_dumps::FIRST;
                let name = if is_jit { "jit".to_owned() } else { shared.modules.name(module) };
                chains.add_without_rules(name, 1);
            }
            End::Cut(_) => chains.lost += 1,
        }
        false
    }
}

/// Returns the values of registers with an instruction pointer of 0, which says that the callchain
/// is complete without them.
fn without_instruction(regs: &Regs<'_>) -> Vec<u8> {
    let ip = ARCH.map(RegsArch::instruction_pointer);
    let value = |number, value| if Some(number) == ip { 0 } else { value };
    regs.iter().flat_map(|(number, of)| u64::to_ne_bytes(value(number, of))).collect()
}

/// Registers of a thread in a system call that others can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointers {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    /// First three arguments of the system call; 0 if it is in none.
    pub(crate) arguments: [u64; 3],
}

impl Pointers {
    /// Parses `/proc/PID/task/TID/syscall`: `number arguments sp ip`, `-1 sp ip`, or `running`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().rev();
        let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let (ip, sp) = (number()?, number()?);
        let [.., third, second, first] = [(); 6].map(|()| number().unwrap_or_default());
        let arguments = [first, second, third];
        (ip > 0 && sp > 0).then_some(Self { ip, sp, arguments })
    }

    /// Returns the machine: the stacks of 32-bit tasks are below 4 GiB.
    fn machine(self) -> Machine {
        let is_narrow = modules::NATIVE == Machine::X86_64 && self.sp < 1 << 32;
        if is_narrow { Machine::X86 } else { modules::NATIVE }
    }
}

/// Registers of this architecture.
const ARCH: Option<RegsArch> = if cfg!(target_arch = "x86_64") {
    Some(RegsArch::X86)
} else if cfg!(target_arch = "aarch64") {
    Some(RegsArch::Arm64)
} else {
    None
};

/// A writer thread's cache of modules and code.
#[derive(Default)]
struct Cache {
    modules: Vec<ModuleLookup>,
    code: CodeCache,
    calls: CallCache,
    jit_dumps: JitDumps,
}

#[derive(Clone, Default)]
enum ModuleLookup {
    #[default]
    Unknown,
    /// It cannot be read by this process.
    Unreadable(u32),
    Module(Arc<Module>),
}

/// A process's code at a moment.
struct ProcessCode<'a> {
    space: &'a Space,
    time: u64,
    pid: u32,
    machine: Machine,
    shared: &'a Unwinding,
    cache: &'a mut Cache,
}

impl ProcessCode<'_> {
    /// Returns a module, found by a mapping of this process.
    fn module(&mut self, number: u32, mapping: &Mapping) -> Option<&Module> {
        let at = number as usize;
        if self.cache.modules.len() <= at {
            self.cache.modules.resize(at + 1, ModuleLookup::Unknown);
        }
        let found = self.cache.modules.get_mut(at)?;
        match found {
            ModuleLookup::Module(_) => {}
            ModuleLookup::Unreadable(pid) if *pid == self.pid => return None,
            _ => {
                let module = self.shared.modules.module(number, self.pid, mapping);
                *found = module.map_or(ModuleLookup::Unreadable(self.pid), ModuleLookup::Module);
            }
        }
        match found {
            ModuleLookup::Module(module) => Some(module),
            _ => None,
        }
    }
}

impl ProcessCode<'_> {
    /// Returns the module of a JIT's code at an address, if it has rules: by the mapped page of the
    /// process's dump, and what is mapped at the address.
    fn jit_code(&mut self, page: &Mapping, mapping: &Mapping, address: u64) -> Option<u32> {
        mapping.source.may_be_of_jit().then_some(())?;
        let Self { time, pid, machine, shared, cache, .. } = self;
        let at = Moment {
            pid: *pid,
            machine: *machine,
            version: cache.code.version(*pid, *time),
            time: shared.is_monotonic.then_some(*time),
        };
        cache.jit_dumps.find(page, address, at, &mut cache.code)
    }
}

impl Code for ProcessCode<'_> {
    type Bytes = Vec<u8>;

    fn place(&mut self, address: u64) -> Option<Place> {
        let space = self.space;
        let mapping = space.find(address, self.time)?;
        if let Some(module) =
            space.jit_dump().and_then(|page| self.jit_code(page, mapping, address))
        {
            return Some(Place { module, address });
        }
        if mapping.source.is_memory() {
            let number = modules::memory(self.machine);
            self.module(number, mapping);
            return Some(Place { module: number, address });
        }
        let number = self.shared.modules.number(&mapping.source);
        let offset = address.wrapping_sub(mapping.range.start).wrapping_add(mapping.pgoff);
        let linked = self.module(number, mapping).map_or(offset, |module| module.linked(offset));
        Some(Place { module: number, address: linked })
    }

    fn rules(&mut self, module: u32) -> Result<&Rules<Vec<u8>>, Unreadable> {
        if module >= jit_dumps::FIRST {
            return self.cache.jit_dumps.rules(module).ok_or(Unreadable);
        }
        match self.cache.modules.get(module as usize) {
            Some(ModuleLookup::Module(module)) => Ok(&module.rules),
            _ => Err(Unreadable),
        }
    }

    fn code_before(&mut self, address: u64) -> Option<[u8; 8]> {
        let mut bytes = [0; 8];
        let copied = self.cache.code.copy(self.pid, address.checked_sub(8)?, &mut bytes);
        (copied == bytes.len()).then_some(bytes)
    }

    fn code_at(&mut self, address: u64, bytes: &mut [u8; 16]) -> usize {
        self.cache.code.copy(self.pid, address, bytes)
    }

    fn trampoline(&self) -> Range<u64> {
        self.space.trampoline()
    }

    fn returns_from(&mut self, function: u64) -> Option<Vec<u64>> {
        let mapping = self.space.find(function, self.time)?;
        let is_known = self.machine == Machine::X86_64;
        is_known.then(|| self.cache.calls.find(self.pid, function, &mapping.range))?
    }

    fn version(&mut self) -> u64 {
        self.cache.code.version(self.pid, self.time)
    }
}
