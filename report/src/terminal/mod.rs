//! Terminal output: the terminal's width (`view::text` cuts lines to it), colours, the pager,
//! progress, times of day, units, escaping of control characters.

pub mod digits;
pub mod escape;
pub mod pager;
pub mod progress;
pub mod style;
pub(crate) mod units;
pub mod when;
