//! Symbols, source lines and `rep modules`, tested with programs that are compiled here.

mod against_perf;
mod common;
mod explained;
mod fetched;
mod lines;
mod listed;
mod proven;
mod server;
mod sources;
