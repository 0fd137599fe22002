//! Summaries of a profile: `rep mem`, `c2c`, `branches`, `critical-path`, `annotate`, `timeline`,
//! `modules`, `syscalls`, `waits`. Each makes a query of its options, and an analysis of the profile
//! that prints in all table formats ([`exports::sheet`](crate::exports::sheet)).

pub mod annotate;
pub(crate) mod branches;
pub mod c2c;
mod callers;
mod collected;
pub(crate) mod critical_path;
mod derived;
pub(crate) mod diff;
pub mod mem;
pub(crate) mod modules;
pub(crate) mod syscalls;
pub(crate) mod timeline;
pub(crate) mod waits;
