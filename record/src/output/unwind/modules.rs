//! The modules that processes map, and their rules: read from the mapped file itself, at the first
//! sample that needs them.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use object::{
    Architecture, Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _,
    ReadCache, ReadRef,
};
use recrep_format::endian::Endian;
use recrep_unwind::{GoRuntime, Machine, Rules, Section, Sections};
use rustc_hash::FxHashMap;

use crate::output::build_ids::{FileId, FileIdentity, MappedFile, vdso};
use crate::output::keep::{is_dump, is_memory};

/// Name of the vDSO.
const VDSO: &[u8] = b"[vdso]";

/// Source of mapped code: a file, the vDSO, or memory.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) key: Key,
    /// Number of the module, once it is asked for.
    number: OnceLock<u32>,
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Source {}

/// Identity of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) path: Vec<u8>,
    pub(super) identity: FileIdentity,
}

impl Source {
    pub(super) fn new(path: &[u8], identity: FileIdentity) -> Self {
        Self { key: Key { path: path.to_vec(), identity }, number: OnceLock::new() }
    }

    /// The vDSO of 32-bit tasks, which is another one.
    pub(super) fn vdso_of_32_bits() -> Self {
        let file = FileId { ino: 32, ..FileId::default() };
        Self::new(VDSO, FileIdentity::File(file))
    }

    /// Returns whether it is memory without a file.
    pub(super) fn is_memory(&self) -> bool {
        let is_file = self.key.path.starts_with(b"/") && !self.key.path.starts_with(b"//");
        !is_file && !self.is_vdso()
    }

    /// Returns whether its code may be a JIT's: some map memory twice, for writing and for running.
    pub(super) fn may_be_of_jit(&self) -> bool {
        is_memory(&self.key.path) || self.is_memory() || self.key.path.starts_with(b"/memfd:")
    }

    /// Returns whether it is the file to which a JIT writes its code.
    pub(super) fn is_jit_dump(&self) -> bool {
        is_dump(&self.key.path)
    }

    pub(super) fn is_vdso(&self) -> bool {
        self.key.path == VDSO
    }

    /// Returns the name for messages: the file's.
    pub(super) fn name(&self) -> String {
        let last = self.key.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if self.is_memory() { "jit".to_owned() } else { String::from_utf8_lossy(last).into_owned() }
    }
}

/// A range of addresses, and what is mapped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) range: Range<u64>,
    /// Offset in the file of the first byte.
    pub(super) pgoff: u64,
    pub(super) source: Arc<Source>,
}

impl Mapping {
    /// Returns whether it is where 32-bit tasks have theirs.
    pub(super) fn is_low(&self) -> bool {
        self.range.end <= 1 << 32
    }
}

/// A module's rules, and where its parts are linked.
pub(super) struct Module {
    pub(super) rules: Rules<Vec<u8>>,
    segments: Vec<Segment>,
}

/// A part of a file that is loaded.
struct Segment {
    /// Offsets in the file.
    file: Range<u64>,
    address: u64,
}

/// Maximum size of a section.
const MOST_BYTES: u64 = 64 << 20;
/// Maximum size of all sections that are kept.
const MOST_BYTES_IN_ALL: u64 = 1 << 30;
/// Maximum number of modules.
const MOST: usize = 1 << 16;
/// Number of processes by which a file is looked for.
const ATTEMPTS: u8 = 8;

impl Module {
    /// Returns a module without rules.
    fn empty(machine: Machine) -> Self {
        let rules = Rules::new(Sections::none(machine, Endian::NATIVE));
        Self { rules, segments: Vec::new() }
    }

    /// Reads the rules of an ELF file. Anything else has none. Also returns their size.
    fn read<'data>(data: impl ReadRef<'data>) -> (Self, u64) {
        let none = || (Self::empty(NATIVE), 0);
        let Ok(file) = object::File::parse(data) else { return none() };
        let Some(machine) = machine(&file) else { return none() };
        let mut size = 0;
        let mut section = |name| {
            let section = file.section_by_name(name)?;
            let packed = section.compressed_data().ok()?;
            if packed.uncompressed_size > MOST_BYTES {
                return None;
            }
            let bytes = packed.decompress().ok()?.into_owned();
            size += bytes.len() as u64;
            Some(Section { address: section.address(), bytes })
        };
        let address = |name| file.section_by_name(name).map_or(0, |section| section.address());
        let sections = Sections {
            machine,
            endian: if file.is_little_endian() { Endian::Little } else { Endian::Big },
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame: section(".debug_frame").map(|section| section.bytes),
            text: address(".text"),
            got: address(".got"),
            entry: file.entry(),
            go: go_runtime(&file),
        };
        let segments = file.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            Segment { file: offset..offset.saturating_add(length), address: segment.address() }
        });
        (Self { rules: Rules::new(sections), segments: segments.collect() }, size)
    }

    /// Returns the linked address of an offset in the file.
    pub(super) fn linked(&self, offset: u64) -> u64 {
        let segment = self.segments.iter().find(|segment| segment.file.contains(&offset));
        segment.map_or(offset, |segment| {
            segment.address.wrapping_add(offset.wrapping_sub(segment.file.start))
        })
    }
}

