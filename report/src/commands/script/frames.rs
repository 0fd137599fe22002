//! Places and names of a sample's addresses.

use std::borrow::Cow;
use std::sync::Arc;

use recrep_format::abi::CpuMode;
use rustc_hash::FxHashMap;

use super::fields::{Field, Fields};
use crate::pipeline::session::Session;
use crate::symbols::{Functions, Loaded, Module, ModuleKind, Source, SourceFrame, SymbolId};
use crate::table::module_use::Doubts;
use crate::terminal::digits;
use crate::terminal::escape::escape;
use crate::timeline::{Epoch, ModuleId, Moment, Place, SpaceEpoch, Task};

/// A function at an address.
#[derive(Clone)]
pub(super) struct Function {
    /// Its name, escaped.
    pub(super) name: Arc<str>,
    /// Offset of the address in it.
    pub(super) offset: u64,
}

/// Finds places and names for one worker; names are made once.
pub(super) struct Finder<'s, 'f> {
    session: &'s Session<'f>,
    functions: &'s Functions<'s>,
    kernel_path: bool,
    /// Names of functions by module and symbol.
    names: FxHashMap<(u32, SymbolId), Arc<str>>,
    /// Text of each module without an offset, once it was printed.
    dsos: Vec<Option<Box<str>>>,
    inlined: FxHashMap<(u32, u64), Arc<[SourceFrame]>>,
    /// The last epoch of each address space; that of the kernel alone comes first.
    epochs: Vec<Option<Epoch>>,
    lookups: Vec<Lookups>,
    /// Position of the record at hand in the listing.
    now: usize,
}

/// Lookups of addresses in a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lookups {
    all: u64,
    /// Lookups that found a function.
    found: u64,
    /// Position of the first record with a lookup that found a function.
    first: Option<usize>,
}

impl Lookups {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.found += other.found;
        self.first = self.first.into_iter().chain(other.first).min();
    }
}

impl<'s, 'f> Finder<'s, 'f> {
    pub(super) fn new(session: &'s Session<'f>, functions: &'s Functions<'s>, kernel_path: bool) -> Self {
        let modules = session.side_band.modules.len();
        Self {
            session,
            functions,
            kernel_path,
            names: FxHashMap::default(),
            dsos: vec![None; modules],
            inlined: FxHashMap::default(),
            epochs: Vec::new(),
            lookups: vec![Lookups::default(); modules],
            now: 0,
        }
    }

    /// Takes note of the record at hand: its position in the listing.
    pub(super) fn begin(&mut self, position: usize) {
        self.now = position;
    }

    pub(super) fn place(&self, mode: CpuMode, task: &Task, ip: u64, at: Moment) -> Place {
        self.session.timeline.place(mode, task, ip, at)
    }

    /// Returns the place of an address that may belong to the other CPU mode: code of one, data or a branch's end in
    /// the other.
    pub(super) fn place_of_either(&self, mode: CpuMode, task: &Task, address: u64, at: Moment) -> Place {
        let place = self.place(mode, task, address, at);
        let other = if mode == CpuMode::Kernel { CpuMode::User } else { CpuMode::Kernel };
        if place.module.is_some() { place } else { self.place(other, task, address, at) }
    }

    /// Returns the epoch of a task's address space.
    pub(super) fn epoch(&mut self, task: &Task, at: Moment) -> SpaceEpoch {
        let index = task.space.map_or(0, |space| space.0 as usize + 1);
        if self.epochs.len() <= index {
            self.epochs.resize(index + 1, None);
        }
        let timeline = &self.session.timeline;
        let Some(known) = self.epochs.get_mut(index) else { return timeline.epoch(task.space, at).of };
        match known {
            Some(epoch) if epoch.covers(task.space, at) => epoch.of,
            _ => known.insert(timeline.epoch(task.space, at)).of,
        }
    }

