//! Terminal output: the terminal's width (`exports::text` cuts lines to it), colours, the pager,
//! progress, times of day, units, escaping of control characters.

pub mod digits;
pub mod escape;
pub mod pager;
pub(crate) mod parts;
pub mod progress;
pub mod style;
pub(crate) mod units;
pub mod when;
