//! What `rec` and `rep` share at the terminal; it knows neither recordings nor reports.
//!
//! | module | subject |
//! |---|---|
//! | [`usage`] | errors of clap, in the words of a message |
//! | [`nearest`] | suggestions for mistyped names |
//! | [`manual`] | manual pages and completions from the definition of a command line |
//! | [`pager`] | standard output, or a pager in front of it |
//! | [`units`] | numbers, sizes and times as people read them |
//! | [`glob`] | patterns of names |
//! | [`demangle`] | names of C++ and Rust functions |
#![forbid(unsafe_code)]

pub mod demangle;
pub mod glob;
pub mod manual;
pub mod nearest;
pub mod pager;
pub mod units;
pub mod usage;
