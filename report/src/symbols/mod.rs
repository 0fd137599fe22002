//! Resolution of a module and an address to a symbol.
//!
//! ```text
//!   resolver   Module ──► Loaded, once each: its table, its functions without symbols, its source lines
//!   search     where its files may be, which of them are the recorded ones; the kernel, code of JITs
//!   module     identity of a mapped object, and what the recording has of it     explain: why it has no names
//!   elf        layout of a file, its symbols, source lines, call frames, code
//!   outcome    every place that was tried, with its result     shown_names, symbol_cache: what is kept for each function
//!   names      tables of names by address, demangling     file: opening, reading, reasons to refuse
//! ```
//!
//! The unit of work is the module, then the *unique* address: nothing here is done per sample. A
//! caller collects the unique addresses of its samples, calls [`Resolver::load`] for each module
//! that was hit (from any number of threads: a module is loaded once, other callers wait for it),
//! and looks each address up with `SymbolTable::lookup`.
//!
//! # Addresses
//! A module's kind decides by which address its symbols are looked up
//! ([`ModuleKind::first_address`]):
//! * Files by offset: `ip - map.start + map.pgoff`. `MMAP` records and ELF program headers both use
//!   offsets in the file, so position-independent and fixed executables need no distinction.
//! * `[vdso]` by offset in its image: `ip - map.start`. Its records have a meaningless page offset.
//! * All others (kernel, kernel modules, JIT maps) by the sampled address itself.
//!
//! Where a file has no symbol, its unwind tables show functions without names
//! ([`resolver::inferred`]).
//!
//! # Choice of names
//! Most rules are those of `perf report`, so that both print the same names: which symbols count
//! (`elf::symbols`), which of several names at an address is shown (`names::table`), how C++ and Rust
//! names are demangled (`recrep_console::demangle`). Where a symbol without size ends is not: perf
//! has it go on to the next one (`elf::extents`).
//!
//! # Errors
//! Loading never fails: a module without available symbols is `Loaded` with an empty table and an
//! `Outcome` that lists what was tried and why it gave nothing. Files are untrusted input; a
//! damaged file ends only the attempt to use it.
//!
//! Only [`Resolver::fetch`] contacts servers. A first count finds modules with many samples without
//! a function; the files of these modules are fetched, and then the query is answered.

mod elf;
mod explain;
mod file;
mod module;
mod names;
mod outcome;
mod resolver;
mod search;
mod shown_names;
mod symbol_cache;
mod wall_clock;

pub(crate) use elf::call_frames::CallFrames;
pub(crate) use elf::code::MachineCode;
pub use elf::lines::SourceFrame;
pub(crate) use elf::lines::{LineId, LineOrName, SourceLine};
pub(crate) use explain::{Explanation, UNMAPPED, explain};
pub(crate) use file::Refusal;
pub(crate) use module::bundle::{BundleKey, UnwindingParts};
pub(crate) use module::jit_life::JitLife;
pub(crate) use module::origin::{FileId, Origin, Reference};
pub(crate) use module::recorded::{FromRecording, RecordedFiles};
pub(crate) use module::{JitDump, Modules, kernel_module_name};
pub use module::{Module, ModuleKind};
pub(crate) use names::table::SymbolId;
pub(crate) use outcome::{Attempt, Outcome, Source};
pub use resolver::Resolver;
pub(crate) use resolver::function::Function;
pub(crate) use resolver::function_code::{FunctionPlace, NoCode};
pub(crate) use resolver::functions::Functions;
pub(crate) use resolver::loaded::{FileSegments, Loaded};
pub(crate) use search::jit::Version as CodeVersion;
pub(crate) use search::jit::frames::{JitCode, JitFrames};
pub(crate) use symbol_cache::CacheSlot;
pub(crate) use wall_clock::WallClock;

#[cfg(test)]
pub(crate) use symbol_cache::SymbolCache;
