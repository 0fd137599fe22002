//! Reports on perf.data files, computed on all cores.
//!
//! ```text
//!  commands           registry: name, options, what is run; `report`
//!             ┌──────────┴───────────────┬─────────────────────────────────┐
//!  analyses   │ diff  mem  c2c  branches │  listings   script  dump        │
//!             │ timeline modules annotate│  info (+ evlist)  tasks  bundle │
//!             │ syscalls  critical-path  │  stat                           │
//!             └──┬──────────┬────────────┴──────────┬──────────────────────┘
//!               cli  (options)        exports  (a folder for each output format)
//!                │          │                       │
//!  picture       │    profiles by callchain, thread, CPU and time ─► flame graph (SVG), page (HTML)
//!  compare       │    two sides of runs ─► what changed, and whether chance explains it; gates
//!  engine        │    each input ─► its counts ─► one profile of all inputs
//!  table         │    rows of a profile in order and within limits, cells as texts
//!  profile       │    what was counted: events, rows of typed cells, callchains, modules
//!  scan          │    samples ─► packed keys, on all cores
//!  samples       │    a file opened: its side-band, its filters, the pass over its samples
//!  callchain     │    callchains ─► frames; unwinding of copied stacks
//!  code          │    function ─► instructions with counts, source lines, jumps
//!  decode        │    traces of processors ─► samples
//!  count         │    packed keys ─► counts: hash tables, partitions, merge
//!  tracepoints   │    raw bytes ─► fields and text
//!  timeline      │    side-band records ─► threads and mappings at any time, what was lost, time off CPUs,
//!                │    who ended waits, critical paths
//!  symbols       │    mapped file (a module) and address ─► function, source line
//!  input         │    files, pipes, directories ─► bytes ─► pieces of whole records
//!  pprof         │    the messages of pprof's profiles
//!  query       ◄─┘    the user's request as data, including the options of call trees
//!  terminal           colours, progress, escaping, text in order from all cores
//! ```
//!
//! Modules import only those below them (`tests/tests/all/architecture.rs` checks this). Data flows
//! up: `input` opens and splits; `timeline` is built from the records that tell of threads and
//! mappings (COMM, FORK, MMAP, …), and not changed after that; `scan` counts samples by integer
//! keys in `count`'s tables; `engine` names distinct keys and puts them into a `profile`;
//! `exports` print it. Counting neither sorts nor keeps samples, and does not know the output
//! format: an export says what it needs of the profile.

#![cfg_attr(
    not(all(feature = "firefox", feature = "parquet")),
    allow(dead_code, unused_imports, reason = "these outputs alone need it")
)]
#![allow(clippy::len_without_is_empty, reason = "callers never ask for is_empty")]

mod analyses;
mod callchain;
mod cli;
mod code;
mod commands;
mod compare;
mod count;
mod decode;
mod engine;
mod exports;
mod input;
mod listings;
mod picture;
mod pprof;
mod profile;
mod query;
mod samples;
mod scan;
mod symbols;
mod table;
mod terminal;
mod timeline;
mod tracepoints;

pub use commands::main;

/// What the tests of the workspace and the benchmarks use; a program's library needs no more.
#[doc(hidden)]
pub mod testing {
    pub use crate::analyses::{annotate, c2c, mem};
    pub use crate::cli::{args, parse};
    pub use crate::code::{Flow, Instruction, InstructionSet};
    pub use crate::engine::report::answer;
    pub use crate::input::Input;
    pub use crate::listings::script;
    pub use crate::query::{Demangle, Source, SymbolOptions};
    pub use crate::symbols::{Module, ModuleKind, Resolver, SourceFrame};
}
