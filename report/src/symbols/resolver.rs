//! Loading of modules' symbols from all sources, once per module.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use zerocopy::FromZeros;

use super::elf::ElfImage;
use super::elf::call_frames::CallFrames;
use super::elf::lines::SourceLines;
use super::explain::MOVED;
use super::inferred::InferredFunctions;
use super::jit::Version;
use super::jit::frames::JitFrames;
use super::kernel::{Kernel, vdso};
use super::module::{Module, ModuleKind};
use super::outcome::{Attempt, Outcome, Refusal, Source};
use super::recorded::{KernelModule, RecordedSymbols};
use super::search::bundle::UnwindingParts;
use super::search::fetch::{self, Wanted};
use super::search::processes::Processes;
use super::search::proof::Origin;
use super::search::{Search, candidates};
use super::shown_names::ShownNames;
use super::symbol_cache::SymbolCache;
use super::table::{Symbol, SymbolId, SymbolTable, TableBuilder, name_hash};
use crate::input::Changed;
use crate::query::{Demangle, SymbolOptions};

/// Loads the symbols of modules and caches them.
#[derive(Debug)]
pub struct Resolver {
    search: Arc<Search>,
    kernel: Arc<Kernel>,
    pub(super) modules: Mutex<FxHashMap<Module, Slot>>,
    /// Files requested from debuginfod servers, with the results.
    asked: Mutex<BTreeMap<Wanted, Vec<Attempt>>>,
}

/// Filled by the first thread that loads the module; others wait for it.
type Slot = Arc<OnceLock<Arc<Loaded>>>;

/// A loaded module: its symbols and the result of the search for them.
#[derive(Debug)]
pub struct Loaded {
    /// Symbols, by the module's kind of address ([`ModuleKind::first_address`]); empty if none were
    /// found.
    pub table: SymbolTable,
    /// Result of the search: every place that was tried.
    pub outcome: Outcome,
    pub module: Module,
    /// [`Module::name`].
    pub(super) name: Box<str>,
    pub(super) demangle: Demangle,
    pub(super) search: Arc<Search>,
    pub(super) kernel: Arc<Kernel>,
    lines: OnceLock<SourceLines>,
    names: ShownNames,
    /// By symbol.
    caches: Vec<SymbolCache>,
    /// Functions where no symbol is, by the numbers that follow those of the symbols.
    inferred: OnceLock<Option<InferredFunctions>>,
    /// Hashes of the names that several symbols have.
    shared_names: OnceLock<FxHashSet<u64>>,
    fingerprint: OnceLock<u64>,
}

impl Loaded {
    /// Returns the module's source lines and inlined functions. The first call searches for the
    /// debug information.
    pub fn lines(&self) -> &SourceLines {
        self.lines.get_or_init(|| {
            let is_file = self.module.kind == ModuleKind::File;
            let file =
                is_file.then(|| self.search.debug_file(&self.module, &mut Outcome::default()));
            let known = self.module.bundled().map(SourceLines::bundled);
            SourceLines::new(
                file.flatten(),
                known.unwrap_or_default(),
                self.demangle,
                self.search.options.source_paths,
            )
        })
    }

    /// Returns the functions where the module has no symbols. The first call searches its file for
    /// them.
    fn inferred(&self) -> Option<&InferredFunctions> {
        let is_file = self.module.kind == ModuleKind::File && self.search.options.inferred;
        let find = || match self.module.bundled() {
            Some(bundled) => InferredFunctions::bundled(bundled, &self.name),
            None => {
                let of = |_: &Path, image: &ElfImage| InferredFunctions::of(image, &self.name);
                self.search.first(&self.module, of)
            }
        };
        self.inferred.get_or_init(|| if is_file { find() } else { None }).as_ref()
    }

