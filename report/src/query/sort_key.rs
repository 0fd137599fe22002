//! The sort keys. Each is declared once: its names, its heading, the fields of a counted key that
//! it needs, and what it shows of them.
//!
//! To add one, add a row to `keys!`. Where no [`Shown`] fits, add a text of the first field to
//! `word_text.rs`, or a [`Name`] to `shown.rs` and its text to `engine/labels.rs`; a new [`Field`]
//! is filled by `scan`. List the key in `docs/options.md`; if perf has it too, compare it in
//! `tests/tests/all/keys_agree.rs`.

use recrep_format::abi::{BranchFlags, DataSrc};

use super::word_text::{either, mapping, mode_name, page_size, prediction, transaction};
use super::{
    Availability, CacheLine, Field, INS_LAT, Key, KeyAddress, Kind, Meta, Name, STAGE, Shown,
};

/// Declaration of a sort key: all that is to be said of one.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Main name, then aliases; no name if users cannot name it.
    names: &'static [&'static str],
    pub heading: &'static str,
    /// What it shows, for the list of all keys.
    meaning: &'static str,
    pub availability: Availability,
    /// The fields of a counted key that it needs, besides [`Field::Meta`]: at most three.
    pub fields: &'static [Field],
    /// The bits of the first field that it needs, if it has fields.
    pub bits: u64,
    /// The bits of [`Field::Meta`] that it needs.
    pub meta: u64,
    /// What it shows of the fields.
    pub shown: Shown,
    /// The companions: columns, with their names, that JSON and CSV add. In text they are the
    /// letter before the symbol.
    pub companions: &'static [(&'static str, SortKey)],
}

/// Declares a key that is available in all modes.
const fn key(
    names: &'static [&'static str],
    heading: &'static str,
    fields: &'static [Field],
    shown: Shown,
) -> Declaration {
    Declaration {
        names,
        heading,
        meaning: "",
        availability: Availability::Always,
        fields,
        bits: u64::MAX,
        meta: 0,
        shown,
        companions: &[],
    }
}

impl Declaration {
    const fn of(self, availability: Availability) -> Self {
        Self { availability, ..self }
    }

    const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    const fn bits(self, bits: u64) -> Self {
        Self { bits, ..self }
    }

    const fn meta(self, meta: u64) -> Self {
        Self { meta, ..self }
    }

    const fn with(self, companions: &'static [(&'static str, SortKey)]) -> Self {
        Self { companions, ..self }
    }

    /// Returns the bits that are needed of the first field, or of [`Field::Meta`] if there is no
    /// other, and which these are.
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
        use Name::{CacheLine, DataSymbol, Function, FunctionOffset, FunctionPlace, FunctionSize};
        matches!(
            self.shown,
            Shown::Name(
                Function(_)
                    | FunctionSize
                    | FunctionOffset
                    | FunctionPlace
                    | DataSymbol
                    | CacheLine
            )
        )
    }
}

