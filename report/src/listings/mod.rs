//! Commands that list what is in a file one by one: `rep script`, `dump`, `info`, `evlist`, `bundle`,
//! `stat`, and the options `--tasks` and `--mmaps` of `rep report`.

pub(crate) mod bundle;
#[cfg(feature = "parquet")]
pub(crate) mod data_set;
pub(crate) mod dump;
pub(crate) mod info;
pub mod script;
pub(crate) mod stat;
pub(crate) mod tasks;
