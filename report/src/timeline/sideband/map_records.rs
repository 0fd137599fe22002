//! Modules and mappings of the records that say what is mapped.

use recrep_format::abi::{AttrFlags, CpuMode, map_flags, misc, prot};
use recrep_format::attr::Attr;
use recrep_format::build_id::BuildId;
use recrep_format::read::File;
use recrep_format::record::{Body, Inode, Mmap, Mmap2, MmapIdentity};

use super::{KERNEL, RecordDecoder};
use crate::symbols::{FileId, FromRecording, JitDump, Module, ModuleKind, kernel_module_name};
use crate::timeline::{Change, Mapping, Memory, ModuleId};

/// Inode in records of mappings without a file.
const NO_INODE: Inode = Inode { maj: 0, min: 0, ino: 0, ino_generation: 0 };

impl<'a> RecordDecoder<'_, 'a> {
    /// Returns what a mapping changes.
    pub(super) fn map(&mut self, mode: CpuMode, map: &Mmap2<'a>) -> Option<Change> {
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

/// Returns the mapping of a module, from its start, which is looked up as `first`, to `end`.
fn mapping(map: &Mmap2<'_>, end: u64, module: ModuleId, first: u64) -> Option<Mapping> {
    (map.addr < end).then_some(Mapping {
        start: map.addr,
        end,
        first,
        module: Some(module),
        memory: Memory::Code,
        is_shared: map.flags & map_flags::SHARED != 0 && map.prot & prot::EXEC == 0 && is_file(map),
    })
}

/// Returns whether the times of all events are those of `CLOCK_MONOTONIC`.
fn is_monotonic(file: &File<'_>) -> bool {
    const CLOCK_MONOTONIC: i32 = 1;
    file.attrs.entries().iter().all(|entry| {
        let Attr { flags, clockid, .. } = &entry.attr;
        flags.contains(AttrFlags::USE_CLOCKID) && *clockid == CLOCK_MONOTONIC
    })
}

/// Returns the build ID in a record; `None` if the recorder did not fill it in.
pub(super) fn build_id_in(map: &Mmap2<'_>) -> Option<BuildId> {
    map.identity.build_id().filter(|id| !id.is_blank())
}

/// Returns whether an `MMAP2` record has the device and inode of a file.
fn is_file(map: &Mmap2<'_>) -> bool {
    match map.identity {
        MmapIdentity::Inode(inode) => inode != NO_INODE,
        MmapIdentity::BuildId(_) => false,
    }
}

/// Returns whether the name of a mapped file has the form `jit-PID.dump`.
fn is_jit_dump(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let number = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    number.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

/// Returns the mapping in an `MMAP2` or an `MMAP` record. The latter says nothing about the file,
/// and the mapping is code unless it is marked as data.
pub(crate) fn mapping_in<'a>(body: &Body<'a>, bits: u16) -> Option<Mmap2<'a>> {
    match *body {
        Body::Mmap2(map) => Some(map),
        Body::Mmap(Mmap { pid, tid, addr, len, pgoff, filename }) => {
            let prot = if bits & misc::MMAP_DATA == 0 { prot::EXEC } else { 0 };
            let identity = MmapIdentity::Inode(NO_INODE);
            Some(Mmap2 { pid, tid, addr, len, pgoff, identity, prot, flags: 0, filename })
        }
        _ => None,
    }
}
