//! Terminal output: the terminal's width (`view::text` cuts lines to it), colours, progress, escaping of control
//! characters.

pub mod digits;
pub mod escape;
pub mod progress;
pub mod style;
