//! Command line of `rep report`, options shared by several commands, and exit statuses. Options become a
//! [`Query`](crate::query::Query).

pub mod args;
pub mod call_args;
pub mod filter_args;
pub mod help;
pub mod outcome;
pub mod source_args;
pub mod style_args;
pub mod symbol_args;
