//! The sort keys, with their names and headings.

/// A sort key: a column by which samples are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortKey {
    /// The thread's name at the time of the sample.
    Comm,
    /// The thread, as in perf's `pid` column: `tid:name`.
    Pid,
    /// The thread, as in [`Self::Pid`].
    Tid,
    /// The module; of branches, the target's.
    Dso,
    /// The function, after the letter of the CPU mode; of branches, the target's.
    Symbol,
    /// The source file and line; of branches, the target's.
    Srcline,
    /// The source file; of branches, the target's.
    Srcfile,
    /// The source file and line of a branch's source.
    FromSrcline,
    /// The source file and line of a branch's target.
    ToSrcline,
    /// The sampled address.
    Ip,
    /// The CPU.
    Cpu,
    /// The event.
    Event,
    /// The source of the data, raw and decoded.
    DataSrc,
    /// The memory level that the data came from.
    Mem,
    /// The result of the cache snoop.
    Snoop,
    /// The result of the TLB lookup.
    Tlb,
    /// Whether the access was locked.
    Locked,
    /// The reason why the access was blocked.
    Blocked,
    /// The weight of one sample.
    LocalWeight,
    /// The weight of one sample, times the number of samples.
    Weight,
    /// The instruction latency of one sample, in cycles.
    LocalInsLat,
    /// The instruction latency of one sample, times the number of samples.
    InsLat,
    /// The third part of the weight of one sample: the cycles in a pipeline stage, or until retirement.
    LocalStageCycles,
    /// The third part of the weight of one sample, times the number of samples.
    StageCycles,
    /// The physical data address.
    PhysAddr,
    /// The module that the data address is in.
    DataDso,
    /// The module of a branch's source.
    FromDso,
    /// The function of a branch's source.
    FromSymbol,
    /// The address of the branch instruction.
    FromAddr,
    /// The target address of a branch.
    ToAddr,
    /// The module of a branch's target.
    ToDso,
    /// The function of a branch's target.
    ToSymbol,
    /// Whether a branch was mispredicted.
    Mispredict,
    /// Whether a branch was in a transaction.
    InTx,
    /// Whether a branch was a transaction's abort.
    Abort,
    /// The cycles since the previous branch.
    Cycles,
    /// The size of the function, in bytes.
    SymbolSize,
    /// The function and the offset in it.
    SymbolOffset,
    /// The size of the module's mapping, in bytes.
    DsoSize,
    /// The module's full path.
    DsoPath,
    /// The module's build ID.
    BuildId,
    /// The socket of the CPU.
    Socket,
    /// The cgroup, as a path.
    Cgroup,
    /// The thread's cgroup namespace: device and inode.
    CgroupId,
    /// The flags of a transaction.
    Transaction,
    /// The time, in steps of `--time-quantum`.
    Time,
    /// The page size at the ip.
    CodePageSize,
    /// The page size at the data address.
    DataPageSize,
    /// The symbol at the data address.
    DataSymbol,
    /// The cache line of the data address.
    DataCacheLine,
    /// The offset of the data address in its cache line.
    LineOffset,
    /// The kind of access: load, store, and so on.
    Op,
    /// The process ID.
    Process,
    /// Of a memory access, whether it has an address (`a`), and whether its data (`d`) and its code (`c`) are mapped.
    Reach,
    /// The source of a branch: the module's path and the offset in it.
    FromPlace,
    /// The target of a branch: the module's path and the offset in it.
    ToPlace,
    /// Whether the branch, or the one before the executed range, came from another module.
    External,
    /// The caller that matches `--parent`.
    Parent,
    /// The thread's activity in the counted time: it ran, waited or was preempted.
    Switch,
    /// A tracepoint's fields, as the kernel prints them.
    Trace,
    /// A tracepoint field: the column's index among the field columns.
    TraceField(u8),
    /// The CPU mode of the sample; of branches, the target's. A companion.
    CpuMode,
    /// The CPU mode of a branch's source. A companion.
    FromCpuMode,
    /// The CPU mode of a branch's target. A companion.
    ToCpuMode,
    /// The kind of mapping at the data address: `private`, `shared` or `none`. A companion.
    DataMapping,
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
    /// Code ranges executed from the target of one branch to the next branch, each with a period of 1.
    FallThroughs,
    /// Times in which threads were off their CPUs, with their nanoseconds as periods (`--off-cpu`).
    OffCpu,
    /// The same, and CPU samples with their nanoseconds as periods (`--wall`).
    Wall,
}