    /// Returns an inferred function by its number; `None` if that is a symbol's.
    fn inferred_function(&self, id: SymbolId) -> Option<(&InferredFunctions, SymbolId)> {
        let place = (id.0 as usize).checked_sub(self.table.len())?;
        Some((self.inferred()?, SymbolId(u32::try_from(place).ok()?)))
    }

    /// Returns whether this is the number of a function that has no symbol.
    pub fn is_inferred(&self, id: SymbolId) -> bool {
        id.0 as usize >= self.table.len()
    }

    /// Returns the number of the function at `address`: of a symbol, else of an inferred function.
    pub fn find(&self, address: u64) -> Option<SymbolId> {
        self.find_range(address).0
    }

    /// Like [`Loaded::find`]; also returns a range around `address` in which every address has the
    /// same result.
    #[inline]
    pub fn find_range(&self, address: u64) -> (Option<SymbolId>, Range<u64>) {
        match self.table.find_range(address) {
            (None, gap) => self.find_in_gap(address, gap),
            found => found,
        }
    }

    /// Returns the inferred function at an address in a gap between symbols.
    fn find_in_gap(&self, address: u64, gap: Range<u64>) -> (Option<SymbolId>, Range<u64>) {
        let Some(inferred) = self.inferred() else { return (None, gap) };
        let numbered = inferred.find(address).and_then(|(SymbolId(place), function)| {
            let id = u32::try_from(self.table.len()).ok()?.checked_add(place)?;
            Some((SymbolId(id), function))
        });
        match numbered {
            Some((id, function)) => {
                (Some(id), function.start.max(gap.start)..function.end.min(gap.end))
            }
            None => (None, address..address.saturating_add(1)),
        }
    }

    /// Returns the function with this number, from a lookup in this module.
    pub fn symbol(&self, id: SymbolId) -> Option<Symbol<&[u8]>> {
        self.table.get(id).or_else(|| {
            let (inferred, place) = self.inferred_function(id)?;
            let Symbol { start, end, name } = inferred.get(place)?;
            Some(Symbol { start, end, name: name.as_bytes() })
        })
    }

    /// Returns the first address of the function with this number.
    pub fn start(&self, id: SymbolId) -> Option<u64> {
        self.table.start(id).or_else(|| self.symbol(id).map(|symbol| symbol.start))
    }

    /// Returns the offset from which a file that is in use may be another than the one that was
    /// read.
    fn lost(&self) -> Option<u64> {
        let inferred = || self.inferred.get()?.as_ref()?.lost();
        self.table.lost().or_else(inferred)
    }

    /// Returns the name to show for a function returned by a lookup.
    pub fn name(&self, id: SymbolId) -> Option<Cow<'_, str>> {
        if let Some((inferred, place)) = self.inferred_function(id) {
            return Some(Cow::Borrowed(inferred.get(place)?.name));
        }
        let slot = self.names.of(id)?;
        if let Some(name) = slot.get() {
            return Some(Cow::Borrowed(name));
        }
        match self.shown(self.table.get(id)?.name) {
            Cow::Owned(name) => Some(Cow::Borrowed(slot.get_or_init(|| name.into()))),
            plain @ Cow::Borrowed(_) => Some(plain),
        }
    }

    /// Returns the cache for what is made of a function's name.
    pub fn cache(&self, id: SymbolId) -> Option<&SymbolCache> {
        match self.inferred_function(id) {
            Some((inferred, place)) => inferred.cache(place),
            None => self.caches.get(id.0 as usize),
        }
    }

    /// Returns whether several symbols have the name of this one.
    pub(super) fn shares_name(&self, id: SymbolId) -> bool {
        let shared = self.shared_names.get_or_init(|| self.table.shared_names());
        !shared.is_empty()
            && self.table.get(id).is_some_and(|symbol| shared.contains(&name_hash(symbol.name)))
    }

    /// Returns a number that only copies of one file have in common.
    pub(super) fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| self.table.fingerprint())
    }

    /// Returns a name from this module's table with all that tells functions apart.
    pub(super) fn whole<'a>(&self, name: &'a [u8]) -> Cow<'a, str> {
        let demangle = if self.demangle == Demangle::No { Demangle::No } else { Demangle::Full };
        demangle.spelt(name)
    }

    /// Returns a name from this module's table as it is shown: demangled if so requested, which for
    /// the kernel's names is a separate option.
    pub fn shown<'a>(&self, name: &'a [u8]) -> Cow<'a, str> {
        self.demangle.spelt(name)
    }
}

