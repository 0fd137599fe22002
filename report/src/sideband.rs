//! The records that are not samples: what they change, which modules they name, what they say was lost.

use std::sync::Arc;

use indexmap::IndexSet;
use recrep_format::abi::{CpuMode, RecordType, misc};
use recrep_format::attrs::AttrIndex;
use recrep_format::build_id::BuildId;
use recrep_format::error::Error;
use recrep_format::feature::BuildIds;
use recrep_format::read::File;
use recrep_format::record::{Body, KSymbol, Mmap, Mmap2, RawRecord, Record};
use rustc_hash::FxHashMap;

use crate::clock::Clock;
use crate::resolve::{Addressing, Module, ModuleKind};
use crate::timeline::{Change, Mapping, ModuleId, Moment};

/// `PROT_EXEC` of an MMAP2.
const PROT_EXEC: u32 = 4;
/// `MAP_SHARED` of an MMAP2.
const MAP_SHARED: u32 = 1;
/// `MAP_HUGETLB` of an MMAP2.
const MAP_HUGETLB: u32 = 0x40000;
/// The place of the mount namespace in a NAMESPACES record.
const MOUNTS: usize = 5;
/// `KSYMBOL`: the symbol went. What is there next says so itself.
const KSYMBOL_UNREGISTER: u16 = 1;
/// How the kernel image is called in its MMAP record.
const KERNEL: &[u8] = b"[kernel.kallsyms]";

/// What the side-band of a file says.
#[derive(Debug, Default)]
pub struct SideBand {
    /// For the timeline.
    pub changes: Vec<(Moment, Change)>,
    /// What was mapped; a [`ModuleId`] is a place in here.
    pub modules: IndexSet<Module>,
    /// Records that did not fit in a ring.
    pub lost_events: u64,
    /// Samples lost, by event.
    pub lost_samples: FxHashMap<Option<AttrIndex>, u64>,
    /// The `jit-PID.dump` that a process mapped.
    jit_dumps: FxHashMap<i32, Arc<[u8]>>,
    /// Records that are too short for what they are: how many, and the first.
    pub malformed: Option<(u64, Error)>,
}

/// Build IDs of files, from the header's table.
#[derive(Debug, Default)]
struct Known<'a> {
    by_path: FxHashMap<&'a [u8], BuildId>,
    kernel: Option<BuildId>,
    /// The mount namespace that each process was in at last.
    mounts: FxHashMap<i32, u64>,
}

impl<'a> Known<'a> {
    fn of(file: &File<'a>, records: &[RawRecord<'a>]) -> Self {
        let mut known = Self::default();
        if let Some(Ok(table)) = file.feature::<BuildIds<'a>>() {
            for entry in &table.entries {
                known.add(entry.name(), entry.build_id(), entry.cpu_mode());
            }
        }
        for raw in records.iter().filter(|raw| raw.header.kind == RecordType::BUILD_ID) {
            if let Ok(Record { body: Body::HeaderBuildId(entry), .. }) = file.attrs.decode(raw) {
                known.add(entry.filename.as_bytes(), entry.build_id(raw.header.misc), raw.header.cpu_mode());
            }
        }
        for raw in records.iter().filter(|raw| raw.header.kind == RecordType::NAMESPACES) {
            if let Ok(Record { body: Body::Namespaces(namespaces), .. }) = file.attrs.decode(raw)
                && let Some(mounts) = namespaces.iter().nth(MOUNTS)
            {
                known.mounts.insert(signed(namespaces.pid), mounts.inode);
            }
        }
        known
    }

    fn add(&mut self, path: &'a [u8], id: Option<BuildId>, mode: CpuMode) {
        let Some(id) = id else { return };
        self.by_path.insert(path, id);
        if mode == CpuMode::Kernel && path == KERNEL {
            self.kernel = Some(id);
        }
    }
}

