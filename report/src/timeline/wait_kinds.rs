//! Kinds of waits, by the kernel's functions that wait: that of the innermost one that is in a table.
//!
//! Kernels rename functions rarely, and what they add to a name (`.isra.0`, `_noprof`) comes last: so
//! each kind has starts of names.

use serde::Serialize;

use super::StandIn;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitKind {
    /// A lock, a condition, the end of a thread: what user space makes of futexes.
    Futex,
    Sleep,
    /// The end of a child, or a change of its state.
    Child,
    Pipe,
    Socket,
    Epoll,
    /// `poll`, `select`.
    Poll,
    Eventfd,
    IoUring,
    Terminal,
    Disk,
    /// A page that a fault reads.
    PageFault,
    /// A lock of the kernel, such as that of the address space.
    KernelLock,
    FileLock,
    Signal,
    /// A child that was started by `vfork` or `posix_spawn`.
    Vfork,
    /// The end of the other threads, when a process exits or executes another program.
    Exit,
    /// A function of the kernel that is in no table.
    Other,
    /// The kernel's functions are not recorded, or have no names.
    #[default]
    Unknown,
}

impl WaitKind {
    /// All kinds, in the order of their numbers, with their names as text has them and, as symbols
    /// of the time that a critical path has of them, in brackets.
    const NAMES: [(Self, &'static str, &'static str); 19] = [
        (Self::Futex, "futex", "[futex]"),
        (Self::Sleep, "sleep", "[sleep]"),
        (Self::Child, "child", "[child]"),
        (Self::Pipe, "pipe", "[pipe]"),
        (Self::Socket, "socket", "[socket]"),
        (Self::Epoll, "epoll", "[epoll]"),
        (Self::Poll, "poll", "[poll]"),
        (Self::Eventfd, "eventfd", "[eventfd]"),
        (Self::IoUring, "io_uring", "[io_uring]"),
        (Self::Terminal, "terminal", "[terminal]"),
        (Self::Disk, "disk", "[disk]"),
        (Self::PageFault, "page fault", "[page fault]"),
        (Self::KernelLock, "kernel lock", "[kernel lock]"),
        (Self::FileLock, "file lock", "[file lock]"),
        (Self::Signal, "signal", "[signal]"),
        (Self::Vfork, "vfork", "[vfork]"),
        (Self::Exit, "exit", "[exit]"),
        (Self::Other, "other", "[other]"),
        (Self::Unknown, "unknown", "[unknown]"),
    ];

    /// Returns the name as text has it.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.get(self as usize).map_or("unknown", |(_, name, _)| name)
    }

    /// Packs it into one word, for packed keys, in which 0 is no wait.
    pub(crate) const fn pack(self) -> u64 {
        self as u64 + 1
    }

    /// Reverses [`WaitKind::pack`].
    pub(crate) fn unpack(word: u64) -> Option<Self> {
        let place = usize::try_from(word).ok()?.checked_sub(1)?;
        Self::NAMES.get(place).map(|(kind, ..)| *kind)
    }

    /// Returns the frame that shows what a thread waits for; `None` if that is not known.
    pub(crate) fn stand_in(self) -> Option<StandIn> {
        let is_known = !matches!(self, Self::Other | Self::Unknown);
        Self::stand_ins().nth(self as usize).filter(|_| is_known)
    }

    /// Returns the frames of all kinds.
    pub(crate) fn stand_ins() -> impl Iterator<Item = StandIn> {
        let frames = Self::NAMES.into_iter().zip(0..);
        frames.map(|((_, _, name), place)| StandIn { address: StandIn::WAITS + place, name })
    }

    /// Returns the device of an interrupt that ends such a wait, where the interrupt's functions do
    /// not say it: timers wake in hard interrupts, the network in soft ones.
    pub(crate) const fn interrupt(self, is_soft: bool) -> InterruptSource {
        match self {
            Self::Disk | Self::PageFault | Self::IoUring => InterruptSource::Disk,
            Self::Terminal => InterruptSource::Other,
            Self::Socket => InterruptSource::Network,
            Self::Epoll | Self::Poll | Self::Unknown if is_soft => InterruptSource::Network,
            _ => InterruptSource::Timer,
        }
    }
}

/// Device whose interrupt woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum InterruptSource {
    Timer,
    Disk,
    Network,
    Other,
}

impl InterruptSource {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Other => "interrupt",
        }
    }
}

