//! Meaning of the numbers in the keys of one file, and replacement of addresses by functions after
//! the scan.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::callchain::{CallSite, Frame, is_of_branch};
use crate::count::{Count, Rows};
use crate::profile::names::{FunctionName, INLINED, ModuleNameId, NumberSlot, SharedNames};
use crate::query::{End, Field, FrameKey, Key, KeyAddress, Meta, NO_KEY, Query};
use crate::scan::Naming;
use crate::symbols::{Function, Functions, LineId, Loaded, Module, SourceFrame, SymbolId};
use crate::timeline::{Groups, Timeline};
use crate::tracepoints::Traced;

/// Meaning of the numbers in the keys of one file.
#[derive(Debug)]
pub(crate) struct Labeller<'f> {
    pub query: &'f Query,
    /// Name of the input.
    pub input: &'f str,
    /// [`Query::fields`], for what is asked of each key.
    pub fields: Vec<Field>,
    /// Comms and threads.
    pub timeline: &'f Timeline,
    /// Modules, indexed by their numbers.
    pub modules: Vec<&'f Module>,
    /// Their numbers among those of all files, if they were hit.
    pub module_numbers: Vec<Option<ModuleNameId>>,
    pub symbols: ModuleSymbols<'f>,
    /// `true` if inlined functions become frames.
    pub inlined: bool,
    pub events: &'f [String],
    /// Names of all files.
    pub names: &'f SharedNames,
    /// Sockets, cgroups and their namespaces.
    pub groups: &'f Groups,
    /// Tracepoint data, if the query needs it.
    pub traced: Option<&'f Traced<'f>>,
}

/// Symbols of the modules of a file, by module number.
#[derive(Debug)]
pub(crate) enum ModuleSymbols<'f> {
    /// `None` for modules that were not hit, and none if the query needs no functions.
    Loaded(Vec<Option<Arc<Loaded>>>),
    /// Those of all modules, which are loaded when they are first needed.
    Lazy(&'f Functions<'f>),
}

/// Loads the symbols of all modules that were hit, for [`ModuleSymbols::Loaded`].
pub(crate) fn loaded(
    query: &Query,
    hits: &[bool],
    functions: &Functions<'_>,
) -> Vec<Option<Arc<Loaded>>> {
    let is_needed = query.chains.counted || query.needs_symbols() || query.needs_lines();
    if !is_needed && !query.filters.by_symbol() {
        return Vec::new();
    }
    let load =
        |(module, hit): (usize, &bool)| if *hit { functions.loaded(module).cloned() } else { None };
    hits.par_iter().enumerate().map(load).collect()
}

/// Returns the numbers of the modules that were hit, for [`Labeller::module_numbers`]; none if
/// neither frames nor offsets in files are named.
pub(crate) fn numbers(
    query: &Query,
    hits: &[bool],
    modules: &[&Module],
    names: &SharedNames,
) -> Vec<Option<ModuleNameId>> {
    if !query.chains.counted && !query.shows_file_offsets() {
        return Vec::new();
    }
    let numbered =
        |(hit, module): (&bool, &&Module)| hit.then(|| names.module(module, query.needs.addresses));
    hits.iter().zip(modules).map(numbered).collect()
}

