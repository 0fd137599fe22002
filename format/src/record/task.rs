//! Tasks: COMM, FORK, EXIT, SWITCH_CPU_WIDE, NAMESPACES, CGROUP.

use crate::bytes::U64s;
use crate::wire::{Text, wire};

wire! {
    /// The name of a thread (`PERF_RECORD_COMM`); `misc` has
    /// [`COMM_EXEC`](crate::abi::misc::COMM_EXEC) if an exec changed it. A thread without one has
    /// the name of the thread that forked it.
    pub struct Comm<'a> {
        /// The process.
        pub pid: u32 => signed,
        /// The thread.
        pub tid: u32 => signed,
        /// The name, at most 15 bytes.
        pub comm: Text<'a>,
    }

    /// A task began or ended (`PERF_RECORD_FORK`, `PERF_RECORD_EXIT`); a thread if `pid == ppid`.
    pub struct Task {
        /// The process.
        pub pid: u32 => signed,
        /// The parent's process.
        pub ppid: u32 => signed,
        /// The thread.
        pub tid: u32 => signed,
        /// The parent's thread.
        pub ptid: u32 => signed,
        /// The time, in nanoseconds of the perf clock.
        pub time: u64,
    }

    /// A context switch seen from the CPU (`PERF_RECORD_SWITCH_CPU_WIDE`); `misc` has its
    /// direction.
    pub struct SwitchCpuWide {
        /// The process that comes next, or that ran before.
        pub next_prev_pid: u32 => signed,
        /// Its thread.
        pub next_prev_tid: u32 => signed,
    }

    /// The namespaces of a task (`PERF_RECORD_NAMESPACES`).
    pub struct Namespaces<'a> {
        /// The process.
        pub pid: u32 => signed,
        /// The thread.
        pub tid: u32 => signed,
        /// Number of namespaces, as the record says.
        pub nr_namespaces: u64,
        /// Device and inode of each ([`Namespaces::iter`]).
        pub links: U64s<'a>,
    }

    /// A namespace, by the file in `/proc/<pid>/ns`.
    pub struct Namespace {
        /// The device of its file.
        pub dev: u64,
        /// The inode of its file.
        pub inode: u64 => "ino" hex,
    }

    /// A cgroup (`PERF_RECORD_CGROUP`).
    pub struct Cgroup<'a> {
        /// Its id.
        pub id: u64,
        /// Its path.
        pub path: Text<'a>,
    }
}

impl Namespaces<'_> {
    /// Names of the namespaces, in the kernel's order (`NET_NS_INDEX` and so on).
    pub const NAMES: &'static [&'static str] =
        &["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];

    /// Place of the mount namespace among them (`MNT_NS_INDEX`).
    pub const MNT_NS_INDEX: usize = 5;

    /// Returns the namespaces: as many as the record says, or fewer if it is too short.
    pub fn iter(&self) -> impl Iterator<Item = Namespace> {
        let count = usize::try_from(self.nr_namespaces).unwrap_or(usize::MAX);
        let links = self.links;
        (0..links.len() / 2).take(count).filter_map(move |i| {
            Some(Namespace { dev: links.get(2 * i)?, inode: links.get(2 * i + 1)? })
        })
    }
}
