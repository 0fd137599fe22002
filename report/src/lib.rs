//! From perf.data files to histograms, on all cores.
//!
//! ```text
//!                     ┌───────────────┐   side-band   ┌───────────────────┐
//!   bytes ─► split ─► │ records, once │ ────────────► │ timeline (frozen) │
//!                     └───────┬───────┘               └─────────┬─────────┘
//!                             │ pieces of ~1 MiB                │ shared
//!                             ▼                                 ▼
//!                    worker: samples ─► keys of integers ─► partitions ─┐
//!                    worker: …                                          ├─► merge ─► cells ─► profile ─► view
//!                    worker: …                                          ┘             │
//!                                                                unique addresses ─► resolve
//! ```
//!
//! - [`args`] turns a command line into a [`query::Query`]; everything after that is pure but for [`input`], which opens
//!   files, and [`resolve`], which looks for symbols.
//! - [`split`] walks the record headers once, on all cores; [`sideband`] and [`timeline`] tell what was what when.
//! - [`scan`] counts samples into [`aggregate`]'s histograms; samples are never sorted and never kept.
//! - [`label`] finds what each distinct number stands for; a [`profile::Profile`] has rows of [`cells`], which [`view`] prints.

pub mod aggregate;
pub mod args;
pub mod branches;
pub mod c2c;
pub mod call_args;
pub mod callchain;
pub mod calls;
pub mod cells;
pub mod clock;
pub mod counted;
pub mod derived;
pub mod dump;
pub mod escape;
pub mod event_name;
mod fetching;
pub mod fields;
pub mod filter_args;
pub mod folded;
pub mod gathered;
pub mod graph;
pub mod groups;
pub mod info;
pub mod input;
mod input_map;
pub mod inputs;
pub mod label;
pub mod latency;
pub mod lists;
pub mod look_args;
pub mod looks;
pub mod module_use;
pub mod modules;
pub mod pattern;
pub mod profile;
pub mod progress;
pub mod query;
pub mod recording;
pub mod report;
pub mod resolve;
pub mod scan;
pub mod script;
pub mod sideband;
pub mod slices;
pub mod sort_key;
pub mod source_args;
pub mod split;
pub mod stage;
pub mod streams;
pub mod symbol_args;
pub mod tasks;
pub mod timeline;
pub mod times;
pub mod trace;
pub mod unpack;
pub mod unwind;
pub mod view;
pub mod warning;
