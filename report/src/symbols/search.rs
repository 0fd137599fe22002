//! The search for the symbols of a mapped file, from one place to the next.
//!
//! Where there may be something is [`locate`]'s; here it is opened, checked, and put together: the file that was mapped
//! says where things are, the one that keeps its symbols (perhaps the same) how they are called.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use object::elf::{SHT_DYNSYM, SHT_SYMTAB};
use recrep_format::build_id::BuildId;

use super::elf::{Image, Segment};
use super::elf_symbols::{Placing, add_symbols};
use super::file::Contents;
use super::module::{Module, same_build_id};
use super::origin::{Host, Origin};
use super::outcome::{Contradiction, Outcome, Refusal, Source};
use super::roots::Roots;
use super::table::{SymbolTable, TableBuilder};
use super::{elf_plt, locate};
use crate::query::SymbolOptions;

/// A file that was found: why it was looked at, where it is, its shape.
pub(super) type Place = (Source, PathBuf, Image);

/// What a search goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search<'r> {
    pub(super) options: &'r SymbolOptions,
    pub(super) roots: &'r Roots,
    pub(super) host: &'r Host,
}

/// What shows that a file is the recorded one, or belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// Its build ID must be this one.
    BuildId(BuildId),
    /// The checksum of its contents must be this one.
    Checksum(u32),
    /// Nothing more is asked for: it was shown already, or the user says so.
    Trust,
}

/// Where debug information is, and how addresses there are told from offsets in the mapped file.
#[derive(Debug)]
pub(super) struct DebugFile {
    pub(super) path: PathBuf,
    /// The file with what several files share (`.gnu_debugaltlink`).
    pub(super) shared: Option<PathBuf>,
    pub(super) segments: Vec<Segment>,
}

