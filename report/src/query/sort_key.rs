//! The columns by which samples are grouped: every sort key, its names, its heading.

/// A column by which samples are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortKey {
    /// The thread's name at the sample's moment.
    Comm,
    /// The thread, as perf's `pid` column reads: `tid:name`.
    Pid,
    /// The thread; the same column.
    Tid,
    /// The module; of branches, the target's.
    Dso,
    /// The function, with the level before it; of branches, the target's.
    Symbol,
    /// The source file and line; of branches, the target's.
    Srcline,
    /// The source file; of branches, the target's.
    Srcfile,
    /// The source file and line that a branch left.
    FromSrcline,
    /// The source file and line that a branch went to.
    ToSrcline,
    /// The sampled address.
    Ip,
    /// The CPU.
    Cpu,
    /// The event.
    Event,
    /// Where the data came from, raw and decoded.
    DataSrc,
    /// The level that the data came from.
    Mem,
    /// How other caches answered.
    Snoop,
    /// How the TLB answered.
    Tlb,
    /// Whether the access was locked.
    Locked,
    /// Why the access was blocked.
    Blocked,
    /// The weight of one sample.
    LocalWeight,
    /// The weight of one sample, times how many there are.
    Weight,
    /// The instruction latency of one sample, in cycles.
    LocalInsLat,
    /// The instruction latency of one sample, times how many there are.
    InsLat,
    /// The third part of the weight of one sample: the cycles in a pipeline session, or to retire.
    LocalStage,
    /// The same, times how many there are.
    Session,
    /// The physical data address.
    PhysAddr,
    /// The module that the data address is in.
    DataDso,
    /// The module that a branch left.
    FromDso,
    /// The function that a branch left.
    FromSymbol,
    /// The branch instruction.
    FromAddr,
    /// The target of a branch.
    ToAddr,
    /// The module that a branch went to.
    ToDso,
    /// The function that a branch went to.
    ToSymbol,
    /// Whether a branch was mispredicted.
    Mispredict,
    /// Whether a branch was in a transaction.
    InTx,
    /// Whether a branch was a transaction's abort.
    Abort,
    /// The cycles since the branch before.
    Cycles,
    /// How many bytes the function has.
    SymbolSize,
    /// The function, and how far in it the address is.
    SymbolOffset,
    /// How many bytes of the module were mapped there.
    DsoSize,
    /// The module's whole path.
    DsoPath,
    /// The module's build ID.
    BuildId,
    /// The socket that the CPU is in.
    Socket,
    /// The cgroup, as a path.
    Cgroup,
    /// The cgroup namespace of the thread: device and inode.
    CgroupId,
    /// How a transaction went.
    Transaction,
    /// When, in steps of `--time-quantum`.
    Time,
    /// The page size behind the ip.
    CodePageSize,
    /// The page size behind the data address.
    DataPageSize,
    /// What the data address is in.
    DataSymbol,
    /// The cache line of the data address.
    DataCacheLine,
    /// Where in its cache line the data address is.
    LineOffset,
    /// Load, store, and so on.
    Op,
    /// The process, by number.
    Process,
    /// Of a memory access, whether it has an address (`a`), and whether its data (`d`) and its code (`c`) are mapped.
    Reach,
    /// Where a branch came from: the module's path and the offset in it.
    FromPlace,
    /// Where a branch went, in the same way.
    ToPlace,
    /// Whether what was run began with a branch from another module.
    External,
    /// A function among the callers.
    Parent,
    /// What a tracepoint recorded, as the kernel prints it.
    Trace,
    /// A field of tracepoints: the number of the column among those of fields.
    TraceField(u8),
    /// The CPU mode of the sample; of branches, of the target. A companion.
    CpuMode,
    /// The CPU mode that a branch left. A companion.
    FromCpuMode,
    /// The CPU mode that a branch went to. A companion.
    ToCpuMode,
    /// How the data address is mapped: `private`, `shared` or `none`. A companion.
    DataMapping,
}

/// What is counted, and so which keys there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Samples, with their periods.
    #[default]
    Samples,
    /// Samples, with their weights as periods (`--mem-mode`).
    Memory,
    /// The branches of their branch stacks, each with a period of 1 (`-b`).
    Branches,
    /// What was run from the target of one branch to the next branch, each with a period of 1.
    FallThroughs,
}

impl Mode {
    /// Whether the rows are of branch stacks.
    #[must_use]
    pub const fn is_of_branches(self) -> bool {
        matches!(self, Self::Branches | Self::FallThroughs)
    }
}