    fn module(&self, place: Place) -> Option<&'s Module> {
        self.session.side_band.modules.get_index(place.module?.0 as usize)
    }

    fn loaded(&self, place: Place) -> Option<&'s Loaded> {
        self.functions.loaded(place.module?.0 as usize).map(|loaded| &**loaded)
    }

    /// Appends the module as `perf script` prints it: its whole path in parentheses; with the offset in it if it is a
    /// file's.
    pub(super) fn dso(&mut self, place: Place, with_offset: bool, out: &mut Vec<u8>) {
        let Some(module) = place.module.map(|module| module.0 as usize) else {
            return out.extend_from_slice(b" ([unknown])");
        };
        if with_offset {
            return out.extend_from_slice(self.dso_text(place, true).as_bytes());
        }
        if self.dsos.get(module).is_none_or(Option::is_none) {
            let text = self.dso_text(place, false).into_boxed_str();
            if let Some(slot) = self.dsos.get_mut(module) {
                *slot = Some(text);
            }
        }
        if let Some(Some(text)) = self.dsos.get(module) {
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn dso_text(&self, place: Place, with_offset: bool) -> String {
        let Some(module) = self.module(place) else { return " ([unknown])".into() };
        let kernel = matches!(module.kind, ModuleKind::Kernel);
        let file = if kernel && (self.kernel_path || with_offset) { self.kernel_file(place) } else { None };
        let is_file = match module.kind {
            ModuleKind::PerfMap { .. } | ModuleKind::KernelSymbol { .. } => false,
            ModuleKind::Kernel => !self.is_listed(place),
            _ => true,
        };
        let whole_path = file.or_else(|| {
            let is_driver = matches!(module.kind, ModuleKind::KernelModule { .. });
            (is_driver && self.kernel_path).then(|| String::from_utf8_lossy(&module.path).into_owned())
        });
        let name = whole_path.map_or_else(|| module.long_name(), Cow::Owned);
        let name = escape(&name);
        if with_offset && is_file {
            return format!(" ({name}+{})", hex(place.address));
        }
        format!(" ({name})")
    }

    /// Returns whether the kernel's symbols came from a list of them.
    fn is_listed(&self, place: Place) -> bool {
        self.loaded(place).is_some_and(|loaded| loaded.outcome.found().any(|at| at.source == Source::Kallsyms))
    }

    /// Returns the image that the kernel's symbols came from, unless they came from a list of them.
    fn kernel_file(&self, place: Place) -> Option<String> {
        let found = self.loaded(place)?.outcome.found().find(|attempt| attempt.source == Source::Vmlinux)?;
        Some(found.path.display().to_string())
    }

    /// Returns the base name of the module.
    pub(super) fn short_dso(&self, place: Place) -> Option<String> {
        self.module(place).map(|module| escape(&module.name()).into_owned())
    }

    /// Returns the module's path.
    pub(super) fn long_dso(&self, place: Place) -> Option<String> {
        self.module(place).map(|module| module.long_name().into_owned())
    }

    /// Returns the function at a place.
    pub(super) fn symbol(&mut self, place: Place) -> Option<Function> {
        let module = place.module?.0;
        let loaded = self.loaded(place)?;
        let symbol = loaded.table.find(place.address);
        let start = symbol.and_then(|symbol| loaded.table.start(symbol));
        self.count(place.module, 1, start.is_some());
        let (symbol, start) = (symbol?, start?);
        let name = match self.names.get(&(module, symbol)) {
            Some(name) => name.clone(),
            None => {
                let name: Arc<str> = escape(&loaded.name(symbol)?).into();
                self.names.insert((module, symbol), name.clone());
                name
            }
        };
        Some(Function { name, offset: place.address.wrapping_sub(start) })
    }

    /// Returns the number of lookups in the module of a place.
    pub(super) fn lookups(&self, place: Place) -> u64 {
        let lookups = place.module.and_then(|module| self.lookups.get(module.0 as usize));
        lookups.map_or(0, |lookups| lookups.all)
    }

    /// Counts lookups of an address in a module.
    pub(super) fn count(&mut self, module: Option<ModuleId>, times: u64, is_found: bool) {
        let Some(lookups) = module.and_then(|module| self.lookups.get_mut(module.0 as usize)) else { return };
        lookups.all += times;
        if is_found {
            lookups.found += times;
            lookups.first.get_or_insert(self.now);
        }
    }

    /// Returns the doubts about the names that these workers found.
    pub(super) fn doubts(all: impl IntoIterator<Item = Self>, functions: &Functions<'_>) -> Doubts {
        let mut modules: Vec<(Lookups, usize)> = Vec::new();
        for finder in all {
            (modules.len()..finder.lookups.len()).for_each(|module| modules.push((Lookups::default(), module)));
            modules.iter_mut().zip(finder.lookups).for_each(|((all, _), lookups)| all.add(lookups));
        }
        modules.retain(|(lookups, _)| lookups.all > 0);
        // The first doubt is the one that is shown.
        modules.sort_by_key(|(lookups, _)| lookups.first.unwrap_or(usize::MAX));
        let mut doubts = Doubts::default();
        for (lookups, loaded) in modules.iter().filter_map(|(lookups, at)| Some((lookups, functions.loaded(*at)?))) {
            doubts.add(&loaded.outcome, lookups.all, lookups.found);
        }
        doubts
    }

    /// Returns the functions that debug information has at an address of a module, innermost first.
    pub(super) fn inlined(&mut self, place: Place, address: u64) -> Arc<[SourceFrame]> {
        let Some(module) = place.module else { return [].into() };
        if let Some(known) = self.inlined.get(&(module.0, address)) {
            return known.clone();
        }
        let found: Arc<[SourceFrame]> =
            self.loaded(place).map_or([].into(), |loaded| loaded.lines().frames(address).into());
        self.inlined.insert((module.0, address), found.clone());
        found
    }

    /// Appends function and module of a place, as far as the columns have them.
    pub(super) fn names(&mut self, place: Place, fields: &Fields, out: &mut Vec<u8>) {
        if fields.has(Field::Sym) {
            match self.symbol(place) {
                Some(function) => function.print(fields, out),
                None => out.extend_from_slice(b" [unknown]"),
            }
        }
        if fields.has(Field::Dso) {
            self.dso(place, fields.has(Field::DsOff), out);
        }
    }
}

impl Function {
    /// Appends its name, and the offset if the columns have it.
    pub(super) fn print(&self, fields: &Fields, out: &mut Vec<u8>) {
        out.push(b' ');
        out.extend_from_slice(self.name.as_bytes());
        if fields.has(Field::SymOff) {
            out.extend_from_slice(b"+0x");
            digits::hex(out, self.offset, 0);
        }
    }
}

/// Formats a number as C's `%#x` does.
pub(super) fn hex(number: u64) -> String {
    if number == 0 { "0".into() } else { format!("{number:#x}") }
}