/// Declares the sort keys: the variants, and their rows in `ALL`.
macro_rules! keys {
    ($($(#[doc = $doc:literal])+ $key:ident = $row:expr;)*) => {
        /// A sort key: a column by which samples are grouped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SortKey {
            $($(#[doc = $doc])+ $key,)*
            /// A tracepoint field: the column's index among the field columns.
            TraceField(u8),
            /// What an input's path has, by its place in [`super::Query::by`].
            Input(u8),
        }

        static ALL: &[(SortKey, Declaration)] = {
            use Availability::{OfBranches, OfTime};
            use KeyAddress::{At, From};
            use Shown::{Name as Named, Number, Text};
            &[
                $((SortKey::$key, $row.meaning(concat!($($doc),+))),)*
                (SortKey::TraceField(0), key(&[], "", &[Field::Payload], Shown::Trace)),
                (SortKey::Input(0), key(&[], "", &[], Shown::Input)),
            ]
        };
    };
}

// Companions of several keys.
const MODE: &[(&str, SortKey)] = &[("cpumode", SortKey::CpuMode)];
const LINE: &[(&str, SortKey)] =
    &[("cpumode", SortKey::CpuMode), ("mapping", SortKey::DataMapping)];
const FROM_MODE: &[(&str, SortKey)] = &[("cpumode_from", SortKey::FromCpuMode)];
const TO_MODE: &[(&str, SortKey)] = &[("cpumode_to", SortKey::ToCpuMode)];

// Fields of several keys.
const SYMBOL: &[Field] = &[Field::Module, Field::Address];
const FROM_SYMBOL: &[Field] = &[Field::FromModule, Field::FromAddress];
const SRCLINE: &[Field] = &[Field::Module, Field::Line];
const OFFSET: &[Field] = &[Field::Module, Field::Address, Field::Offset];
const LATENCY: &[Field] = &[Field::Latency];
const DATA: &[Field] = &[Field::DataModule, Field::DataAddr, Field::DataAddress];

// Names and headings are perf's where perf has the key (`docs/options.md` lists those that only rep
// has). Of branches, what is said of the sample is that of the target.
keys! {
    /// The thread's name at the time of the sample.
    Comm = key(&["comm"], "Command", &[Field::Comm], Named(Name::Comm));
    /// The process: its number and the last name of its first thread.
    Process = key(&["pid", "process"], "    Pid:Command", &[Field::Process], Named(Name::Process));
    /// The thread, which perf's `pid` column shows: `tid:name`.
    Tid = key(&["tid"], "    Tid:Command", &[Field::Thread], Named(Name::Thread));
    /// The module; of branches, the target's.
    Dso = key(&["dso"], "Shared Object", &[Field::Module], Named(Name::Module));
    /// The function, after the letter of the CPU mode; of branches, the target's.
    Symbol = key(&["symbol", "sym", "symbol_iaddr"], "Symbol", SYMBOL, Named(Name::Function(At)))
        .meta(Meta::AT)
        .with(MODE);
    /// The source file and line; of branches, the target's.
    Srcline = key(&["srcline"], "Source:Line", SRCLINE, Named(Name::Line(At)));
    /// The source file; of branches, the target's.
    Srcfile = key(&["srcfile"], "Source File", SRCLINE, Named(Name::SourceFile));
    /// The sampled address.
    Ip = key(&["ip", "addr"], "Address", &[Field::Ip], Number(Kind::Address));
    /// The CPU that the sample was taken on.
    Cpu = key(&["cpu"], "CPU", &[], Number(Kind::Cpu)).meta(Meta::CPU);
    /// The event.
    Event = key(&["event"], "Event", &[], Named(Name::Event)).meta(Meta::EVENT);
    /// The source of the data, raw and decoded.
    DataSrc = key(&["data_src"], "Data Source", &[Field::DataSrc], Number(Kind::DataSrc));
    /// The memory level that the data came from.
    Mem = key(&["mem"], "Memory access", &[Field::DataSrc], Text(|word| DataSrc(word).mem())).bits(DataSrc::MEM);
    /// The result of the cache snoop.
    Snoop = key(&["snoop"], "Snoop", &[Field::DataSrc], Text(|word| DataSrc(word).snoop_name())).bits(DataSrc::SNOOP);
    /// The result of the TLB lookup.
    Tlb = key(&["tlb"], "TLB access", &[Field::DataSrc], Text(|word| DataSrc(word).tlb_name())).bits(DataSrc::TLB);
    /// Whether the access was locked.
    Locked = key(&["locked"], "Locked", &[Field::DataSrc], Text(|word| DataSrc(word).locked_name().into()))
        .bits(DataSrc::LOCKED);
    /// The reason why the access was blocked.
    Blocked =
        key(&["blocked"], "Blocked", &[Field::DataSrc], Text(|word| DataSrc(word).blocked_name().trim_start().into()))
            .bits(DataSrc::BLOCKED);
    /// The weight of one sample.
    LocalWeight = key(&["local_weight"], "Local Weight", &[Field::Weight], Number(Kind::Number));
    /// The weight of one sample, times the number of samples.
    Weight = key(&["weight"], "Weight", &[Field::Weight], Number(Kind::PerSample));
    /// The instruction latency of one sample, in cycles.
    LocalInsLat = key(&["local_ins_lat"], "Local INSTR Latency", LATENCY, Number(Kind::Number)).bits(INS_LAT);
    /// The instruction latency of one sample, times the number of samples.
    InsLat = key(&["ins_lat"], "INSTR Latency", LATENCY, Number(Kind::PerSample)).bits(INS_LAT);
    /// The third part of the weight of one sample: the cycles in a pipeline stage, or until
    /// retirement.
    LocalStageCycles =
        key(&["local_p_stage_cyc", "local_retire_lat"], "Local Pipeline Stage Cycle", LATENCY, Number(Kind::Number))
            .bits(STAGE);
    /// The third part of the weight of one sample, times the number of samples.
    StageCycles =
        key(&["p_stage_cyc", "retire_lat"], "Pipeline Stage Cycle", LATENCY, Number(Kind::PerSample)).bits(STAGE);
    /// The physical address of the data.
    PhysAddr = key(&["phys_daddr"], "Data Physical Address", &[Field::PhysAddr], Named(Name::Data))
        .meta(Meta::AT_MODE)
        .with(MODE);
    /// The module that the data address is in.
    DataDso = key(&["dso_daddr"], "Data Object", &[Field::DataModule], Named(Name::Module));
    /// The size of the function, in bytes.
    SymbolSize = key(&["symbol_size", "sym_size"], "Symbol size", SYMBOL, Named(Name::FunctionSize))
        .meta(Meta::AT & !Meta::AT_MODE);
    /// The caller that matches `--parent`.
    Parent = key(&["parent"], "Parent symbol", &[Field::Parent], Named(Name::Parent));
    /// The function and the offset in it.
    SymbolOffset = key(&["symoff"], "Symbol Offset", OFFSET, Named(Name::FunctionOffset)).meta(Meta::AT).with(MODE);
    /// The function, as a place in its module.
    FunctionPlace = key(&[], "", SYMBOL, Named(Name::FunctionPlace)).meta(Meta::AT);
    /// The offset of the sampled address in its function.
    Offset = key(&[], "", &[Field::Offset], Number(Kind::Address));
    /// The size of the module's mapping, in bytes.
    DsoSize = key(&["dso_size"], "DSO size", &[Field::Module, Field::MapSize], Named(Name::MapSize));
    /// The path of the module.
    DsoPath = key(&["dso_path"], "Path", &[Field::Module], Named(Name::Path));
    /// The build ID of the module.
    BuildId = key(&["build_id"], "Build ID", &[Field::Module], Named(Name::BuildId));
    /// What tells the module's file from others of its name.
    Identity = key(&[], "", &[Field::Module], Named(Name::Identity));
    /// The socket of the CPU.
    Socket = key(&["socket"], "Socket", &[], Named(Name::Socket)).meta(Meta::CPU);
    /// The cgroup, as a path.
    Cgroup = key(&["cgroup"], "Cgroup", &[Field::Cgroup], Named(Name::Cgroup));
    /// The thread's cgroup namespace: device and inode.
    CgroupId = key(&["cgroup_id"], "cgroup id (dev/inode)", &[Field::CgroupSpace], Named(Name::CgroupSpace));
    /// The flags of the memory transaction that the sample was in.
    Transaction = key(&["transaction"], "Transaction", &[Field::Transaction], Text(transaction));
    /// The time, in steps of `--time-quantum`.
    Time = key(&["time"], "Time", &[Field::Time], Number(Kind::Micros));
    /// The page size at the ip.
    CodePageSize = key(&["code_page_size"], "Code Page Size", &[Field::CodePage], Text(page_size));
    /// The page size at the data address.
    DataPageSize = key(&["data_page_size"], "Data Page Size", &[Field::DataPage], Text(page_size));
    /// The symbol at the data address.
    DataSymbol = key(&["symbol_daddr"], "Data Symbol", DATA, Named(Name::DataSymbol)).meta(Meta::AT_MODE).with(MODE);
    /// The cache line of the data address.
    DataCacheLine =
        key(&["dcacheline"], "Data Cacheline", &[Field::DataModule, Field::DataLine], Named(Name::CacheLine))
            .meta(Meta::AT_MODE)
            .with(LINE);
    /// The offset of the data address in its cache line.
    LineOffset = key(&["line_offset"], "Offset", &[Field::LineOffset], Number(Kind::Address));
    /// The kind of access: load, store, and so on.
    Op = key(&["op"], "Operation", &[Field::DataSrc], Text(|word| DataSrc(word).op_name().into())).bits(DataSrc::OP);
    /// Of a memory access, whether it has an address (`a`), and whether its data (`d`) and its code
    /// (`c`) are mapped.
    Reach = key(&["reach"], "Reach", &[Field::Reach, Field::Module, Field::DataModule], Number(Kind::Reach));
    /// A tracepoint's fields, as the kernel prints them.
    Trace = key(&["trace"], "Trace output", &[Field::Payload], Shown::Trace);
    /// The thread's activity in the counted time: it ran, waited or was preempted.
    Switch = key(&["switch"], "Switch", &[Field::Switch], Named(Name::Activity)).of(OfTime);
    /// What the thread waited for in the counted time: futex, sleep, disk and so on.
    Wait = key(&["wait"], "Wait", &[Field::Wait], Named(Name::Wait)).of(OfTime);
    /// The thread's activity in the counted time, and how far that reaches from its first step on.
    Extent = key(&[], "", &[Field::Extent], Number(Kind::Number)).of(OfTime);
    /// The number of threads of the recording that ran at that moment.
    Parallelism = key(&["parallelism"], "Parallelism", &[Field::Parallelism], Number(Kind::Number));
    /// The source of a branch: the module's path and the offset in it.
    FromPlace = key(&["place_from"], "Source Place", FROM_SYMBOL, Named(Name::FileOffset(From))).of(OfBranches);
    /// Whether the branch, or the one before the executed range, came from another module.
    External = key(&["external"], "From another module", &[Field::External], Text(|bit| either(bit, ["Y", "N"])))
        .of(OfBranches);
    /// The target of a branch: the module's path and the offset in it.
    ToPlace = key(&["place_to"], "Target Place", SYMBOL, Named(Name::FileOffset(At))).of(OfBranches);
    /// The module of a branch's source.
    FromDso = key(&["dso_from"], "Source Shared Object", &[Field::FromModule], Named(Name::Module)).of(OfBranches);
    /// The module of a branch's target.
    ToDso = key(&["dso_to"], "Target Shared Object", &[Field::Module], Named(Name::Module)).of(OfBranches);
    /// The function of a branch's source.
    FromSymbol = key(&["symbol_from", "sym_from"], "Source Symbol", FROM_SYMBOL, Named(Name::Function(From)))
        .meta(Meta::FROM)
        .with(FROM_MODE)
        .of(OfBranches);
    /// The function of a branch's target.
    ToSymbol = key(&["symbol_to", "sym_to"], "Target Symbol", SYMBOL, Named(Name::Function(At)))
        .meta(Meta::AT)
        .with(TO_MODE)
        .of(OfBranches);
    /// The source line of a branch's source.
    FromSrcline =
        key(&["srcline_from"], "From Source:Line", &[Field::FromModule, Field::FromLine], Named(Name::Line(From)))
            .of(OfBranches);
    /// The source line of a branch's target.
    ToSrcline = key(&["srcline_to"], "To Source:Line", SRCLINE, Named(Name::Line(At))).of(OfBranches);
    /// The address of a branch's source.
    FromAddr = key(&["addr_from"], "Source Address", &[Field::From], Number(Kind::Address)).of(OfBranches);
    /// The address of a branch's target.
    ToAddr = key(&["addr_to"], "Target Address", &[Field::To], Number(Kind::Address)).of(OfBranches);
    /// Whether the branch was mispredicted.
    Mispredict = key(&["mispredict"], "Branch Mispredicted", &[Field::Branch], Text(prediction))
        .bits(BranchFlags::PREDICTION)
        .of(OfBranches);
    /// Whether the branch was in a memory transaction.
    InTx = key(&["in_tx"], "Branch in transaction", &[Field::Branch], Text(|bit| either(bit, ["T", "."])))
        .bits(BranchFlags::IN_TX)
        .of(OfBranches);
    /// Whether the branch was the abort of a memory transaction.
    Abort = key(&["abort"], "Transaction abort", &[Field::Branch], Text(|bit| either(bit, ["A", "."])))
        .bits(BranchFlags::ABORT)
        .of(OfBranches);
    /// The cycles since the previous branch.
    Cycles = key(&["cycles"], "Basic Block Cycles", &[Field::Branch], Number(Kind::Cycles))
        .bits(BranchFlags::CYCLES)
        .of(OfBranches);
    /// The CPU mode of the sample; of branches, the target's. A companion.
    CpuMode = key(&[], "", &[], Text(|meta| mode_name(Meta::unpack(meta).at.cpu_mode).into())).meta(Meta::AT_MODE);
    /// The CPU mode of a branch's target. A companion.
    ToCpuMode = key(&[], "", &[], Text(|meta| mode_name(Meta::unpack(meta).at.cpu_mode).into())).meta(Meta::AT_MODE);
    /// The CPU mode of a branch's source. A companion.
    FromCpuMode =
        key(&[], "", &[], Text(|meta| mode_name(Meta::unpack(meta).from.cpu_mode).into())).meta(Meta::FROM_MODE);
    /// The kind of mapping at the data address: `private`, `shared` or `none`. A companion.
    DataMapping = key(&[], "", &[Field::DataLine, Field::DataModule], Text(mapping)).bits(CacheLine::FLAGS);
}

impl SortKey {
    /// Returns the key with this name. As in perf, case is ignored.
    pub fn named(name: &str) -> Option<Self> {
        let is_named = |declared: &Declaration| {
            declared.names.iter().any(|have| have.eq_ignore_ascii_case(name))
        };
        ALL.iter().find(|(_, declared)| is_named(declared)).map(|(key, _)| *key)
    }

    /// Returns all names, for suggestions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().flat_map(|(_, declared)| declared.names).copied()
    }

    /// Returns the keys with this availability that users can name: the names and what they mean.
    pub(crate) fn meanings(
        availability: Availability,
    ) -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
        let keys = ALL.iter().map(|(_, declared)| declared);
        let keys = keys.filter(move |declared| declared.availability == availability);
        keys.filter(|declared| !declared.names.is_empty())
            .map(|declared| (declared.names, declared.meaning.trim()))
    }

    pub fn declared(self) -> &'static Declaration {
        let key = match self {
            Self::TraceField(_) => Self::TraceField(0),
            Self::Input(_) => Self::Input(0),
            key => key,
        };
        let row = ALL.iter().find(|(of, _)| *of == key);
        row.map_or_else(|| unreachable!("{key:?} has no row"), |(_, declared)| declared)
    }

    pub fn needs(self, field: Field) -> bool {
        self.declared().fields.contains(&field)
    }

    /// Returns the kind of the column's cells; with `nanosecs`, times are exact.
    pub fn kind(self, nanosecs: bool) -> Kind {
        match self.declared().shown {
            Shown::Number(Kind::Micros) if nanosecs => Kind::Nanos,
            Shown::Number(kind) => kind,
            Shown::Text(_) | Shown::Name(_) | Shown::Trace | Shown::Input => Kind::Label,
        }
    }

    pub fn is_of_trace(self) -> bool {
        matches!(self, Self::Trace | Self::TraceField(_))
    }

    /// Returns the key under which JSON has the name of the function as its file spells it; `None`
    /// if the column shows no function.
    pub fn mangled(self) -> Option<&'static str> {
        match self {
            Self::Symbol => Some("mangled"),
            Self::FromSymbol => Some("mangled_from"),
            Self::ToSymbol => Some("mangled_to"),
            _ => None,
        }
    }

    /// Returns the name of what says in JSON that the key's function was inferred.
    pub fn inferred(self) -> Option<&'static str> {
        match self {
            Self::Symbol => Some("inferred"),
            Self::FromSymbol => Some("inferred_from"),
            Self::ToSymbol => Some("inferred_to"),
            _ => None,
        }
    }

    pub fn is_companion(self) -> bool {
        let is_named = self.is_of_trace() || matches!(self, Self::Input(_));
        self.declared().names.is_empty() && !is_named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> =
            ALL.iter().flat_map(|(_, declared)| declared.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(SortKey::named("SYM"), Some(SortKey::Symbol));
        assert_eq!(SortKey::named("nope"), None);
        for (key, declared) in ALL {
            let is_told = declared.names.is_empty() || declared.meaning.trim().ends_with('.');
            assert!(is_told, "{key:?}");
            assert!(std::ptr::eq(key.declared(), declared) && declared.fields.len() < 4, "{key:?}");
        }
    }
}
