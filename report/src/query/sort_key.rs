//! The sort keys. Each is declared in one row of `ALL`: its names, the fields of a counted key that it needs, and what it
//! shows of them.
//!
//! To add one, add a variant and a row. Where no [`Shown`] fits, add a text of the first field to `word_text.rs`, or a
//! [`Name`] to `shown.rs` and its text to `table/texts.rs`; a new [`Field`] is filled by `scan`. List the key in
//! `docs/options.md`; if perf has it too, compare it in `tests/tests/all/keys_agree.rs`.

use recrep_format::abi::{BranchFlags, DataSrc};

use super::key::{CacheLine, Field, INS_LAT, Key, KeyAddress, Meta, STAGE};
use super::mode::Availability;
use super::shown::{Kind, Name, Shown};
use super::word_text::{self, source_file};

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

/// Declaration of a sort key: all that is to be said of one.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    key: SortKey,
    /// Main name, then aliases; no name if users cannot name it.
    names: &'static [&'static str],
    /// Heading of the column.
    pub heading: &'static str,
    /// The modes in which the key is available.
    pub availability: Availability,
    /// The fields of a counted key that it needs, besides [`Field::Meta`]: at most three.
    pub fields: &'static [Field],
    /// The bits of the first field that it needs, if it has fields.
    pub bits: u64,
    /// The bits of [`Field::Meta`] that it needs.
    pub meta: u64,
    /// What it shows of the fields.
    pub shown: Shown,
    /// What it makes of a text or name that is shown, if anything.
    pub then: Option<fn(&str) -> String>,
    /// `true` if callers of one text count apart where they are different functions or lines, as in perf: rows can then
    /// have more than 100 %.
    pub is_apart: bool,
    /// The companions: columns, with their names, that JSON and CSV add. In text they are the letter before the symbol.
    pub companions: &'static [(&'static str, SortKey)],
}

/// Declares a key that is available in all modes.
const fn key(
    key: SortKey,
    names: &'static [&'static str],
    heading: &'static str,
    fields: &'static [Field],
    shown: Shown,
) -> Declaration {
    Declaration {
        key,
        names,
        heading,
        availability: Availability::Always,
        fields,
        bits: u64::MAX,
        meta: 0,
        shown,
        then: None,
        is_apart: false,
        companions: &[],
    }
}

impl Declaration {
    const fn of(self, availability: Availability) -> Self {
        Self { availability, ..self }
    }

    const fn bits(self, bits: u64) -> Self {
        Self { bits, ..self }
    }

    const fn meta(self, meta: u64) -> Self {
        Self { meta, ..self }
    }

    const fn then(self, then: fn(&str) -> String) -> Self {
        Self { then: Some(then), ..self }
    }

    const fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    const fn with(self, companions: &'static [(&'static str, SortKey)]) -> Self {
        Self { companions, ..self }
    }

    /// Returns the bits that are needed of the first field, or of [`Field::Meta`] if there is no other, and which
    /// these are.
    fn first(&self, row: &Key) -> (u64, u64) {
        match self.fields.first() {
            Some(field) => (field.of(row) & self.bits, self.bits),
            None => (Field::Meta.of(row) & self.meta, self.meta),
        }
    }

    /// Returns the word of a row that [`Shown::Text`] is made of.
    pub fn word(&self, row: &Key) -> u64 {
        self.first(row).0
    }

    /// Returns the number of a row that [`Shown::Number`] shows.
    #[inline]
    pub fn number(&self, row: &Key) -> u64 {
        let (word, bits) = self.first(row);
        word.checked_shr(bits.trailing_zeros()).unwrap_or(0)
    }

    /// Returns the words of a row on which the text depends.
    #[inline]
    pub fn content(&self, row: &Key) -> [u64; 4] {
        let other = |place: usize| self.fields.get(place).map_or(0, |field| field.of(row));
        [self.word(row), other(1), other(2), Field::Meta.of(row) & self.meta]
    }

    /// Returns whether the numbers that it shows are all of its field.
    pub fn is_exact(&self) -> bool {
        self.bits == u64::MAX && matches!(self.shown, Shown::Number(kind) if kind != Kind::Micros)
    }

    /// Returns whether the text depends on the symbol at an address.
    pub fn is_of_symbol(&self) -> bool {
        use Name::{CacheLine, DataSymbol, Function, FunctionOffset, FunctionSize};
        matches!(self.shown, Shown::Name(Function(_) | FunctionSize | FunctionOffset | DataSymbol | CacheLine))
    }
}