impl Labeller<'_> {
    /// Returns a module, given its number in a key.
    pub(super) fn module(&self, number: u64) -> Option<&Module> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.modules.get(index).copied()
    }

    /// Returns the number of a module among those of all files, given its number in a key.
    pub(super) fn module_number(&self, number: u64) -> Option<ModuleNameId> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.module_numbers.get(index).copied().flatten()
    }

    /// Returns the symbols of a module, given its number in a key.
    pub(super) fn loaded(&self, number: u64) -> Option<&Arc<Loaded>> {
        let module = usize::try_from(number.checked_sub(1)?).ok()?;
        match &self.symbols {
            ModuleSymbols::Loaded(symbols) => symbols.get(module)?.as_ref(),
            ModuleSymbols::Lazy(functions) => functions.loaded(module),
        }
    }

    /// Returns the name of the function that replaced the address of a frame.
    pub(super) fn function(&self, frame: &Frame) -> Option<Cow<'_, str>> {
        let module = self.loaded(frame.module.into())?;
        let number = u32::try_from(frame.address).ok().filter(|_| frame.end.is_symbol)?;
        match frame.end.is_inlined {
            true => {
                let name = inlined_name(module, number);
                Some(module.shown(name.as_bytes()).into_owned().into())
            }
            false => module.name(SymbolId(number)),
        }
    }

    /// Returns the text of that function, by which filters and hints know it: that of an inlined
    /// one says so.
    pub(super) fn function_text(&self, frame: &Frame) -> Option<Cow<'_, str>> {
        let name = self.function(frame)?;
        Some(if frame.end.is_inlined { [&name, INLINED].concat().into() } else { name })
    }

    /// Returns whether the function that replaced the address of a frame has no name.
    pub(super) fn is_inferred(&self, frame: &Frame) -> bool {
        let number = u32::try_from(frame.address).ok().map(SymbolId);
        let number = number.filter(|_| frame.end.is_symbol && !frame.end.is_inlined);
        let loaded = self.loaded(frame.module.into());
        loaded.zip(number).is_some_and(|(loaded, number)| loaded.is_inferred(number))
    }

    /// Returns the function that replaced the address of a frame, as it is shown.
    pub(super) fn function_name(&self, frame: &Frame) -> Option<FunctionName> {
        Some(FunctionName::new(&self.function(frame)?, self.distinct_function(frame)))
    }

    /// Returns what distinguishes the function that replaced the address of a frame from others of
    /// its name; `None` if nothing does.
    pub(super) fn distinct_function(&self, frame: &Frame) -> Option<Function> {
        let module = self.loaded(frame.module.into())?;
        let number = u32::try_from(frame.address).ok().filter(|_| frame.end.is_symbol)?;
        match frame.end.is_inlined {
            true => Function::inlined(module, &inlined_name(module, number)),
            false => Function::of_symbol(module, SymbolId(number)),
        }
    }

    /// Returns one of the slots of the function that replaced the address of a frame, for the number
    /// of a label or frame of this kind; `None` if it is inlined.
    pub(super) fn slot(&self, frame: &Frame, place: usize, kind: u8) -> Option<NumberSlot<'_>> {
        let is_symbol = self.names.are_kept() && frame.end.is_symbol && !frame.end.is_inlined;
        let number = u32::try_from(frame.address).ok().filter(|_| is_symbol)?;
        let cache = self.loaded(frame.module.into())?.cache(SymbolId(number))?;
        Some(NumberSlot { slot: cache.slot(place)?, kind })
    }

    /// Returns whether the row passes the symbol filters.
    pub(crate) fn takes(&self, row: &Key) -> bool {
        let filters = &self.query.filters;
        let by_name = filters.symbols.is_some() || filters.symbol_part.is_some();
        let is_resolved =
            || Meta::unpack(Field::Meta.of(row)).is_resolved(self.query.mode.is_of_branches());
        (!filters.resolved || is_resolved()) && (!by_name || self.is_named(row))
    }

    /// Returns whether the row's function has a name that the filters ask for.
    fn is_named(&self, row: &Key) -> bool {
        let filters = &self.query.filters;
        let frame = frame_at(row, KeyAddress::At);
        self.function_text(&frame).is_some_and(|name| {
            filters.symbols.as_ref().is_none_or(|names| self.is_one_of(names, &frame, &name))
                && filters.symbol_part.as_ref().is_none_or(|part| name.contains(part.as_str()))
        })
    }

    /// Returns whether a frame's function has one of these names.
    pub(super) fn has_name(&self, names: &HashSet<String>, frame: &Frame) -> bool {
        self.function(frame).is_some_and(|name| self.is_one_of(names, frame, &name))
    }

    /// Returns whether one of these is a name of a frame's function: the short one, the full one or
    /// the mangled one.
    fn is_one_of(&self, names: &HashSet<String>, frame: &Frame, short: &str) -> bool {
        if names.contains(short) {
            return true;
        }
        // Other names are long, and have the short one or are mangled: most need no look-up.
        if !names.iter().any(|name| name.contains(short) || name.starts_with('_')) {
            return false;
        }
        self.distinct_function(frame).is_some_and(|function| {
            let mangled = str::from_utf8(function.name()).unwrap_or_default();
            names.contains(mangled) || names.contains(&*function.full_name())
        })
    }

    /// Returns the source line of an address. If it is unknown, the text is `function+offset`, or
    /// `module[address]` without a function, as in perf.
    fn line(loaded: &Loaded, address: u64) -> LineId {
        loaded.lines().line(address).unwrap_or_else(|| {
            loaded.lines().number(match loaded.table.lookup(address) {
                Some(symbol) => {
                    format!("{}+{}", loaded.shown(symbol.name), address.wrapping_sub(symbol.start))
                }
                None => format!("{}[{address:x}]", loaded.module.name()),
            })
        })
    }
}