impl Search<'_> {
    /// The options for a module's files: those of a living container are below its root. Where it does not live any more,
    /// files of this machine are as good as their build IDs.
    fn options_of(&self, module: &Module) -> Vec<Cow<'_, SymbolOptions>> {
        let root = match (&self.options.symfs, module.mounts) {
            (None, Some(mounts)) => self.roots.of(mounts),
            _ => None,
        };
        let Some(root) = root else { return vec![Cow::Borrowed(self.options)] };
        let mut all = vec![Cow::Owned(SymbolOptions { symfs: Some(root.into()), ..self.options.clone() })];
        if module.build_id.is_some() {
            all.push(Cow::Borrowed(self.options));
        }
        all
    }

    /// What `find` finds among files that are proven; if that is nothing, among those that the user trusts, if they do
    /// (`--symfs`, `--trust-paths`).
    fn proven_or_trusted<T>(&self, mut find: impl FnMut(bool) -> Option<T>) -> Option<T> {
        find(false).or_else(|| if self.options.trusts_paths() { find(true) } else { None })
    }

    /// A mapped file: its own symbol table, or that of its debug file; its dynamic symbols if there is nothing better;
    /// and the names of its linkage table in any case.
    pub(super) fn symbols(&self, module: &Module, outcome: &mut Outcome) -> Option<SymbolTable> {
        self.proven_or_trusted(|trusted| {
            let mut runtime = self.mapped(module, trusted, outcome);
            let keeper = match &runtime {
                Some((.., image)) if has_symtab(image) => None,
                _ => self
                    .keeper(module, (&mut runtime, trusted), has_symtab, outcome)
                    .or_else(|| mini(runtime.as_ref(), outcome)),
            };
            build(runtime.as_ref(), keeper.as_ref(), self.options.demangle, outcome)
        })
    }

    /// Where a mapped file's debug information is.
    pub(super) fn debug_file(&self, module: &Module, outcome: &mut Outcome) -> Option<DebugFile> {
        self.proven_or_trusted(|trusted| {
            let mut runtime = self.mapped(module, trusted, outcome);
            let keeper = match &runtime {
                Some((.., image)) if image.has_debug_info() => None,
                _ => Some(self.keeper(module, (&mut runtime, trusted), Image::has_debug_info, outcome)?),
            };
            let (_, path, image) = keeper.as_ref().or(runtime.as_ref())?;
            let segments = runtime.as_ref().map_or(&image.segments, |(.., runtime)| &runtime.segments).clone();
            let shared = image.alternate_link().map(|link| path.parent().unwrap_or(Path::new("/")).join(link));
            Some(DebugFile { path: path.clone(), shared, segments })
        })
    }

    /// What the mapped file, or its copy in a cache, has of something.
    pub(super) fn first<T>(&self, module: &Module, of: impl Fn(&Image) -> Option<T>) -> Option<T> {
        let copied = || {
            let build_id = module.build_id?;
            let is_copy = |(source, path): &(Source, PathBuf)| match source {
                Source::BuildIdCache => true,
                Source::Debuginfod => path.ends_with(locate::EXECUTABLE),
                _ => false,
            };
            let options = self.options_of(module);
            let cached = options.iter().flat_map(|options| locate::elsewhere(module, options)).filter(is_copy);
            let open = |(_, path): (_, PathBuf)| open_image(&path, Proof::BuildId(build_id), &module.origin).ok();
            cached.filter_map(open).find_map(|image| of(&image))
        };
        self.proven_or_trusted(|trusted| {
            let mapped = self.mapped(module, trusted, &mut Outcome::default());
            mapped.and_then(|(.., image)| of(&image)).or_else(copied)
        })
    }

    /// The build ID by which a module's files can be asked for, and whether the mapped file, or a copy, is here.
    pub(super) fn known(&self, module: &Module) -> Option<(BuildId, bool)> {
        let own = self.mapped(module, false, &mut Outcome::default()).map(|(.., image)| image.build_id);
        let build_id = module.build_id.or_else(|| own.flatten())?;
        Some((build_id, own.is_some() || self.first(module, |_| Some(())).is_some()))
    }

    /// Whether debuginfod's cache has this file of a module.
    pub(super) fn is_fetched(&self, build_id: &BuildId, name: &str) -> bool {
        let entry = self.options.debuginfod_cache.as_ref().map(|cache| cache.join(build_id.to_string()).join(name));
        entry.is_some_and(|path| open_image(&path, Proof::BuildId(*build_id), &Origin::default()).is_ok())
    }

    /// The mapped file itself.
    fn mapped(&self, module: &Module, trusted: bool, outcome: &mut Outcome) -> Option<Place> {
        for options in self.options_of(module) {
            for path in locate::recorded(module, &options) {
                match self.open_recorded(&path, module, trusted) {
                    Ok(image) => {
                        outcome.contradiction = contradiction(&path, module, &image);
                        return Some((Source::Path, path, image));
                    }
                    Err(refusal) => outcome.add(Source::Path, path, Err(refusal)),
                }
            }
        }
        None
    }

    /// Opens the file at a recorded path, if its build ID, or this machine and its inode, show that it is the recorded one.
    fn open_recorded(&self, path: &Path, module: &Module, trusted: bool) -> Result<Image, Refusal> {
        let contents = Contents::open(path)?;
        let proof = match module.build_id {
            _ if trusted => Proof::Trust,
            Some(build_id) => Proof::BuildId(build_id),
            None => {
                self.host.made(&module.origin)?;
                contents.is_recorded(module.file, module.origin.written)?;
                Proof::Trust
            }
        };
        checked_image(contents, proof, &module.origin)
    }

    /// The file that has what the mapped one lacks. If that is missing, what stands for it may turn up on the way.
    fn keeper(
        &self,
        module: &Module,
        (runtime, trusted): (&mut Option<Place>, bool),
        has: fn(&Image) -> bool,
        outcome: &mut Outcome,
    ) -> Option<Place> {
        let found = runtime.as_ref().map(|(.., image)| image);
        // The mapped file's own build ID finds its debug file: the same as was recorded, if that was and nobody overrules it.
        let build_id = found.and_then(|image| image.build_id).or(module.build_id);
        let link = found.and_then(Image::debug_link);
        let known = Module { build_id, ..module.clone() };
        let mut places = Vec::new();
        for options in self.options_of(module) {
            places.extend(link.iter().flat_map(|link| locate::debug_link(module, &link.name, &options)));
            places.extend(locate::elsewhere(&known, &options));
        }
        let proof = match (build_id, link.and_then(|link| link.crc)) {
            (Some(build_id), _) => Some(Proof::BuildId(build_id)),
            (None, Some(crc)) => Some(Proof::Checksum(crc)),
            (None, None) => trusted.then_some(Proof::Trust),
        };
        for (source, path) in places {
            let image = Contents::open(&path)
                .and_then(|contents| checked_image(contents, proof.ok_or(Refusal::NoChecksum)?, &module.origin));
            match image {
                Ok(image) if has(&image) => return Some((source, path, image)),
                Ok(image) if runtime.is_none() && image.section_of_kind(SHT_DYNSYM).is_some() => {
                    *runtime = Some((source, path, image));
                }
                Ok(_) => outcome.add(source, path, Err(Refusal::NoSymbols)),
                Err(refusal) => outcome.add(source, path, Err(refusal)),
            }
        }
        None
    }
}

