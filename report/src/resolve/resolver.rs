//! The search for a module's symbols, from one source to the next, each module once.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use object::elf::{SHT_DYNSYM, SHT_SYMTAB};
use recrep_format::build_id::BuildId;
use rustc_hash::FxHashMap;

use super::call_frames::CallFrames;
use super::elf::Image;
use super::file::{self, Contents};
use super::kernel::Kernel;
use super::module::{Module, ModuleKind, same_build_id};
use super::options::SymbolOptions;
use super::outcome::{Outcome, Refusal, Source};
use super::table::{Symbol, SymbolId, SymbolTable, TableBuilder};
use super::{demangle, elf_plt, elf_symbols, locate, perf_map, vdso};

/// Loads modules and keeps them.
#[derive(Debug)]
pub struct Resolver {
    options: SymbolOptions,
    kernel: Kernel,
    modules: Mutex<FxHashMap<Module, Slot>>,
}

/// Filled by the first that asks; the others wait.
type Slot = Arc<OnceLock<Arc<Loaded>>>;

/// A module's symbols, and how they were found or why not.
#[derive(Debug)]
pub struct Loaded {
    /// The symbols; none if there were none to be had.
    pub table: SymbolTable,
    /// Every place that was tried.
    pub outcome: Outcome,
    demangle: bool,
}

impl Loaded {
    /// The symbol at an address as [`Module::lookup_address`] gives it.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<Symbol<'_>> {
        self.table.lookup(address)
    }

    /// The name to show for a symbol that a lookup gave.
    #[must_use]
    pub fn name(&self, id: SymbolId) -> Option<Cow<'_, str>> {
        Some(self.shown(self.table.get(id)?.name))
    }

    /// How a name from this module's table is shown. The kernel's names are not mangled, even if they look like it.
    #[must_use]
    pub fn shown<'a>(&self, name: &'a [u8]) -> Cow<'a, str> {
        if self.demangle { demangle::demangled(name) } else { String::from_utf8_lossy(name) }
    }
}

impl Resolver {
    /// A resolver that has loaded nothing.
    #[must_use]
    pub fn new(options: SymbolOptions) -> Self {
        Self::on(options, Kernel::new("/"))
    }

    fn on(options: SymbolOptions, kernel: Kernel) -> Self {
        Self { options, kernel, modules: Mutex::default() }
    }

    /// The symbols of `module`; loaded on the first call, which other callers for the same module wait for.
    pub fn load(&self, module: &Module) -> Arc<Loaded> {
        let slot = {
            let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            match modules.get(module) {
                Some(slot) => slot.clone(),
                None => modules.entry(module.clone()).or_default().clone(),
            }
        };
        slot.get_or_init(|| Arc::new(self.load_now(module))).clone()
    }

