//! What the terminal is like: its width (`view::text` cuts lines to it), colours, progress, control characters.

pub mod digits;
pub mod escape;
pub mod progress;
pub mod screen;
pub mod style;
