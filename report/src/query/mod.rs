//! The query as plain data: sort keys, fields, filters, times, options. [`SymbolOptions`] are
//! arguments for clap too: their flags and help are declared here.

mod column;
pub(crate) mod fields;
pub(crate) mod graph;
pub mod key;
pub mod lists;
pub mod mode;
mod output;
pub mod pattern;
mod request;
mod servers;
pub(crate) mod shown;
pub(crate) mod sort_key;
mod source;
mod symbol_options;
pub mod times;
mod trace_fields;
pub mod warning;
pub mod word_text;

pub use column::{Column, KeyError};
pub use output::{Format, Inspection};
pub use request::{ChainOptions, Filters, MAX_STACK, Query};
pub use servers::Servers;
pub use source::Source;
pub use symbol_options::SymbolOptions;
pub use trace_fields::{FieldSpec, TraceColumn};
