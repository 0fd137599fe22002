//! The query as plain data: sort keys, fields, filters, times, options. `cli` makes it of
//! arguments.

mod by;
mod column;
mod filter_values;
mod filters;
pub(crate) mod graph;
mod itrace;
mod key;
pub(crate) mod lists;
mod mode;
mod needs;
mod request;
mod shown;
mod sort_key;
mod symbol_options;
pub(crate) mod times;
mod warning;
mod what_if;
pub(crate) mod word_text;

pub(crate) use by::By;
pub(crate) use column::{Column, KeyError, Number, TableColumn, TraceColumn};
pub(crate) use filter_values::{FilterBy, FilterValues};
pub(crate) use filters::{Filters, SampleFilters, is_named};
pub(crate) use graph::{FrameKey, Graph, Shape};
pub(crate) use itrace::{Itrace, Letter, PeriodUnit, SynthOptions};
pub(crate) use key::{CacheLine, End, Field, INS_LAT, Key, KeyAddress, Meta, NO_KEY, STAGE};
pub(crate) use lists::UsageError;
pub use mode::Source;
pub(crate) use mode::{Availability, Inspection, Mode};
pub(crate) use needs::Needs;
pub(crate) use request::MAX_STACK;
pub(crate) use request::{ChainOptions, Query};
pub(crate) use shown::{Kind, Name, Shown};
pub(crate) use sort_key::{Declaration, SortKey};
pub(crate) use symbol_options::Servers;
pub use symbol_options::{Demangle, SymbolOptions};
pub(crate) use times::{Extent, Interval, LONG, Steps, TimeSteps, Times};
pub(crate) use warning::Warning;
pub(crate) use what_if::{FasterCode, Saving, WhatIf};
