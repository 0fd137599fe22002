//! Tables of a profile for outputs and analyses: rows in order and within limits, cells as texts.

mod cells;
mod event_table;
pub(crate) mod group;
pub(crate) mod hierarchy;
mod tables;

pub(crate) use cells::Cells;
pub(crate) use event_table::{EventTable, Row};
pub(crate) use tables::{RowTexts, shown, tables};
