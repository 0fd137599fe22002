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
use super::options::SymbolOptions;
use super::outcome::{Outcome, Refusal, Source};
use super::roots::Roots;
use super::table::{SymbolTable, TableBuilder};
use super::{elf_plt, locate};

/// A file that was found: why it was looked at, where it is, its shape.
pub(super) type Place = (Source, PathBuf, Image);

/// What a search goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search<'r> {
    pub(super) options: &'r SymbolOptions,
    pub(super) roots: &'r Roots,
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

    /// A mapped file: its own symbol table, or that of its debug file; its dynamic symbols if there is nothing better;
    /// and the names of its linkage table in any case.
    pub(super) fn symbols(&self, module: &Module, outcome: &mut Outcome) -> Option<SymbolTable> {
        let mut runtime = self.mapped(module, outcome);
        let keeper = match &runtime {
            Some((.., image)) if has_symtab(image) => None,
            _ => self.keeper(module, &mut runtime, has_symtab, outcome).or_else(|| mini(runtime.as_ref(), outcome)),
        };
        build(runtime.as_ref(), keeper.as_ref(), self.options.demangle, outcome)
    }

    /// Where a mapped file's debug information is.
    pub(super) fn debug_file(&self, module: &Module, outcome: &mut Outcome) -> Option<DebugFile> {
        let mut runtime = self.mapped(module, outcome);
        let keeper = match &runtime {
            Some((.., image)) if image.has_debug_info() => None,
            _ => Some(self.keeper(module, &mut runtime, Image::has_debug_info, outcome)?),
        };
        let (_, path, image) = keeper.as_ref().or(runtime.as_ref())?;
        let segments = runtime.as_ref().map_or(&image.segments, |(.., runtime)| &runtime.segments).clone();
        let shared = image.alternate_link().map(|link| path.parent().unwrap_or(Path::new("/")).join(link));
        Some(DebugFile { path: path.clone(), shared, segments })
    }

    /// What the mapped file, or its copy in a cache, has of something.
    pub(super) fn first<T>(&self, module: &Module, of: impl Fn(&Image) -> Option<T>) -> Option<T> {
        self.options_of(module).iter().find_map(|options| {
            let is_copy = |(source, path): &(Source, PathBuf)| match source {
                Source::BuildIdCache => true,
                Source::Debuginfod => path.ends_with(locate::EXECUTABLE),
                _ => false,
            };
            let cached = locate::elsewhere(module, options).into_iter().filter(is_copy).map(|(_, path)| path);
            let images = locate::recorded(module, options).into_iter().chain(cached);
            let open = |path: PathBuf| open_image(&path, module.build_id.as_ref()).ok();
            images.filter_map(open).find_map(|image| of(&image))
        })
    }

    /// The build ID by which a module's files can be asked for, and whether the mapped file, or a copy, is here.
    pub(super) fn known(&self, module: &Module) -> Option<(BuildId, bool)> {
        let own = self.mapped(module, &mut Outcome::default()).map(|(.., image)| image.build_id);
        let build_id = module.build_id.or_else(|| own.flatten())?;
        Some((build_id, own.is_some() || self.first(module, |_| Some(())).is_some()))
    }

    /// Whether debuginfod's cache has this file of a module.
    pub(super) fn is_fetched(&self, build_id: &BuildId, name: &str) -> bool {
        let entry = self.options.debuginfod_cache.as_ref().map(|cache| cache.join(build_id.to_string()).join(name));
        entry.is_some_and(|path| open_image(&path, Some(build_id)).is_ok())
    }

    /// The mapped file itself.
    fn mapped(&self, module: &Module, outcome: &mut Outcome) -> Option<Place> {
        for options in self.options_of(module) {
            for path in locate::recorded(module, &options) {
                match open_image(&path, module.build_id.as_ref()) {
                    Ok(image) => return Some((Source::Path, path, image)),
                    Err(refusal) => outcome.add(Source::Path, path, Err(refusal)),
                }
            }
        }
        None
    }

    /// The file that has what the mapped one lacks. If that is missing, what stands for it may turn up on the way.
    fn keeper(
        &self,
        module: &Module,
        runtime: &mut Option<Place>,
        has: fn(&Image) -> bool,
        outcome: &mut Outcome,
    ) -> Option<Place> {
        let found = runtime.as_ref().map(|(.., image)| image);
        // Without a recorded build ID, that of the file at the recorded path finds its debug file.
        let build_id = module.build_id.or_else(|| found?.build_id);
        let link = found.and_then(Image::debug_link);
        let known = Module { build_id, ..module.clone() };
        let mut places = Vec::new();
        for options in self.options_of(module) {
            places.extend(link.iter().flat_map(|link| locate::debug_link(module, &link.name, &options)));
            places.extend(locate::elsewhere(&known, &options));
        }
        for (source, path) in places {
            let linked = link.as_ref().and_then(|link| link.crc).filter(|_| source == Source::DebugLink);
            match open_image(&path, build_id.as_ref()).and_then(|image| linked_one(image, linked, build_id.as_ref())) {
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

/// A debuglink means a file by its checksum. Where build IDs are equal it need not be read for that.
fn linked_one(image: Image, crc: Option<u32>, build_id: Option<&BuildId>) -> Result<Image, Refusal> {
    match crc.filter(|_| build_id.is_none()) {
        Some(linked) => {
            let found = image.crc()?;
            if found == linked { Ok(image) } else { Err(Refusal::CrcMismatch { linked, found }) }
        }
        None => Ok(image),
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

pub(super) fn open_image(path: &Path, recorded: Option<&BuildId>) -> Result<Image, Refusal> {
    checked_image(Contents::open(path)?, recorded)
}

/// An image whose build ID is the recorded one, if one was.
pub(super) fn checked_image(contents: Contents, recorded: Option<&BuildId>) -> Result<Image, Refusal> {
    let image = Image::parse(contents)?;
    match (recorded.copied(), image.build_id) {
        (None, _) => Ok(image),
        (Some(recorded), None) => Err(Refusal::NoBuildId { recorded }),
        (Some(recorded), Some(found)) if same_build_id(&recorded, &found) => Ok(image),
        (Some(recorded), Some(found)) => Err(Refusal::BuildIdMismatch { recorded, found }),
    }
}
