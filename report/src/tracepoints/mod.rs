//! The payload of tracepoint samples as text, for the sort keys `trace` and `[event.]field[/raw]`
//! and for `rep script`.
//!
//! ```text
//!  TRACING_DATA ─► format texts ─► Tracepoint: fields, parsed print fmt (once per file)
//!                                    │
//!  a sample's raw bytes ─────────────┴─► text, once per worker and distinct payload ─► a number in the key
//! ```
//!
//! The texts are those of libtraceevent (perf's library) without its plugins. The kernel's
//! `print fmt`, a subset of C, is parsed once (`lex`, `expr`, `print_fmt`) and evaluated for each
//! payload (`eval`, `special`). A print fmt with something unsupported, such as a call of a kernel
//! function, gives `[FAILED TO PARSE]` and the fields, as in perf.

mod eval;
mod event;
mod expr;
mod formats;
mod print_fmt;
mod printf;
mod special;
mod traced;

#[cfg(test)]
mod tests;

pub(crate) use eval::KernelTexts;
pub(crate) use event::Tracepoint;
pub(crate) use formats::{Formats, RecordedKernel};
pub(crate) use printf::hex;
pub(crate) use traced::{PayloadTexts, Traced};