/// The small symbol table within a stripped file.
fn mini(runtime: Option<&Place>, outcome: &mut Outcome) -> Option<Place> {
    let (_, path, image) = runtime?;
    match image.mini_debug_info()? {
        Ok(mini) => Some((Source::MiniDebugInfo, path.clone(), mini)),
        Err(refusal) => {
            outcome.add(Source::MiniDebugInfo, path, Err(refusal));
            None
        }
    }
}

/// A table of what the mapped file and the one that keeps its symbols have, the latter going first.
pub(super) fn build(
    runtime: Option<&Place>,
    keeper: Option<&Place>,
    demangle: bool,
    outcome: &mut Outcome,
) -> Option<SymbolTable> {
    let mut table = TableBuilder::new(demangle);
    let placing = Placing::InFile(&runtime.or(keeper)?.2);
    // The small table has only what the dynamic one lacks.
    let both = keeper.is_some_and(|(source, ..)| *source == Source::MiniDebugInfo);
    if let Some((source, path, image)) = keeper.filter(|_| both) {
        outcome.add(*source, path, add_tables(image, placing, &mut table));
    }
    if let Some((source, path, image)) = runtime {
        outcome.dynamic_only = keeper.is_none() && image.section_of_kind(SHT_SYMTAB).is_none();
        let other = keeper.is_some() && !both;
        let result = if other { Err(Refusal::NoSymbols) } else { add_tables(image, placing, &mut table) };
        outcome.add(*source, path, result);
    }
    if let Some((source, path, image)) = keeper.filter(|_| !both) {
        outcome.add(*source, path, add_tables(image, placing, &mut table));
    }
    if table.len() == 0 {
        return None;
    }
    if let Some((.., image)) = runtime.or(keeper) {
        elf_plt::add_plt_symbols(image, &mut table);
    }
    Some(table.finish())
}

fn has_symtab(image: &Image) -> bool {
    image.section_of_kind(SHT_SYMTAB).is_some()
}

/// Adds a file's symbols, then its dynamic ones. One damaged table does not spoil the other.
pub(super) fn add_tables(image: &Image, placing: Placing<'_>, table: &mut TableBuilder) -> Result<usize, Refusal> {
    let mut sum = 0;
    let mut refused = Refusal::NoSymbols;
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        match add_symbols(image, placing, kind, table) {
            Ok(added) => sum += added,
            Err(Refusal::NoSymbols) => {}
            Err(refusal) => refused = refusal,
        }
    }
    if sum > 0 { Ok(sum) } else { Err(refused) }
}

pub(super) fn open_image(path: &Path, proof: Proof, origin: &Origin) -> Result<Image, Refusal> {
    checked_image(Contents::open(path)?, proof, origin)
}

/// The image of a file that is proven, and of an architecture that the recorded machine runs.
pub(super) fn checked_image(contents: Contents, proof: Proof, origin: &Origin) -> Result<Image, Refusal> {
    let image = Image::parse(contents)?;
    origin.runs(image.machine)?;
    match (proof, image.build_id) {
        (Proof::BuildId(recorded), None) => Err(Refusal::NoBuildId { recorded }),
        (Proof::BuildId(recorded), Some(found)) if !same_build_id(&recorded, &found) => {
            Err(Refusal::BuildIdMismatch { recorded, found })
        }
        (Proof::Checksum(linked), _) => {
            let found = image.crc()?;
            if found == linked { Ok(image) } else { Err(Refusal::CrcMismatch { linked, found }) }
        }
        _ => Ok(image),
    }
}

/// What the recording says against a file that is used all the same.
pub(super) fn contradiction(path: &Path, module: &Module, image: &Image) -> Option<Contradiction> {
    let (recorded, found) = (module.build_id?, image.build_id?);
    (!same_build_id(&recorded, &found)).then(|| Contradiction { path: path.into(), recorded, found })
}
