//! What a terminal needs: colours and style, progress, escaping of control characters.

pub mod escape;
pub mod progress;
pub mod style;
