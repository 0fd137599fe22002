//! Converts counted keys into rows of cells. Each distinct address is resolved once and each distinct text built once.

mod ancestors;
pub mod cells;
mod cumulated;
mod event_table;
mod labeller;
mod lines;
pub mod module_use;
mod naming;
pub mod profile;
pub mod recording;
mod texts;

pub use labeller::{Labeller, loaded};
pub use lines::CountValue;
