//! Terminal output: its width, colours and other display options, progress, escaping of control characters.

pub mod digits;
pub mod escape;
pub mod progress;
pub mod screen;
pub mod style;