/// Builds the table of the symbols that the recording has of a module.
fn symbols_recorded(
    symbols: &RecordedSymbols,
    module: &Module,
    demangle: bool,
) -> Result<SymbolTable, Refusal> {
    let kernel_module = if let ModuleKind::KernelModule { start } = module.kind {
        Some(KernelModule { name: module.kernel_module_name(), start })
    } else {
        None
    };
    symbols.table(kernel_module.as_ref(), module.origin.reference.as_ref(), demangle)
}

impl Drop for Resolver {
    /// Leaves the freeing of tables and names to the thread pool: a command that ends does not wait
    /// for it.
    fn drop(&mut self) {
        let modules = std::mem::take(&mut self.modules);
        rayon::spawn(|| drop(modules));
    }
}

impl Resolver {
    /// Creates a resolver without any loaded modules.
    pub fn new(options: SymbolOptions) -> Self {
        let host = Origin::here();
        let kernel = Arc::new(Kernel::new("/", host.clone(), options.cache.clone()));
        let processes = Processes::new(Path::new("/"));
        let search = Arc::new(Search { options, processes, host });
        Self { search, kernel, modules: Mutex::default(), asked: Mutex::default() }
    }

    /// Fetches the missing files of these modules from debuginfod servers, if any are configured;
    /// the next [`Resolver::load`] finds them. No file is requested twice.
    pub fn fetch(&self, modules: &[Module]) {
        let Some(servers) = &self.search.options.servers else { return };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        // Several containers may have copies of the same file.
        let mut wanted: BTreeMap<Wanted, String> =
            modules.iter().flat_map(|module| self.missing_files(module)).collect();
        wanted.retain(|file, _| !asked.contains_key(file));
        if !wanted.is_empty() {
            let attempts = fetch::all(servers, &wanted);
            asked.extend(wanted.into_keys().zip(attempts));
        }
        drop(asked);
        let mut loaded = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|module, _| !modules.contains(module));
    }

    /// Returns the files of a module that are neither on this machine nor in debuginfod's cache,
    /// with its name.
    fn missing_files(&self, module: &Module) -> Vec<(Wanted, String)> {
        let known = match &module.kind {
            ModuleKind::File => self.search.known(module),
            // Only their debug files are useful.
            ModuleKind::Kernel | ModuleKind::KernelModule { .. } => {
                module.build_id.map(|build_id| (build_id, true))
            }
            _ => None,
        };
        let Some((build_id, has_own)) = known else { return Vec::new() };
        let mut kinds = vec![candidates::DEBUG_INFO];
        kinds.extend((!has_own).then_some(candidates::EXECUTABLE));
        kinds.retain(|kind| !self.search.is_fetched(&build_id, kind));
        let name = module.name();
        kinds.into_iter().map(|kind| ((build_id, kind), name.clone().into_owned())).collect()
    }

    /// Returns the requests to servers for a module's files, with the results.
    fn server_attempts(&self, module: &Module) -> Vec<Attempt> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_empty() {
            return Vec::new();
        }
        let build_id = module.build_id.or_else(|| Some(self.search.known(module)?.0));
        let mut all = Vec::new();
        for ((id, _), attempts) in &*asked {
            if build_id.is_some_and(|build_id| build_id.is_same(id)) {
                all.extend_from_slice(attempts);
            }
        }
        all
    }

    /// Returns `module` with its symbols. The first call loads it; concurrent calls for the same
    /// module wait for that.
    pub fn load(&self, module: &Module) -> Arc<Loaded> {
        let module = self.search.unchanged(module);
        let slot = {
            let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            match modules.get(&*module) {
                Some(slot) => slot.clone(),
                None => modules.entry(module.clone().into_owned()).or_default().clone(),
            }
        };
        slot.get_or_init(|| Arc::new(self.load_now(&module))).clone()
    }

    /// Returns the first file whose symbols are in use and that was changed, as an error: names may
    /// be wrong.
    pub fn check_unchanged(&self) -> Result<(), Changed> {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let lost =
            modules.iter().filter_map(|(module, slot)| Some((module, slot.get()?.lost()?))).min();
        lost.map_or(Ok(()), |(module, from)| {
            Err(Changed { name: module.name().into_owned(), from })
        })
    }

    /// Reads the call frame information of `module` from the mapped file or its cached copy, or
    /// from this process's vdso. Not cached.
    pub(crate) fn call_frames(&self, module: &Module) -> Option<CallFrames> {
        self.of_image(module, CallFrames::of)
    }

    /// Reads what unwinding needs of a JIT's code; `None` if there is no dump of it. Not cached.
    pub(crate) fn jit_frames(&self, module: &Module) -> Option<JitFrames> {
        self.search.jit_frames(module)
    }

    /// Reads what unwinding needs of `module`, to be put into a bundle.
    pub(crate) fn unwinding_parts(&self, module: &Module) -> Option<UnwindingParts> {
        self.of_image(module, UnwindingParts::of)
    }

    /// Returns the first `Some` that `of` gives for a module: for its parts in a bundle, for the
    /// mapped file (with its debug file, if that has rules of its own), for its cached copy, for
    /// this process's vdso.
    fn of_image<T>(
        &self,
        module: &Module,
        of: fn(&ElfImage, Option<&ElfImage>) -> Option<T>,
    ) -> Option<T> {
        let bundled = module.bundled().and_then(|bundled| of(bundled.image.as_ref()?, None));
        bundled.or_else(|| match &module.kind {
            ModuleKind::File => self.search.first_with_rules(module, of),
            ModuleKind::Vdso => of(&vdso::image(&self.search, &self.kernel, module).ok()?, None),
            _ => None,
        })
    }

    fn load_now(&self, module: &Module) -> Loaded {
        let mut outcome =
            Outcome { note: module.is_moved.then(|| MOVED.into()), ..Outcome::default() };
        let mut demangle = self.search.options.demangle;
        let demangles = demangle != Demangle::No;
        let bundled = module.bundled().and_then(|bundled| {
            let table = bundled.table(&module.name(), demangles);
            outcome.keep(Source::Bundle, Path::new(&bundled.source), Ok(table))
        });
        let recorded = bundled.or_else(|| {
            module.recorded.as_ref().and_then(|symbols| {
                outcome.keep(
                    Source::Recording,
                    module.as_path(),
                    symbols_recorded(symbols, module, demangles),
                )
            })
        });
        let is_kernels = matches!(
            module.kind,
            ModuleKind::Kernel | ModuleKind::KernelModule { .. } | ModuleKind::KernelSymbol { .. }
        );
        if is_kernels && !self.search.options.demangle_kernel {
            demangle = Demangle::No;
        }
        let table = match &module.kind {
            _ if recorded.is_some() => recorded,
            ModuleKind::File => self.search.symbols(module, &mut outcome),
            ModuleKind::Vdso => vdso::load(&self.search, &self.kernel, module, &mut outcome),
            ModuleKind::Kernel | ModuleKind::KernelModule { .. } => {
                self.kernel.load(module, &self.search.options, &mut outcome)
            }
            ModuleKind::PerfMap { .. } => self.search.jit_symbols(module, &mut outcome),
            ModuleKind::KernelSymbol { start, end } => {
                let mut table = TableBuilder::new(false);
                table.add(&module.path, *start, *end);
                outcome.keep(Source::Record, module.as_path(), Ok(table.finish()))
            }
            ModuleKind::Opaque => None,
        };
        outcome.attempts.extend(self.server_attempts(module));
        let table = table.unwrap_or_default();
        Loaded {
            names: ShownNames::new(table.len()),
            // Zeroed by the system: those of symbols that are never shown cost nothing.
            caches: SymbolCache::new_vec_zeroed(table.len()).unwrap_or_default(),
            table,
            outcome,
            demangle,
            name: module.name().into(),
            module: module.clone(),
            search: self.search.clone(),
            kernel: self.kernel.clone(),
            lines: OnceLock::new(),
            inferred: OnceLock::new(),
            shared_names: OnceLock::new(),
            fingerprint: OnceLock::new(),
        }
    }

    /// Returns the versions of a JIT's code: those in the recording's bundle, or those of its dump,
    /// if that is proven and has the times of the recording.
    pub(crate) fn jit_versions(&self, module: &Module) -> Vec<Version> {
        if let Some(bundled) = module.bundled() {
            return bundled.versions.iter().copied().map(Version::from).collect();
        }
        self.search.jit_versions(module).unwrap_or_default()
    }

    /// Returns whether a JIT lists code of a module in a range of addresses.
    pub(crate) fn has_jit_code(&self, module: &Module, range: &Range<u64>) -> bool {
        let (found, around) = self.load(module).table.find_range(range.start);
        found.is_some() || around.end < range.end
    }
}