impl Mode {
    /// Returns whether rows come from branch stacks.
    pub const fn is_of_branches(self) -> bool {
        matches!(self, Self::Branches | Self::FallThroughs)
    }

    /// Returns whether samples stand for time.
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
}

/// The modes in which a sort key is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// All modes.
    Always,
    /// Modes that count branches.
    OfBranches,
    /// Modes that count time.
    OfTime,
}

/// Names and heading of a sort key.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: SortKey,
    /// Main name, then aliases.
    names: &'static [&'static str],
    heading: &'static str,
    availability: Availability,
}

const fn known(key: SortKey, names: &'static [&'static str], heading: &'static str) -> Known {
    Known { key, names, heading, availability: Availability::Always }
}

const fn of_branch(key: SortKey, names: &'static [&'static str], heading: &'static str) -> Known {
    Known { key, names, heading, availability: Availability::OfBranches }
}

/// All sort keys that users can name. Names and headings are perf's where perf has the key (`docs/options.md` lists
/// those that only rep has).
const ALL: [Known; 60] = [
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
    known(SortKey::LocalStageCycles, &["local_p_stage_cyc", "local_retire_lat"], "Local Pipeline Stage Cycle"),
    known(SortKey::StageCycles, &["p_stage_cyc", "retire_lat"], "Pipeline Stage Cycle"),
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
    Known { key: SortKey::Switch, names: &["switch"], heading: "Switch", availability: Availability::OfTime },
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
    /// Returns the key with this name. As in perf, case is ignored.
    pub fn named(name: &str) -> Option<Self> {
        let known = |known: &&Known| known.names.iter().any(|have| have.eq_ignore_ascii_case(name));
        ALL.iter().find(known).map(|known| known.key)
    }

    /// Returns all names, for messages.
    pub fn list() -> String {
        [Availability::Always, Availability::OfTime, Availability::OfBranches].map(Self::list_of).join(", ")
    }

    /// Returns the names of the keys with this availability.
    pub fn list_of(availability: Availability) -> String {
        let keys = ALL.iter().filter(|known| known.availability == availability);
        keys.flat_map(|known| known.names).copied().collect::<Vec<&str>>().join(", ")
    }

    /// Returns the heading of the column.
    pub fn heading(self) -> &'static str {
        self.known().map_or("", |known| known.heading)
    }

    /// Returns the modes in which the key is available.
    pub fn availability(self) -> Availability {
        self.known().map_or(Availability::Always, |known| known.availability)
    }

    /// Returns whether the key is of tracepoint fields.
    pub fn is_of_trace(self) -> bool {
        matches!(self, Self::Trace | Self::TraceField(_))
    }

    /// Returns the columns, with their names, that JSON and CSV add to this one. In text they are the letter before the
    /// symbol.
    pub fn companions(self) -> &'static [(&'static str, Self)] {
        match self {
            Self::Symbol | Self::SymbolOffset | Self::DataSymbol | Self::PhysAddr => &[("cpumode", Self::CpuMode)],
            Self::FromSymbol => &[("cpumode_from", Self::FromCpuMode)],
            Self::ToSymbol => &[("cpumode_to", Self::ToCpuMode)],
            Self::DataCacheLine => &[("cpumode", Self::CpuMode), ("mapping", Self::DataMapping)],
            _ => &[],
        }
    }

    /// Returns whether the key is a companion.
    pub fn is_companion(self) -> bool {
        matches!(self, Self::CpuMode | Self::FromCpuMode | Self::ToCpuMode | Self::DataMapping)
    }

    /// Returns whether the key's text depends on the symbol at an address.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
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
    fn default_keys_exist() {
        for mode in [Mode::Samples, Mode::Memory, Mode::Branches, Mode::Wall] {
            assert!(mode.default_keys().split(',').all(|name| SortKey::named(name).is_some()));
        }
    }
}
