//! Reports on perf.data files, computed on all cores.
//!
//! ```text
//!  commands           registry: name, options, what is run; `report`
//!             ┌──────────┴───────────────┬─────────────────────────────────┐
//!  analyses   │ mem  c2c  branches       │  listings   script  dump        │
//!             │ timeline  modules        │  info (+ evlist)  tasks  bundle │
//!             └──┬──────────┬────────────┴──────────┬──────────────────────┘
//!               cli  (options)        exports  (a folder for each output format)
//!                │          │                       │
//!  engine        │    each input ─► its counts ─► one profile of all inputs
//!  table         │    rows of a profile in order and within limits, cells as texts
//!  profile       │    what was counted: events, rows of typed cells, callchains, modules
//!  scan          │    samples ─► packed keys, on all cores
//!  callchain     │    callchains ─► frames; unwinding of copied stacks
//!  count         │    packed keys ─► counts: hash tables, partitions, merge
//!  tracepoints   │    raw bytes ─► fields and text
//!  timeline      │    side-band records ─► threads and mappings at any time, what was lost, time off CPUs
//!  symbols       │    mapped file (a module) and address ─► function, source line
//!  input         │    files, pipes, directories ─► bytes ─► pieces of whole records
//!  query       ◄─┘    the user's request as data, including the options of call trees
//!  terminal           colours, progress, escaping, text in order from all cores
//! ```
//!
//! Modules import only those below them (`tests/tests/all/architecture.rs` checks this). Data flows
//! up: [`input`] opens and splits; [`timeline`] is built from the records that tell of threads and
//! mappings (COMM, FORK, MMAP, …), and not changed after that; [`scan`] counts samples by integer
//! keys in [`count`]'s tables; [`engine`] names distinct keys and puts them into a `profile`;
//! `exports` print it. Counting neither sorts nor keeps samples, and does not know the output
//! format: an export says what it needs of the profile.

#![allow(clippy::len_without_is_empty, reason = "callers never ask for is_empty")]

pub mod analyses;
pub mod callchain;
pub mod cli;
pub mod commands;
pub mod count;
pub mod engine;
mod exports;
pub mod input;
pub mod listings;
mod profile;
pub mod query;
pub mod scan;
pub mod symbols;
mod table;
pub mod terminal;
pub mod timeline;
pub mod tracepoints;
