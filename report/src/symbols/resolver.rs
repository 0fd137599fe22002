//! The search for a module's symbols, from one source to the next, each module once.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use recrep_format::build_id::BuildId;
use rustc_hash::FxHashMap;

use super::call_frames::CallFrames;
use super::elf::Image;
use super::fetch::{self, Wanted};
use super::file::{self, Contents};
use super::kernel::Kernel;
use super::lines::Lines;
use super::module::{JitDump, Module, ModuleKind};
use super::origin::Host;
use super::outcome::{Attempt, Outcome, Refusal, Source};
use super::roots::Roots;
use super::search::{Proof, Search, build, checked_image, open_image};
use super::table::{Binding, RawSymbol, Symbol, SymbolId, SymbolTable, TableBuilder};
use super::{demangle, jitdump, locate, perf_map, vdso};
use crate::query::SymbolOptions;

/// Loads modules and keeps them.
#[derive(Debug)]
pub struct Resolver {
    sources: Arc<Sources>,
    kernel: Kernel,
    modules: Mutex<FxHashMap<Module, Slot>>,
    /// What servers have been asked for ([`Wanted::file`]), and what came of that.
    asked: Mutex<FxHashMap<(BuildId, bool), Vec<Attempt>>>,
}

/// Where files are looked for.
#[derive(Debug)]
struct Sources {
    options: SymbolOptions,
    roots: Roots,
    host: Host,
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
    module: Module,
    sources: Arc<Sources>,
    lines: OnceLock<Lines>,
}

impl Sources {
    fn search(&self) -> Search<'_> {
        Search { options: &self.options, roots: &self.roots, host: &self.host }
    }
}

impl Loaded {
    /// The symbol at an address as [`Module::lookup_address`] gives it.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<Symbol<'_>> {
        self.table.lookup(address)
    }

    /// What it is.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Its source lines and inlined functions: the debug information is looked for when first asked for.
    pub fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| {
            let is_file = self.module.kind == ModuleKind::File;
            let file = is_file.then(|| self.sources.search().debug_file(&self.module, &mut Outcome::default()));
            Lines::new(file.flatten(), self.demangle, self.sources.options.source_paths)
        })
    }

    /// The name to show for a symbol that a lookup gave.
    #[must_use]
    pub fn name(&self, id: SymbolId) -> Option<Cow<'_, str>> {
        Some(self.shown(self.table.get(id)?.name))
    }

    /// How a name from this module's table is shown. The kernel's names are not taken for
    /// mangled ones unless that is asked for.
    #[must_use]
    pub fn shown<'a>(&self, name: &'a [u8]) -> Cow<'a, str> {
        if self.demangle { demangle::demangled(name) } else { String::from_utf8_lossy(name) }
    }
}

impl Resolver {
    /// A resolver that has loaded nothing.
    #[must_use]
    pub fn new(options: SymbolOptions) -> Self {
        let host = Host::this();
        let kernel = Kernel::new("/", host.clone());
        let sources = Arc::new(Sources { options, roots: Roots::new(Path::new("/")), host });
        Self { sources, kernel, modules: Mutex::default(), asked: Mutex::default() }
    }

