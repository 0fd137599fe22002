//! From counted keys to rows of text: each distinct address is resolved once, each text made once.

mod amounts;
mod labeller;
mod side;
mod texts;
mod words;

pub use labeller::{LabelledRow, Labeller};
pub use side::Symbols;
