//! Names that the recording has itself, in a bundle ([`recrep_format::feature::Bundle`]): they
//! stand in place of the files of the recorded machine, and need no proof.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use object::Endianness;
use object::elf::{ELFCLASS64, ELFDATA2MSB, Machine, SHT_NOBITS, SHT_PROGBITS};
use recrep_format::build_id::BuildId;
use recrep_format::error::Result;
use recrep_format::feature::{
    self, BundledImage, BundledKind, BundledModule, BundledSection, BundledSegment, BundledVersion,
    Counted, bundled_modules, bundled_versions,
};
use recrep_format::read::File;
use recrep_format::wire::List;
use rustc_hash::{FxHashMap, FxHasher};

use crate::symbols::elf::call_frames::debug_frame;
use crate::symbols::elf::lines::SourceFrame;
use crate::symbols::elf::{ElfImage, ElfSection, Segment};
use crate::symbols::names::packed::is_inferred_name;
use crate::symbols::names::table::{SymbolTable, TableBuilder};

/// Names of a bundle, by module. Two are equal if their sections in the files are.
#[derive(Debug)]
pub(crate) struct Bundle {
    /// Hash of the section.
    id: u64,
    modules: FxHashMap<BundleKey, Bundled>,
}

/// Identity of a module in a bundle.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct BundleKey {
    pub(crate) path: Box<[u8]>,
    pub(crate) kind: BundledKind,
    pub(crate) pid: i32,
    pub(crate) start: u64,
    pub(crate) build_id: Option<BuildId>,
    /// Major and minor number of the device, and inode.
    pub(crate) file: Option<(u32, u32, u64)>,
}

/// Module of a bundle.
#[derive(Debug)]
pub(crate) struct Bundled {
    /// What the names were taken from when the bundle was made.
    pub(crate) source: String,
    functions: Vec<BundledFunction>,
    /// Versions of a JIT's code that was replaced.
    pub(crate) versions: Vec<BundledVersion>,
    /// Functions and source lines by address; their names are not demangled.
    pub(crate) lines: FxHashMap<u64, Vec<SourceFrame>>,
    /// Parts for unwinding.
    pub(crate) image: Option<ElfImage>,
}

/// A function of a module.
#[derive(Debug)]
struct BundledFunction {
    start: u64,
    end: u64,
    name: Box<[u8]>,
}

impl Bundle {
    /// Reads the bundle of a recording; `None` if it has none.
    pub(crate) fn of(file: &File<'_>) -> Option<Result<Self>> {
        Some(file.feature::<feature::Bundle<'_>>()?.and_then(|section| Self::read(&section, file)))
    }

    fn read(section: &feature::Bundle<'_>, file: &File<'_>) -> Result<Self> {
        let mut hasher = FxHasher::default();
        section.body.hash(&mut hasher);
        let body = section.unpack()?;
        let listed = bundled_modules(&body, file.endian)?;
        let mut versions: FxHashMap<u32, Vec<BundledVersion>> = FxHashMap::default();
        for version in bundled_versions(&body, file.endian)? {
            versions.entry(version.module).or_default().push(version);
        }
        let mut modules = FxHashMap::default();
        for (number, module) in (0..).zip(&listed) {
            let versions = versions.remove(&number).unwrap_or_default();
            let bundled = Bundled { versions, ..Bundled::of(module) };
            // Text that was moved to anonymous memory is a module of its own, with the names of the
            // same file.
            match modules.entry(BundleKey::in_bundle(module)) {
                Entry::Vacant(entry) => drop(entry.insert(bundled)),
                Entry::Occupied(entry) => entry.into_mut().add(bundled),
            }
        }
        Ok(Self { id: hasher.finish(), modules })
    }

    /// Returns what the bundle has of a module.
    pub(crate) fn module(&self, key: &BundleKey) -> Option<&Bundled> {
        self.modules.get(key)
    }
}

impl BundleKey {
    pub(crate) fn in_bundle(module: &BundledModule<'_>) -> Self {
        Self {
            path: module.path.0.into(),
            kind: module.kind,
            pid: module.pid,
            start: module.start,
            build_id: BuildId::new(module.build_id.0),
            file: (module.inode != 0).then_some((module.major, module.minor, module.inode)),
        }
    }
}

impl Bundled {
    fn of(module: &BundledModule<'_>) -> Self {
        let text = |number: u32| {
            let at = usize::try_from(number.checked_sub(1)?).ok()?;
            Some(module.texts.0.get(at)?.to_text().into_owned())
        };
        let mut lines = FxHashMap::default();
        for place in &module.places.0 {
            let frames = place.frames.0.iter().map(|frame| SourceFrame {
                function: text(frame.function),
                file: text(frame.file),
                line: frame.line,
                start_line: 0,
            });
            lines.insert(place.address, frames.collect());
        }
        let functions = module.functions.0.iter().map(|function| BundledFunction {
            start: function.start,
            end: function.end,
            name: function.name.0.into(),
        });
        Self {
            source: module.source.to_text().into_owned(),
            functions: functions.collect(),
            versions: Vec::new(),
            lines,
            image: module.images.0.first().map(image_of),
        }
    }

    /// Adds names of the same file.
    fn add(&mut self, other: Self) {
        self.functions.extend(other.functions);
        self.versions.extend(other.versions);
        self.lines.extend(other.lines);
        self.image = self.image.take().or(other.image);
    }

