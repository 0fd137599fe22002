//! Names of the symbols that are shown, demangled once.

use std::sync::OnceLock;

use super::names::table::SymbolId;

/// Demangled names of a table's symbols. Most symbols are never shown, so there is only memory for
/// those that are, and those next to them.
#[derive(Debug)]
pub(super) struct ShownNames(Vec<OnceLock<Box<NearNames>>>);

/// Names of symbols with adjacent numbers.
type NearNames = [OnceLock<Box<str>>; ShownNames::NEAR];

impl ShownNames {
    const NEAR: usize = 8;

    /// Creates the names of `symbols` symbols; none is known yet.
    pub(super) fn new(symbols: usize) -> Self {
        Self((0..symbols.div_ceil(Self::NEAR)).map(|_| OnceLock::new()).collect())
    }

    /// Returns the place for the name of a symbol.
    pub(super) fn of(&self, id: SymbolId) -> Option<&OnceLock<Box<str>>> {
        let id = id.0 as usize;
        self.0.get(id / Self::NEAR)?.get_or_init(Box::default).get(id % Self::NEAR)
    }
}