/// All sort keys. Names and headings are perf's where perf has the key (`docs/options.md` lists those that only rep
/// has).
const ALL: &[Declaration] = {
    use Availability::{OfBranches, OfTime};
    use KeyAddress::{At, From};
    use Shown::{Name as Named, Number, Text};
    use SortKey as K;
    const MODE: &[(&str, SortKey)] = &[("cpumode", K::CpuMode)];
    const LINE: &[(&str, SortKey)] = &[("cpumode", K::CpuMode), ("mapping", K::DataMapping)];
    const FROM_MODE: &[(&str, SortKey)] = &[("cpumode_from", K::FromCpuMode)];
    const TO_MODE: &[(&str, SortKey)] = &[("cpumode_to", K::ToCpuMode)];
    const SYMBOL: &[Field] = &[Field::Module, Field::Address];
    const FROM_SYMBOL: &[Field] = &[Field::FromModule, Field::FromAddress];
    const SRCLINE: &[Field] = &[Field::Module, Field::Line];
    const OFFSET: &[Field] = &[Field::Module, Field::Address, Field::Offset];
    const DATA: &[Field] = &[Field::DataModule, Field::DataAddr, Field::DataAddress];
    &[
        key(K::Comm, &["comm"], "Command", &[Field::Comm], Named(Name::Comm)),
        key(K::Pid, &["pid"], "    Pid:Command", &[Field::Thread], Named(Name::Thread)),
        key(K::Tid, &["tid"], "    Tid:Command", &[Field::Thread], Named(Name::Thread)),
        key(K::Dso, &["dso"], "Shared Object", &[Field::Module], Named(Name::Module)),
        key(K::Symbol, &["symbol", "sym", "symbol_iaddr"], "Symbol", SYMBOL, Named(Name::Function(At)))
            .meta(Meta::AT)
            .apart()
            .with(MODE),
        key(K::Srcline, &["srcline"], "Source:Line", SRCLINE, Named(Name::Line(At))),
        key(K::Srcfile, &["srcfile"], "Source File", SRCLINE, Named(Name::Line(At))).then(source_file).apart(),
        key(K::Ip, &["ip", "addr"], "Address", &[Field::Ip], Number(Kind::Address)),
        key(K::Cpu, &["cpu"], "CPU", &[], Number(Kind::Cpu)).meta(Meta::CPU),
        key(K::Event, &["event"], "Event", &[], Named(Name::Event)).meta(Meta::EVENT),
        key(K::DataSrc, &["data_src"], "Data Source", &[Field::DataSrc], Number(Kind::DataSrc)),
        key(K::Mem, &["mem"], "Memory access", &[Field::DataSrc], Text(|word| DataSrc(word).mem())).bits(DataSrc::MEM),
        key(K::Snoop, &["snoop"], "Snoop", &[Field::DataSrc], Text(|word| DataSrc(word).snoop_name()))
            .bits(DataSrc::SNOOP),
        key(K::Tlb, &["tlb"], "TLB access", &[Field::DataSrc], Text(|word| DataSrc(word).tlb_name()))
            .bits(DataSrc::TLB),
        key(K::Locked, &["locked"], "Locked", &[Field::DataSrc], Text(|word| DataSrc(word).locked_name().into()))
            .bits(DataSrc::LOCKED),
        key(K::Blocked, &["blocked"], "Blocked", &[Field::DataSrc], Text(word_text::blocked)).bits(DataSrc::BLOCKED),
        key(K::LocalWeight, &["local_weight"], "Local Weight", &[Field::Weight], Number(Kind::Number)),
        key(K::Weight, &["weight"], "Weight", &[Field::Weight], Number(Kind::PerSample)),
        key(K::LocalInsLat, &["local_ins_lat"], "Local INSTR Latency", &[Field::Latency], Number(Kind::Number))
            .bits(INS_LAT),
        key(K::InsLat, &["ins_lat"], "INSTR Latency", &[Field::Latency], Number(Kind::PerSample)).bits(INS_LAT),
        key(
            K::LocalStageCycles,
            &["local_p_stage_cyc", "local_retire_lat"],
            "Local Pipeline Stage Cycle",
            &[Field::Latency],
            Number(Kind::Number),
        )
        .bits(STAGE),
        key(
            K::StageCycles,
            &["p_stage_cyc", "retire_lat"],
            "Pipeline Stage Cycle",
            &[Field::Latency],
            Number(Kind::PerSample),
        )
        .bits(STAGE),
        key(K::PhysAddr, &["phys_daddr"], "Data Physical Address", &[Field::PhysAddr], Named(Name::Data))
            .meta(Meta::AT_MODE)
            .with(MODE),
        key(K::DataDso, &["dso_daddr"], "Data Object", &[Field::DataModule], Named(Name::Module)),
        key(K::SymbolSize, &["symbol_size", "sym_size"], "Symbol size", SYMBOL, Named(Name::FunctionSize))
            .meta(Meta::AT & !Meta::AT_MODE)
            .apart(),
        key(K::Parent, &["parent"], "Parent symbol", &[Field::Parent], Named(Name::Parent)),
        key(K::SymbolOffset, &["symoff"], "Symbol Offset", OFFSET, Named(Name::FunctionOffset))
            .meta(Meta::AT)
            .apart()
            .with(MODE),
        key(K::DsoSize, &["dso_size"], "DSO size", &[Field::Module, Field::MapSize], Named(Name::MapSize)),
        key(K::DsoPath, &["dso_path"], "Path", &[Field::Module], Named(Name::Path)),
        key(K::BuildId, &["build_id"], "Build ID", &[Field::Module], Named(Name::BuildId)),
        key(K::Socket, &["socket"], "Socket", &[], Named(Name::Socket)).meta(Meta::CPU),
        key(K::Cgroup, &["cgroup"], "Cgroup", &[Field::Cgroup], Named(Name::Cgroup)),
        key(K::CgroupId, &["cgroup_id"], "cgroup id (dev/inode)", &[Field::CgroupSpace], Named(Name::CgroupSpace)),
        key(K::Transaction, &["transaction"], "Transaction", &[Field::Transaction], Text(word_text::transaction)),
        key(K::Time, &["time"], "Time", &[Field::Time], Number(Kind::Micros)),
        key(K::CodePageSize, &["code_page_size"], "Code Page Size", &[Field::CodePage], Text(word_text::page_size)),
        key(K::DataPageSize, &["data_page_size"], "Data Page Size", &[Field::DataPage], Text(word_text::page_size)),
        key(K::DataSymbol, &["symbol_daddr"], "Data Symbol", DATA, Named(Name::DataSymbol))
            .meta(Meta::AT_MODE)
            .with(MODE),
        key(
            K::DataCacheLine,
            &["dcacheline"],
            "Data Cacheline",
            &[Field::DataModule, Field::DataLine],
            Named(Name::CacheLine),
        )
        .meta(Meta::AT_MODE)
        .with(LINE),
        key(K::LineOffset, &["line_offset"], "Offset", &[Field::LineOffset], Number(Kind::Address)),
        key(K::Op, &["op"], "Operation", &[Field::DataSrc], Text(|word| DataSrc(word).op_name().into()))
            .bits(DataSrc::OP),
        key(K::Process, &["process"], "Process", &[Field::Process], Text(word_text::process)),
        key(K::Reach, &["reach"], "Reach", &[Field::Reach, Field::Module, Field::DataModule], Number(Kind::Reach)),
        key(K::Trace, &["trace"], "Trace output", &[Field::Payload], Shown::Trace),
        key(K::TraceField(0), &[], "", &[Field::Payload], Shown::Trace),
        key(K::Switch, &["switch"], "Switch", &[Field::Switch], Named(Name::Activity)).of(OfTime),
        key(K::FromPlace, &["place_from"], "Source Place", FROM_SYMBOL, Named(Name::Place(From))).of(OfBranches),
        key(K::External, &["external"], "From another module", &[Field::External], Text(word_text::external))
            .of(OfBranches),
        key(K::ToPlace, &["place_to"], "Target Place", SYMBOL, Named(Name::Place(At))).of(OfBranches),
        key(K::FromDso, &["dso_from"], "Source Shared Object", &[Field::FromModule], Named(Name::Module))
            .of(OfBranches),
        key(K::ToDso, &["dso_to"], "Target Shared Object", &[Field::Module], Named(Name::Module)).of(OfBranches),
        key(K::FromSymbol, &["symbol_from", "sym_from"], "Source Symbol", FROM_SYMBOL, Named(Name::Function(From)))
            .meta(Meta::FROM)
            .with(FROM_MODE)
            .of(OfBranches),
        key(K::ToSymbol, &["symbol_to", "sym_to"], "Target Symbol", SYMBOL, Named(Name::Function(At)))
            .meta(Meta::AT)
            .with(TO_MODE)
            .of(OfBranches),
        key(
            K::FromSrcline,
            &["srcline_from"],
            "From Source:Line",
            &[Field::FromModule, Field::FromLine],
            Named(Name::Line(From)),
        )
        .of(OfBranches),
        key(K::ToSrcline, &["srcline_to"], "To Source:Line", SRCLINE, Named(Name::Line(At))).of(OfBranches),
        key(K::FromAddr, &["addr_from"], "Source Address", &[Field::From], Number(Kind::Address)).of(OfBranches),
        key(K::ToAddr, &["addr_to"], "Target Address", &[Field::To], Number(Kind::Address)).of(OfBranches),
        key(K::Mispredict, &["mispredict"], "Branch Mispredicted", &[Field::Branch], Text(word_text::prediction))
            .bits(BranchFlags::PREDICTION)
            .of(OfBranches),
        key(K::InTx, &["in_tx"], "Branch in transaction", &[Field::Branch], Text(word_text::in_tx))
            .bits(BranchFlags::IN_TX)
            .of(OfBranches),
        key(K::Abort, &["abort"], "Transaction abort", &[Field::Branch], Text(word_text::abort))
            .bits(BranchFlags::ABORT)
            .of(OfBranches),
        key(K::Cycles, &["cycles"], "Basic Block Cycles", &[Field::Branch], Number(Kind::Cycles))
            .bits(BranchFlags::CYCLES)
            .of(OfBranches),
        key(K::CpuMode, &[], "", &[], Text(word_text::cpu_mode)).meta(Meta::AT_MODE),
        key(K::ToCpuMode, &[], "", &[], Text(word_text::cpu_mode)).meta(Meta::AT_MODE),
        key(K::FromCpuMode, &[], "", &[], Text(word_text::from_cpu_mode)).meta(Meta::FROM_MODE),
        key(K::DataMapping, &[], "", &[Field::DataLine, Field::DataModule], Text(word_text::mapping))
            .bits(CacheLine::FLAGS),
    ]
};

