//! Terminal output: the terminal's width (`exports::text` cuts lines to it), colours, the pager,
//! progress, times of day, units, escaping of control characters.

pub(crate) mod digits;
pub(crate) mod escape;
pub(crate) mod pager;
pub(crate) mod parts;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod units;
pub(crate) mod when;
