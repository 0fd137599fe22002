//! What is counted.

/// The kind of items that are counted. It determines the available keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Samples, with their periods.
    #[default]
    Samples,
    /// Samples, with their weights as periods (`--mem-mode`).
    Memory,
    /// Branches of the samples' branch stacks, each with a period of 1 (`-b`).
    Branches,
    /// Code ranges executed from the target of one branch to the next branch, each with a period of 1.
    FallThroughs,
    /// Times in which threads were off their CPUs, with their nanoseconds as periods (`--off-cpu`).
    OffCpu,
    /// The same, and CPU samples with their nanoseconds as periods (`--wall`).
    Wall,
}

impl Mode {
    pub const fn is_of_branches(self) -> bool {
        matches!(self, Self::Branches | Self::FallThroughs)
    }

    pub const fn is_of_time(self) -> bool {
        matches!(self, Self::OffCpu | Self::Wall)
    }

    /// Returns the name of the only event, if the counted items are not those of the file's events.
    pub const fn event(self) -> Option<&'static str> {
        match self {
            Self::OffCpu => Some("off-cpu"),
            Self::Wall => Some("wall"),
            _ => None,
        }
    }

    /// Returns the default sort keys: perf's, as far as they are supported.
    pub const fn default_keys(self) -> &'static str {
        match self {
            Self::Samples | Self::OffCpu | Self::Wall => "comm,dso,symbol",
            Self::Memory => {
                "local_weight,mem,symbol,dso,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat,local_p_stage_cyc"
            }
            Self::Branches | Self::FallThroughs => "comm,dso_from,symbol_from,symbol_to,cycles",
        }
    }
}

/// The modes in which a sort key is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    Always,
    OfBranches,
    OfTime,
}
