//! Arguments that say what is counted.

use clap::{Arg, Args};

use crate::query::{Mode, WhatIf};

/// Options of what is counted in place of samples.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What is counted")]
#[command(mut_args(without_events))]
pub(crate) struct ModeArgs {
    /// Count every entry of the samples' branch stacks, each with period 1
    #[arg(short, long, conflicts_with = "mem_mode")]
    branch_stack: bool,

    /// Report memory accesses; the period is the sample's weight, which for loads is usually the
    /// latency
    #[arg(long)]
    mem_mode: bool,

    #[command(flatten)]
    times: TimesArgs,

    /// With --critical-path, print how much shorter the run would be: 'parse=-20%', 'parse=-50ms'
    /// (of all threads together) or 'tid:7=-20%'
    ///
    /// The recording is replayed with the function, and all that it calls, that much faster. May be
    /// given several times: each change is looked at alone. Where the scheduler puts threads is not
    /// predicted, spinning is not seen, locks are taken in the recorded order, and timers keep their
    /// length
    #[arg(long, value_name = "CHANGE", requires = "critical_path", value_parser = WhatIf::parse)]
    what_if: Vec<WhatIf>,
}

/// Options of times of threads, which are events that the file does not have itself.
#[derive(Clone, Debug, Args)]
pub(crate) struct TimesArgs {
    /// Show where threads waited, and how long (files of rec --off-cpu)
    ///
    /// The event `off-cpu` has the nanoseconds that threads were off CPUs, by the code in which
    /// they stopped
    #[arg(long)]
    off_cpu: bool,

    /// Show where threads waited and where they ran (files of rec --off-cpu)
    ///
    /// The event `wall` has the nanoseconds of threads off CPUs (as --off-cpu) and on CPUs
    /// (computed from the CPU samples)
    #[arg(long, conflicts_with = "off_cpu")]
    wall: bool,

    /// Show the critical path: the code that the run waited for (files of rec --waits)
    ///
    /// The event `critical-path` has the nanoseconds of the run, from its end back: while a thread
    /// waits, the path follows the thread that woke it. --tid, --pid and --comm choose the thread at
    /// the end, --time a part. Waiting by spinning is running
    #[arg(long, conflicts_with_all = ["off_cpu", "wall"])]
    critical_path: bool,

    /// Show where the time went in which any thread ran (files of rec --latency)
    ///
    /// The event `latency` has the nanoseconds of threads on CPUs, divided by the number of threads
    /// of the recording that ran at that moment: code that runs alone counts in full, code of four
    /// threads at once a quarter
    #[arg(long, conflicts_with_all = ["off_cpu", "wall", "critical_path"])]
    latency: bool,
}

/// Refuses what concerns the file's own events beside times of threads.
fn without_events(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "off_cpu" | "wall" | "critical_path" | "latency" => {
            arg.conflicts_with_all(["branch_stack", "mem_mode", "events"])
        }
        _ => arg,
    }
}

impl ModeArgs {
    /// Returns the changes whose effect is asked for.
    pub(crate) fn what_if(&self) -> Vec<WhatIf> {
        self.what_if.clone()
    }

    pub(crate) fn mode(&self) -> Mode {
        match (self.branch_stack, self.mem_mode) {
            (true, _) => Mode::Branches,
            (_, true) => Mode::Memory,
            _ => self.times.mode(),
        }
    }
}

impl TimesArgs {
    pub(crate) fn mode(&self) -> Mode {
        let Self { off_cpu, wall, critical_path, latency } = *self;
        match () {
            () if off_cpu => Mode::OffCpu,
            () if wall => Mode::Wall,
            () if critical_path => Mode::CriticalPath,
            () if latency => Mode::Latency,
            () => Mode::Samples,
        }
    }
}
