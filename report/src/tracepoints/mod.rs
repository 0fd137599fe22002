//! What tracepoints recorded, as text: the sort keys `trace` and `[event.]field[/raw]`, and `rep script`.
//!
//! ```text
//!  TRACING_DATA ─► format texts ─► Event: fields, print fmt taken apart (once for a file)
//!                                    │
//!  a sample's raw bytes ─────────────┴─► text, once for each distinct payload of a worker ─► a number in the key
//! ```
//!
//! The texts are those of the library that perf prints with (`libtraceevent`), without its plugins: the kernel's `print fmt`, a
//! subset of C, is read once (`lex`, `expr`, `print_fmt`) and evaluated for raw bytes (`eval`, `special`). A print fmt
//! that uses what is not known here, such as a function of the kernel's own, is told by its fields instead,
//! after the words `[FAILED TO PARSE]`, which are perf's.

mod bitmap;
mod eval;
mod event;
mod expr;
mod formats;
mod lex;
mod print_fmt;
mod printf;
mod raw_fields;
mod running;
mod special;
mod traced;

#[cfg(test)]
mod tests;

pub use eval::Kernel;
pub use event::Event;
pub use formats::Formats;
pub use running::Running;
pub use traced::{PayloadTexts, Traced};
