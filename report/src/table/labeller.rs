//! Meaning of the numbers in the keys of one file.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;

use crate::callchain::Frame;
use crate::query::Query;
use crate::query::key::{Field, Key, KeyAddress, Meta};
use crate::symbols::labels::{AnswerLabels, LabelSlots};
use crate::symbols::{Functions, LineId, Loaded, Module, SymbolId};
use crate::timeline::Timeline;
use crate::timeline::cgroups::Groups;
use crate::tracepoints::Traced;

/// Meaning of the numbers in the keys of one file.
#[derive(Debug)]
pub struct Labeller<'f> {
    pub query: &'f Query,
    /// [`Query::fields`], for what is asked of each key.
    pub fields: Vec<Field>,
    /// Comms and threads.
    pub timeline: &'f Timeline,
    /// Modules, indexed by their numbers.
    pub modules: Vec<&'f Module>,
    /// Their symbols; `None` for modules that were not hit, and none if the query needs no functions.
    pub symbols: Vec<Option<Arc<Loaded>>>,
    /// `true` if inlined functions become frames.
    pub inlined: bool,
    /// Names of the events.
    pub events: &'f [String],
    /// Texts of cells and frames.
    pub labels: &'f AnswerLabels,
    /// Sockets, cgroups and their namespaces.
    pub groups: &'f Groups,
    /// Tracepoint data, if the query needs it.
    pub traced: Option<&'f Traced<'f>>,
}

/// Suffix of the names of inlined functions, as in perf.
pub(super) const INLINED: &str = " (inlined)";

/// Loads the symbols of all modules that were hit, for [`Labeller::symbols`].
pub(crate) fn loaded(query: &Query, hits: &[bool], functions: &Functions<'_>) -> Vec<Option<Arc<Loaded>>> {
    let is_needed = query.chains.counted || query.needs_symbols() || query.needs_lines();
    if !is_needed && !query.filters.by_symbol() {
        return Vec::new();
    }
    let load = |(module, hit): (usize, &bool)| if *hit { functions.loaded(module).cloned() } else { None };
    hits.par_iter().enumerate().map(load).collect()
}

impl Labeller<'_> {
    /// Returns a module, given its number in a key.
    pub(super) fn module(&self, number: u64) -> Option<&Module> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.modules.get(index).copied()
    }

    /// Returns the symbols of a module, given its number in a key.
    pub(super) fn loaded(&self, number: u64) -> Option<&Arc<Loaded>> {
        self.symbols.get(usize::try_from(number.checked_sub(1)?).ok()?)?.as_ref()
    }

    /// Returns the name of the function that replaced the address of a frame.
    pub(super) fn function(&self, frame: &Frame) -> Option<Cow<'_, str>> {
        let module = self.loaded(frame.module.into())?;
        let number = u32::try_from(frame.address).ok().filter(|_| frame.end.is_symbol)?;
        if frame.end.is_inlined {
            return Some(format!("{}{INLINED}", module.lines().text(LineId(number))).into());
        }
        module.name(SymbolId(number))
    }

    /// Returns the slots for the numbers of texts of the function that replaced the address of a frame; `None` if it is
    /// inlined.
    pub(super) fn label_slots(&self, frame: &Frame) -> Option<&LabelSlots> {
        let number = u32::try_from(frame.address).ok().filter(|_| frame.end.is_symbol && !frame.end.is_inlined)?;
        self.loaded(frame.module.into())?.label_slots(SymbolId(number))
    }

    /// Returns whether the row passes the symbol filters.
    pub fn takes(&self, row: &Key) -> bool {
        let filters = &self.query.filters;
        let by_name = filters.symbols.is_some() || filters.symbol_part.is_some();
        let is_resolved = || Meta::unpack(Field::Meta.of(row)).is_resolved(self.query.mode.is_of_branches());
        let is_named = || {
            self.function(&frame_at(row, KeyAddress::At)).is_some_and(|name| {
                filters.symbols.as_ref().is_none_or(|names| names.contains(name.as_ref()))
                    && filters.symbol_part.as_ref().is_none_or(|part| name.contains(part.as_str()))
            })
        };
        (!filters.resolved || is_resolved()) && (!by_name || is_named())
    }
}

/// Returns the frame of an address of a key, with only what tells its function.
pub(super) fn frame_at(row: &Key, side: KeyAddress) -> Frame {
    let module = u32::try_from(side.module().of(row)).unwrap_or(0);
    Frame { module, end: side.end(row), address: side.address().of(row), ..Frame::default() }
}
