//! What the user asked for, free of how it was spelt on the command line.
//!
//! One field for each thing that can be asked, in the words of perf-record(1); nothing here knows clap or the kernel.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use recrep_format::abi::BranchSampleType;

use crate::event::EventSpec;
use crate::event::sampling::{Callchain, Rate};
use crate::machine::Machine;
use crate::messages::Verbosity;
use crate::target::Target;

/// A recording, as asked for.
#[derive(Clone, Debug)]
pub struct Config {
    /// The events; none: the default event.
    pub events: Vec<EventSpec>,
    /// The cgroup that each of them counts in the place of the target (`-G`); as long as `events`.
    pub cgroups: Vec<Option<String>>,
    /// How often to sample.
    pub rate: Rate,
    /// Refuse a rate beyond the kernel's limit in the place of lowering it (`--strict-freq`).
    pub strict_freq: bool,
    /// What each sample carries beside the basics.
    pub sample: Sample,
    /// Which records beside samples are asked for.
    pub side_band: SideBand,
    /// Sample context switches, so that the time that threads wait is known too (`--off-cpu`).
    pub off_cpu: bool,
    /// What is counted of all events (`--all-kernel`, `--all-user`).
    pub only: Option<Only>,
    /// Whom to record.
    pub target: Target,
    /// The CPUs to record on (`-C`); none: all that are online.
    pub cpus: Option<Vec<u32>>,
    /// One counter for each thread, not for each thread and CPU (`--per-thread`).
    pub per_thread: bool,
    /// Children are not counted (`-i`).
    pub no_inherit: bool,
    /// When counting begins and ends (`-D`).
    pub delay: Delay,
    /// Who steers the recording (`--control`).
    pub control: Option<Control>,
    /// What to run; empty: nothing.
    pub command: Vec<OsString>,
    /// The rings and how they are drained.
    pub rings: Rings,
    /// The AUX area.
    pub aux: Aux,
    /// Where the recording goes.
    pub output: Output,
    /// Where build IDs are recorded.
    pub build_ids: BuildIds,
    /// The clock of the timestamps (`-k`): a number of clock_gettime(2).
    pub clock: Option<i32>,
    /// Print the plan and record nothing (`--dry-run`).
    pub dry_run: bool,
    /// The plan as JSON (`--json`).
    pub json: bool,
    /// The machine to plan for (`--machine`); none: this one.
    pub machine: Option<Machine>,
    /// What the user must know of the events that were chosen.
    pub notes: Vec<String>,
    /// How much to say.
    pub verbosity: Verbosity,
    /// The command line, as the file's header keeps it.
    pub cmdline: Vec<String>,
}

/// What samples carry beside IDENTIFIER, IP, TID, TIME and CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Callchains (`-g`, `--call-graph`).
    pub callchain: Option<Callchain>,
    /// Callchains of the kernel only, or of user space only.
    pub callchain_only: Option<Only>,
    /// How deep callchains go at most (`--max-stack`).
    pub max_stack: Option<u16>,
    /// Branch stacks (`-b`, `-j`).
    pub branches: Option<BranchSampleType>,
    /// Data addresses and sources, data mappings (`-d`).
    pub data: bool,
    /// Physical data addresses (`--phys-data`).
    pub phys_data: bool,
    /// Page sizes behind data addresses.
    pub data_page_size: bool,
    /// Page sizes behind ips.
    pub code_page_size: bool,
    /// Weights (`-W`).
    pub weight: bool,
    /// Transaction flags (`--transaction`).
    pub transaction: bool,
    /// Registers at the interrupt (`-I`): a mask of the machine's register numbers.
    pub regs_intr: Option<u64>,
    /// User registers (`--user-regs`): likewise.
    pub regs_user: Option<u64>,
    /// Raw bytes of all events (`-R`).
    pub raw: bool,
    /// The period, with fixed periods too (`-P`); `Some(false)`: not even with frequencies.
    pub period: Option<bool>,
    /// No samples at all, only counting (`-n`).
    pub none: bool,
    /// Counters of each inherited thread as READ records at its end (`-s`).
    pub stat: bool,
    /// When counters were enabled and ran, with each sample's reading (`--running-time`).
    pub running_time: bool,
}

/// A level of privilege alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// The kernel.
    Kernel,
    /// User space.
    User,
}

/// Records beside samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct SideBand {
    /// Context switches (`--switch-events`); nothing said: where an AUX area needs them.
    pub switch: Option<bool>,
    /// Namespaces (`--namespaces`).
    pub namespaces: bool,
    /// Cgroups, and each sample's (`--all-cgroups`).
    pub cgroups: bool,
    /// No BPF programs (`--no-bpf-event`).
    pub no_bpf: bool,
    /// What of the time before is written (`--synth`).
    pub synth: Synth,
    /// How long the mappings of one process may take to read (`--proc-map-timeout`); none: half a second.
    pub map_timeout: Option<Duration>,
}