/// Machine that rec was built for.
pub(super) const NATIVE: Machine =
    if cfg!(target_arch = "aarch64") { Machine::Aarch64 } else { Machine::X86_64 };

fn machine<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Option<Machine> {
    match file.architecture() {
        Architecture::X86_64 | Architecture::X86_64_X32 => Some(Machine::X86_64),
        Architecture::I386 => Some(Machine::X86),
        Architecture::Aarch64 => Some(Machine::Aarch64),
        _ => None,
    }
}

/// Returns what unwinding needs of Go's runtime, if the program is one of Go.
fn go_runtime<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Option<GoRuntime> {
    file.section_by_name(".gopclntab")?;
    let mut found = GoRuntime::default();
    for symbol in file.symbols() {
        if let Ok(name) = symbol.name_bytes() {
            found.add(name, symbol.address()..symbol.address().saturating_add(symbol.size()));
        }
    }
    Some(found)
}

/// All modules, by number. Threads share them.
#[derive(Default)]
pub(super) struct SharedModules(Mutex<ModuleTable>);

struct ModuleTable {
    numbers: FxHashMap<Key, u32>,
    modules: Vec<Entry>,
    bytes: u64,
}

struct Entry {
    module: Option<Arc<Module>>,
    name: String,
    /// Number of attempts to read it.
    attempts: u8,
    /// Process that it was last looked for by.
    pid: u32,
}

impl Entry {
    fn new(module: Option<Module>, name: &str) -> Self {
        Self { module: module.map(Arc::new), name: name.to_owned(), attempts: 0, pid: 0 }
    }
}

/// Machines whose memory without a file is a module, by its number.
const MACHINES: [Machine; 3] = [Machine::X86_64, Machine::X86, Machine::Aarch64];
/// Number of what is beyond the limits.
const BEYOND: u32 = 3;

impl Default for ModuleTable {
    fn default() -> Self {
        let memory = MACHINES.map(|machine| Entry::new(Some(Module::empty(machine)), "jit"));
        let modules = memory.into_iter().chain([Entry::new(None, "others")]).collect();
        Self { numbers: FxHashMap::default(), modules, bytes: 0 }
    }
}

/// Returns the number of a machine's memory.
pub(super) fn memory(machine: Machine) -> u32 {
    let place = MACHINES.iter().position(|known| *known == machine).unwrap_or_default();
    u32::try_from(place).unwrap_or_default()
}

impl SharedModules {
    /// Returns the number of a module.
    pub(super) fn number(&self, source: &Source) -> u32 {
        *source.number.get_or_init(|| {
            let mut known = self.lock();
            if let Some(number) = known.numbers.get(&source.key) {
                return *number;
            }
            if known.modules.len() >= MOST {
                return BEYOND;
            }
            let number = u32::try_from(known.modules.len()).unwrap_or(BEYOND);
            known.modules.push(Entry::new(None, &source.name()));
            known.numbers.insert(source.key.clone(), number);
            number
        })
    }

    /// Returns a module, which is read by a mapping of a process if it was not before; `None` if it
    /// cannot be.
    pub(super) fn module(&self, number: u32, pid: u32, mapping: &Mapping) -> Option<Arc<Module>> {
        let mut known = self.lock();
        let is_full = known.bytes >= MOST_BYTES_IN_ALL;
        let entry = known.modules.get_mut(number as usize)?;
        if entry.module.is_some() || entry.attempts >= ATTEMPTS || is_full || number <= BEYOND {
            return entry.module.clone();
        }
        if entry.attempts > 0 && entry.pid == pid {
            return None;
        }
        (entry.attempts, entry.pid) = (entry.attempts + 1, pid);
        let (module, bytes) = read(pid, mapping)?;
        entry.module = Some(Arc::new(module));
        let module = entry.module.clone();
        known.bytes += bytes;
        module
    }

    /// Returns the name of a module.
    pub(super) fn name(&self, number: u32) -> String {
        self.lock()
            .modules
            .get(number as usize)
            .map_or_else(String::new, |found| found.name.clone())
    }

    fn lock(&self) -> MutexGuard<'_, ModuleTable> {
        // A thread that panicked ends the recording; what it left is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what is mapped, if it can be found and is the same.
fn read(pid: u32, mapping: &Mapping) -> Option<(Module, u64)> {
    let Key { path, identity } = &mapping.source.key;
    let range = mapping.range.clone();
    if path == VDSO {
        // That of 64-bit tasks is the same in all processes.
        let image = if mapping.is_low() { read_memory(pid, &range)? } else { vdso()? };
        return Some(Module::read(image.as_slice()));
    }
    let file = match identity {
        FileIdentity::File(file) => MappedFile { pid, range, file: *file }.file(path),
        FileIdentity::BuildId(id) => {
            MappedFile { pid, range, file: FileId::default() }.identified(path, id)
        }
    };
    Some(Module::read(&ReadCache::new(&file?)))
}

/// Reads the memory of a process.
fn read_memory(pid: u32, range: &Range<u64>) -> Option<Vec<u8>> {
    let length = range.end.checked_sub(range.start).filter(|length| *length <= MOST_BYTES)?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    memory.read_exact_at(&mut bytes, range.start).ok()?;
    Some(bytes)
}
