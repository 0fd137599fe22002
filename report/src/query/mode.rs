//! What is read, what is counted, and what is printed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// An input as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file, or a directory of `perf record --threads`.
    Path(PathBuf),
}

impl Source {
    /// Returns the input that `path` names (`-` is standard input); without a path, the one of
    /// `out.data` and `perf.data` that was written last.
    pub fn or_default(path: Option<PathBuf>) -> Self {
        match path {
            Some(path) if path == Path::new("-") => Self::Stdin,
            Some(path) => Self::Path(path),
            None => {
                let written =
                    |name: &&str| Path::new(name).metadata().and_then(|file| file.modified()).ok();
                // Of equally old ones it is rec's.
                let newest = ["perf.data", "out.data"].into_iter().max_by_key(written);
                let is_none = ["perf.data", "out.data"].iter().all(|name| written(name).is_none());
                Self::Path(newest.filter(|_| !is_none).unwrap_or("perf.data").into())
            }
        }
    }

    /// Returns its name in messages.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".into(),
            Self::Path(path) => path.display().to_string(),
        }
    }

    /// Returns the name of its file without folder and ending, for files that are made of it.
    pub fn stem(&self) -> String {
        let Self::Path(path) = self else { return "stdin".into() };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let ends = [".pb.gz", ".data", ".gz", ".zst", ".xz", ".pb"];
        let stem = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        stem.to_owned()
    }
}

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
    /// Code ranges executed from the target of one branch to the next branch, each with a period
    /// of 1.
    FallThroughs,
    /// Times in which threads were off their CPUs, with their nanoseconds as periods (`--off-cpu`).
    OffCpu,
    /// The same, and CPU samples with their nanoseconds as periods (`--wall`).
    Wall,
    /// Nanoseconds of the critical path (`--critical-path`).
    CriticalPath,
    /// CPU samples, with their nanoseconds, shared by the threads that ran, as periods
    /// (`--latency`).
    Latency,
}

impl Mode {
    pub const fn is_of_branches(self) -> bool {
        matches!(self, Self::Branches | Self::FallThroughs)
    }

    pub const fn is_of_time(self) -> bool {
        matches!(self, Self::OffCpu | Self::Wall | Self::CriticalPath | Self::Latency)
    }

    /// Returns whether a recording with switches of threads has what the mode needs.
    pub(crate) const fn is_recorded(self, has_wakes: bool) -> bool {
        has_wakes || !matches!(self, Self::CriticalPath)
    }

    /// Returns the name of the only event, if the counted items are not those of the file's events.
    pub const fn event(self) -> Option<&'static str> {
        match self {
            Self::OffCpu => Some("off-cpu"),
            Self::Wall => Some("wall"),
            Self::CriticalPath => Some("critical-path"),
            Self::Latency => Some("latency"),
            _ => None,
        }
    }

    /// Returns the names of the events that are counted: those of the file, or the mode's own.
    pub(crate) fn event_names(self, of_file: &[String]) -> Cow<'_, [String]> {
        self.event().map_or(Cow::Borrowed(of_file), |name| Cow::Owned(vec![name.to_owned()]))
    }

    /// Returns the default sort keys: perf's, as far as they are supported.
    pub const fn default_keys(self) -> &'static str {
        match self {
            Self::Samples | Self::OffCpu | Self::Wall | Self::CriticalPath | Self::Latency => {
                "comm,dso,symbol"
            }
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

/// Something to print instead of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspection {
    Stats,
    Tasks,
    /// Tasks with their mappings.
    Mmaps,
    /// All records.
    Records,
    /// The file's header.
    Header,
}
