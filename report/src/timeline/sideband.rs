//! Decoding of side-band records: changes for the timeline, mapped modules, counts of lost records
//! and samples.

mod map_records;

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use rayon::prelude::*;
use recrep_format::abi::{AuxFlags, CpuMode, KSymbolFlags, RecordType, map_flags, misc, prot};
use recrep_format::attr::AttrIndex;
use recrep_format::build_id::BuildId;
use recrep_format::bytes::read_early;
use recrep_format::error::Error;
use recrep_format::feature::{BuildIds, GoBuildIds};
use recrep_format::read::File;
use recrep_format::record::{Body, Mmap2, MmapIdentity, Namespaces, RawRecord, Record};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::symbols::{
    FileId, FromRecording, JitDump, Module, ModuleKind, Modules, Origin, RecordedFiles, Reference,
    kernel_module_name,
};
use crate::timeline::{Change, Clock, Mapping, Memory, ModuleId, Moment, StandIn, WaitKind};
pub(crate) use map_records::mapping_in;
use map_records::{build_id_in, is_jit_dump, is_monotonic, mapping};

/// Name of the kernel image in its `MMAP` record.
const KERNEL: &[u8] = b"[kernel.kallsyms]";

/// Number of records that are decoded by one core at a time.
const PART: usize = 4096;

/// Number of records that are read early, at once: they lie far apart in the file.
const BATCH: usize = 16;

/// Size of a cache line in bytes.
const LINE: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct SideBand {
    pub changes: Vec<(Moment, Change)>,
    /// Mapped modules; a [`ModuleId`] is an index into this set.
    pub modules: Modules,
    /// Number of records that did not fit in a ring.
    pub lost_events: u64,
    /// Number of lost samples, by event.
    pub lost_samples: FxHashMap<Option<AttrIndex>, u64>,
    /// Number of samples dropped by a BPF filter, by event.
    pub filtered_samples: FxHashMap<Option<AttrIndex>, u64>,
    /// Size in bytes of the AUX data in the file.
    pub aux_bytes: u64,
    /// Number of AUX records whose data was cut.
    pub aux_truncated: u64,
    /// The `jit-PID.dump` mapped by each process.
    pub(super) jit_dumps: FxHashMap<i32, JitDump>,
    /// Moments at which processes began to run another program.
    pub(super) execs: Vec<(Moment, i32)>,
    /// Moments at which threads ended, with process and thread.
    pub(super) exits: Vec<(Moment, i32, i32)>,
    /// Number of records that cannot be decoded, and the first error.
    pub malformed: Option<(u64, Error)>,
    /// Error that ended reading of the symbols in the recording.
    pub torn_symbols: Option<Error>,
}

/// Facts collected in a first pass, needed to build the modules of the mappings.
#[derive(Debug, Default)]
struct KnownModules<'a> {
    /// Build IDs of files that processes mapped, by path.
    files: FxHashMap<&'a [u8], BuildId>,
    /// Build IDs of kernel modules, by name.
    kernel_modules: FxHashMap<String, BuildId>,
    /// Path with which the kernel's build ID was recorded.
    kernel: Option<&'a [u8]>,
    origin: Arc<Origin>,
    /// Time at which the file was last written.
    written: Option<SystemTime>,
    /// Last recorded mount namespace of each process.
    mounts: FxHashMap<i32, u64>,
    /// Files whose symbols are in the recording.
    recorded: RecordedFiles<'a>,
}

