//! The harness of the tests that need more than one package.
//!
//! These tests run the real programs, `rec` and `rep`, on real recordings, and hold their answers
//! against perf's, or against a workload whose profile is known. What they share is here:
//!
//! | module | what |
//! |---|---|
//! | [`programs`] | builds `rec`, `rep` and the workload once, in the profile of the test run, and finds them |
//! | [`run`] | runs a program with a time limit and keeps what it said |
//! | [`needs`] | what a test needs of the machine: skipped where it is missing, failed in CI |
//! | [`lock`] | the lock of the CPUs |
//! | [`perf`] | perf as the oracle: its statistics and its tables as maps |
//! | [`record`] | one recording by `rec`, and its last line |
//! | [`report`] | `rep --json` as data, in the same shape as perf's tables |
//! | [`sources`] | the sources of the workspace, and which module imports which |
//! | [`damage`] | a perf.data file to be cut and patched |
//! | [`forms`] | the forms of fixtures that a test tries: with `RECREP_FULL=1`, all |
//! | [`variants`] | numbered damaged variants of any perf.data file |
//! | [`measured`] | runs a program with a short limit, and measures its time and memory |
//! | [`campaign`] | `rep --json` on very many variants, and which rules it broke |
//! | [`cutting`] | files that are cut short while `rep` reads them, and which rules it broke |
//! | [`agreement`] | `rep` and perf, held against each other on one file |
//! | [`listing`] | `rep script` and `perf script`, held against each other line by line |
//! | [`walking`] | lists of branches, held against the log of a random walk |
//! | [`waiting`] | a large recording of threads that wake each other |
//! | [`aliases`] | names of the C library's functions, one for each |
//! | [`witness`] | what a module's own symbol tables say of a function's name |
//! | [`table`] | that shape, and how two of them are compared |
//!
//! Whoever keeps the CPUs busy for a recording takes [`lock::cpus`] first: tests within one binary
//! run in parallel, and with some runners the binaries do too.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test harness fails by panicking, and says on stderr what it skips"
)]

pub mod agreement;
pub mod aliases;
pub mod campaign;
pub mod cutting;
pub mod damage;
pub mod forms;
pub mod listing;
pub mod lock;
pub mod measured;
pub mod needs;
pub mod perf;
pub mod programs;
pub mod record;
pub mod report;
pub mod run;
pub mod sources;
pub mod table;
pub mod tracing;
pub mod variants;
pub mod waiting;
pub mod walking;
pub mod witness;
