//! The flags, with perf record's letters and meanings, as clap reads them.
//!
//! The negations (`--no-FLAG`) are added to these by [`super::words`].

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser};

/// Record what programs do, into a perf.data file.
#[derive(Debug, Parser)]
#[command(
    name = "rec",
    version,
    args_override_self = true,
    infer_long_args = true,
    override_usage = "rec [OPTIONS] [--] COMMAND [ARGS]...\n       rec [OPTIONS] -a | -C LIST | -p PIDS | -t TIDS | -u USER [[--] COMMAND [ARGS]...]\n       rec list",
    after_help = "The file is read by rep, and by perf report. Exit status: the command's own; 125 rec failed, \
                  126 the command cannot be executed, 127 it was not found; 2 usage."
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct Flags {
    /// The events to sample, separated by commas; may be repeated [default: cycles:P, or cpu-clock]
    #[arg(short, long, value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events")]
    pub(super) event: Vec<String>,
    /// Take the names of the CPU's own events from perf's tables in DIR (tools/perf/pmu-events/arch of the source of Linux)
    #[arg(long, value_name = "DIR", help_heading = "Events")]
    pub(super) event_tables: Option<PathBuf>,
    /// Record of the tracepoints before only what passes; may be repeated
    #[arg(long, value_name = "FILTER", action = ArgAction::Append, help_heading = "Events")]
    pub(super) filter: Vec<String>,
    /// Do not record rec itself: a filter of the tracepoints before
    #[arg(long, action = ArgAction::Count, help_heading = "Events")]
    pub(super) exclude_perf: u8,
    /// Count the events before in these cgroups only: NAME,NAME,... one for each, or one for all
    #[arg(short = 'G', long, value_name = "NAMES", action = ArgAction::Append, help_heading = "Events")]
    pub(super) cgroup: Vec<String>,
    /// Samples per second, or 'max' [default: 4000]
    #[arg(short = 'F', long, value_name = "HZ", conflicts_with = "count", help_heading = "Events")]
    pub(super) freq: Option<String>,
    /// One sample every N events
    #[arg(short, long, value_name = "N", help_heading = "Events")]
    pub(super) count: Option<String>,
    /// Fail where the kernel does not allow the frequency asked for
    #[arg(long, help_heading = "Events")]
    pub(super) strict_freq: bool,
    /// Also sample every context switch with its callchain: where threads wait; implies -g and --switch-events
    #[arg(long, conflicts_with = "no_samples", help_heading = "Events")]
    pub(super) off_cpu: bool,
    /// Count the kernel only, whatever the events say
    #[arg(long, conflicts_with = "all_user", help_heading = "Events")]
    pub(super) all_kernel: bool,
    /// Count user space only, whatever the events say
    #[arg(long, help_heading = "Events")]
    pub(super) all_user: bool,

    /// Record callchains, by frame pointers
    #[arg(short = 'g', help_heading = "Samples")]
    pub(super) graph: bool,
    /// Record callchains; how they are found: fp, dwarf[,SIZE of the stack's copy], lbr
    #[arg(long, value_name = "MODE", help_heading = "Samples")]
    pub(super) call_graph: Option<String>,
    /// At most so many frames in a callchain
    #[arg(long, value_name = "N", help_heading = "Samples")]
    pub(super) max_stack: Option<String>,
    /// Record the kernel's part of callchains only
    #[arg(long, conflicts_with = "user_callchains", help_heading = "Samples")]
    pub(super) kernel_callchains: bool,
    /// Record the user's part of callchains only
    #[arg(long, help_heading = "Samples")]
    pub(super) user_callchains: bool,
    /// Record branch stacks, of any branches
    #[arg(short = 'b', long, conflicts_with = "branch_filter", help_heading = "Samples")]
    pub(super) branch_any: bool,
    /// Record branch stacks of these branches: any, any_call, any_ret, ind_call, cond, u, k, save_type, ...
    #[arg(short = 'j', long, value_name = "FILTERS", help_heading = "Samples")]
    pub(super) branch_filter: Option<String>,
    /// Record the addresses of the data that samples touched
    #[arg(short, long, help_heading = "Samples")]
    pub(super) data: bool,
    /// Record the physical addresses of data
    #[arg(long, help_heading = "Samples")]
    pub(super) phys_data: bool,
    /// Record how large the pages of data addresses are
    #[arg(long, help_heading = "Samples")]
    pub(super) data_page_size: bool,
    /// Record how large the pages of code addresses are
    #[arg(long, help_heading = "Samples")]
    pub(super) code_page_size: bool,
    /// Record weights, such as latencies, of events that have them
    #[arg(short = 'W', long, help_heading = "Samples")]
    pub(super) weight: bool,
    /// Record transaction flags, of events that have them
    #[arg(long, help_heading = "Samples")]
    pub(super) transaction: bool,
    /// Record registers at the interrupt; '-I?' lists their names
    #[arg(short = 'I', long, value_name = "REGS", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Samples")]
    pub(super) intr_regs: Option<String>,
    /// Record user registers; '--user-regs=?' lists their names
    #[arg(long, value_name = "REGS", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Samples")]
    pub(super) user_regs: Option<String>,
    /// Record the raw bytes of all events
    #[arg(short = 'R', long, help_heading = "Samples")]
    pub(super) raw_samples: bool,
    /// Record the period of each sample, where it is always the same too
    #[arg(short = 'P', long, help_heading = "Samples")]
    pub(super) period: bool,
    /// Record the time of each sample, as is always done
    #[arg(short = 'T', long, help_heading = "Samples")]
    pub(super) timestamp: bool,
    /// Record the CPU of each sample, as is always done
    #[arg(long, help_heading = "Samples")]
    pub(super) sample_cpu: bool,
    /// Record which counter each sample is of, as is always done
    #[arg(long, help_heading = "Samples")]
    pub(super) sample_identifier: bool,
    /// Count only, take no samples
    #[arg(short, long, help_heading = "Samples")]
    pub(super) no_samples: bool,
    /// Record what each thread counted
    #[arg(short, long, help_heading = "Samples")]
    pub(super) stat: bool,
    /// Record for how long counters that are read (:S) were enabled and ran
    #[arg(long, help_heading = "Samples")]
    pub(super) running_time: bool,
    /// The clock of the timestamps: mono, raw, real, boot, tai, or a number
    #[arg(short = 'k', long, value_name = "CLOCK", help_heading = "Samples")]
    pub(super) clockid: Option<String>,

    /// Record when threads leave a CPU and run again, without samples; --off-cpu records the callchains too
    #[arg(long, help_heading = "Records beside samples")]
    pub(super) switch_events: bool,
    /// Record namespaces
    #[arg(long, help_heading = "Records beside samples")]
    pub(super) namespaces: bool,
    /// Record cgroups, and that of each sample
    #[arg(long, help_heading = "Records beside samples")]
    pub(super) all_cgroups: bool,
    /// Do not record BPF programs
    #[arg(long, help_heading = "Records beside samples")]
    pub(super) no_bpf_event: bool,
    /// What of the time before is written: no, all, task, mmap, cgroup
    #[arg(long, value_name = "WHAT", help_heading = "Records beside samples")]
    pub(super) synth: Option<String>,
    /// So many milliseconds at most are spent on the mappings of a process that runs already [default: 500]
    #[arg(long, value_name = "MS", help_heading = "Records beside samples")]
    pub(super) proc_map_timeout: Option<String>,
    /// Write what was there before at the end
    #[arg(long, help_heading = "Records beside samples")]
    pub(super) tail_synthesize: bool,

    /// Record everything on all CPUs
    #[arg(short, long, conflicts_with_all = ["pid", "tid", "uid"], help_heading = "Whom")]
    pub(super) all_cpus: bool,
    /// Record on these CPUs only, such as 0-3,8; without -p, -t, -u everything on them
    #[arg(short = 'C', long, value_name = "LIST", help_heading = "Whom")]
    pub(super) cpu: Option<String>,
    /// Record processes that run already
    #[arg(short, long, value_name = "PIDS", conflicts_with_all = ["tid", "uid"], help_heading = "Whom")]
    pub(super) pid: Option<String>,
    /// Record threads that run already
    #[arg(short, long, value_name = "TIDS", conflicts_with = "uid", help_heading = "Whom")]
    pub(super) tid: Option<String>,
    /// Record all processes of a user, by name or number
    #[arg(short, long, value_name = "USER", help_heading = "Whom")]
    pub(super) uid: Option<String>,
    /// One counter and ring for each thread, not for each CPU
    #[arg(long, conflicts_with_all = ["all_cpus", "cpu"], help_heading = "Whom")]
    pub(super) per_thread: bool,
    /// Do not record children and threads that come later
    #[arg(short = 'i', long, help_heading = "Whom")]
    pub(super) no_inherit: bool,
    /// Begin after so many milliseconds; -1: disabled; FROM-TO,FROM-TO: only then
    #[arg(short = 'D', long, value_name = "MS", allow_hyphen_values = true, help_heading = "Whom")]
    pub(super) delay: Option<String>,
    /// Where commands come from: fd:CTL[,ACK] or fifo:CTL[,ACK]
    #[arg(long, value_name = "WHERE", help_heading = "Whom")]
    pub(super) control: Option<String>,

    /// The file to write, or '-' for standard output; one that exists becomes FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "out.data", help_heading = "Into what")]
    pub(super) output: PathBuf,
    /// Compress, at level 1 to 22 [default: 1]
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Into what")]
    pub(super) compression_level: Option<String>,
    /// Stop after so many bytes, with K, M or G
    #[arg(long, value_name = "SIZE", help_heading = "Into what")]
    pub(super) max_size: Option<String>,
    /// Go on in another file: at a signal (SIGUSR2), after SIZE (B K M G) or TIME (s m h d)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "signal", help_heading = "Into what")]
    pub(super) switch_output: Option<String>,
    /// Keep so many files of those
    #[arg(long, value_name = "N", help_heading = "Into what")]
    pub(super) switch_max_files: Option<String>,
    /// Make the time part of the file's name
    #[arg(long, help_heading = "Into what")]
    pub(super) timestamp_filename: bool,
    /// Write when the first and the last sample were, as is always done
    #[arg(long, help_heading = "Into what")]
    pub(super) timestamp_boundary: bool,
    /// Write no build IDs
    #[arg(short = 'B', long, help_heading = "Into what")]
    pub(super) no_buildid: bool,
    /// Leave perf's cache of build IDs alone, as is always done
    #[arg(short = 'N', long, help_heading = "Into what")]
    pub(super) no_buildid_cache: bool,
    /// Write the build IDs of all files, hit or not, as is always done
    #[arg(long, help_heading = "Into what")]
    pub(super) buildid_all: bool,
    /// Record build IDs in the records of mappings too (the default); --no-buildid-mmap keeps device and inode
    #[arg(long, help_heading = "Into what")]
    pub(super) buildid_mmap: bool,

    /// The size of each ring, and of each AUX area: pages, or bytes with K, M or G [default: 512K]
    #[arg(short, long, value_name = "DATA[,AUX]", help_heading = "How")]
    pub(super) mmap_pages: Option<String>,
    /// Take records from a ring when so many bytes are there [default: 1]
    #[arg(long, value_name = "BYTES", help_heading = "How")]
    pub(super) mmap_flush: Option<String>,
    /// Rings are overwritten; what is in them is written at SIGUSR2 and at the end
    #[arg(long, help_heading = "How")]
    pub(super) overwrite: bool,
    /// Every record wakes rec
    #[arg(long, help_heading = "How")]
    pub(super) no_buffering: bool,
    /// Drain with this niceness: -20 to 19
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with = "realtime", help_heading = "How")]
    pub(super) nice: Option<String>,
    /// Drain with this priority of SCHED_FIFO
    #[arg(short = 'r', long, value_name = "PRIORITY", help_heading = "How")]
    pub(super) realtime: Option<String>,
    /// Read the rings in threads, into a directory: one for each cpu, core, package or numa node, or CPUS/RUN-ON:...
    #[arg(long, value_name = "SPEC", num_args = 0..=1, require_equals = true, default_missing_value = "cpu", help_heading = "How")]
    pub(super) threads: Option<String>,
    /// Records that may wait to be written, with B, K, M or G [default: 64M, or as much as all rings]
    #[arg(long, value_name = "SIZE", help_heading = "How")]
    pub(super) queue_size: Option<String>,
    /// Read each ring on its NUMA node or its CPU
    #[arg(long, value_name = "node|cpu", conflicts_with = "threads", help_heading = "How")]
    pub(super) affinity: Option<String>,
    /// AUX areas are overwritten, and written at SIGUSR2: [e for one at the end][SIZE]
    #[arg(short = 'S', long, value_name = "OPTS", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "How")]
    pub(super) snapshot: Option<String>,
    /// Samples of the AUX event's group carry so many bytes of the AUX area [default: 4096]
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "snapshot", help_heading = "How")]
    pub(super) aux_sample: Option<String>,

    /// Print what would be opened, and open nothing
    #[arg(long, help_heading = "rec")]
    pub(super) dry_run: bool,
    /// Print it as JSON
    #[arg(long, requires = "dry_run", help_heading = "rec")]
    pub(super) json: bool,
    /// Plan for the machine described in this file, not for this one
    #[arg(long, value_name = "FILE", requires = "dry_run", help_heading = "rec")]
    pub(super) machine: Option<PathBuf>,
    /// Say nothing but errors and losses
    #[arg(short, long, help_heading = "rec")]
    pub(super) quiet: bool,
    /// Say how the recording is planned
    #[arg(short, long, action = ArgAction::Count, help_heading = "rec")]
    pub(super) verbose: u8,
    /// The command to run, and what it is given
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}