impl SideBand {
    /// Reads the records of `file` that are not samples.
    #[must_use]
    pub fn read(file: &File<'_>, records: &[RawRecord<'_>], clock: &Clock<'_>) -> Self {
        let known = Known::of(file, records);
        let mut side_band = Self::default();
        for raw in records {
            match file.attrs.decode(raw) {
                Ok(record) => side_band.take(file, raw, &record, clock, &known),
                Err(error) => side_band.malformed.get_or_insert((0, error)).0 += 1,
            }
        }
        side_band.name_jit_dumps();
        side_band
    }

    /// Samples lost in all events together.
    #[must_use]
    pub fn all_lost_samples(&self) -> u64 {
        self.lost_samples.values().sum()
    }

    fn take(
        &mut self,
        file: &File<'_>,
        raw: &RawRecord<'_>,
        record: &Record<'_>,
        clock: &Clock<'_>,
        known: &Known<'_>,
    ) {
        let change = match &record.body {
            Body::Comm(c) => {
                Change::Comm { pid: signed(c.pid), tid: signed(c.tid), comm: c.comm.to_text().into_owned() }
            }
            Body::Fork(t) => Change::Fork {
                pid: signed(t.pid),
                tid: signed(t.tid),
                ppid: signed(t.ppid),
                ptid: signed(t.ptid),
                copies: record.misc & misc::FORK_EXEC == 0,
            },
            Body::Mmap(map) => match self.map(raw.header.cpu_mode(), &of_mmap(map, record.misc), known) {
                Some(change) => change,
                None => return,
            },
            Body::Mmap2(map) => match self.map(raw.header.cpu_mode(), map, known) {
                Some(change) => change,
                None => return,
            },
            Body::KSymbol(symbol) if symbol.flags & KSYMBOL_UNREGISTER == 0 => match self.kernel_symbol(symbol) {
                Some(change) => change,
                None => return,
            },
            Body::Lost(lost) => {
                self.lost_events = self.lost_events.saturating_add(lost.lost);
                return;
            }
            Body::LostSamples(lost) => {
                let count = self.lost_samples.entry(file.attrs.event_of(raw)).or_default();
                *count = count.saturating_add(lost.lost);
                return;
            }
            _ => return,
        };
        self.changes.push((clock.moment(file.attrs.time_of(raw), raw.offset), change));
    }

    /// Tells the code that processes made where they have left its names: they map a page of that file as code.
    fn name_jit_dumps(&mut self) {
        if !self.jit_dumps.is_empty() {
            let dumps = &self.jit_dumps;
            let name = |module: Module| match &module.kind {
                ModuleKind::PerfMap { pid, .. } => {
                    let kind = ModuleKind::PerfMap { pid: *pid, dump: dumps.get(pid).cloned() };
                    Module { kind, ..module }
                }
                _ => module,
            };
            self.modules = std::mem::take(&mut self.modules).into_iter().map(name).collect();
        }
    }

    fn map(&mut self, mode: CpuMode, map: &Mmap2<'_>, known: &Known<'_>) -> Option<Change> {
        let path = map.filename.as_bytes();
        let end = map.addr.checked_add(map.len)?;
        let build_id = map.identity.build_id().or_else(|| known.by_path.get(path).copied());
        match mode {
            CpuMode::Kernel => {
                let (module, end) = if path.starts_with(KERNEL) {
                    // Recorders that could not see the kernel's addresses wrote 0 for all of it.
                    let end = if map.addr == 0 && end == 0 { u64::MAX } else { end };
                    (Module::kernel(path, map.pgoff, build_id.or(known.kernel)), end)
                } else if matches!(path.first(), Some(b'/' | b'[')) {
                    (Module::kernel_module(path, map.addr, build_id).of_kernel(known.kernel), end)
                } else {
                    return None;
                };
                Some(Change::KernelMap(self.mapping(map, end, module)?))
            }
            CpuMode::GuestKernel => None,
            _ => {
                let pid = signed(map.pid);
                if is_jit_dump(path) {
                    self.jit_dumps.insert(pid, path.into());
                }
                let (executable, huge) = (map.prot & PROT_EXEC != 0, map.flags & MAP_HUGETLB != 0);
                let module = Module::of_user_mapping(path, pid, executable, huge, build_id).of_kernel(known.kernel);
                let in_files = matches!(module.kind, ModuleKind::File | ModuleKind::PerfMap { .. });
                let mounts = if in_files { known.mounts.get(&pid).copied() } else { None };
                let module = module.in_mounts(mounts);
                Some(Change::Map { pid, tid: signed(map.tid), mapping: self.mapping(map, end, module)? })
            }
        }
    }

    /// Code that the kernel made and named.
    fn kernel_symbol(&mut self, symbol: &KSymbol<'_>) -> Option<Change> {
        let (start, end) = (symbol.addr, symbol.addr.checked_add(symbol.len.into())?);
        let (index, _) = self.modules.insert_full(Module::kernel_symbol(symbol.name.as_bytes(), start, end));
        let module = Some(ModuleId(u32::try_from(index).ok()?));
        (start < end).then_some(Change::KernelMap(Mapping {
            start,
            end,
            pgoff: 0,
            module,
            is_shared: false,
            identity: true,
        }))
    }

    fn mapping(&mut self, map: &Mmap2<'_>, end: u64, module: Module) -> Option<Mapping> {
        let addressing = module.addressing();
        let (index, _) = self.modules.insert_full(module);
        (map.addr < end).then_some(Mapping {
            start: map.addr,
            end,
            pgoff: if addressing == Addressing::FileOffset { map.pgoff } else { 0 },
            module: Some(ModuleId(u32::try_from(index).ok()?)),
            identity: addressing == Addressing::Absolute,
            is_shared: map.flags & MAP_SHARED != 0 && map.prot & PROT_EXEC == 0 && is_file(map),
        })
    }
}

/// Whether an MMAP2 says which file it is of.
fn is_file(map: &Mmap2<'_>) -> bool {
    use recrep_format::record::{Inode, MmapIdentity};
    match map.identity {
        MmapIdentity::Inode(inode) => inode != Inode { maj: 0, min: 0, ino: 0, ino_generation: 0 },
        MmapIdentity::BuildId(_) => false,
    }
}

/// Whether a mapped file is what JITs call `jit-PID.dump`.
fn is_jit_dump(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let number = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    number.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

/// The kernel writes thread numbers as unsigned; none is -1.
fn signed(number: u32) -> i32 {
    number.cast_signed()
}

/// An MMAP as an MMAP2: what it does not say is that it is of code unless it is marked as data.
fn of_mmap<'a>(map: &Mmap<'a>, bits: u16) -> Mmap2<'a> {
    use recrep_format::record::{Inode, MmapIdentity};
    Mmap2 {
        pid: map.pid,
        tid: map.tid,
        addr: map.addr,
        len: map.len,
        pgoff: map.pgoff,
        identity: MmapIdentity::Inode(Inode { maj: 0, min: 0, ino: 0, ino_generation: 0 }),
        prot: if bits & misc::MMAP_DATA == 0 { PROT_EXEC } else { 0 },
        flags: 0,
        filename: map.filename,
    }
}
