//! Converts counted keys into rows of cells. Each distinct address is resolved once and each
//! distinct text built once.

mod ancestors;
mod cells;
mod cumulated;
mod event_table;
mod labeller;
mod lines;
pub(crate) mod module_use;
pub(crate) mod profile;
pub(crate) mod recording;
pub(crate) mod signs;
mod texts;

pub(crate) use labeller::{Labeller, loaded};
