//! Checks callchains that the kernel recorded by following frame pointers. The call frame
//! information of a module says what the frame pointer is at each address:
//!
//! ```text
//!   recorded   compare (a)   qsort (b)   main (c)   start (d)
//!   at a       the frame pointer is a's own        ─► b is its caller: right
//!   at b       that of a caller, left alone        ─► callers are missing, c is one further out: skips
//!   at c       used for something else             ─► d means nothing: wrong
//!   shown      compare (a)   qsort (b)   [callers unknown]   main (c)   [callers unknown]
//! ```
//!
//! What the rules say of an address is looked up once; frames of chains carry it
//! ([`Frame::step`](crate::callchain::Frame::step)), and distinct chains are corrected when those of all
//! workers are joined ([`Stacks::join`](crate::callchain::Stacks::join)). Code without rules is believed, and
//! so are modules whose files are not proven; not so a sampled function of a file that has neither
//! rules nor a frame: it was written by hand.

use std::ops::Range;
use std::sync::OnceLock;

use recrep_unwind::{FramePointer, Machine};

use crate::callchain::tree::stacks::Step;
use crate::symbols::{CallFrames, Functions, Loaded, Module, ModuleKind, Modules, Resolver};

/// What unwinding needs of a recording's modules; each is prepared at its first use.
#[derive(Debug)]
pub(crate) struct ModuleFrames<'s> {
    pub(crate) modules: &'s Modules,
    resolver: &'s Resolver,
    files: Vec<OnceLock<Option<CallFrames>>>,
}

impl<'s> ModuleFrames<'s> {
    pub(crate) fn new(modules: &'s Modules, resolver: &'s Resolver) -> Self {
        let files = (0..modules.len()).map(|_| OnceLock::new()).collect();
        Self { modules, resolver, files }
    }

    /// Returns whether stacks begin at the function at an address of a module.
    pub(crate) fn is_entry(&self, module: &Module, address: u64) -> bool {
        is_entry_at(&self.resolver.load(module), address)
    }

    /// Returns what unwinding needs of a module; `None` if its file cannot be read.
    pub(crate) fn of(&self, index: usize) -> Option<&CallFrames> {
        let of_file = || self.resolver.call_frames(self.modules.get_index(index)?);
        self.files.get(index)?.get_or_init(of_file).as_ref()
    }
}

/// Rules by which callchains of one perf.data file are checked.
#[derive(Debug)]
pub(crate) struct FramePointers<'s>(ModuleFrames<'s>);

/// These rules, and the functions of the modules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainChecks<'s> {
    pub(crate) rules: &'s FramePointers<'s>,
    pub(crate) functions: &'s Functions<'s>,
}

impl<'s> FramePointers<'s> {
    pub(crate) fn new(modules: &'s Modules, resolver: &'s Resolver) -> Self {
        Self(ModuleFrames::new(modules, resolver))
    }
}

impl ChainChecks<'_> {
    /// Returns the step from the frame with an instruction of a module, the sampled one or a call, to
    /// the next entry of its chain; and a range around the instruction where it is the same.
    pub(crate) fn step(self, module: usize, at: u64, is_call: bool) -> (Step, Range<u64>) {
        let FramePointers(modules) = self.rules;
        let frames = modules.of(module).filter(|frames| frames.has_frame_pointers);
        let found = frames.and_then(|frames| {
            let linked = frames.address_of(at)?;
            let (pointer, range) = frames.rules.frame_pointer_in(linked);
            let in_file = |address: u64| address.wrapping_sub(linked).wrapping_add(at);
            Some((pointer, in_file(range.start)..in_file(range.end)))
        });
        let (pointer, range) = found.unzip();
        let range = range.unwrap_or(at..at.saturating_add(1));
        (self.step_by(module, at, is_call, pointer), range)
    }

    /// Returns the step from an instruction where the frame pointer is this.
    fn step_by(self, module: usize, at: u64, is_call: bool, pointer: Option<FramePointer>) -> Step {
        let step = match pointer {
            Some(FramePointer::Unknown) if !is_call && self.lacks_frame(module, at) => Step::Skips,
            None | Some(FramePointer::Unknown) => return Step::Unchecked,
            Some(FramePointer::Root) => return Step::Outermost,
            Some(FramePointer::Holds) => Step::Right,
            Some(FramePointer::Untouched) => Step::Skips,
            Some(FramePointer::Changed | FramePointer::Signal) => Step::Wrong,
        };
        match step {
            _ if !self.is_entry(module, at) => step,
            // What the C library does before it is of no interest, and it may end here.
            Step::Right => Step::Unchecked,
            _ => Step::Outermost,
        }
    }

    /// Returns whether an instruction of x86-64 without rules is in a function that has made no
    /// frame by then, so that the frame pointer is its caller's: code written by hand.
    fn lacks_frame(self, module: usize, address: u64) -> bool {
        let FramePointers(modules) = self.rules;
        let Some(loaded) = self.functions.loaded(module) else { return false };
        // By symbols alone: which steps are right does not depend on what else is shown.
        let (symbol, function) = loaded.table.find_range(address);
        let name = symbol.and_then(|symbol| loaded.name(symbol));
        let Some(frames) = modules.of(module) else { return false };
        // What V8 jumps to runs in the frame of the code that jumps there.
        if frames.rules.machine() != Machine::X86_64
            || name.is_none_or(|name| name.starts_with("Builtins_"))
        {
            return false;
        }
        let made = match frames.code_at(function.start) {
            // `endbr64`; `push %rbp; mov %rsp, %rbp`, in its two forms.
            Some([0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5]) => 8,
            Some([0x55, 0x48, 0x89, 0xe5, ..] | [0x55, 0x48, 0x8b, 0xec, ..]) => 4,
            Some(_) => u64::MAX,
            None => return false,
        };
        address < function.start.saturating_add(made)
    }

    /// Returns whether an address of a module follows a call; `None` if its code is not known.
    pub(crate) fn follows_call(self, module: usize, address: u64) -> Option<bool> {
        let FramePointers(modules) = self.rules;
        match modules.modules.get_index(module)?.kind {
            ModuleKind::File | ModuleKind::Vdso => {
                let frames = modules.of(module)?;
                Some(frames.rules.machine().is_call(frames.code_before(address)?))
            }
            // There is no code.
            ModuleKind::Opaque => Some(false),
            _ => None,
        }
    }

    /// Returns whether stacks begin at the function at an address of a module.
    fn is_entry(self, module: usize, address: u64) -> bool {
        self.functions.loaded(module).is_some_and(|loaded| is_entry_at(loaded, address))
    }
}

/// Functions at which user stacks begin.
const ENTRIES: &[&str] = &[
    "_start",
    "main",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "start_thread",
    "thread_start",
    "_dl_start",
    "_dl_start_user",
    "_dlstart",
    "_dlstart_c",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.mcall",
    "runtime.rt0_go",
];

/// Returns whether user stacks begin at the function at an address.
fn is_entry_at(loaded: &Loaded, address: u64) -> bool {
    // Its name as the file has it: none of them is mangled.
    let symbol = loaded.table.lookup(address);
    symbol.is_some_and(|symbol| str::from_utf8(symbol.name).is_ok_and(is_entry))
}

/// Returns whether user stacks begin at this function.
pub(crate) fn is_entry(name: &str) -> bool {
    let bare = name.split('@').next().unwrap_or_default();
    let bare = bare.strip_suffix(".abi0").unwrap_or(bare);
    ENTRIES.contains(&bare) || bare.starts_with("__libc_start_") || bare.starts_with("_rt0_")
}
