//! The query as plain data: sort keys, fields, filters, times, options. [`SymbolOptions`] and [`Filters`] also
//! declare arguments for clap: their flags and help are here.

mod column;
mod fields;
mod filters;
pub(crate) mod graph;
mod key;
pub(crate) mod lists;
mod mode;
mod output;
mod request;
mod servers;
mod shown;
mod sort_key;
mod source;
mod symbol_options;
pub(crate) mod times;
mod trace_fields;
mod warning;
pub(crate) mod word_text;

pub(crate) use column::{Column, KeyError};
pub(crate) use fields::{Number, TableColumn};
pub use filters::{Filters, SampleFilters};
pub(crate) use graph::{FrameKey, Graph, Shape};
pub(crate) use key::{CacheLine, End, Field, INS_LAT, Key, KeyAddress, Meta, NO_KEY, STAGE};
pub(crate) use lists::UsageError;
pub(crate) use mode::{Availability, Mode};
pub(crate) use output::{Format, Inspection};
pub(crate) use request::MAX_STACK;
pub use request::{ChainOptions, Query};
pub(crate) use servers::Servers;
pub(crate) use shown::{Kind, Name, Shown};
pub(crate) use sort_key::{Declaration, SortKey};
pub use source::Source;
pub use symbol_options::SymbolOptions;
pub(crate) use times::{Interval, Times};
pub(crate) use trace_fields::TraceColumn;
pub(crate) use warning::Warning;
