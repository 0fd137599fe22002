//! The search for the symbols of a mapped file.
//!
//! [`candidates`] lists the places; this module opens and verifies the files and combines them: the
//! mapped file gives the layout, and the file with the symbol table (perhaps the same one) gives
//! the names.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use object::elf::{SHT_DYNSYM, SHT_SYMTAB};
use recrep_format::build_id::BuildId;

use super::candidates;
use super::processes::Processes;
use super::proof::{Proof, check_recorded, checked_image, contradiction, open_image};
use crate::query::{Demangle, SymbolOptions};
use crate::symbols::elf::call_frames::debug_frame;
use crate::symbols::elf::code::MachineCode;
use crate::symbols::elf::lines::DebugFile;
use crate::symbols::elf::symbols::{add_symbols, in_file};
use crate::symbols::elf::{ElfImage, extents, go, plt};
use crate::symbols::file::{self, Refusal};
use crate::symbols::module::origin::Origin;
use crate::symbols::module::{Module, ModuleKind};
use crate::symbols::names::table::{SymbolTable, TableBuilder};
use crate::symbols::outcome::{Outcome, Source};

/// A file that was found.
#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) source: Source,
    pub(crate) path: PathBuf,
    pub(crate) image: ElfImage,
}

/// The places to search, and this machine.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) options: SymbolOptions,
    pub(crate) processes: Processes,
    pub(crate) host: Origin,
}

