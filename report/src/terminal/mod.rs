//! Terminal output: colours and other display options, progress, escaping of control characters.

pub mod escape;
pub mod progress;
pub mod style;
