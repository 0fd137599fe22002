//! Loading of modules' symbols from all sources, once per module.

pub(crate) mod function;
pub(crate) mod function_code;
pub(crate) mod functions;
pub(crate) mod inferred;
pub(crate) mod loaded;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;
use zerocopy::FromZeros;

use crate::input::Changed;
use crate::query::{Demangle, SymbolOptions};
use crate::symbols::elf::ElfImage;
use crate::symbols::elf::call_frames::CallFrames;
use crate::symbols::explain::MOVED;
use crate::symbols::module::bundle::UnwindingParts;
use crate::symbols::module::origin::Origin;
use crate::symbols::module::{Module, ModuleKind};
use crate::symbols::names::table::TableBuilder;
use crate::symbols::outcome::{Attempt, Outcome, Source};
use crate::symbols::search::candidates;
use crate::symbols::search::fetch::{self, Wanted};
use crate::symbols::search::jit::Version;
use crate::symbols::search::jit::frames::JitFrames;
use crate::symbols::search::kernel::{Kernel, vdso};
use crate::symbols::search::mapped::Search;
use crate::symbols::search::processes::Processes;
use crate::symbols::shown_names::ShownNames;
use crate::symbols::symbol_cache::SymbolCache;
use loaded::Loaded;

/// Loads the symbols of modules and caches them.
#[derive(Debug)]
pub struct Resolver {
    search: Arc<Search>,
    kernel: Arc<Kernel>,
    pub(super) modules: Mutex<FxHashMap<Module, ModuleSlot>>,
    /// Files requested from debuginfod servers, with the results.
    asked: Mutex<BTreeMap<Wanted, Vec<Attempt>>>,
}

/// Filled by the first thread that loads the module; others wait for it.
type ModuleSlot = Arc<OnceLock<Arc<Loaded>>>;

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
                let table = symbols.table(module, demangles);
                outcome.keep(Source::Recording, module.as_path(), table)
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