impl Search {
    /// Returns the options to search with, one after the other: for a module of a running
    /// container, the container's root as `--symfs`, then the user's options if a build ID can
    /// verify the files; otherwise the user's options.
    fn options_of(&self, module: &Module) -> Vec<Cow<'_, SymbolOptions>> {
        let mounts = module.mounts.filter(|_| self.options.symfs.is_none());
        let root = mounts.and_then(|mounts| self.processes.root_of(mounts));
        let mut all = Vec::new();
        if let Some(root) = root {
            let symfs = Some(root.into());
            all.push(Cow::Owned(SymbolOptions { symfs, ..self.options.clone() }));
        }
        if all.is_empty() || module.build_id.is_some() {
            all.push(Cow::Borrowed(&self.options));
        }
        all
    }

    /// Returns the result of `find` among proven files or, if that is `None` and the user trusts
    /// recorded paths (`--symfs`, `--trust-paths`), among trusted files.
    fn proven_or_trusted<T>(&self, mut find: impl FnMut(bool) -> Option<T>) -> Option<T> {
        find(false).or_else(|| if self.options.trusts_paths() { find(true) } else { None })
    }

    /// Returns the symbols of a mapped file: from its own symbol table, or that of its debug file,
    /// or else its dynamic symbols; and in any case the entries of its procedure linkage table
    /// (PLT).
    pub(crate) fn symbols(&self, module: &Module, outcome: &mut Outcome) -> Option<SymbolTable> {
        self.proven_or_trusted(|trusted| {
            let (runtime, separate) =
                self.mapped_and_separate(module, trusted, has_symtab, outcome);
            let separate = separate.or_else(|| compressed_symbols(runtime.as_ref(), outcome));
            build(
                runtime.as_ref(),
                separate.as_ref(),
                self.options.demangle != Demangle::No,
                outcome,
            )
        })
    }

    /// Returns the file with a mapped file's debug information.
    pub(crate) fn debug_file(&self, module: &Module, outcome: &mut Outcome) -> Option<DebugFile> {
        self.proven_or_trusted(|trusted| {
            let (runtime, separate) =
                self.mapped_and_separate(module, trusted, ElfImage::has_debug_info, outcome);
            let found = separate.as_ref().or(runtime.as_ref());
            let FoundFile { path, image, .. } = found.filter(|file| file.image.has_debug_info())?;
            let segments =
                runtime.as_ref().map_or(&image.segments, |file| &file.image.segments).clone();
            let shared = image.alternate_link().and_then(|(link, build_id)| {
                let shared = path.parent().unwrap_or(Path::new("/")).join(link);
                let opened = open_image(&shared, Proof::BuildId(build_id), &module.origin);
                opened.is_ok().then_some(shared)
            });
            let package = package(path, runtime.as_ref().map(|file| file.path.as_path()));
            Some(DebugFile { path: path.clone(), shared, package, segments })
        })
    }

    /// Returns the first `Some` that `of` gives for the mapped file or, failing that, for its
    /// cached copies.
    pub(crate) fn first<T>(
        &self,
        module: &Module,
        of: impl Fn(&Path, &ElfImage) -> Option<T>,
    ) -> Option<T> {
        let copied = || {
            let build_id = module.build_id?;
            let options = self.options_of(module);
            let places = options.iter().flat_map(|options| candidates::elsewhere(module, options));
            let mut cached = places.filter(|(source, path)| match source {
                Source::BuildIdCache | Source::Kept => true,
                Source::Debuginfod => path.ends_with(candidates::EXECUTABLE),
                _ => false,
            });
            cached.find_map(|(_, path)| {
                of(&path, &open_image(&path, Proof::BuildId(build_id), &module.origin).ok()?)
            })
        };
        self.proven_or_trusted(|trusted| {
            let mapped = self.mapped(module, trusted, &mut Outcome::default());
            mapped.and_then(|file| of(&file.path, &file.image)).or_else(copied)
        })
    }

    /// Reads code of a mapped file, which begins at this offset in it, from the file or a copy.
    /// Why there is none is in the outcome.
    pub(crate) fn code(
        &self,
        module: &Module,
        offset: u64,
        size: u64,
        outcome: &mut Outcome,
    ) -> Option<MachineCode> {
        let found =
            self.first(module, |path, image| MachineCode::in_image(path, image, offset, size).ok());
        if found.is_none()
            && let Some(FoundFile { source, path, image }) = self.mapped(module, false, outcome)
        {
            let result = MachineCode::in_image(&path, &image, offset, size);
            outcome.add(source, path, result.map(|_| 0));
        }
        found
    }

    /// Like [`Search::first`]; `of` also gets the separate debug file if only that has DWARF's call
    /// frame information.
    pub(crate) fn first_with_rules<T>(
        &self,
        module: &Module,
        of: fn(&ElfImage, Option<&ElfImage>) -> Option<T>,
    ) -> Option<T> {
        self.first(module, |_, image| {
            let mut found = None;
            // A file with debug information has all that there is.
            if debug_frame(image).is_none() && !image.has_debug_info() {
                let (places, proof) = self.places_apart(module, Some(image), false);
                found = places.iter().find_map(|(_, path)| {
                    let apart = open_image(path, proof?, &module.origin).ok()?;
                    debug_frame(&apart).is_some().then_some(apart)
                });
            }
            of(image, found.as_ref())
        })
    }

    /// Returns the build ID by which a module's files can be requested, and whether the mapped file
    /// or a copy of it is on this machine.
    pub(crate) fn known(&self, module: &Module) -> Option<(BuildId, bool)> {
        let own = self.mapped(module, false, &mut Outcome::default());
        let own = own.map(|file| file.image.build_id);
        let build_id = own.flatten().or(module.build_id)?;
        Some((build_id, own.is_some() || self.first(module, |_, _| Some(())).is_some()))
    }

    /// Returns whether debuginfod's cache has the file `name` of the module with this build ID.
    pub(crate) fn is_fetched(&self, build_id: &BuildId, name: &'static str) -> bool {
        candidates::fetched(build_id, name, &self.options).iter().any(|(_, path)| {
            open_image(path, Proof::BuildId(*build_id), &Origin::default()).is_ok()
        })
    }

    /// Returns the module without the time of its recording if the files at its path are older: of
    /// several recordings, these modules are one.
    pub(crate) fn unchanged<'m>(&self, module: &'m Module) -> Cow<'m, Module> {
        let is_file = module.kind != ModuleKind::Kernel;
        let Some(written) = module.written.filter(|_| is_file) else {
            return Cow::Borrowed(module);
        };
        let options = self.options_of(module);
        let mut paths = options.iter().flat_map(|options| candidates::recorded(module, options));
        let is_any_newer = paths.any(|path| {
            let modified = path.metadata().and_then(|file| file.modified());
            modified.is_ok_and(|modified| modified > written)
        });
        if is_any_newer {
            return Cow::Borrowed(module);
        }
        Cow::Owned(Module { written: None, ..module.clone() })
    }

    /// Opens the mapped file itself.
    fn mapped(&self, module: &Module, trusted: bool, outcome: &mut Outcome) -> Option<FoundFile> {
        let options = self.options_of(module);
        let places = options.iter().flat_map(|options| candidates::recorded(module, options));
        let mut found = places.into_iter().find_map(|path| {
            let image = self.open_recorded(&path, module, trusted);
            opened(Source::Path, path, image, outcome)
        });
        if found.is_none() {
            // A process may lead to anything by the same name: that is never trusted, and no news
            // if it is another file.
            found = self.living(module).into_iter().find_map(|path| {
                let image = self.open_recorded(&path, module, false).ok()?;
                Some(FoundFile { source: Source::Process, path, image })
            });
        }
        let is_here = found.is_some() || self.host.made(&module.origin).is_err();
        outcome.is_elsewhere =
            !is_here && module.mounts.is_some_and(|mounts| self.processes.is_gone(mounts));
        let found = found?;
        outcome.contradiction = contradiction(&found.path, module.build_id, found.image.build_id);
        Some(found)
    }

    /// Returns the paths by which living processes lead to the file, unless there is a copy of it
    /// or it was mapped on another machine.
    fn living(&self, module: &Module) -> Vec<PathBuf> {
        let is_here = self.options.symfs.is_none() && self.host.made(&module.origin).is_ok();
        let mut copies = candidates::by_build_id(module, &self.options).into_iter();
        if !is_here || copies.any(|(_, path)| path.is_file()) {
            return Vec::new();
        }
        self.processes.places(&module.path)
    }

    /// Opens the file at a recorded path if it is proven to be the recorded one (by build ID, or by
    /// machine and inode), or trusted.
    fn open_recorded(
        &self,
        path: &Path,
        module: &Module,
        trusted: bool,
    ) -> Result<ElfImage, Refusal> {
        let file = file::open(path)?;
        let proof = match module.build_id {
            _ if trusted => Proof::Trust,
            Some(build_id) => Proof::BuildId(build_id),
            None => {
                self.host.made(&module.origin)?;
                check_recorded(&file, module.file, module.written)?;
                Proof::Trust
            }
        };
        checked_image(file::bytes_of(file)?, proof, &module.origin)
    }

    /// Returns the mapped file and, unless that `has` what is searched for, the first separate file
    /// (debug file or cached copy) that does. If the mapped file is missing, a file met on the way
    /// that has dynamic symbols takes its place.
    fn mapped_and_separate(
        &self,
        module: &Module,
        trusted: bool,
        has: fn(&ElfImage) -> bool,
        outcome: &mut Outcome,
    ) -> (Option<FoundFile>, Option<FoundFile>) {
        let mut runtime = self.mapped(module, trusted, outcome);
        let found = runtime.as_ref().map(|file| &file.image);
        if found.is_some_and(has) {
            return (runtime, None);
        }
        let (places, proof) = self.places_apart(module, found, trusted);
        for (source, path) in places {
            let image = file::open(&path).and_then(|file| {
                let proof = proof.ok_or(Refusal::NoChecksum)?;
                checked_image(file::bytes_of(file)?, proof, &module.origin)
            });
            match image {
                Ok(image) if has(&image) => {
                    return (runtime, Some(FoundFile { source, path, image }));
                }
                Ok(image) if runtime.is_none() && image.section_of_kind(SHT_DYNSYM).is_some() => {
                    runtime = Some(FoundFile { source, path, image });
                }
                Ok(_) => outcome.add(source, path, Err(Refusal::NoSymbols)),
                Err(refusal) => outcome.add(source, path, Err(refusal)),
            }
        }
        (runtime, None)
    }

    /// Returns the places where a mapped file's debug file or a copy of it may be, and what proves
    /// that it is; `found` is the mapped file, if there is one.
    fn places_apart(
        &self,
        module: &Module,
        found: Option<&ElfImage>,
        trusted: bool,
    ) -> (Vec<(Source, PathBuf)>, Option<Proof>) {
        // The mapped file's own build ID finds its debug file. It is the recorded one, unless none
        // was recorded or the user trusts another version.
        let build_id = found.and_then(|image| image.build_id).or(module.build_id);
        let (link, checksum) = found.and_then(ElfImage::debug_link).unzip();
        let known = Module { build_id, ..module.clone() };
        let mut places = Vec::new();
        for options in self.options_of(module) {
            places.extend(
                link.iter().flat_map(|link| candidates::debug_link(module, link, &options)),
            );
            places.extend(candidates::elsewhere(&known, &options));
        }
        let proof = match (build_id, checksum.flatten()) {
            (Some(build_id), _) => Some(Proof::BuildId(build_id)),
            (None, Some(crc)) => Some(Proof::Checksum(crc)),
            (None, None) => trusted.then_some(Proof::Trust),
        };
        (places, proof)
    }
}

