//! The flags as clap parses them, with perf record's letters and meanings.
//!
//! [`super::words`] adds their negations (`--no-FLAG`).

use super::target::TargetWords;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser};

use super::help;

/// Record events of programs and the system into a perf.data file.
#[derive(Debug, Parser)]
#[command(
    name = "rec",
    version,
    args_override_self = true,
    infer_long_args = true,
    override_usage = "rec [OPTIONS] [--] COMMAND [ARGS]...\n       rec [OPTIONS] -a | -C LIST | \
                      -p PIDS | -t TIDS | -u USER [[--] COMMAND [ARGS]...]\n       rec list",
    help_template = help::TEMPLATE,
    after_help = help::AFTER
)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(super) struct Flags {
    /// Events to sample, comma-separated; may be repeated [default: cycles:P, or cpu-clock]
    #[arg(short, long, value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events")]
    pub(super) event: Vec<String>,
    /// Read names of this CPU's events from perf's tables in DIR (tools/perf/pmu-events/arch of the
    /// Linux source)
    #[arg(long, value_name = "DIR", help_heading = "Events")]
    pub(super) event_tables: Option<PathBuf>,
    /// Record only what matches FILTER, of the preceding -e's tracepoints or tracing PMUs (address
    /// filters)
    #[arg(long, value_name = "FILTER", action = ArgAction::Append, help_heading = "Events")]
    pub(super) filter: Vec<String>,
    /// Do not record rec itself, of the preceding -e's tracepoints
    #[arg(long, action = ArgAction::Count, help_heading = "Events")]
    pub(super) exclude_perf: u8,
    /// Count the preceding events in these cgroups only (with -a or -C): one name per event, or one
    /// for all
    #[arg(
        short = 'G', long, value_name = "NAMES", action = ArgAction::Append,
        help_heading = "Events"
    )]
    pub(super) cgroup: Vec<String>,
    /// Sample HZ times per second, or 'max' for the kernel's limit [default: 4000]
    #[arg(short = 'F', long, value_name = "HZ", conflicts_with = "count", help_heading = "Events")]
    pub(super) freq: Option<String>,
    /// Take one sample every N events
    #[arg(short, long, value_name = "N", help_heading = "Events")]
    pub(super) count: Option<String>,
    /// Fail if the requested frequency is above the kernel's limit, instead of lowering it
    #[arg(long, help_heading = "Events")]
    pub(super) strict_freq: bool,
    /// Show where threads wait: also sample each context switch, with its callchain; implies
    /// --call-graph fp and --switch-events
    #[arg(long, conflicts_with = "no_samples", help_heading = "Events")]
    pub(super) off_cpu: bool,
    /// Count in the kernel only, overriding event modifiers
    #[arg(long, conflicts_with = "all_user", help_heading = "Events")]
    pub(super) all_kernel: bool,
    /// Count in user space only, overriding event modifiers
    #[arg(long, help_heading = "Events")]
    pub(super) all_user: bool,

    /// Record callchains: unwound by rec while it records, where the rate is known (-F), else by frame
    /// pointers
    #[arg(short = 'g', help_heading = "Samples")]
    pub(super) graph: bool,
    /// Record callchains, using MODE: unwind[,STACK_BYTES] (as -g), fp (frame pointers), dwarf[,STACK_BYTES]
    /// (stacks stay in the file) or lbr
    #[arg(long, value_name = "MODE", help_heading = "Samples")]
    pub(super) call_graph: Option<String>,
    /// Limit callchains to N frames
    #[arg(long, value_name = "N", help_heading = "Samples")]
    pub(super) max_stack: Option<String>,
    /// Record only the kernel part of callchains
    #[arg(long, conflicts_with = "user_callchains", help_heading = "Samples")]
    pub(super) kernel_callchains: bool,
    /// Record only the user part of callchains
    #[arg(long, help_heading = "Samples")]
    pub(super) user_callchains: bool,
    /// Record branch stacks with branches of any type
    #[arg(short = 'b', long, conflicts_with = "branch_filter", help_heading = "Samples")]
    pub(super) branch_any: bool,
    /// Record branch stacks with these branches: any, any_call, any_ret, ind_call, cond, u, k,
    /// save_type, ...
    #[arg(short = 'j', long, value_name = "FILTERS", help_heading = "Samples")]
    pub(super) branch_filter: Option<String>,
    /// Record the data address of each sample
    #[arg(short, long, help_heading = "Samples")]
    pub(super) data: bool,
    /// Record the physical data address of each sample
    #[arg(long, help_heading = "Samples")]
    pub(super) phys_data: bool,
    /// Record the page size of each data address
    #[arg(long, help_heading = "Samples")]
    pub(super) data_page_size: bool,
    /// Record the page size of each code address
    #[arg(long, help_heading = "Samples")]
    pub(super) code_page_size: bool,
    /// Record weights (such as latencies) of events that provide them
    #[arg(short = 'W', long, help_heading = "Samples")]
    pub(super) weight: bool,
    /// Record transaction flags of events that provide them
    #[arg(long, help_heading = "Samples")]
    pub(super) transaction: bool,
    /// Record registers at the sampling interrupt; '-I?' lists their names
    #[arg(
        short = 'I', long, value_name = "REGS", num_args = 0..=1, require_equals = true,
        default_missing_value = "", help_heading = "Samples"
    )]
    pub(super) intr_regs: Option<String>,
    /// Record user-space registers; '--user-regs=?' lists their names
    #[arg(
        long, value_name = "REGS", num_args = 0..=1, require_equals = true,
        default_missing_value = "", help_heading = "Samples"
    )]
    pub(super) user_regs: Option<String>,
    /// Record raw data (PERF_SAMPLE_RAW) for all events
    #[arg(short = 'R', long, help_heading = "Samples")]
    pub(super) raw_samples: bool,
    /// Record each sample's period, even if constant
    #[arg(short = 'P', long, help_heading = "Samples")]
    pub(super) period: bool,
    /// Record the time of each sample (always on)
    #[arg(short = 'T', long, help_heading = "Samples")]
    pub(super) timestamp: bool,
    /// Record the CPU of each sample (always on)
    #[arg(long, help_heading = "Samples")]
    pub(super) sample_cpu: bool,
    /// Record the counter's identifier in each sample (always on)
    #[arg(long, help_heading = "Samples")]
    pub(super) sample_identifier: bool,
    /// Count events without taking samples
    #[arg(short, long, help_heading = "Samples")]
    pub(super) no_samples: bool,
    /// Record event counts per thread
    #[arg(short, long, help_heading = "Samples")]
    pub(super) stat: bool,
    /// With group reads (:S), record how long counters were enabled and running
    #[arg(long, help_heading = "Samples")]
    pub(super) running_time: bool,
    /// Timestamp with CLOCK: mono, raw, real, boot, tai, or a clock number
    #[arg(short = 'k', long, value_name = "CLOCK", help_heading = "Samples")]
    pub(super) clockid: Option<String>,

    /// Record when threads leave a CPU and when they run again, without callchains (for those:
    /// --off-cpu)
    #[arg(long, help_heading = "Side-band records")]
    pub(super) switch_events: bool,
    /// Record the namespaces of processes
    #[arg(long, help_heading = "Side-band records")]
    pub(super) namespaces: bool,
    /// Record cgroups, and the cgroup of each sample
    #[arg(long, help_heading = "Side-band records")]
    pub(super) all_cgroups: bool,
    /// Do not record loading and unloading of BPF programs
    #[arg(long, help_heading = "Side-band records")]
    pub(super) no_bpf_event: bool,
    /// Synthesize records of these kinds for what already exists, comma-separated: no, all, task,
    /// mmap, cgroup
    #[arg(long, value_name = "WHAT", help_heading = "Side-band records")]
    pub(super) synth: Option<String>,
    /// Spend at most MS milliseconds on the mappings of each existing process [default: 500]
    #[arg(long, value_name = "MS", help_heading = "Side-band records")]
    pub(super) proc_map_timeout: Option<String>,
    /// Write synthesized records at the end, not the beginning
    #[arg(long, help_heading = "Side-band records")]
    pub(super) tail_synthesize: bool,

    /// Record all processes on all CPUs
    #[arg(short, long, conflicts_with_all = ["pid", "tid", "uid"], help_heading = "Targets")]
    pub(super) all_cpus: bool,
    /// Record on these CPUs only, such as 0-3,8; without -p, -t or -u, all processes on them
    #[arg(short = 'C', long, value_name = "LIST", help_heading = "Targets")]
    pub(super) cpu: Option<String>,
    /// Record existing processes, given by process IDs
    #[arg(
        short, long, value_name = "PIDS", conflicts_with_all = ["tid", "uid"],
        help_heading = "Targets"
    )]
    pub(super) pid: Option<String>,
    /// Record existing threads, given by thread IDs
    #[arg(short, long, value_name = "TIDS", conflicts_with = "uid", help_heading = "Targets")]
    pub(super) tid: Option<String>,
    /// Record all processes of a user, given by name or ID
    #[arg(short, long, value_name = "USER", help_heading = "Targets")]
    pub(super) uid: Option<String>,
    /// Open one counter and ring per thread, not per CPU
    #[arg(long, conflicts_with_all = ["all_cpus", "cpu"], help_heading = "Targets")]
    pub(super) per_thread: bool,
    /// Do not record new child processes and threads
    #[arg(short = 'i', long, help_heading = "Targets")]
    pub(super) no_inherit: bool,
    /// Start after MS milliseconds, or stopped if -1 (see --control); or record from FROM to TO
    /// milliseconds only, ...
    #[arg(
        short = 'D',
        long,
        value_name = "MS",
        allow_hyphen_values = true,
        help_heading = "Targets"
    )]
    pub(super) delay: Option<String>,
    /// Read commands (enable, disable, snapshot, stop, ...) from fd:CTL[,ACK] or fifo:CTL[,ACK];
    /// ACK gets the answers
    #[arg(long, value_name = "WHERE", help_heading = "Targets")]
    pub(super) control: Option<String>,

    /// Write to FILE, or to standard output if '-'; an existing FILE is renamed to FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "out.data", help_heading = "Output")]
    pub(super) output: PathBuf,
    /// Compress records with zstd, at level 1 to 22 [default: 1]; --call-graph dwarf implies it, unless
    /// --no-compression-level
    #[arg(
        short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
        default_missing_value = "", help_heading = "Output"
    )]
    pub(super) compression_level: Option<String>,
    /// End the recording and the command when the file has SIZE (B, K, M or G); a little more is
    /// written
    #[arg(long, value_name = "SIZE", help_heading = "Output")]
    pub(super) max_size: Option<String>,
    /// End the recording and the command after N samples; a few more are written
    #[arg(
        long, value_name = "N", conflicts_with_all = ["threads", "overwrite", "switch_output"],
        help_heading = "Output"
    )]
    pub(super) max_samples: Option<String>,
    /// Start a new file on SIGUSR2 ('signal'), at a size (B, K, M, G) or at an interval (s, m, h,
    /// d) [default: signal]
    #[arg(
        long, value_name = "WHEN", num_args = 0..=1, require_equals = true,
        default_missing_value = "signal", help_heading = "Output"
    )]
    pub(super) switch_output: Option<String>,
    /// Keep only the newest N files of --switch-output
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub(super) switch_max_files: Option<String>,
    /// Append a timestamp to the file name
    #[arg(long, help_heading = "Output")]
    pub(super) timestamp_filename: bool,
    /// When the recording has ended, make a page of it, to be opened in any browser (rep html)
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all = ["switch_output", "timestamp_filename", "dry_run"],
        help_heading = "Output"
    )]
    pub(super) html: Option<PathBuf>,
    /// Write the times of the first and last sample (always on)
    #[arg(long, help_heading = "Output")]
    pub(super) timestamp_boundary: bool,
    /// Do not write build IDs
    #[arg(short = 'B', long, help_heading = "Output")]
    pub(super) no_buildid: bool,
    /// Keep no copies of recorded programs and libraries in ~/.cache/recrep/kept
    #[arg(long, help_heading = "Output")]
    pub(super) no_keep: bool,
    /// Let kept copies take at most SIZE (B, K, M or G); those used longest ago are removed
    /// [default: 1G]
    #[arg(long, value_name = "SIZE", conflicts_with = "no_keep", help_heading = "Output")]
    pub(super) keep_size: Option<String>,
    /// Do not update perf's build-ID cache (always on); for rec's own copies: --no-keep
    #[arg(short = 'N', long, help_heading = "Output")]
    pub(super) no_buildid_cache: bool,
    /// Write build IDs of all mapped files, even those without samples (always on)
    #[arg(long, help_heading = "Output")]
    pub(super) buildid_all: bool,
    /// Put build IDs into the records of mappings [default]; --no-buildid-mmap keeps device and
    /// inode there
    #[arg(long, help_heading = "Output")]
    pub(super) buildid_mmap: bool,

    /// Size of each ring, and of each AUX area, in pages, or with B, K, M or G [default: up to
    /// 512K, with copies of stacks 2M; AUX: up to 4M]
    #[arg(short, long, value_name = "DATA[,AUX]", help_heading = "Buffers and threads")]
    pub(super) mmap_pages: Option<String>,
    /// Drain a ring only when it holds at least this many bytes [default: 1]
    #[arg(long, value_name = "BYTES", help_heading = "Buffers and threads")]
    pub(super) mmap_flush: Option<String>,
    /// Keep only the newest records in the rings; write them on SIGUSR2 and at the end; implies
    /// --tail-synthesize
    #[arg(long, help_heading = "Buffers and threads")]
    pub(super) overwrite: bool,
    /// Wake rec for every record
    #[arg(long, help_heading = "Buffers and threads")]
    pub(super) no_buffering: bool,
    /// Drain with this niceness: -20 to 19 [default: -20 where rings would be full in 50 ms, if
    /// that is allowed]
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        conflicts_with = "realtime",
        help_heading = "Buffers and threads"
    )]
    pub(super) nice: Option<String>,
    /// Drain with this priority of SCHED_FIFO
    #[arg(short = 'r', long, value_name = "PRIORITY", help_heading = "Buffers and threads")]
    pub(super) realtime: Option<String>,
    /// Drain in threads, into a directory: one for each cpu, core, package or numa node, or
    /// CPUS/RUN-ON:... [default: cpu]
    #[arg(
        long, value_name = "SPEC", num_args = 0..=1, require_equals = true,
        default_missing_value = "cpu", help_heading = "Buffers and threads"
    )]
    pub(super) threads: Option<String>,
    /// Let at most SIZE of records wait to be written (B, K, M or G) [default: 64M, or the size of
    /// all rings if larger]
    #[arg(long, value_name = "SIZE", help_heading = "Buffers and threads")]
    pub(super) queue_size: Option<String>,
    /// Drain each ring on its own NUMA node or CPU
    #[arg(
        long,
        value_name = "node|cpu",
        conflicts_with = "threads",
        help_heading = "Buffers and threads"
    )]
    pub(super) affinity: Option<String>,
    /// Keep only the newest AUX trace, [e][SIZE] of it; write it on SIGUSR2, and with e also at the
    /// end
    #[arg(
        short = 'S', long, value_name = "OPTS", num_args = 0..=1, require_equals = true,
        default_missing_value = "", help_heading = "Buffers and threads"
    )]
    pub(super) snapshot: Option<String>,
    /// Add the last BYTES of AUX trace to each sample of the events grouped with the AUX event
    /// [default: 4096]
    #[arg(
        long, value_name = "BYTES", num_args = 0..=1, require_equals = true,
        default_missing_value = "", conflicts_with = "snapshot",
        help_heading = "Buffers and threads"
    )]
    pub(super) aux_sample: Option<String>,

    /// Print the recording plan without opening events
    #[arg(long, help_heading = "General")]
    pub(super) dry_run: bool,
    /// Print the plan of --dry-run as JSON
    #[arg(long, requires = "dry_run", help_heading = "General")]
    pub(super) json: bool,
    /// Plan for the machine that FILE describes, instead of this one
    #[arg(long, value_name = "FILE", requires = "dry_run", help_heading = "General")]
    pub(super) machine: Option<PathBuf>,
    /// Print only errors and losses
    #[arg(short, long, help_heading = "General")]
    pub(super) quiet: bool,
    /// Print details of the recording plan
    #[arg(short, long, action = ArgAction::Count, help_heading = "General")]
    pub(super) verbose: u8,
    /// Command to run and record, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

impl Flags {
    pub(super) fn target_words(&self) -> TargetWords<'_> {
        TargetWords {
            pid: self.pid.as_deref(),
            tid: self.tid.as_deref(),
            uid: self.uid.as_deref(),
            on_cpus: self.all_cpus || self.cpu.is_some(),
        }
    }
}
