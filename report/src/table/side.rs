//! The symbols of the two addresses of a key: the sample's or branch target's, and the branch source's.

use std::borrow::Cow;
use std::sync::Arc;

use crate::query::key::{End, Key, KeyAddress};
use crate::symbols::labels::LabelSlots;
use crate::symbols::{LineId, Loaded, SymbolId};

/// Symbols of modules, indexed by module number; `None` for modules that were not hit.
pub type LoadedSymbols = Vec<Option<Arc<Loaded>>>;

/// Returns the symbols of a module, given its number in a key.
pub(super) fn module_of(symbols: &LoadedSymbols, number: u64) -> Option<&Loaded> {
    symbols.get(usize::try_from(number.checked_sub(1)?).ok()?)?.as_deref()
}

/// Returns the name of the function that replaced an address of a key.
pub(super) fn function<'s>(symbols: &'s LoadedSymbols, row: &Key, side: KeyAddress) -> Option<Cow<'s, str>> {
    named(symbols, (side.module().of(row), side.end(row), side.address().of(row)))
}

/// Returns the name of the function that replaced an address, given the module, kind and number.
pub(super) fn named(symbols: &LoadedSymbols, (module, end, number): (u64, End, u64)) -> Option<Cow<'_, str>> {
    let module = module_of(symbols, module)?;
    let number = u32::try_from(number).ok().filter(|_| end.is_symbol)?;
    if end.is_inlined {
        return Some(format!("{}{INLINED}", module.lines().text(LineId(number))).into());
    }
    module.name(SymbolId(number))
}

/// Returns the slots for the numbers of texts of a function that replaced an address; `None` if it is inlined.
pub(super) fn label_slots(symbols: &LoadedSymbols, (module, end, number): (u64, End, u64)) -> Option<&LabelSlots> {
    let number = u32::try_from(number).ok().filter(|_| end.is_symbol && !end.is_inlined)?;
    module_of(symbols, module)?.label_slots(SymbolId(number))
}

/// Suffix of the names of inlined functions, as in perf.
pub(super) const INLINED: &str = " (inlined)";