/// A sort key's names.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: SortKey,
    /// The one to show, then others that mean the same.
    names: &'static [&'static str],
    heading: &'static str,
    is_of_branch: bool,
}

const fn known(key: SortKey, names: &'static [&'static str], heading: &'static str) -> Known {
    Known { key, names, heading, is_of_branch: false }
}

const fn of_branch(key: SortKey, names: &'static [&'static str], heading: &'static str) -> Known {
    Known { key, names, heading, is_of_branch: true }
}

/// All of them, under perf's names and headings; `tid`, `ip`, `event` and `data_src` are ours.
const ALL: [Known; 59] = [
    known(SortKey::Comm, &["comm"], "Command"),
    known(SortKey::Pid, &["pid"], "    Pid:Command"),
    known(SortKey::Tid, &["tid"], "    Tid:Command"),
    known(SortKey::Dso, &["dso"], "Shared Object"),
    known(SortKey::Symbol, &["symbol", "sym", "symbol_iaddr"], "Symbol"),
    known(SortKey::Srcline, &["srcline"], "Source:Line"),
    known(SortKey::Srcfile, &["srcfile"], "Source File"),
    known(SortKey::Ip, &["ip", "addr"], "Address"),
    known(SortKey::Cpu, &["cpu"], "CPU"),
    known(SortKey::Event, &["event"], "Event"),
    known(SortKey::DataSrc, &["data_src"], "Data Source"),
    known(SortKey::Mem, &["mem"], "Memory access"),
    known(SortKey::Snoop, &["snoop"], "Snoop"),
    known(SortKey::Tlb, &["tlb"], "TLB access"),
    known(SortKey::Locked, &["locked"], "Locked"),
    known(SortKey::Blocked, &["blocked"], "Blocked"),
    known(SortKey::LocalWeight, &["local_weight"], "Local Weight"),
    known(SortKey::Weight, &["weight"], "Weight"),
    known(SortKey::LocalInsLat, &["local_ins_lat"], "Local INSTR Latency"),
    known(SortKey::InsLat, &["ins_lat"], "INSTR Latency"),
    known(SortKey::LocalStage, &["local_p_stage_cyc", "local_retire_lat"], "Local Pipeline Session Cycle"),
    known(SortKey::Session, &["p_stage_cyc", "retire_lat"], "Pipeline Session Cycle"),
    known(SortKey::PhysAddr, &["phys_daddr"], "Data Physical Address"),
    known(SortKey::DataDso, &["dso_daddr"], "Data Object"),
    known(SortKey::SymbolSize, &["symbol_size", "sym_size"], "Symbol size"),
    known(SortKey::Parent, &["parent"], "Parent symbol"),
    known(SortKey::SymbolOffset, &["symoff"], "Symbol Offset"),
    known(SortKey::DsoSize, &["dso_size"], "DSO size"),
    known(SortKey::DsoPath, &["dso_path"], "Path"),
    known(SortKey::BuildId, &["build_id"], "Build ID"),
    known(SortKey::Socket, &["socket"], "Socket"),
    known(SortKey::Cgroup, &["cgroup"], "Cgroup"),
    known(SortKey::CgroupId, &["cgroup_id"], "cgroup id (dev/inode)"),
    known(SortKey::Transaction, &["transaction"], "Transaction"),
    known(SortKey::Time, &["time"], "Time"),
    known(SortKey::CodePageSize, &["code_page_size"], "Code Page Size"),
    known(SortKey::DataPageSize, &["data_page_size"], "Data Page Size"),
    known(SortKey::DataSymbol, &["symbol_daddr"], "Data Symbol"),
    known(SortKey::DataCacheLine, &["dcacheline"], "Data Cacheline"),
    known(SortKey::LineOffset, &["line_offset"], "Offset"),
    known(SortKey::Op, &["op"], "Operation"),
    known(SortKey::Process, &["process"], "Process"),
    known(SortKey::Reach, &["reach"], "Reach"),
    known(SortKey::Trace, &["trace"], "Trace output"),
    of_branch(SortKey::FromPlace, &["place_from"], "Source Place"),
    of_branch(SortKey::External, &["external"], "From another module"),
    of_branch(SortKey::ToPlace, &["place_to"], "Target Place"),
    of_branch(SortKey::FromDso, &["dso_from"], "Source Shared Object"),
    of_branch(SortKey::ToDso, &["dso_to"], "Target Shared Object"),
    of_branch(SortKey::FromSymbol, &["symbol_from", "sym_from"], "Source Symbol"),
    of_branch(SortKey::ToSymbol, &["symbol_to", "sym_to"], "Target Symbol"),
    of_branch(SortKey::FromSrcline, &["srcline_from"], "From Source:Line"),
    of_branch(SortKey::ToSrcline, &["srcline_to"], "To Source:Line"),
    of_branch(SortKey::FromAddr, &["addr_from"], "Source Address"),
    of_branch(SortKey::ToAddr, &["addr_to"], "Target Address"),
    of_branch(SortKey::Mispredict, &["mispredict"], "Branch Mispredicted"),
    of_branch(SortKey::InTx, &["in_tx"], "Branch in transaction"),
    of_branch(SortKey::Abort, &["abort"], "Transaction abort"),
    of_branch(SortKey::Cycles, &["cycles"], "Basic Block Cycles"),
];

