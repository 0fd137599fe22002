//! Configuration of a recording, independent of the command line's syntax.
//!
//! One field per setting, named as in perf-record(1); nothing here depends on clap or the kernel.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use recrep_format::abi::BranchSampleType;

use crate::event::EventSpec;
use crate::event::sampling::{Callchain, Rate};
use crate::machine::Machine;
use crate::messages::Verbosity;
use crate::tasks::Target;

#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Events; empty for the default event.
    pub events: Vec<EventSpec>,
    /// Cgroup that each event counts instead of the target (`-G`); same length as `events`.
    pub cgroups: Vec<Option<String>>,
    /// Sampling rate (`-F`, `-c`).
    pub rate: Rate,
    /// Refuse a frequency above the kernel's limit instead of lowering it (`--strict-freq`).
    pub strict_freq: bool,
    /// Optional contents of samples.
    pub sample: Sample,
    pub side_band: SideBand,
    /// Sample context switches, so that the time that threads wait is known too (`--off-cpu`).
    pub off_cpu: bool,
    /// Sample wakes too, so that the wakers of those waits are known (`--waits`).
    pub waits: bool,
    /// Restriction of all events to the kernel or user space (`--all-kernel`, `--all-user`).
    pub only: Option<Only>,
    pub target: Target,
    /// CPUs to record on (`-C`); `None` for all online CPUs.
    pub cpus: Option<Vec<u32>>,
    /// One counter per thread, instead of one per thread and CPU (`--per-thread`).
    pub per_thread: bool,
    /// Do not count child processes and threads (`-i`).
    pub no_inherit: bool,
    /// Start and stop times of counting (`-D`).
    pub delay: Delay,
    /// Source of control commands (`--control`).
    pub control: Option<Control>,
    /// Command to run; empty for none.
    pub command: Vec<OsString>,
    /// Rings, and how they are drained.
    pub rings: Rings,
    /// AUX area tracing.
    pub aux: Aux,
    pub output: OutputOptions,
    /// Places where build IDs are recorded.
    pub build_ids: BuildIds,
    /// Maximum size in bytes of all files kept for later reports (`--keep-size`); `None` to keep
    /// none (`--no-keep`).
    pub keep: Option<u64>,
    /// Clock of the timestamps (`-k`): a clock number of clock_gettime(2).
    pub clock: Option<i32>,
    /// Print the plan without recording (`--dry-run`).
    pub dry_run: bool,
    /// Print the plan as JSON (`--json`).
    pub json: bool,
    /// Machine to plan for (`--machine`); `None` for this one.
    pub machine: Option<Machine>,
    /// Notes for the user on the events that were chosen.
    pub notes: Vec<String>,
    /// Command of rep that shows the file; empty for the report.
    pub view: &'static str,
    /// Verbosity of messages (`-q`, `-v`).
    pub verbosity: Verbosity,
    /// Command line for the file's header.
    pub cmdline: Vec<String>,
}

/// Contents of samples besides IDENTIFIER, IP, TID, TIME and CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Callchains (`-g`, `--call-graph`).
    pub callchain: Option<Callchain>,
    /// Restriction of callchains to the kernel or user part.
    pub callchain_only: Option<Only>,
    /// Maximum depth of callchains (`--max-stack`).
    pub max_stack: Option<u16>,
    /// Branch stacks (`-b`, `-j`).
    pub branches: Option<BranchSampleType>,
    /// Data addresses and sources, data mappings (`-d`).
    pub data: bool,
    /// Data sources (`--sample-mem-info`).
    pub memory_info: bool,
    /// Physical data addresses (`--phys-data`).
    pub phys_data: bool,
    /// Page sizes of data addresses (`--data-page-size`).
    pub data_page_size: bool,
    /// Page sizes of code addresses (`--code-page-size`).
    pub code_page_size: bool,
    /// Weights (`-W`).
    pub weight: bool,
    /// Transaction flags (`--transaction`).
    pub transaction: bool,
    /// Registers at the interrupt (`-I`), as a mask of the machine's register numbers.
    pub regs_intr: Option<u64>,
    /// User registers (`--user-regs`), as a mask of the machine's register numbers.
    pub regs_user: Option<u64>,
    /// Raw data of all events (`-R`).
    pub raw: bool,
    /// The period: `Some(true)` even if constant (`-P`), `Some(false)` not even with a frequency
    /// (`--no-period`).
    pub period: Option<bool>,
    /// Count without samples (`-n`).
    pub none: bool,
    /// READ records with the counts of each thread at its end (`-s`).
    pub stat: bool,
    /// Enabled and running times in the counter values of samples (`--running-time`).
    pub running_time: bool,
}

/// Restriction to one cpu mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    Kernel,
    User,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct SideBand {
    /// Context switches (`--switch-events`); `None`: if an AUX area needs them.
    pub switch: Option<bool>,
    /// Namespaces (`--namespaces`).
    pub namespaces: bool,
    /// Cgroups, and the cgroup of each sample (`--all-cgroups`).
    pub cgroups: bool,
    /// No records of BPF programs (`--no-bpf-event`).
    pub no_bpf: bool,
    /// Kinds of synthesized records (`--synth`).
    pub synth: Synth,
    /// Time limit for reading the mappings of one process (`--proc-map-timeout`); `None` for half a
    /// second.
    pub map_timeout: Option<Duration>,
}

