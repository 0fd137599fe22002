//! The addresses of a key: the sample's, and where a branch came from.

use std::borrow::Cow;
use std::sync::Arc;

use crate::count::{End, Field, Key, Meta};
use crate::symbols::{LineId, Loaded, SymbolId};

/// The symbols of modules by their numbers; none of those that were not hit.
pub type LoadedSymbols = Vec<Option<Arc<Loaded>>>;

/// The symbols of a module by its number in a key.
pub(super) fn module_of(symbols: &LoadedSymbols, number: u64) -> Option<&Loaded> {
    symbols.get(usize::try_from(number.checked_sub(1)?).ok()?)?.as_deref()
}

/// Which of a key's addresses is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAddress {
    /// The sample's; of a branch, its target.
    At,
    /// Where a branch came from.
    From,
}

impl KeyAddress {
    /// The word of its module.
    pub(super) fn module(self) -> Field {
        match self {
            Self::At => Field::Module,
            Self::From => Field::FromModule,
        }
    }

    /// The word of the address in it.
    pub(super) fn address(self) -> Field {
        match self {
            Self::At => Field::Address,
            Self::From => Field::FromAddress,
        }
    }

    /// The word of its source line.
    pub(super) fn line(self) -> Field {
        match self {
            Self::At => Field::Line,
            Self::From => Field::FromLine,
        }
    }

    /// What the address is.
    pub(super) fn end(self, row: &Key) -> End {
        let meta = Meta::unpack(Field::Meta.of(row));
        match self {
            Self::At => meta.at,
            Self::From => meta.from,
        }
    }
}

/// The name of the function that stands in the place of an address.
pub(super) fn function<'s>(symbols: &'s LoadedSymbols, row: &Key, side: KeyAddress) -> Option<Cow<'s, str>> {
    named(symbols, (side.module().of(row), side.end(row), side.address().of(row)))
}

/// The name of the function that stands in the place of an address in a module.
pub(super) fn named(symbols: &LoadedSymbols, (module, end, number): (u64, End, u64)) -> Option<Cow<'_, str>> {
    let module = module_of(symbols, module)?;
    let number = u32::try_from(number).ok().filter(|_| end.is_symbol)?;
    if end.is_inlined {
        return Some(format!("{}{INLINED}", module.lines().text(LineId(number))).into());
    }
    module.name(SymbolId(number))
}

/// What stands behind the names of functions that are inlined, as in perf.
pub(super) const INLINED: &str = " (inlined)";