/// Starts of the names of functions that wait, by kind. A stack is searched from its innermost
/// function on, so what waits by means of something else comes from further out.
const WAITING: &[(WaitKind, &[&str])] = &[
    (WaitKind::Futex, &["futex_", "__futex_", "do_futex"]),
    (WaitKind::Sleep, &["hrtimer_nanosleep", "do_nanosleep", "common_nsleep", "timerfd_"]),
    (WaitKind::Vfork, &["wait_for_vfork_done"]),
    (WaitKind::Child, &["do_wait", "kernel_wait", "__do_wait"]),
    (WaitKind::Pipe, &["pipe_", "anon_pipe_", "fifo_open", "wait_for_partner", "splice_"]),
    (WaitKind::Epoll, &["ep_poll", "do_epoll_", "ep_"]),
    (WaitKind::Poll, &["do_poll", "do_sys_poll", "do_select", "core_sys_select", "poll_schedule"]),
    (WaitKind::Eventfd, &["eventfd_"]),
    (WaitKind::IoUring, &["io_cqring_wait", "io_uring_", "io_wq_"]),
    (
        WaitKind::Socket,
        &[
            "unix_",
            "tcp_",
            "inet_",
            "udp_",
            "sk_wait",
            "sk_stream_wait",
            "__skb_wait",
            "__skb_recv",
            "sock_",
            "netlink_",
            "vsock_",
            "packet_",
            "skb_",
        ],
    ),
    (WaitKind::Terminal, &["n_tty_", "tty_", "pty_"]),
    (
        WaitKind::Disk,
        &[
            "io_schedule",
            "folio_wait",
            "__folio_",
            "filemap_",
            "jbd2_",
            "submit_bio_wait",
            "blk_",
            "wait_on_page",
            "wait_on_buffer",
            "__wait_on_buffer",
            "ext4_",
            "xfs_",
            "btrfs_",
            "nfs_",
            "rq_qos_wait",
            "balance_dirty",
            "sync_inodes",
            "wb_wait",
            "fuse_",
            "rpc_",
        ],
    ),
    (
        WaitKind::KernelLock,
        &[
            "__mutex_lock",
            "mutex_lock",
            "rwsem_",
            "down_",
            "__down",
            "percpu_rwsem",
            "rt_mutex",
            "__rt_mutex",
            "rt_spin",
            "synchronize_",
            "rcu_",
            "__percpu_",
        ],
    ),
    (
        WaitKind::FileLock,
        &["flock_lock", "posix_lock", "locks_lock", "fcntl_setlk", "__do_sys_flock"],
    ),
    (
        WaitKind::Signal,
        &[
            "do_sigtimedwait",
            "sigsuspend",
            "__do_sys_pause",
            "ptrace_stop",
            "do_signal_stop",
            "signalfd_",
            "__x64_sys_pause",
            "do_freezer_trap",
            "ptrace_",
        ],
    ),
    (
        WaitKind::Exit,
        &[
            "exit_mm",
            "exit_notify",
            "do_exit",
            "do_group_exit",
            "de_thread",
            "zap_",
            "begin_new_exec",
            "coredump_",
        ],
    ),
];

/// Starts of the names of functions that handle a page fault.
const FAULTS: [&str; 6] = [
    "handle_mm_fault",
    "do_user_addr_fault",
    "exc_page_fault",
    "do_page_fault",
    "do_mem_abort",
    "__handle_mm_fault",
];

/// Starts of the names of functions in which interrupts wake, by device.
const INTERRUPTS: &[(InterruptSource, &[&str])] = &[
    (
        InterruptSource::Timer,
        &["hrtimer_", "__hrtimer_", "run_timer", "__run_timer", "call_timer", "process_timeout"],
    ),
    (
        InterruptSource::Network,
        &[
            "net_rx",
            "napi_",
            "__napi_",
            "ip_rcv",
            "ip_local",
            "tcp_v",
            "udp_",
            "netif_",
            "process_backlog",
        ],
    ),
    (
        InterruptSource::Disk,
        &["blk_", "bio_", "nvme_", "virtblk_", "scsi_", "ata_", "end_", "dm_", "__blk_"],
    ),
];

/// What a function of the kernel says of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelFunction {
    pub(crate) kind: Option<WaitKind>,
    pub(crate) is_fault: bool,
    pub(crate) interrupt: Option<InterruptSource>,
    /// `true` if the system call is `waitid`, whose second argument is the child.
    pub(crate) is_waitid: bool,
    /// `true` if a thread exits in it.
    pub(crate) is_exit: bool,
}

impl KernelFunction {
    /// Returns what a name says.
    pub(crate) fn of(name: &str) -> Self {
        let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        let kind = WAITING.iter().find(|(_, starts)| begins(starts)).map(|(kind, _)| *kind);
        let interrupt = INTERRUPTS.iter().find(|(_, starts)| begins(starts)).map(|(by, _)| *by);
        let is_waitid = name.contains("waitid");
        let is_exit = begins(&["do_exit", "do_group_exit"]);
        Self { kind, is_fault: begins(&FAULTS), interrupt, is_waitid, is_exit }
    }
}

