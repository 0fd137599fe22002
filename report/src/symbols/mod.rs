//! From a module and an address to a symbol.
//!
//! ```text
//!   Module ──► Resolver::load ──► locate ──► elf / kallsyms / vdso / perf_map ──► SymbolTable
//!   (identity)   (once each)      (where may    (one file per source)               (sorted starts)
//!                                  symbols be?)
//!                    │
//!                    └────────► Outcome: every place that was tried, and what came of it
//! ```
//!
//! The unit of work is the module, then the *unique* address: nothing here is done per sample. A caller collects the
//! unique addresses of its samples, asks [`Resolver::load`] for each module that was hit (from as many threads as it
//! likes: a module is loaded once, others wait for it), and style each address up with [`Loaded::lookup`].
//!
//! # Which address
//! [`Module::addressing`] says in which space a module's symbols live:
//! * [`Addressing::FileOffset`]: look up `ip - map.start + map.pgoff`. That is an offset in the mapped file, the one
//!   thing that both the kernel's `MMAP` records and an ELF file's program headers speak of, so position-independent
//!   and fixed executables need no distinction.
//! * [`Addressing::ImageOffset`]: look up `ip - map.start` (`[vdso]`, whose records have a page offset that means nothing).
//! * [`Addressing::Absolute`]: look up the sampled address itself (kernel, kernel modules, JIT maps).
//!
//! # Which name
//! The rules are those of `perf report`, so that a profile reads the same in both: which symbols count (`elf_symbols`),
//! where a symbol without size ends and which of several names for one address is shown (`table`), how names of
//! C++ and Rust are spelt ([`demangle`]).
//!
//! Nothing in here fails: a module whose symbols cannot be had is [`Loaded`] with an empty table and an [`Outcome`]
//! that says what was tried and why it did not help. Files are input, and damaged ones only end the attempt.
//!
//! Nothing in here asks a server but [`Resolver::fetch`], which who has counted calls for the modules that are worth it.

#[cfg(test)]
mod against_perf;
mod call_frames;
pub mod demangle;
mod elf;
mod elf_plt;
mod elf_symbols;
#[cfg(test)]
mod elf_tests;
mod explain;
mod fetch;
mod file;
mod jitdump;
mod kallsyms;
mod kernel;
mod lines;
mod locate;
mod module;
mod origin;
mod outcome;
mod perf_map;
mod resolver;
#[cfg(test)]
mod resolver_tests;
mod roots;
mod search;
mod starts;
mod table;
#[cfg(test)]
mod test_elf;
mod unpack;
mod vdso;
mod vmlinux;

pub use call_frames::{CallFrames, Cpu};
pub use explain::{Explanation, GUEST, UNMAPPED, explain};
pub use lines::{Inlined, LineId, Lines};
pub use module::{Addressing, JitDump, Module, ModuleKind, kernel_module_name};
pub use origin::{FileId, Origin, Reference};
pub use outcome::{Attempt, Contradiction, Outcome, Refusal, Source};
pub use recrep_format::build_id::BuildId;
pub use resolver::{Loaded, Resolver};
pub use table::{Symbol, SymbolId, SymbolTable};