impl SortKey {
    /// Returns the key with this name. As in perf, case is ignored.
    pub fn named(name: &str) -> Option<Self> {
        let is_named = |key: &&Declaration| key.names.iter().any(|have| have.eq_ignore_ascii_case(name));
        ALL.iter().find(is_named).map(|declared| declared.key)
    }

    /// Returns all names, for messages.
    pub fn list() -> String {
        [Availability::Always, Availability::OfTime, Availability::OfBranches].map(Self::list_of).join(", ")
    }

    /// Returns the names of the keys with this availability.
    pub fn list_of(availability: Availability) -> String {
        let keys = ALL.iter().filter(|declared| declared.availability == availability);
        keys.flat_map(|declared| declared.names).copied().collect::<Vec<&str>>().join(", ")
    }

    /// Returns the declaration of the key.
    pub fn declared(self) -> &'static Declaration {
        let key = if let Self::TraceField(_) = self { Self::TraceField(0) } else { self };
        let is_of_key = |declared: &&Declaration| declared.key == key;
        ALL.iter().find(is_of_key).unwrap_or_else(|| unreachable!("{key:?} has no row"))
    }

    /// Returns whether the key needs this field.
    pub fn needs(self, field: Field) -> bool {
        self.declared().fields.contains(&field)
    }

    /// Returns the kind of the column's cells; with `nanosecs`, times are exact.
    pub fn kind(self, nanosecs: bool) -> Kind {
        match self.declared().shown {
            Shown::Number(Kind::Micros) if nanosecs => Kind::Nanos,
            Shown::Number(kind) => kind,
            Shown::Text(_) | Shown::Name(_) | Shown::Trace => Kind::Label,
        }
    }

    /// Returns whether the key is of tracepoint fields.
    pub fn is_of_trace(self) -> bool {
        matches!(self, Self::Trace | Self::TraceField(_))
    }

    /// Returns whether the key is a companion.
    pub fn is_companion(self) -> bool {
        self.declared().names.is_empty() && !self.is_of_trace()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = ALL.iter().flat_map(|declared| declared.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(SortKey::named("SYM"), Some(SortKey::Symbol));
        assert_eq!(SortKey::named("nope"), None);
        for declared in ALL {
            assert_eq!((declared.key.declared().key, declared.fields.len() < 4), (declared.key, true));
        }
    }
}
