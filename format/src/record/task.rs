//! Tasks: COMM, FORK, EXIT.

use crate::wire;
use crate::wire::Text;

wire! {
    /// A thread's name (`PERF_RECORD_COMM`); `misc` has [`COMM_EXEC`](crate::abi::misc::COMM_EXEC) when an exec
    /// changed it.
    pub struct Comm<'a> {
        /// The process.
        pub pid: u32,
        /// The thread.
        pub tid: u32,
        /// The name, at most 15 bytes.
        pub comm: Text<'a>,
    }

    /// A task began or ended (`PERF_RECORD_FORK`, `PERF_RECORD_EXIT`); a thread where `pid == ppid`.
    pub struct Task {
        /// The process.
        pub pid: u32,
        /// The parent's process.
        pub ppid: u32,
        /// The thread.
        pub tid: u32,
        /// The parent's thread.
        pub ptid: u32,
        /// When, in nanoseconds of the perf clock.
        pub time: u64,
    }
}
