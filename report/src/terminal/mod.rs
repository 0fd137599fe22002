//! Terminal output: colours and other display options, progress, escaping of control characters.

pub mod digits;
pub mod escape;
pub mod progress;
pub mod style;
