//! Addresses of a sample: what mapping, function and source line they belong to.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use recrep_format::abi::{CpuMode, context};
use rustc_hash::FxHashMap;

use super::fields::{Field, Fields};
use crate::pipeline::session::Session;
use crate::query::warning::Warning;
use crate::symbols::{Inlined, Loaded, Module, ModuleKind, Resolver, Source, SymbolId};
use crate::table::module_use::Doubts;
use crate::terminal::escape::escape;
use crate::timeline::{Moment, Place, Task};

/// A function at an address.
pub(super) struct Function {
    /// Its name.
    pub(super) name: String,
    /// How far into it the address is.
    pub(super) offset: u64,
}

/// Finds places and names; modules are loaded when first asked for.
pub(super) struct Finder<'s, 'f> {
    session: &'s Session<'f>,
    resolver: &'s Resolver,
    loaded: Vec<Option<Arc<Loaded>>>,
    kernel_path: bool,
    inlined: FxHashMap<(u32, u64), Arc<[Inlined]>>,
    doubts: Doubts,
}

impl<'s, 'f> Finder<'s, 'f> {
    pub(super) fn new(session: &'s Session<'f>, resolver: &'s Resolver, kernel_path: bool) -> Self {
        let loaded = vec![None; session.side_band.modules.len()];
        Self { session, resolver, loaded, kernel_path, inlined: FxHashMap::default(), doubts: Doubts::default() }
    }

    pub(super) fn place(&self, mode: CpuMode, task: &Task, ip: u64, at: Moment) -> Place {
        self.session.timeline.place(mode, task, ip, at)
    }

    /// The same of an address that may be of the other level: code of one, data or a branch's end in the other.
    pub(super) fn place_of_either(&self, mode: CpuMode, task: &Task, address: u64, at: Moment) -> Place {
        let place = self.place(mode, task, address, at);
        let other = if mode == CpuMode::Kernel { CpuMode::User } else { CpuMode::Kernel };
        if place.module.is_some() { place } else { self.place(other, task, address, at) }
    }

    fn module(&self, place: Place) -> Option<&'s Module> {
        self.session.side_band.modules.get_index(place.module?.0 as usize)
    }

    fn loaded(&mut self, place: Place) -> Option<&Arc<Loaded>> {
        let module = self.module(place)?;
        let slot = self.loaded.get_mut(place.module?.0 as usize)?;
        Some(slot.get_or_insert_with(|| self.resolver.load(module)))
    }

    /// The module as `perf script` prints it: its whole path, in brackets; with the offset in it where it is a file's.
    pub(super) fn dso(&mut self, place: Place, with_offset: bool) -> Cow<'static, str> {
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
            return format!(" ({name}+{})", hex(place.address)).into();
        }
        format!(" ({name})").into()
    }

    /// Whether the kernel's symbols came from a list of them.
    fn is_listed(&mut self, place: Place) -> bool {
        self.loaded(place).is_some_and(|loaded| loaded.outcome.found().any(|at| at.source == Source::Kallsyms))
    }

    /// The image that the kernel's symbols came from, where they did not come from a list of them.
    fn kernel_file(&mut self, place: Place) -> Option<String> {
        let found = self.loaded(place)?.outcome.found().find(|attempt| attempt.source == Source::Vmlinux)?;
        Some(found.path.display().to_string())
    }

    /// The base name of the module.
    pub(super) fn short_dso(&self, place: Place) -> Option<String> {
        self.module(place).map(|module| escape(&module.name()).into_owned())
    }

    /// The module's path.
    pub(super) fn long_dso(&self, place: Place) -> Option<String> {
        self.module(place).map(|module| module.long_name().into_owned())
    }

    /// The function.
    pub(super) fn symbol(&mut self, place: Place) -> Option<Function> {
        let loaded = self.loaded(place)?.clone();
        let symbol = loaded.lookup(place.address);
        self.doubts.add(&loaded.outcome, 1, symbol.is_some().into());
        let symbol = symbol?;
        let (id, start): (SymbolId, u64) = (symbol.id, symbol.start);
        let name = escape(&loaded.name(id)?).into_owned();
        Some(Function { name, offset: place.address.wrapping_sub(start) })
    }

    /// What is not proven of the names of all addresses so far.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        self.doubts.warnings("addresses")
    }

    /// The functions that debug information tells of at an address of a module, innermost first.
    pub(super) fn inlined(&mut self, place: Place, address: u64) -> Arc<[Inlined]> {
        let Some(module) = place.module else { return [].into() };
        if let Some(known) = self.inlined.get(&(module.0, address)) {
            return known.clone();
        }
        let found: Arc<[Inlined]> =
            self.loaded(place).map_or([].into(), |loaded| loaded.lines().frames(address).into());
        self.inlined.insert((module.0, address), found.clone());
        found
    }
}

impl Function {
    /// Its name, and the offset where that is asked for.
    pub(super) fn print(&self, fields: &Fields, out: &mut Vec<u8>) -> io::Result<()> {
        let Self { name, offset } = self;
        if fields.has(Field::SymOff) { write!(out, " {name}+0x{offset:x}") } else { write!(out, " {name}") }
    }
}

impl Finder<'_, '_> {
    /// Prints function and module of an address, as far as they are asked for.
    pub(super) fn names(&mut self, place: Place, fields: &Fields, out: &mut Vec<u8>) -> io::Result<()> {
        if fields.has(Field::Sym) {
            match self.symbol(place) {
                Some(function) => function.print(fields, out),
                None => write!(out, " [unknown]"),
            }?;
        }
        if fields.has(Field::Dso) {
            write!(out, "{}", self.dso(place, fields.has(Field::DsOff)))?;
        }
        Ok(())
    }
}

/// A number as C's `%#x` prints it.
pub(super) fn hex(number: u64) -> String {
    if number == 0 { "0".into() } else { format!("{number:#x}") }
}

/// The addresses of a callchain with the CPU mode of each: the context marks between them say it.
pub(super) fn frames(chain: &[u64], mode: CpuMode, most: usize) -> Vec<(CpuMode, u64)> {
    let mut mode = mode;
    let mut frames = Vec::new();
    for ip in chain.iter().copied() {
        if ip >= context::MAX {
            mode = match ip {
                context::HV => CpuMode::Hypervisor,
                context::KERNEL => CpuMode::Kernel,
                context::USER => CpuMode::User,
                // perf takes a mark that it does not know for a damaged chain and lets go of it.
                _ => return Vec::new(),
            };
        } else if frames.len() < most {
            frames.push((mode, ip));
        }
    }
    frames
}
