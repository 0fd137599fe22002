//! Mappings, functions and source lines of a sample's addresses.

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

/// Function at an address.
pub(super) struct Function {
    /// Name, escaped.
    pub(super) name: String,
    /// Offset of the address in it.
    pub(super) offset: u64,
}

/// Resolver of addresses in one file. It loads modules when they are first needed.
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

    /// Returns the place of a data address or an end of a branch: in the sample's CPU mode, or else in the other of user
    /// and kernel mode.
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

    /// Returns the module as `perf script` prints it: its whole path in parentheses, with the offset in it if
    /// `with_offset` is set and it is a file.
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

    /// Returns whether the kernel's symbols came from a kallsyms file.
    fn is_listed(&mut self, place: Place) -> bool {
        self.loaded(place).is_some_and(|loaded| loaded.outcome.found().any(|at| at.source == Source::Kallsyms))
    }

    /// Returns the path of the kernel image that the symbols came from, if they came from one.
    fn kernel_file(&mut self, place: Place) -> Option<String> {
        let found = self.loaded(place)?.outcome.found().find(|attempt| attempt.source == Source::Vmlinux)?;
        Some(found.path.display().to_string())
    }

    /// Returns the base name of the module, escaped.
    pub(super) fn short_dso(&self, place: Place) -> Option<String> {
        self.module(place).map(|module| escape(&module.name()).into_owned())
    }

    /// Returns the path of the module.
    pub(super) fn long_dso(&self, place: Place) -> Option<String> {
        self.module(place).map(|module| module.long_name().into_owned())
    }

    /// Returns the function at an address, and counts the address for `warnings`.
    pub(super) fn symbol(&mut self, place: Place) -> Option<Function> {
        let loaded = self.loaded(place)?.clone();
        let symbol = loaded.lookup(place.address);
        self.doubts.add(&loaded.outcome, 1, symbol.is_some().into());
        let symbol = symbol?;
        let (id, start): (SymbolId, u64) = (symbol.id, symbol.start);
        let name = escape(&loaded.name(id)?).into_owned();
        Some(Function { name, offset: place.address.wrapping_sub(start) })
    }

    /// Returns warnings about unproven names of the addresses so far.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        self.doubts.warnings("addresses")
    }

    /// Returns the functions at an address of a module according to debug information, innermost first.
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
    /// Prints the name, and the offset if `fields` has `symoff`.
    pub(super) fn print(&self, fields: &Fields, out: &mut Vec<u8>) -> io::Result<()> {
        let Self { name, offset } = self;
        if fields.has(Field::SymOff) { write!(out, " {name}+0x{offset:x}") } else { write!(out, " {name}") }
    }
}

impl Finder<'_, '_> {
    /// Prints the function and the module of an address, if `fields` has them.
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

/// Formats a number as C's `%#x` does.
pub(super) fn hex(number: u64) -> String {
    if number == 0 { "0".into() } else { format!("{number:#x}") }
}

/// Returns at most `max_frames` addresses of a callchain, each with the CPU mode that the context markers give it.
pub(super) fn frames(chain: &[u64], mode: CpuMode, max_frames: usize) -> Vec<(CpuMode, u64)> {
    let mut mode = mode;
    let mut frames = Vec::new();
    for ip in chain.iter().copied() {
        if ip >= context::MAX {
            mode = match ip {
                context::HV => CpuMode::Hypervisor,
                context::KERNEL => CpuMode::Kernel,
                context::USER => CpuMode::User,
                // perf takes an unknown context marker for a damaged callchain and drops all of it.
                _ => return Vec::new(),
            };
        } else if frames.len() < max_frames {
            frames.push((mode, ip));
        }
    }
    frames
}
