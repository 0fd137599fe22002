//! Terminal output: the terminal's width (`exports::text` cuts lines to it), colours,
//! progress, times of day, escaping of control characters.

pub(crate) mod digits;
pub(crate) mod escape;
pub(crate) mod parts;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod when;