impl Naming for Labeller<'_> {
    fn changes(&self) -> bool {
        !matches!(&self.symbols, ModuleSymbols::Loaded(symbols) if symbols.is_empty())
    }

    /// Replaces the addresses of a key by symbol numbers, and sets its source lines if the query
    /// needs them.
    fn key(&self, mut key: Key) -> Key {
        let mut meta = Meta::unpack(Field::Meta.of(&key));
        let ends = [(KeyAddress::At, &mut meta.at), (KeyAddress::From, &mut meta.from)];
        for (side, end) in ends {
            if end.is_symbol {
                continue;
            }
            let module = self.loaded(side.module().of(&key));
            if let Some(loaded) = module.filter(|_| self.fields.contains(&side.line())) {
                *side.line().of_mut(&mut key) =
                    u64::from(Self::line(loaded, side.address().of(&key)).0) + 1;
            }
            if let Some((module, symbol)) =
                module.and_then(|m| Some((m, m.find(side.address().of(&key))?)))
            {
                end.is_symbol = true;
                if side == KeyAddress::At && self.fields.contains(&Field::Offset) {
                    let start = module.start(symbol).unwrap_or(0);
                    *Field::Offset.of_mut(&mut key) = Field::Address.of(&key).wrapping_sub(start);
                }
                *side.address().of_mut(&mut key) = u64::from(symbol.0);
            }
        }
        *Field::Meta.of_mut(&mut key) = meta.pack();
        key
    }

    fn frames(&self, frame: Frame, into: &mut Vec<Frame>) {
        let loaded = self.loaded(frame.module.into());
        let mut key = NO_KEY;
        let at = loaded.map_or(frame.address, |loaded| looked_up(&frame, loaded));
        Frame { address: at, ..frame }.put(&mut key);
        let mut named = Frame { branch: frame.branch, ..Frame::of(&self.key(key)) };
        if !named.end.is_symbol {
            named.address = frame.address;
        }
        if let Some(loaded) = loaded.filter(|_| self.query.chains.key != FrameKey::Function) {
            named.line = Self::line(loaded, at).0 + 1;
            let start = loaded.find(at).and_then(|function| loaded.start(function));
            let start = start.unwrap_or(frame.address);
            named.offset = u32::try_from(frame.address.wrapping_sub(start)).unwrap_or(u32::MAX);
        }
        let has_inlined = self.inlined
            && named.end.is_symbol
            && !frame.end.is_symbol
            && !is_of_branch(frame.branch);
        if let Some(loaded) = loaded.filter(|_| has_inlined) {
            let lines = loaded.lines();
            let back = u64::from(frame.site == CallSite::Inlined);
            let mut functions = lines.raw_frames(at.wrapping_sub(back));
            let line = |at: &SourceFrame| {
                lines.place(at).filter(|_| named.line > 0).map_or(0, |line| line.0 + 1)
            };
            let outer = functions.pop();
            for at in functions {
                let line = line(&at);
                let Some(function) = at.function else { continue };
                let address = u64::from(lines.number(function).0);
                into.push(Frame {
                    end: End { is_inlined: true, ..named.end },
                    address,
                    line,
                    ..named
                });
            }
            named.line = outer.map(|at| line(&at)).filter(|line| *line > 0).unwrap_or(named.line);
        }
        // As in perf, if samples without a function are excluded, so are frames without one.
        if named.end.is_symbol || !self.query.filters.resolved {
            into.push(named);
        }
    }
}

/// Returns the name of an inlined function, by its number in the module.
fn inlined_name(module: &Loaded, number: u32) -> String {
    module.lines().get(LineId(number)).to_string()
}

/// Returns the address at which a frame's function is looked up.
fn looked_up(frame: &Frame, loaded: &Loaded) -> u64 {
    let before = frame.address.wrapping_sub(1);
    // Nothing calls the trampoline behind a signal handler.
    let is_before = frame.site == CallSite::Before
        && !frame.end.is_symbol
        && (loaded.find(before).is_some() || loaded.find(frame.address).is_none());
    if is_before { before } else { frame.address }
}

/// Sums of the rows' innermost functions.
pub(super) struct FunctionSums {
    /// Of all rows, those without a function too.
    pub all: u64,
    /// A frame of each function, with its sum.
    pub functions: Vec<(Frame, u64)>,
}

impl FunctionSums {
    /// Adds up what `value` takes of each count.
    pub(super) fn of(rows: &Rows, value: fn(&Count) -> u64) -> Self {
        let mut functions = FxHashMap::<(u32, u64, bool), (Frame, u64)>::default();
        let mut all = 0_u64;
        for (key, count) in rows.iter() {
            all = all.saturating_add(value(&count));
            let frame = frame_at(&key, KeyAddress::At);
            if frame.end.is_symbol {
                let function = (frame.module, frame.address, frame.end.is_inlined);
                let (_, sum) = functions.entry(function).or_insert((frame, 0));
                *sum = sum.saturating_add(value(&count));
            }
        }
        Self { all, functions: functions.into_values().collect() }
    }
}

/// Returns the frame of an address of a key, with only the fields that identify its function.
pub(super) fn frame_at(row: &Key, side: KeyAddress) -> Frame {
    let module = u32::try_from(side.module().of(row)).unwrap_or(0);
    Frame { module, end: side.end(row), address: side.address().of(row), ..Frame::default() }
}
