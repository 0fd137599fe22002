//! Places that counts are of, and kinds of them.

/// Kind of the places that counts are summed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Aggregation {
    /// Everything in one sum.
    #[default]
    Whole,
    /// NUMA nodes (`--per-node`).
    Node,
    /// Processor packages (`--per-socket`).
    Socket,
    /// Dies (`--per-die`).
    Die,
    /// Cores, with their hardware threads (`--per-core`).
    Core,
    /// CPUs: no sums (`-A`).
    Cpu,
    /// Threads (`--per-thread`).
    Thread,
}

/// Versions of perf from which on the numbers of the kinds behind a new one are one more: caches
/// (6.5), clusters (6.9).
const RENUMBERED: [(u16, u16); 2] = [(6, 5), (6, 9)];

impl Aggregation {
    /// Returns the number in [`AGGR_MODE`](recrep_format::abi::StatConfigTag::AGGR_MODE) that means this
    /// kind to perf 6.9 and newer.
    pub fn mode(self) -> u64 {
        match self {
            Self::Cpu => 0,
            Self::Whole => 1,
            Self::Socket => 2,
            Self::Die => 3,
            Self::Core => 6,
            Self::Thread => 7,
            Self::Node => 9,
        }
    }

    /// Returns the kind with this number in a file of this version of perf; `None` for a kind that
    /// is not known here: caches, clusters.
    pub fn of_mode(mode: u64, perf: (u16, u16)) -> Option<Self> {
        let added = RENUMBERED.iter().filter(|version| perf < **version).count() as u64;
        let number = if mode < 4 { mode } else { mode.checked_add(added)? };
        let kinds =
            [Self::Whole, Self::Node, Self::Socket, Self::Die, Self::Core, Self::Cpu, Self::Thread];
        kinds.into_iter().find(|kind| kind.mode() == number)
    }
}

/// Place that a total is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Everything.
    Whole,
    /// A NUMA node.
    Node(u32),
    /// A processor package.
    Socket(u32),
    /// A die: its package's number, and its own.
    Die(u32, u32),
    /// A core: the numbers of its package, its die, and its own.
    Core(u32, u32, u32),
    /// A CPU.
    Cpu(u32),
    /// A thread.
    Thread(Thread),
}

/// A thread that is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread {
    /// Thread ID.
    pub tid: u32,
    /// Name.
    pub comm: String,
}

/// Writes the place as perf does: `S0-D0-C1`, `CPU3`, `bash-42`; nothing for everything.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Node(node) => write!(f, "N{node}"),
            Self::Socket(socket) => write!(f, "S{socket}"),
            Self::Die(socket, die) => write!(f, "S{socket}-D{die}"),
            Self::Core(socket, die, core) => write!(f, "S{socket}-D{die}-C{core}"),
            Self::Cpu(cpu) => write!(f, "CPU{cpu}"),
            Self::Thread(Thread { tid, comm }) => write!(f, "{comm}-{tid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_kinds_changed() {
        let kinds = |perf, modes: [u64; 3]| modes.map(|mode| Aggregation::of_mode(mode, perf));
        let all = [Aggregation::Core, Aggregation::Thread, Aggregation::Node].map(Some);
        assert_eq!(kinds((6, 1), [4, 5, 7]), all);
        assert_eq!(kinds((6, 8), [5, 6, 8]), all);
        assert_eq!(kinds((6, 12), [6, 7, 9]), all);
        assert_eq!(kinds((6, 12), [4, 5, 8]), [None; 3]);
        for perf in [(6, 1), (6, 5), (7, 0)] {
            let first = (0..4).map(|mode| Aggregation::of_mode(mode, perf).unwrap().mode());
            assert_eq!(first.collect::<Vec<_>>(), [0, 1, 2, 3]);
        }
        assert_eq!(Aggregation::of_mode(u64::MAX, (6, 1)), None);
    }
}