    /// Asks the servers for what these modules lack, if there are any to ask; the next [`Resolver::load`] finds what came of it.
    /// Nothing is asked for twice.
    pub fn fetch(&self, modules: &[Module]) {
        let Some(servers) = &self.sources.options.servers else { return };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted: Vec<Wanted> = modules.iter().flat_map(|module| self.lacks(module)).collect();
        wanted.retain(|wanted| !asked.contains_key(&wanted.file()));
        wanted.sort();
        // Containers have copies of one file.
        wanted.dedup_by_key(|wanted| wanted.file());
        if !wanted.is_empty() {
            let attempts = fetch::all(servers, &wanted);
            asked.extend(wanted.iter().map(Wanted::file).zip(attempts));
        }
        drop(asked);
        let mut loaded = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|module, _| !modules.contains(module));
    }

    /// The files of a module that are neither here nor in debuginfod's cache.
    fn lacks(&self, module: &Module) -> Vec<Wanted> {
        let search = self.sources.search();
        let (build_id, has_own) = match &module.kind {
            ModuleKind::File => match search.known(module) {
                Some(known) => known,
                None => return Vec::new(),
            },
            // Their debug files are all that is of use.
            ModuleKind::Kernel | ModuleKind::KernelModule { .. } => match module.build_id {
                Some(build_id) => (build_id, true),
                None => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let name = module.name().into_owned();
        let kinds = [(locate::DEBUG_INFO, false), (locate::EXECUTABLE, true)];
        let is_here =
            |(kind, executable): &(&str, bool)| (*executable && has_own) || search.is_fetched(&build_id, kind);
        let wanted = |(_, executable)| Wanted { build_id, executable, name: name.clone() };
        kinds.into_iter().filter(|kind| !is_here(kind)).map(wanted).collect()
    }

    /// What servers said that were asked for a module's files.
    fn said_of(&self, module: &Module) -> Vec<Attempt> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_empty() {
            return Vec::new();
        }
        let build_id = module.build_id.or_else(|| Some(self.sources.search().known(module)?.0));
        let mut all: Vec<_> = asked.iter().filter(|((id, _), _)| Some(*id) == build_id).collect();
        all.sort_by_key(|(file, _)| *file);
        all.into_iter().flat_map(|(_, attempts)| attempts.iter().cloned()).collect()
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
            ModuleKind::File => self.sources.search().first(module, CallFrames::of),
            ModuleKind::Vdso => CallFrames::of(&self.running_vdso(module).ok()?),
            _ => None,
        }
    }

    fn load_now(&self, module: &Module) -> Loaded {
        let mut outcome = Outcome::default();
        let mut demangle = self.sources.options.demangle;
        let table = match &module.kind {
            ModuleKind::File => self.sources.search().symbols(module, &mut outcome),
            ModuleKind::Vdso => self.load_vdso(module, &mut outcome),
            ModuleKind::Kernel | ModuleKind::KernelModule { .. } => {
                demangle &= self.sources.options.demangle_kernel;
                self.kernel.load(module, &self.sources.options, &mut outcome)
            }
            ModuleKind::PerfMap { pid, dump } => self.load_jit(module, *pid, dump.as_ref(), &mut outcome),
            ModuleKind::KernelSymbol { start, end } => {
                demangle &= self.sources.options.demangle_kernel;
                let mut table = TableBuilder::new(false);
                let name = table.add_name(&module.path);
                table.push(RawSymbol { start: *start, end: *end, name, binding: Binding::Global, ifunc: false });
                outcome.keep(Source::Record, module.as_path(), Ok(table.finish()))
            }
            ModuleKind::Opaque => None,
        };
        if self.sources.options.servers.is_some() {
            outcome.attempts.extend(self.said_of(module));
        }
        Loaded {
            table: table.unwrap_or_default(),
            outcome,
            demangle,
            module: module.clone(),
            sources: self.sources.clone(),
            lines: OnceLock::new(),
        }
    }

    /// A JIT's code: its map where it wrote it, the map in its container, its dump. They have no build ID: what shows that they are the
    /// recorded process's is that the recording was made on this machine.
    fn load_jit(
        &self,
        module: &Module,
        pid: i32,
        dump: Option<&JitDump>,
        outcome: &mut Outcome,
    ) -> Option<SymbolTable> {
        let Sources { options, roots, host } = &*self.sources;
        let made = if options.trusts_paths() { Ok(()) } else { host.made(&module.origin) };
        let mounts = module.mounts.filter(|_| options.symfs.is_none() && made.is_ok());
        let inner = mounts.and_then(|mounts| roots.perf_map(pid, mounts));
        let maps = inner.into_iter().chain([locate::below(options, module.as_path())]);
        for path in maps {
            let found = file::read_all(&path).and_then(|text| {
                made.clone()?;
                Ok(perf_map::parse(&text, options.demangle))
            });
            if let Some(table) = outcome.keep(Source::PerfMap, &path, found) {
                return Some(table);
            }
        }
        let dump = dump?;
        let recorded = Path::new(OsStr::from_bytes(&dump.path));
        let path = match mounts.and_then(|mounts| roots.of(mounts)) {
            Some(root) => root.join(recorded.strip_prefix("/").unwrap_or(recorded)),
            None => locate::below(options, recorded),
        };
        let found = Contents::open(&path).and_then(|contents| {
            made?;
            if !options.trusts_paths() {
                // The JIT may go on writing after the recording.
                contents.is_recorded(dump.file, None)?;
            }
            jitdump::parse(&contents.read(0, contents.len())?, options.demangle)
        });
        outcome.keep(Source::JitDump, &path, found)
    }

    fn load_vdso(&self, module: &Module, outcome: &mut Outcome) -> Option<SymbolTable> {
        let Sources { options, .. } = &*self.sources;
        let copy = module.build_id.and_then(|id| {
            let path = locate::cache_entry(&id, options)?.join("vdso");
            Some((Source::BuildIdCache, open_image(&path, Proof::BuildId(id), &module.origin), path))
        });
        let running = || (Source::RunningVdso, self.running_vdso(module), module.as_path().into());
        for (source, image, path) in copy.into_iter().chain(std::iter::once_with(running)) {
            match image {
                Ok(image) => return build(Some(&(source, path, image)), None, options.demangle, outcome),
                Err(refusal) => outcome.add(source, path, Err(refusal)),
            }
        }
        None
    }

    /// This process's image, if it is shown to be the recorded one: by its own build ID; without one by the kernel's, or by the machine
    /// where that of the kernel was not recorded either.
    fn running_vdso(&self, module: &Module) -> Result<Image, Refusal> {
        if &*module.path != b"[vdso]" {
            return Err(Refusal::Other("it is the image for processes of another kind than this one"));
        }
        if self.sources.options.symfs.is_some() {
            return Err(Refusal::Symfs);
        }
        let proof = match (module.build_id, module.origin.kernel) {
            (Some(build_id), _) => Proof::BuildId(build_id),
            (None, Some(_)) => self.kernel.is_running(&module.origin).map(|()| Proof::Trust)?,
            (None, None) => {
                let made = self.sources.host.made(&module.origin);
                made.or_else(|_| self.kernel.is_running(&module.origin)).map(|()| Proof::Trust)?
            }
        };
        checked_image(vdso::running()?, proof, &module.origin)
    }
}