/// What the kernel's part of a callchain says of a wait, or of a wake.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelPart {
    /// `true` if any function of it has a name.
    is_known: bool,
    /// Kind, or what a page fault waits for.
    pub(crate) kind: Option<WaitKind>,
    pub(crate) is_fault: bool,
    pub(crate) is_waitid: bool,
    pub(crate) is_exit: bool,
    pub(crate) interrupt: Option<InterruptSource>,
}

impl KernelPart {
    /// Adds the next function, further out.
    pub(crate) fn add(&mut self, function: KernelFunction) {
        self.is_known = true;
        self.kind = self.kind.or(function.kind);
        self.interrupt = self.interrupt.or(function.interrupt);
        self.is_fault |= function.is_fault;
        self.is_waitid |= function.is_waitid;
        self.is_exit |= function.is_exit;
    }

    /// Returns the kind of a wait.
    pub(crate) fn wait_kind(&self) -> WaitKind {
        match (self.is_known, self.is_fault) {
            (false, _) => WaitKind::Unknown,
            (true, true) => WaitKind::PageFault,
            (true, false) => self.kind.unwrap_or(WaitKind::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kind of a stack, innermost function first.
    fn kind(stack: &[&str]) -> WaitKind {
        let mut kernel = KernelPart::default();
        stack.iter().for_each(|name| kernel.add(KernelFunction::of(name)));
        kernel.wait_kind()
    }

    #[test]
    fn kinds_have_numbers_and_frames() {
        for (place, (kind, name, symbol)) in WaitKind::NAMES.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
            assert_eq!(WaitKind::unpack(kind.pack()), Some(kind));
            assert_eq!((kind.name(), symbol), (name, format!("[{name}]").as_str()));
        }
        assert_eq!(WaitKind::unpack(0), None);
        assert_eq!(WaitKind::unpack(WaitKind::Unknown.pack() + 1), None);
        assert_eq!(WaitKind::Sleep.stand_in().map(|frame| frame.name), Some("[sleep]"));
        assert_eq!(WaitKind::Other.stand_in(), None);
    }

    #[test]
    fn stacks_of_kernels() {
        use WaitKind as K;
        for (wanted, stack) in [
            (K::Futex, &["schedule", "futex_do_wait", "__futex_wait", "do_futex"][..]),
            (K::Sleep, &["schedule", "do_nanosleep", "hrtimer_nanosleep"]),
            (K::Child, &["schedule", "do_wait", "kernel_wait4"]),
            (K::Vfork, &["schedule", "schedule_timeout", "wait_for_vfork_done", "kernel_clone"]),
            (K::Pipe, &["schedule", "anon_pipe_read", "vfs_read", "ksys_read"]),
            (K::Socket, &["schedule_timeout", "unix_stream_data_wait", "unix_stream_read_generic"]),
            (K::Socket, &["schedule_timeout", "inet_csk_accept", "inet_accept", "do_accept"]),
            (K::Epoll, &["schedule_hrtimeout_range", "ep_poll", "do_epoll_wait"]),
            (
                K::Poll,
                &["schedule_hrtimeout_range", "poll_schedule_timeout.constprop.0", "do_poll"],
            ),
            (
                K::Disk,
                &["io_schedule", "folio_wait_bit_common", "filemap_read", "ext4_file_read_iter"],
            ),
            (K::Disk, &["schedule", "jbd2_log_wait_commit", "ext4_sync_file", "do_fsync"]),
            (
                K::PageFault,
                &[
                    "io_schedule",
                    "folio_wait_bit_common",
                    "filemap_fault",
                    "__do_fault",
                    "handle_mm_fault",
                    "exc_page_fault",
                ],
            ),
            (
                K::KernelLock,
                &["schedule", "rwsem_down_write_slowpath", "down_write_killable", "do_mmap"],
            ),
            (K::Signal, &["schedule", "do_sigtimedwait", "__x64_sys_rt_sigtimedwait"]),
            (K::Terminal, &["schedule_timeout", "wait_woken", "n_tty_read", "tty_read"]),
        ] {
            assert_eq!(kind(stack), wanted, "{stack:?}");
        }
        assert_eq!(kind(&["schedule", "worker_thread", "kthread"]), K::Other);
        assert_eq!(kind(&[]), K::Unknown);
    }

    #[test]
    fn interrupts_by_device() {
        assert_eq!(WaitKind::Epoll.interrupt(true), InterruptSource::Network);
        assert_eq!(WaitKind::Epoll.interrupt(false), InterruptSource::Timer);
        assert_eq!(WaitKind::Disk.interrupt(true), InterruptSource::Disk);
        let of = |name| KernelFunction::of(name).interrupt;
        assert_eq!(of("hrtimer_wakeup"), Some(InterruptSource::Timer));
        assert_eq!(of("blk_mq_end_request"), Some(InterruptSource::Disk));
        assert_eq!(of("net_rx_action"), Some(InterruptSource::Network));
        assert_eq!(of("try_to_wake_up"), None);
    }
}