/// Returns the package of split debug information (`.dwp`) of a debug file: named after it as a
/// whole (which is `None`: it is found without this), without its suffix, or after the mapped file,
/// beside either. An id in it and in the debug file shows that they belong together.
fn package(debug: &Path, mapped: Option<&Path>) -> Option<PathBuf> {
    if candidates::suffixed(debug, ".dwp").is_file() {
        return None;
    }
    let mut places = vec![debug.with_extension("dwp")];
    if let Some(mapped) = mapped {
        let mapped = candidates::suffixed(mapped, ".dwp");
        places.extend(mapped.file_name().map(|name| debug.with_file_name(name)));
        places.push(mapped);
    }
    places.into_iter().find(|path| path.is_file())
}

/// Returns the compressed symbol table within a stripped file.
fn compressed_symbols(runtime: Option<&FoundFile>, outcome: &mut Outcome) -> Option<FoundFile> {
    let FoundFile { path, image, .. } = runtime.filter(|file| !has_symtab(&file.image))?;
    opened(Source::MiniDebugInfo, path.clone(), image.mini_debug_info()?, outcome)
}

/// Returns a file that was opened; adds the attempt to the outcome if it was refused.
pub(crate) fn opened(
    source: Source,
    path: PathBuf,
    image: Result<ElfImage, Refusal>,
    outcome: &mut Outcome,
) -> Option<FoundFile> {
    match image {
        Ok(image) => Some(FoundFile { source, path, image }),
        Err(refusal) => {
            outcome.add(source, path, Err(refusal));
            None
        }
    }
}