impl SortKey {
    /// The key of this name; as in perf, case does not count.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let known = |known: &&Known| known.names.iter().any(|have| have.eq_ignore_ascii_case(name));
        ALL.iter().find(known).map(|known| known.key)
    }

    /// All names, for a person to choose from.
    #[must_use]
    pub fn list() -> String {
        let names: Vec<&str> = ALL.iter().flat_map(|known| known.names).copied().collect();
        names.join(", ")
    }

    /// The heading of its column.
    #[must_use]
    pub fn heading(self) -> &'static str {
        self.known().map_or("", |known| known.heading)
    }

    /// Whether it is a column of branches, and there only with `-b`.
    #[must_use]
    pub fn is_of_branch(self) -> bool {
        self.known().is_some_and(|known| known.is_of_branch)
    }

    /// Whether it is of what tracepoints recorded.
    #[must_use]
    pub fn is_of_trace(self) -> bool {
        matches!(self, Self::Trace | Self::TraceField(_))
    }

    /// The columns that stand beside this one in data, under these names: in text they are the letter before its name.
    #[must_use]
    pub fn companions(self) -> &'static [(&'static str, Self)] {
        match self {
            Self::Symbol | Self::SymbolOffset | Self::DataSymbol | Self::PhysAddr => &[("cpumode", Self::CpuMode)],
            Self::FromSymbol => &[("cpumode_from", Self::FromCpuMode)],
            Self::ToSymbol => &[("cpumode_to", Self::ToCpuMode)],
            Self::DataCacheLine => &[("cpumode", Self::CpuMode), ("mapping", Self::DataMapping)],
            _ => &[],
        }
    }

    /// Whether it is one of these.
    #[must_use]
    pub fn is_companion(self) -> bool {
        matches!(self, Self::CpuMode | Self::FromCpuMode | Self::ToCpuMode | Self::DataMapping)
    }

    /// Whether it is a number that is shown times the samples of its row.
    #[must_use]
    pub fn is_times_samples(self) -> bool {
        matches!(self, Self::Weight | Self::InsLat | Self::Session)
    }

    /// Whether its text is of the function at the address, or at the end of a branch.
    #[must_use]
    pub fn is_of_symbol(self) -> bool {
        matches!(
            self,
            Self::Symbol | Self::ToSymbol | Self::FromSymbol | Self::SymbolSize | Self::SymbolOffset | Self::DataSymbol
        ) || self == Self::DataCacheLine
    }

    fn known(self) -> Option<&'static Known> {
        ALL.iter().find(|known| known.key == self)
    }
}

impl Mode {
    /// The keys where none are named: perf's, as far as they are known here.
    #[must_use]
    pub const fn default_keys(self) -> &'static str {
        match self {
            Self::Samples => "comm,dso,symbol",
            Self::Memory => {
                "local_weight,mem,symbol,dso,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat,local_p_stage_cyc"
            }
            Self::Branches | Self::FallThroughs => "comm,dso_from,symbol_from,symbol_to,cycles",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_key_each() {
        let mut names: Vec<&str> = ALL.iter().flat_map(|known| known.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(SortKey::named("SYM"), Some(SortKey::Symbol));
        assert_eq!(SortKey::named("nope"), None);
        for known in ALL {
            assert_eq!(known.key.heading(), known.heading);
        }
    }

    #[test]
    fn the_default_keys_are_known() {
        for mode in [Mode::Samples, Mode::Memory, Mode::Branches] {
            assert!(mode.default_keys().split(',').all(|name| SortKey::named(name).is_some()));
        }
    }
}