/// Kinds of synthesized records (`--synth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Synth {
    pub task: bool,
    /// Mappings of tasks, the kernel and its modules.
    pub mmap: bool,
    pub cgroup: bool,
}

impl Default for Synth {
    fn default() -> Self {
        Self { task: true, mmap: true, cgroup: true }
    }
}

/// Start and stop times of counting (`-D`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Delay {
    /// Start at once.
    #[default]
    None,
    /// Start when a [`Control`] command says so (`-D -1`).
    Off,
    /// Start after this time.
    After(Duration),
    /// Count only in these ranges of time since the start (`-D 10-20,30-40`).
    Ranges(Vec<(Duration, Duration)>),
}

/// Source of control commands (`--control`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Open descriptors.
    Fd {
        commands: i32,
        /// Destination of `ack`.
        acks: Option<i32>,
    },
    /// Named pipes.
    Fifo {
        commands: PathBuf,
        /// Destination of `ack`.
        acks: Option<PathBuf>,
    },
}

/// The size of a ring's data area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingSize {
    Pages(u64),
    /// In bytes.
    Bytes(u64),
}

/// The rings and how they are drained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// The size of each ring's data area (`-m`).
    pub data: Option<RingSize>,
    /// The size of each AUX area (`-m ,SIZE`).
    pub aux: Option<RingSize>,
    /// Rings are overwritten backwards, and dumped on a signal and at the end (`--overwrite`).
    pub overwrite: bool,
    /// Synthesized records are written at the end instead of the beginning (`--tail-synthesize`).
    pub tail_synthesize: bool,
    /// Minimum bytes in a ring to drain it (`--mmap-flush`).
    pub flush: Option<usize>,
    /// Every record wakes rec (`--no-buffering`).
    pub no_buffering: bool,
    /// The niceness of what drains (`--nice`); none: the lowest where rings are full soon, else as
    /// rec has it.
    pub nice: Option<i32>,
    /// SCHED_FIFO priority of rec (`-r`).
    pub realtime: Option<u32>,
    /// Drain threads (`--threads`), and the CPUs that they run on (`--affinity`).
    pub threads: Threads,
}

/// Drain threads, and the CPUs that they run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Assignment of rings to drain threads; `None` if the main thread drains.
    pub split: Option<Split>,
    /// CPUs that draining runs on.
    pub affinity: Affinity,
}

/// Assignment of rings to drain threads. A thread runs on the CPUs whose rings it drains, except
/// with masks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// One thread per CPU.
    Cpu,
    Core,
    Package,
    /// One thread per NUMA node.
    Numa,
    Masks(Vec<Mask>),
}

/// CPUs of one drain thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// CPUs whose rings it drains.
    pub cpus: Vec<u32>,
    /// CPUs that it runs on.
    pub affinity: Vec<u32>,
}

/// CPUs that draining runs on (`--affinity`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Any CPU.
    #[default]
    System,
    /// The CPUs of the ring's NUMA node.
    Node,
    /// The ring's CPU.
    Cpu,
}

/// AUX area tracing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aux {
    /// Record only snapshots, on SIGUSR2 (`-S`).
    pub snapshots: Option<Snapshots>,
    /// Bytes of AUX data in samples (`--aux-sample`).
    pub sample: Option<u32>,
}

/// Snapshots of AUX areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshots {
    /// Bytes of a snapshot; 0 for the whole area.
    pub size: u64,
    /// Take one at the end, too.
    pub at_end: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// File to write; `-` is standard output, in pipe mode.
    pub path: PathBuf,
    /// Compression level (`-z`).
    pub compression: Option<i32>,
    /// File size in bytes at which to stop (`--max-size`).
    pub max_size: Option<u64>,
    /// Number of samples at which to stop (`--max-samples`).
    pub max_samples: Option<u64>,
    /// When to begin a new file (`--switch-output`).
    pub switch: Option<Switch>,
    /// Maximum number of files to keep (`--switch-max-files`).
    pub max_files: Option<usize>,
    /// Append a timestamp to the file name (`--timestamp-filename`).
    pub timestamp_name: bool,
    /// Number of bytes that may wait to be written (`--queue-size`); none: 64 MiB, or as many as
    /// all rings have.
    pub queue: Option<u64>,
    /// Page to make of the recording (`--html`).
    pub html: Option<PathBuf>,
}

impl OutputOptions {
    /// Returns whether the recording goes to standard output.
    pub fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

/// When to begin a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// On SIGUSR2.
    Signal,
    /// At a size in bytes.
    Size(u64),
    Time(Duration),
}

/// Places where build IDs are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuildIds {
    /// In MMAP2 records too, by the kernel where it can.
    #[default]
    InMmap,
    /// In the file's table only; mappings keep device and inode (`--no-buildid-mmap`).
    Table,
    /// Nowhere (`-B`).
    None,
}
