//! Resolution of a module and an address to a symbol.
//!
//! ```text
//!   Module ──► Resolver::load ──► search ──► elf · kernel · jit ──► SymbolTable
//!   (identity)   (once each)     (candidates,  (a folder for each   (by address)
//!                    │            proofs)       source of symbols)
//!                    └────────► Outcome: every place that was tried, with its result
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
//! Where a file has no symbol, its unwind tables tell of functions without names ([`inferred`]).
//!
//! # Choice of names
//! The rules are those of `perf report`, so that both print the same names: which symbols count
//! (`elf::symbols`), where a symbol without size ends and which of several names at an address is
//! shown (`table.rs`), how C++ and Rust names are demangled
//! (`recrep_console::demangle`).
//!
//! # Errors
//! Loading never fails: a module without available symbols is `Loaded` with an empty table and an
//! `Outcome` that lists what was tried and why it gave nothing. Files are untrusted input; a
//! damaged file ends only the attempt to use it.
//!
//! Only [`Resolver::fetch`] contacts servers. A first count finds modules with many samples without
//! a function; the files of these modules are fetched, and then the query is answered.

mod coarse;
mod code;
mod elf;
mod explain;
mod function;
mod function_code;
mod inferred;
mod jit;
mod kernel;
mod module;
mod names;
mod outcome;
mod recorded;
mod resolver;
mod search;
mod shown_names;
mod symbol_cache;
mod table;
mod wall_clock;

pub(crate) use code::MachineCode;
pub(crate) use elf::call_frames::CallFrames;
pub use elf::lines::SourceFrame;
pub(crate) use elf::lines::{LineId, LineOrName, SourceLine};
pub(crate) use explain::{Explanation, UNMAPPED, explain};
pub(crate) use function::Function;
pub(crate) use function_code::{FunctionPlace, NoCode};
pub(crate) use jit::Version as CodeVersion;
pub(crate) use jit::frames::{JitCode, JitFrames};
pub(crate) use jit::proof::JitLife;
pub(crate) use module::{JitDump, Modules, kernel_module_name};
pub use module::{Module, ModuleKind};
pub(crate) use outcome::{Attempt, Outcome, Refusal, Source};
pub(crate) use recorded::{FromRecording, RecordedFiles};
pub use resolver::Resolver;
pub(crate) use resolver::{Functions, Loaded};
pub(crate) use search::bundle::{BundleKey, UnwindingParts};
pub(crate) use search::proof::Origin;
pub(crate) use search::proof::{FileId, Reference};
pub(crate) use symbol_cache::CacheSlot;
pub(crate) use table::SymbolId;
pub(crate) use wall_clock::WallClock;

#[cfg(test)]
mod resolver_tests;
#[cfg(test)]
pub(crate) use symbol_cache::SymbolCache;
