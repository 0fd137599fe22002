//! The query as plain data: sort keys, fields, filters, times, options. [`SymbolOptions`] and [`Filters`] also
//! declare arguments for clap: their flags and help are here.

mod column;
pub(crate) mod fields;
mod filters;
pub(crate) mod graph;
pub(crate) mod key;
pub(crate) mod lists;
pub(crate) mod mode;
mod output;
mod request;
mod servers;
pub(crate) mod shown;
pub(crate) mod sort_key;
mod source;
mod symbol_options;
pub(crate) mod times;
mod trace_fields;
pub(crate) mod warning;
pub(crate) mod word_text;

pub(crate) use column::{Column, KeyError};
pub(crate) use fields::{Number, TableColumn};
pub use filters::{Filters, SampleFilters};
pub(crate) use key::{CacheLine, End, Field, Key, Meta, NO_KEY};
pub(crate) use lists::UsageError;
pub(crate) use mode::{Availability, Mode};
pub(crate) use output::{Format, Inspection};
pub(crate) use request::MAX_STACK;
pub use request::{ChainOptions, Query};
pub(crate) use servers::Servers;
pub(crate) use sort_key::SortKey;
pub use source::Source;
pub use symbol_options::SymbolOptions;
pub(crate) use trace_fields::TraceColumn;
pub(crate) use warning::Warning;