    /// All modules that were loaded, in the order of their identities.
    pub fn loaded(&self) -> Vec<(Module, Arc<Loaded>)> {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> =
            modules.iter().filter_map(|(module, slot)| Some((module.clone(), slot.get()?.clone()))).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// The call frame information of `module`, read now: of the file that was mapped, or of what stands for it.
    #[must_use]
    pub fn call_frames(&self, module: &Module) -> Option<CallFrames> {
        match &module.kind {
            ModuleKind::File => {
                let recorded = locate::recorded(module, &self.options);
                let cached = locate::elsewhere(module, &self.options).into_iter();
                let cached = cached.filter(|(source, _)| *source == Source::BuildIdCache).map(|(_, path)| path);
                let images = recorded.into_iter().chain(cached);
                let open = |path: PathBuf| open_image(&path, module.build_id.as_ref()).ok();
                images.filter_map(open).find_map(|image| CallFrames::of(&image))
            }
            ModuleKind::Vdso { kernel } => {
                self.running_vdso_may_speak(module, kernel.as_ref()).ok()?;
                let image = checked_image(vdso::running().ok()?, module.build_id.as_ref()).ok()?;
                CallFrames::of(&image)
            }
            _ => None,
        }
    }

    fn load_now(&self, module: &Module) -> Loaded {
        let mut outcome = Outcome::default();
        let mut demangle = self.options.demangle;
        let table = match &module.kind {
            ModuleKind::File => self.load_file(module, &mut outcome),
            ModuleKind::Vdso { kernel } => self.load_vdso(module, kernel.as_ref(), &mut outcome),
            ModuleKind::Kernel { .. } | ModuleKind::KernelModule { .. } => {
                demangle = false;
                self.kernel.load(module, &self.options, &mut outcome)
            }
            ModuleKind::PerfMap { .. } => {
                let found = file::read_all(module.as_path()).map(|text| perf_map::parse(&text, demangle));
                outcome.keep(Source::PerfMap, module.as_path(), found)
            }
            ModuleKind::Opaque => None,
        };
        Loaded { table: table.unwrap_or_default(), outcome, demangle }
    }

    /// A mapped file: its own symbol table, or that of its debug file; its dynamic symbols if there is nothing better;
    /// and the names of its linkage table in any case.
    fn load_file(&self, module: &Module, outcome: &mut Outcome) -> Option<SymbolTable> {
        let mut runtime = None;
        for path in locate::recorded(module, &self.options) {
            match open_image(&path, module.build_id.as_ref()) {
                Ok(image) => {
                    runtime = Some((Source::Path, path, image));
                    break;
                }
                Err(refusal) => outcome.add(Source::Path, path, Err(refusal)),
            }
        }
        let keeper = match &runtime {
            Some((.., image)) if has_symtab(image) => None,
            _ => self.find_keeper(module, &mut runtime, outcome),
        };
        self.build(runtime.as_ref(), keeper.as_ref(), outcome)
    }

    /// The file that has the symbols of a stripped or missing one. If it is missing, what stands for it as the mapped
    /// file may turn up on the way.
    fn find_keeper(&self, module: &Module, runtime: &mut Option<Place>, outcome: &mut Outcome) -> Option<Place> {
        let found = runtime.as_ref().map(|(.., image)| image);
        // Without a recorded build ID, that of the file at the recorded path finds its debug file.
        let build_id = module.build_id.or_else(|| found?.build_id);
        let mut places = Vec::new();
        if let Some(link) = found.and_then(Image::debug_link) {
            places = locate::debug_link(module, &link, &self.options);
        }
        places.extend(locate::elsewhere(&Module { build_id, ..module.clone() }, &self.options));
        for (source, path) in places {
            match open_image(&path, build_id.as_ref()) {
                Ok(image) if has_symtab(&image) => return Some((source, path, image)),
                Ok(image) if runtime.is_none() && image.section_of_kind(SHT_DYNSYM).is_some() => {
                    *runtime = Some((source, path, image));
                }
                Ok(_) => outcome.add(source, path, Err(Refusal::NoSymbols)),
                Err(refusal) => outcome.add(source, path, Err(refusal)),
            }
        }
        None
    }

    /// A table of what the mapped file and the one that keeps its symbols have, the latter going first.
    fn build(&self, runtime: Option<&Place>, keeper: Option<&Place>, outcome: &mut Outcome) -> Option<SymbolTable> {
        let mut table = TableBuilder::new(self.options.demangle);
        if let Some((source, path, image)) = runtime {
            outcome.dynamic_only = keeper.is_none() && image.section_of_kind(SHT_SYMTAB).is_none();
            let result = if keeper.is_some() { Err(Refusal::NoSymbols) } else { add_tables(image, image, &mut table) };
            outcome.add(*source, path, result);
        }
        if let Some((source, path, image)) = keeper {
            let placed_in = runtime.map_or(image, |(.., runtime)| runtime);
            outcome.add(*source, path, add_tables(image, placed_in, &mut table));
        }
        if table.len() == 0 {
            return None;
        }
        if let Some((.., image)) = runtime.or(keeper) {
            elf_plt::add_plt_symbols(image, &mut table);
        }
        Some(table.finish())
    }

    fn load_vdso(&self, module: &Module, kernel: Option<&BuildId>, outcome: &mut Outcome) -> Option<SymbolTable> {
        if let Some(entry) = module.build_id.as_ref().and_then(|id| locate::cache_entry(id, &self.options)) {
            let path = entry.join("vdso");
            match open_image(&path, module.build_id.as_ref()) {
                Ok(image) => return self.build(Some(&(Source::BuildIdCache, path, image)), None, outcome),
                Err(refusal) => outcome.add(Source::BuildIdCache, path, Err(refusal)),
            }
        }
        let image = self
            .running_vdso_may_speak(module, kernel)
            .and_then(|()| vdso::running())
            .and_then(|contents| checked_image(contents, module.build_id.as_ref()));
        match image {
            Ok(image) => self.build(Some(&(Source::RunningVdso, module.as_path().into(), image)), None, outcome),
            Err(refusal) => {
                outcome.add(Source::RunningVdso, module.as_path(), Err(refusal));
                None
            }
        }
    }

    /// Whether this process's image may be the recorded one. Its own build ID tells, if it was recorded; otherwise the
    /// kernel's does.
    fn running_vdso_may_speak(&self, module: &Module, kernel: Option<&BuildId>) -> Result<(), Refusal> {
        if &*module.path != b"[vdso]" {
            return Err(Refusal::Other("it is the image for processes of another kind than this one"));
        }
        if self.options.symfs.is_some() {
            return Err(Refusal::Symfs);
        }
        match module.build_id {
            Some(_) => Ok(()),
            None => self.kernel.is_running(kernel),
        }
    }
}

type Place = (Source, PathBuf, Image);

fn has_symtab(image: &Image) -> bool {
    image.section_of_kind(SHT_SYMTAB).is_some()
}

/// Adds a file's symbols, then its dynamic ones. One damaged table does not spoil the other.
fn add_tables(image: &Image, runtime: &Image, table: &mut TableBuilder) -> Result<usize, Refusal> {
    let mut sum = 0;
    let mut refused = Refusal::NoSymbols;
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        match elf_symbols::add_symbols(image, runtime, kind, table) {
            Ok(added) => sum += added,
            Err(Refusal::NoSymbols) => {}
            Err(refusal) => refused = refusal,
        }
    }
    if sum > 0 { Ok(sum) } else { Err(refused) }
}

fn open_image(path: &Path, recorded: Option<&BuildId>) -> Result<Image, Refusal> {
    checked_image(Contents::open(path)?, recorded)
}

fn checked_image(contents: Contents, recorded: Option<&BuildId>) -> Result<Image, Refusal> {
    let image = Image::parse(contents)?;
    match (recorded.copied(), image.build_id) {
        (None, _) => Ok(image),
        (Some(recorded), None) => Err(Refusal::NoBuildId { recorded }),
        (Some(recorded), Some(found)) if same_build_id(&recorded, &found) => Ok(image),
        (Some(recorded), Some(found)) => Err(Refusal::BuildIdMismatch { recorded, found }),
    }
}
