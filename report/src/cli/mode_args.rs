//! Arguments that say what is counted.

use clap::Args;

use crate::query::{Mode, WhatIf};

/// Options of what is counted in place of samples.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What is counted")]
pub(crate) struct ModeArgs {
    /// Count every entry of the samples' branch stacks, each with period 1
    #[arg(short, long, conflicts_with = "mem_mode")]
    branch_stack: bool,

    /// Report memory accesses; the period is the sample's weight, which for loads is usually the
    /// latency
    #[arg(long)]
    mem_mode: bool,

    /// Show where threads waited, and how long (files of rec --off-cpu)
    ///
    /// The event `off-cpu` has the nanoseconds that threads were off CPUs, by the code in which
    /// they stopped
    #[arg(long, conflicts_with = "wall", conflicts_with_all = OF_EVENTS)]
    off_cpu: bool,

    /// Show where threads waited and where they ran (files of rec --off-cpu)
    ///
    /// The event `wall` has the nanoseconds of threads off CPUs (as --off-cpu) and on CPUs
    /// (computed from the CPU samples)
    #[arg(long, conflicts_with_all = OF_EVENTS)]
    wall: bool,

    /// Show the critical path: the code that the run waited for (files of rec --waits)
    ///
    /// The event `critical-path` has the nanoseconds of the run, from its end back: while a thread
    /// waits, the path follows the thread that woke it. --tid, --pid and --comm choose the thread at
    /// the end, --time a part. Waiting by spinning is running
    #[arg(long, conflicts_with_all = ["wall", "off_cpu"], conflicts_with_all = OF_EVENTS)]
    critical_path: bool,

    /// With --critical-path, print how much shorter the run would be: 'parse=-20%', 'parse=-50ms'
    /// (of all threads together) or 'tid:7=-20%'
    ///
    /// The recording is replayed with the function, and all that it calls, that much faster. May be
    /// given several times: each change is looked at alone. Where the scheduler puts threads is not
    /// predicted, spinning is not seen, locks are taken in the recorded order, and timers keep their
    /// length
    #[arg(long, value_name = "CHANGE", requires = "critical_path", value_parser = WhatIf::parse)]
    what_if: Vec<WhatIf>,
    /// Show where the time went in which any thread ran (files of rec --latency)
    ///
    /// The event `latency` has the nanoseconds of threads on CPUs, divided by the number of threads
    /// of the recording that ran at that moment: code that runs alone counts in full, code of four
    /// threads at once a quarter
    #[arg(long, conflicts_with_all = ["off_cpu", "wall"], conflicts_with_all = OF_EVENTS)]
    latency: bool,
}

/// Options that concern the file's own events.
const OF_EVENTS: [&str; 3] = ["branch_stack", "mem_mode", "events"];

impl ModeArgs {
    /// Returns the changes whose effect is asked for.
    pub(crate) fn what_if(&self) -> Vec<WhatIf> {
        self.what_if.clone()
    }

    pub(crate) fn mode(&self) -> Mode {
        match (self.branch_stack, self.mem_mode) {
            (true, _) => Mode::Branches,
            (_, true) => Mode::Memory,
            _ if self.off_cpu => Mode::OffCpu,
            _ if self.wall => Mode::Wall,
            _ if self.critical_path => Mode::CriticalPath,
            _ if self.latency => Mode::Latency,
            _ => Mode::Samples,
        }
    }
}