/// Modules of user mappings by all that distinguishes them: path, kind, recorded build ID, file,
/// mount namespace.
type Users<'a> = FxHashMap<
    (&'a [u8], ModuleKind, Option<BuildId>, Option<FileId>, Option<u64>),
    Option<ModuleId>,
>;

/// Decoder of a part of the records.
struct RecordDecoder<'r, 'a> {
    file: &'r File<'a>,
    clock: &'r Clock<'r>,
    known: &'r KnownModules<'a>,
    users: Users<'a>,
    found: SideBand,
}

impl<'a> KnownModules<'a> {
    fn of(file: &File<'a>, records: &[RawRecord<'a>], written: Option<SystemTime>) -> Self {
        let recorded = RecordedFiles::of(file, records);
        let (origin, unbundled) = Origin::of(file);
        let mut known = Self { origin: origin.into(), written, recorded, ..Self::default() };
        known.recorded.damage = known.recorded.damage.or(unbundled);
        if let Some(Ok(table)) = file.feature::<BuildIds<'a>>() {
            for entry in &table.entries {
                known.add(entry.name(), entry.build_id(), entry.cpu_mode());
            }
        }
        if let Some(Ok(table)) = file.feature::<GoBuildIds<'a>>() {
            for entry in &table.files.entries {
                known.add(entry.name(), entry.build_id(), entry.cpu_mode());
            }
        }
        for raw in records {
            let mode = raw.header.cpu_mode();
            match raw.header.kind {
                RecordType::BUILD_ID | RecordType::NAMESPACES => {}
                RecordType::MMAP | RecordType::MMAP2 if mode == CpuMode::Kernel => {}
                _ => continue,
            }
            match file.attrs.decode(raw).map(|record| record.body) {
                Ok(Body::HeaderBuildId(entry)) => {
                    known.add(entry.filename.as_bytes(), entry.build_id(raw.header.misc), mode);
                }
                Ok(Body::Namespaces(namespaces)) => {
                    if let Some(mounts) = namespaces.iter().nth(Namespaces::MNT_NS_INDEX) {
                        known.mounts.insert(namespaces.pid.cast_signed(), mounts.inode);
                    }
                }
                Ok(body) => {
                    if let Some(map) = mapping_in(&body, raw.header.misc) {
                        known.add_kernel(&map);
                    }
                }
                Err(_) => {}
            }
        }
        known
    }

    /// Adds a build ID; its CPU mode and path decide whether it is that of a user file, a kernel
    /// module or the kernel.
    fn add(&mut self, path: &'a [u8], id: Option<BuildId>, mode: CpuMode) {
        let Some(id) = id.filter(|id| !id.is_blank()) else { return };
        match mode {
            CpuMode::Kernel => match kernel_module_name(path) {
                Some(name) => {
                    self.kernel_modules.insert(name, id);
                }
                // The first one counts, as in perf.
                None if self.kernel.is_none() => {
                    self.kernel = Some(path);
                    Arc::make_mut(&mut self.origin).kernel = Some(id);
                }
                None => {}
            },
            CpuMode::GuestKernel | CpuMode::GuestUser => {}
            _ => {
                self.files.insert(path, id);
            }
        }
    }

    /// Adds the reference symbol and the build ID in the kernel's own mapping.
    fn add_kernel(&mut self, map: &Mmap2<'a>) {
        let name = map.filename.as_bytes();
        if name.starts_with(KERNEL) {
            let origin = Arc::make_mut(&mut self.origin);
            origin.reference = Reference::of(name, map.pgoff).or(origin.reference.take());
            origin.kernel = build_id_in(map).or(origin.kernel);
        }
    }
}

