//! Reports on perf.data files, computed on all cores.
//!
//! ```text
//!             ┌─────────────────────────────────────────────────────────────────────────────────┐
//!  commands   │ report  script  mem  c2c  branches  timeline  modules  info (+ evlist)  dump   │ a module each
//!             └──┬──────────────────────────────────┬──────────────────────────────────────┬────┘
//!               cli  (options)          view  (text, tree, JSON, CSV, folded; line width)   │
//!                │                                  │                                      │
//!  pipeline      │    each input ─► its counts ─► one profile of all inputs               ◄─┘
//!                │
//!  table         │    counts ─► sorted rows of cells, with names and percentages; merges the rows of several inputs
//!  scan          │    samples ─► packed keys, on all cores
//!  callchain     │    callchains ─► frames, call trees, folded stacks; unwinding of copied stacks
//!  count         │    packed keys ─► counts: hash tables, partitions, merge
//!  tracepoints   │    raw bytes ─► fields and text
//!  timeline      │    side-band records ─► threads and mappings at any time, what was lost, time off CPUs
//!  symbols       │    mapped file (a module) and address ─► function, source line
//!  input         │    files, pipes, directories ─► bytes ─► pieces of whole records
//!  query       ◄─┘    the user's request as data, including the options of call trees
//!  terminal           colours, progress, escaping
//! ```
//!
//! Modules import only those below them, except that `cli` imports `view`
//! (`tests/tests/all/architecture.rs` checks this). Data flows up: [`input`] opens and splits;
//! [`timeline`] is built from the records that tell of threads and mappings (COMM, FORK, MMAP, …),
//! and not changed after that; [`scan`] counts samples by integer keys in [`count`]'s tables;
//! `table` (private) turns distinct keys into rows; `view` (private) prints them. Counting neither
//! sorts nor keeps samples.

#![allow(clippy::len_without_is_empty, reason = "what is not asked is not written")]

pub mod callchain;
pub mod cli;
pub mod commands;
pub mod count;
mod exports;
pub mod input;
pub mod pipeline;
pub mod query;
pub mod scan;
pub mod symbols;
mod table;
pub mod terminal;
pub mod timeline;
pub mod tracepoints;
