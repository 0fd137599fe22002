//! Converts counted keys into rows of cells. Each distinct address is resolved once and each
//! distinct text built once.

mod ancestors;
mod cells;
mod cumulated;
pub(crate) mod event_table;
pub(crate) mod group;
pub(crate) mod hierarchy;
mod labeller;
pub(crate) mod module_use;
pub(crate) mod profile;
pub(crate) mod recording;
pub(crate) mod signs;
mod texts;

pub(crate) use labeller::{INLINED, Labeller, loaded, numbers};