    /// Returns the symbol table: the functions of the `module` that have names and recorded
    /// addresses.
    pub(crate) fn table(&self, module: &str, demangle: bool) -> SymbolTable {
        let mut table = TableBuilder::new(demangle);
        for BundledFunction { start, end, name } in &self.functions {
            if !is_inferred_name(name, module) {
                table.add(name, *start, *end);
            }
        }
        table.finish()
    }

    /// Returns the starts and ends of the `module`'s functions that have no names in its file, with
    /// the names that they were given.
    pub(crate) fn inferred(
        &self,
        module: &str,
    ) -> impl Iterator<Item = (Range<u64>, Box<str>)> + use<'_> {
        let module: Box<str> = module.into();
        self.functions.iter().filter_map(move |BundledFunction { start, end, name }| {
            let name = str::from_utf8(name).ok().filter(|_| is_inferred_name(name, &module))?;
            Some((*start..*end, name.into()))
        })
    }
}

/// Returns an image that has the sections of a bundle, one behind another in the place of its file.
fn image_of(image: &BundledImage<'_>) -> ElfImage {
    let mut contents = Vec::new();
    let sections = image.sections.0.iter().map(|section| {
        let offset = contents.len() as u64;
        contents.extend_from_slice(section.contents.0);
        let is_empty = section.contents.0.is_empty();
        ElfSection {
            name: section.name.0.into(),
            kind: if is_empty { SHT_NOBITS } else { SHT_PROGBITS },
            allocated: true,
            executable: false,
            compressed: false,
            address: section.address,
            offset,
            size: if is_empty { section.size } else { section.contents.0.len() as u64 },
            entry_size: 0,
            alignment: 1,
            link: 0,
            text_or_data: false,
        }
    });
    let sections = sections.collect();
    let segments = image.segments.0.iter().map(|segment| Segment {
        address: segment.address,
        memory_size: segment.memory_size,
        file_size: segment.file_size,
        offset: segment.offset,
    });
    ElfImage {
        is_64: image.class == u32::from(ELFCLASS64.0),
        entry: 0,
        machine: Machine(u16::try_from(image.machine).unwrap_or(0)),
        endian: if image.data == u32::from(ELFDATA2MSB.0) {
            Endianness::Big
        } else {
            Endianness::Little
        },
        build_id: None,
        segments: segments.collect(),
        sections,
        file: contents.into(),
    }
}

impl PartialEq for Bundle {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Bundle {}

impl Hash for Bundle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialOrd for Bundle {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bundle {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.cmp(&other.id)
    }
}

/// Sections that unwinding reads.
const FOR_UNWINDING: [&[u8]; 2] = [b".eh_frame", b".eh_frame_hdr"];
/// Sections whose addresses unwinding needs, but not their contents.
const PLACES_ONLY: [&[u8]; 2] = [b".text", b".got"];

/// Parts of a file for unwinding, to be put into a bundle.
#[derive(Debug)]
pub(crate) struct UnwindingParts {
    class: u32,
    data: u32,
    machine: u32,
    segments: Vec<BundledSegment>,
    sections: Vec<UnwindingSection>,
}

#[derive(Debug)]
struct UnwindingSection {
    name: &'static [u8],
    address: u64,
    size: u64,
    contents: Vec<u8>,
}

impl UnwindingParts {
    /// Returns the parts of a file and of its debug file; `None` if they have no call frame
    /// information.
    pub(crate) fn of(image: &ElfImage, separate: Option<&ElfImage>) -> Option<Self> {
        let mut sections = Vec::new();
        for name in FOR_UNWINDING {
            let Some(section) = image.section(name) else { continue };
            let ElfSection { address, size, .. } = *section;
            let contents = image.keep_unpacked(section).ok()?.to_vec();
            sections.push(UnwindingSection { name, address, size, contents });
        }
        for image in [Some(image), separate].into_iter().flatten() {
            let Some(section) = debug_frame(image) else { continue };
            let contents = image.keep_unpacked(section).ok()?.to_vec();
            let (name, size) = (&b".debug_frame"[..], contents.len() as u64);
            sections.push(UnwindingSection { name, address: 0, size, contents });
        }
        if sections.is_empty() {
            return None;
        }
        for name in PLACES_ONLY {
            if let Some(section) = image.section(name) {
                let ElfSection { address, size, .. } = *section;
                sections.push(UnwindingSection { name, address, size, contents: Vec::new() });
            }
        }
        let segments = image.segments.iter().map(|segment| BundledSegment {
            address: segment.address,
            memory_size: segment.memory_size,
            file_size: segment.file_size,
            offset: segment.offset,
        });
        Some(Self {
            class: if image.is_64 { 2 } else { 1 },
            data: if image.endian == Endianness::Big { 2 } else { 1 },
            machine: image.machine.0.into(),
            segments: segments.collect(),
            sections,
        })
    }

    /// Returns the parts as they stand in a bundle.
    pub(crate) fn bundled(&self) -> BundledImage<'_> {
        let sections = self.sections.iter().map(|section| BundledSection {
            name: Counted(section.name),
            address: section.address,
            size: section.size,
            contents: Counted(&section.contents),
        });
        BundledImage {
            class: self.class,
            data: self.data,
            machine: self.machine,
            segments: List(self.segments.clone()),
            sections: List(sections.collect()),
        }
    }
}