impl SideBand {
    /// Decodes the side-band records of `file`; `written` is the time at which it was last written,
    /// if it is a file.
    pub(crate) fn read(
        file: &File<'_>,
        records: &[RawRecord<'_>],
        clock: &Clock<'_>,
        written: Option<SystemTime>,
    ) -> Self {
        let known = KnownModules::of(file, records, written);
        let parts = records.par_chunks(PART).map(|records| {
            let (users, found) = (Users::default(), Self::default());
            RecordDecoder { file, clock, known: &known, users, found }.decoded(records)
        });
        let parts: Vec<Self> = parts.collect();
        let mut side_band = Self { torn_symbols: known.recorded.damage.clone(), ..Self::default() };
        side_band.changes.reserve(parts.iter().map(|part| part.changes.len()).sum());
        for part in parts {
            side_band.append(part);
        }
        side_band.attach_jit_dumps();
        side_band.attach_lives(file, written);
        side_band.remove_ambiguous_build_ids(written);
        side_band
    }

    /// Returns the number of a module, which is added if it is new.
    pub(super) fn number(&mut self, module: Module) -> Option<ModuleId> {
        u32::try_from(self.modules.insert_full(module).0).ok().map(ModuleId)
    }

    /// Appends the side-band of later records.
    fn append(&mut self, later: Self) {
        let numbers: Vec<_> = later.modules.into_iter().map(|module| self.number(module)).collect();
        self.changes.extend(later.changes.into_iter().map(|(at, mut change)| {
            if let Change::Map { mapping, .. } | Change::KernelMap(mapping) = &mut change {
                mapping.module =
                    mapping.module.and_then(|module| *numbers.get(module.0 as usize)?);
            }
            (at, change)
        }));
        self.lost_events = self.lost_events.saturating_add(later.lost_events);
        self.aux_bytes = self.aux_bytes.saturating_add(later.aux_bytes);
        self.aux_truncated += later.aux_truncated;
        add_all(&mut self.lost_samples, later.lost_samples);
        add_all(&mut self.filtered_samples, later.filtered_samples);
        self.jit_dumps.extend(later.jit_dumps);
        self.execs.extend(later.execs);
        self.exits.extend(later.exits);
        if let Some((count, first)) = later.malformed {
            self.malformed.get_or_insert((0, first)).0 += count;
        }
    }

    /// Returns the moments at which processes began to run other programs.
    pub(crate) fn execs(&self) -> &[(Moment, i32)] {
        &self.execs
    }

    /// Returns whether the command that the recorder ran was still running when the recording ended;
    /// `None` if it ran none.
    pub(crate) fn outlives(&self) -> Option<bool> {
        let (_, command) = self.execs.first()?;
        let has_ended = self.exits.iter().any(|(_, pid, tid)| pid == command && tid == command);
        // The record of its end may be among the lost ones.
        Some(!has_ended && self.lost_events == 0)
    }

    /// Maps the frames that stand in for stacks that were not recorded, and of a critical path also
    /// those of waits.
    pub(crate) fn add_stand_ins(&mut self, has_waits: bool) {
        // A kernel whose addresses are hidden is mapped everywhere, from the beginning on.
        let at = Moment::untimed(0, u64::MAX);
        let waits = has_waits.then(WaitKind::stand_ins).into_iter().flatten();
        let all = [StandIn::NEAREST_SAMPLE, StandIn::NO_SAMPLE, StandIn::UNKNOWN];
        for StandIn { address, name } in all.into_iter().chain(waits) {
            let code = self.kernel_code(name.as_bytes(), address..address + 1);
            self.changes.extend(code.map(|change| (at, change)));
        }
    }

    /// Adds to each process's JIT code the jitdump with its names. JITs map a page of that file as
    /// executable, so that it is recorded.
    fn attach_jit_dumps(&mut self) {
        if !self.jit_dumps.is_empty() {
            let mut modules: Vec<Module> = std::mem::take(&mut self.modules).into_iter().collect();
            for module in &mut modules {
                if let ModuleKind::PerfMap { pid, dump } = &mut module.kind {
                    *dump = self.jit_dumps.get(pid).cloned();
                }
            }
            self.modules = modules.into_iter().collect();
        }
    }

    /// Removes build IDs recorded by path if several files were mapped from that path, since it is
    /// unknown whose build ID the recorder read.
    fn remove_ambiguous_build_ids(&mut self, written: Option<SystemTime>) {
        let mut files: FxHashMap<&[u8], FileId> = FxHashMap::default();
        let mut shared: FxHashSet<Arc<[u8]>> = FxHashSet::default();
        for module in self.modules.iter().filter(|module| module.build_id.is_some()) {
            let Some(file) = module.file else { continue };
            if *files.entry(&module.path).or_insert(file) != file {
                shared.insert(module.path.clone());
            }
        }
        if !shared.is_empty() {
            let mut modules: Vec<Module> = std::mem::take(&mut self.modules).into_iter().collect();
            for module in &mut modules {
                if module.file.is_some() && shared.contains(&module.path) {
                    (module.build_id, module.written) = (None, written);
                }
            }
            self.modules = modules.into_iter().collect();
        }
    }

    /// Returns the mapping of kernel code with this name, for instance of code that the kernel
    /// generated.
    fn kernel_code(&mut self, name: &[u8], Range { start, end }: Range<u64>) -> Option<Change> {
        let module =
            Some(self.number(Module::new(name, None, ModuleKind::KernelSymbol { start, end }))?);
        let mapping =
            Mapping { start, end, first: start, module, is_shared: false, memory: Memory::Code };
        (start < end).then_some(Change::KernelMap(mapping))
    }
}

impl<'a> RecordDecoder<'_, 'a> {
    fn decoded(mut self, records: &[RawRecord<'a>]) -> SideBand {
        for batch in records.chunks(BATCH) {
            let places =
                batch.iter().flat_map(|raw| raw.bytes.iter().step_by(LINE).chain(raw.bytes.last()));
            read_early(places.map(|byte| u64::from(*byte)));
            for raw in batch {
                self.take(raw);
            }
        }
        self.found
    }

    fn take(&mut self, raw: &RawRecord<'a>) {
        let record = match self.file.attrs.decode(raw) {
            Ok(record) => record,
            Err(error) => {
                self.found.malformed.get_or_insert((0, error)).0 += 1;
                return;
            }
        };
        let found = &mut self.found;
        let at = self.clock.moment(record.trailer.time, raw.offset);
        if let Body::Comm(comm) = &record.body
            && record.misc & misc::COMM_EXEC != 0
        {
            found.execs.push((at, comm.pid.cast_signed()));
        }
        let change = match &record.body {
            Body::Comm(c) => Some(Change::Comm {
                pid: c.pid.cast_signed(),
                tid: c.tid.cast_signed(),
                comm: c.comm.to_text().into_owned(),
            }),
            Body::Fork(t) => Some(Change::Fork {
                pid: t.pid.cast_signed(),
                tid: t.tid.cast_signed(),
                ppid: t.ppid.cast_signed(),
                ptid: t.ptid.cast_signed(),
                copies: record.misc & misc::FORK_EXEC == 0,
            }),
            Body::Exit(task) => {
                found.exits.push((at, task.pid.cast_signed(), task.tid.cast_signed()));
                None
            }
            body @ (Body::Mmap(_) | Body::Mmap2(_)) => {
                let map = mapping_in(body, record.misc);
                map.and_then(|map| self.map(raw.header.cpu_mode(), &map))
            }
            // Removed symbols are ignored, since code that replaces them has its own record.
            Body::KSymbol(symbol) if !symbol.flags.contains(KSymbolFlags::UNREGISTER) => {
                let end = symbol.addr.checked_add(symbol.len.into());
                end.and_then(|end| found.kernel_code(symbol.name.as_bytes(), symbol.addr..end))
            }
            _ => {
                self.count(raw, &record);
                None
            }
        };
        self.found.changes.extend(change.map(|change| (at, change)));
    }

    /// Counts what a record says was lost, or that it has AUX data.
    fn count(&mut self, raw: &RawRecord<'a>, record: &Record<'a>) {
        let found = &mut self.found;
        match &record.body {
            Body::Lost(lost) => found.lost_events = found.lost_events.saturating_add(lost.lost),
            Body::Auxtrace(aux) => found.aux_bytes = found.aux_bytes.saturating_add(aux.size),
            Body::Aux(aux) => {
                found.aux_truncated += u64::from(aux.flags.contains(AuxFlags::TRUNCATED));
            }
            Body::LostSamples(lost) => {
                let is_filtered = record.misc & misc::LOST_SAMPLES_BPF != 0;
                let counts =
                    if is_filtered { &mut found.filtered_samples } else { &mut found.lost_samples };
                let count = counts.entry(self.file.attrs.event_of(raw)).or_default();
                *count = count.saturating_add(lost.lost);
            }
            _ => {}
        }
    }

    /// Returns what a mapping changes.
    fn map(&mut self, mode: CpuMode, map: &Mmap2<'a>) -> Option<Change> {
        let end = map.addr.checked_add(map.len)?;
        match mode {
            CpuMode::Kernel => self.map_kernel(map, end),
            CpuMode::GuestKernel => None,
            _ => self.map_user(map, end),
        }
    }

    fn map_kernel(&mut self, map: &Mmap2<'a>, mut end: u64) -> Option<Change> {
        let (path, known) = (map.filename.as_bytes(), self.known);
        // What says more than the time: a module's build ID, and where the kernel was.
        let (module, recorded, is_known) = if path.starts_with(KERNEL) {
            // Recorders that could not read the kernel's addresses wrote 0 for start and length.
            if map.addr == 0 && end == 0 {
                end = u64::MAX;
            }
            let path = known.kernel.unwrap_or(KERNEL);
            let module = Module::new(path, known.origin.kernel, ModuleKind::Kernel);
            (module, known.recorded.kernel(), known.origin.reference.is_some())
        } else if matches!(path.first(), Some(b'/' | b'[')) {
            let build_id = build_id_in(map)
                .or_else(|| known.kernel_modules.get(&kernel_module_name(path)?).copied());
            let kind = ModuleKind::KernelModule { start: map.addr };
            let module = Module::new(path, build_id, kind);
            (module, known.recorded.kernel_module(path), build_id.is_some())
        } else {
            return None;
        };
        let first = module.kind.first_address(map.addr, map.pgoff);
        let written = known.written.filter(|_| !is_known);
        let module = Module { written, recorded, ..module.on(&known.origin) };
        let module = self.found.number(module);
        Some(Change::KernelMap(mapping(map, end, module?, first)?))
    }

    fn map_user(&mut self, map: &Mmap2<'a>, end: u64) -> Option<Change> {
        let (path, known) = (map.filename.as_bytes(), self.known);
        let (pid, build_id) = (map.pid.cast_signed(), build_id_in(map));
        let file = match &map.identity {
            MmapIdentity::Inode(inode) => FileId::of(inode),
            MmapIdentity::BuildId(_) => None,
        };
        if is_jit_dump(path) {
            let is_timed = self.clock.has_times() && is_monotonic(self.file);
            self.found.jit_dumps.insert(pid, JitDump { path: path.into(), file, is_timed });
        }
        let executable = map.prot & prot::EXEC != 0;
        let huge = map.flags & map_flags::HUGETLB != 0;
        let kind = ModuleKind::of_user_mapping(path, pid, executable, huge);
        let jit = if let ModuleKind::PerfMap { pid, .. } = kind { Some(pid) } else { None };
        let (recorded, first) = match known.recorded.mapped(path, jit, map.prot, map.addr) {
            Some(FromRecording { symbols, first }) => (Some(symbols), first),
            None => (None, None),
        };
        let first = first.unwrap_or_else(|| kind.first_address(map.addr, map.pgoff));
        let (is_file, is_anonymous) = (kind == ModuleKind::File, jit.is_some());
        let mounts = known.mounts.get(&pid).copied().filter(|_| is_file || is_anonymous);
        let file = file.filter(|_| is_file);
        let key = (path, kind, build_id, file, mounts);
        let module = *self.users.entry(key).or_insert_with_key(|key| {
            let build_id = build_id.or_else(|| known.files.get(path).copied());
            // A build ID proves more, and modules of several recordings are to be equal.
            let written = known.written.filter(|_| is_file && build_id.is_none());
            let module = Module::new(path, build_id, key.1.clone()).on(&known.origin);
            self.found.number(Module { mounts, file, written, recorded, ..module })
        });
        let memory = match executable {
            true if is_anonymous => Memory::Anonymous,
            true => Memory::Code,
            false => Memory::Data,
        };
        let mapping = Mapping { memory, ..mapping(map, end, module?, first)? };
        Some(Change::Map { pid, tid: map.tid.cast_signed(), mapping })
    }
}

fn add_all(
    counts: &mut FxHashMap<Option<AttrIndex>, u64>,
    others: FxHashMap<Option<AttrIndex>, u64>,
) {
    for (event, other) in others {
        let count = counts.entry(event).or_default();
        *count = count.saturating_add(other);
    }
}

/// Returns the number of samples of all events.
pub(crate) fn total(counts: &FxHashMap<Option<AttrIndex>, u64>) -> u64 {
    counts.values().copied().fold(0, u64::saturating_add)
}