/// Builds the table from the separate file with symbols, if there is one, else from the mapped
/// file; from both if the separate file is the mapped one's compressed symbol table.
pub(crate) fn build(
    runtime: Option<&FoundFile>,
    separate: Option<&FoundFile>,
    demangle: bool,
    outcome: &mut Outcome,
) -> Option<SymbolTable> {
    let mut table = TableBuilder::new(demangle);
    let mapped = &runtime.or(separate)?.image;
    // The compressed table has only the symbols that the dynamic one lacks.
    let both = separate.is_some_and(|file| file.source == Source::MiniDebugInfo);
    let (own, other) = ((runtime, both || separate.is_none()), (separate, true));
    for (file, counts) in if both { [other, own] } else { [own, other] } {
        let Some(FoundFile { source, path, image }) = file else { continue };
        let added =
            if counts { add_tables(image, mapped, &mut table) } else { Err(Refusal::NoSymbols) };
        outcome.add(*source, path, added);
    }
    if let Some(FoundFile { path, image, .. }) =
        runtime.filter(|file| separate.is_none() && !has_symtab(&file.image))
    {
        outcome.dynamic_only = true;
        if let Some(added) = go::add_functions(image, &mut table) {
            outcome.dynamic_only = added.is_err();
            outcome.add(Source::GoFunctions, path, added);
        }
    }
    if table.symbols.is_empty() {
        return None;
    }
    let judged = extents::end_unsized(&mut table, Some(mapped));
    plt::add_plt_symbols(mapped, &mut table);
    let table = table.finish();
    if !judged.is_empty() && outcome.note.is_none() {
        let judged = judged.into_iter().filter_map(|start| table.find(start));
        (outcome.note, outcome.judged) = (Some(extents::NOTE.into()), Some(judged.collect()));
    }
    Some(table)
}

fn has_symtab(image: &ElfImage) -> bool {
    image.section_of_kind(SHT_SYMTAB).is_some()
}

/// Adds a file's symbols, then its dynamic symbols, for the file that was mapped. If one table is
/// damaged, the other is still used.
pub(crate) fn add_tables(
    image: &ElfImage,
    mapped: &ElfImage,
    table: &mut TableBuilder,
) -> Result<usize, Refusal> {
    let mut sum = 0;
    let mut refused = Refusal::NoSymbols;
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        match add_symbols(image, kind, |at, _, section| in_file(at, section, image, mapped), table)
        {
            Ok(added) => sum += added,
            Err(Refusal::NoSymbols) => {}
            Err(refusal) => refused = refusal,
        }
    }
    if sum > 0 { Ok(sum) } else { Err(refused) }
}
