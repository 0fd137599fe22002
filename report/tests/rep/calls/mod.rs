//! Callchains and the branches before samples, of a program whose functions are known.

mod common;
mod history;
mod off_cpu;
mod recorded;