/// Finds functions in a file's modules. Loads a module when it is first needed.
#[derive(Debug)]
pub(crate) struct Functions<'f> {
    modules: Vec<(&'f Module, OnceLock<Arc<Loaded>>)>,
    resolver: &'f Resolver,
}

impl<'f> Functions<'f> {
    /// Creates a finder for `modules`, indexed by module number.
    pub(crate) fn new(modules: Vec<&'f Module>, resolver: &'f Resolver) -> Self {
        Self {
            modules: modules.into_iter().map(|module| (module, OnceLock::new())).collect(),
            resolver,
        }
    }

    /// Loads the modules that were hit on all cores, given the number of hits of each: workers that
    /// meet them one by one would wait for each other. One worker alone would not. Those that take
    /// long begin first: the kernel, whose list may have to be made, then those with the largest
    /// files.
    pub(crate) fn preload(&self, hits: impl FnOnce() -> Vec<u64>) {
        if rayon::current_num_threads() == 1 {
            return;
        }
        let mut hit: Vec<(bool, u64, usize)> = Vec::new();
        for (number, ((module, _), hits)) in self.modules.iter().zip(hits()).enumerate() {
            if hits > 0 {
                let size = std::fs::metadata(module.as_path()).map_or(0, |file| file.len());
                hit.push((module.kind == ModuleKind::Kernel, size, number));
            }
        }
        hit.sort_unstable_by_key(|module| std::cmp::Reverse(*module));
        let next = AtomicUsize::new(0);
        rayon::broadcast(|_| {
            while let Some((.., module)) = hit.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.loaded(*module);
            }
        });
    }

    /// Returns the function at an address of a module, and the addresses around it with the same
    /// result.
    pub(crate) fn find(&self, module: usize, address: u64) -> (Option<SymbolId>, Range<u64>) {
        self.loaded(module).map_or((None, 0..u64::MAX), |loaded| loaded.find_range(address))
    }

    /// Returns the symbols of a module. They stay the same, even if its debug file is fetched
    /// meanwhile.
    pub(crate) fn loaded(&self, module: usize) -> Option<&Arc<Loaded>> {
        let (module, slot) = self.modules.get(module)?;
        Some(slot.get_or_init(|| self.resolver.load(module)))
    }
}