/// What is written of what was there before (`--synth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Synth {
    /// Tasks and their names.
    pub task: bool,
    /// Mappings of tasks, of the kernel and of its modules.
    pub mmap: bool,
    /// Cgroups.
    pub cgroup: bool,
}

impl Default for Synth {
    fn default() -> Self {
        Self { task: true, mmap: true, cgroup: true }
    }
}

/// When counting begins and ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Delay {
    /// At once.
    #[default]
    None,
    /// When [`Control`] says so (`-D -1`).
    Off,
    /// After this time.
    After(Duration),
    /// From … to …, several times, counted from the start (`-D 10-20,30-40`).
    Ranges(Vec<(Duration, Duration)>),
}

/// Who steers the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Open descriptors: commands, and acknowledgements.
    Fd {
        /// Where commands come from.
        commands: i32,
        /// Where `ack` goes.
        acks: Option<i32>,
    },
    /// Named pipes.
    Fifo {
        /// Where commands come from.
        commands: PathBuf,
        /// Where `ack` goes.
        acks: Option<PathBuf>,
    },
}

/// The size of a ring's data area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingSize {
    /// In pages.
    Pages(u64),
    /// In bytes.
    Bytes(u64),
}

impl RingSize {
    /// In bytes, with pages of this size.
    #[must_use]
    pub fn bytes(self, page_size: usize) -> u64 {
        match self {
            Self::Pages(pages) => pages.saturating_mul(page_size as u64),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The rings and how they are drained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// The size of each ring's data area (`-m`).
    pub data: Option<RingSize>,
    /// The size of each AUX area (`-m ,SIZE`).
    pub aux: Option<RingSize>,
    /// Rings are overwritten, backwards, and dumped at a signal and at the end (`--overwrite`).
    pub overwrite: bool,
    /// What was there is written at the end, not at the start (`--tail-synthesize`).
    pub tail_synthesize: bool,
    /// So many bytes at least are waited for before a ring is drained (`--mmap-flush`).
    pub flush: Option<RingSize>,
    /// Every record wakes rec (`--no-buffering`).
    pub no_buffering: bool,
    /// The niceness of what drains (`--nice`); none: as rec has it.
    pub nice: Option<i32>,
    /// The priority of the SCHED_FIFO class (`-r`).
    pub realtime: Option<u32>,
    /// Who drains (`--threads`), and where that runs (`--affinity`).
    pub threads: Threads,
}

/// Who drains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Drain threads, and which has which rings; none: one thread does everything.
    pub split: Option<Split>,
    /// Where a drain thread runs.
    pub affinity: Affinity,
}

/// Which rings a drain thread has: those of CPUs that share something. It runs on those CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// A CPU each.
    Cpu,
    /// The CPUs of a core.
    Core,
    /// The CPUs of a package.
    Package,
    /// The CPUs of a node of memory.
    Numa,
    /// As given.
    Masks(Vec<Mask>),
}

/// A drain thread as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// The CPUs whose rings it drains.
    pub cpus: Vec<u32>,
    /// The CPUs that it runs on.
    pub affinity: Vec<u32>,
}

/// Where draining runs (`--affinity`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Anywhere.
    #[default]
    System,
    /// On the ring's node.
    Node,
    /// On the ring's CPU.
    Cpu,
}

/// AUX area tracing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aux {
    /// Only snapshots, at SIGUSR2 (`-S`); the text of perf's options: a size, `e` for one at the end.
    pub snapshot: Option<String>,
    /// Samples carry pieces of the AUX area of this size (`--aux-sample`).
    pub sample: Option<u32>,
}

impl Aux {
    /// How many bytes a snapshot takes (`-S`), 0: the whole area; none: there are no snapshots.
    #[must_use]
    pub fn snapshot_size(&self) -> Option<u64> {
        let text = self.snapshot.as_deref()?;
        let size = text.strip_prefix('e').unwrap_or(text);
        let hexadecimal = size.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        Some(hexadecimal.unwrap_or_else(|| size.parse()).unwrap_or(0))
    }
}

/// Where the recording goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The file to write; `-` is standard output, in pipe mode.
    pub path: PathBuf,
    /// The level of compression (`-z`).
    pub compression: Option<i32>,
    /// Stop after so many bytes (`--max-size`).
    pub max_size: Option<u64>,
    /// When to go on in another file (`--switch-output`).
    pub switch: Option<Switch>,
    /// So many files at most are kept (`--switch-max-files`).
    pub max_files: Option<usize>,
    /// The time is part of the name (`--timestamp-filename`).
    pub timestamp_name: bool,
    /// Number of bytes that may wait to be written (`--queue-size`); none: 64 MiB, or as many as all rings have.
    pub queue: Option<u64>,
}

impl Output {
    /// Whether the recording goes to standard output.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

/// When to go on in another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// At SIGUSR2.
    Signal,
    /// After so many bytes.
    Size(u64),
    /// After so long.
    Time(Duration),
}

/// Where build IDs are recorded.
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
