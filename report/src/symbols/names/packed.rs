//! Names of symbols by their position, read only when they are shown.

use std::hash::BuildHasher;

use object::elf::{STB_GLOBAL, STB_WEAK, SymbolBind};
use rustc_hash::FxBuildHasher;

use crate::input::map::Bytes;

/// Source number that marks a [`NameRef`] as the number of a tie.
pub(crate) const TIE: u8 = u8::MAX;

/// A symbol of a table, with its name or the position of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<Name> {
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Name as the file spells it, perhaps mangled; not always UTF-8.
    pub name: Name,
}

/// A symbol with the position of its name. While a table is built, `end` equals `start` if the size
/// is unknown.
pub(crate) type PackedSymbol = Symbol<NameRef>;

impl PackedSymbol {
    pub(crate) fn has_size(&self) -> bool {
        self.end > self.start
    }

    /// Returns the number of the tie between the symbols of this start, if there is one.
    pub(super) fn tie(&self) -> Option<usize> {
        self.name.tie()
    }
}

/// Position of a name, and the kind of the symbol, which decides between equal names:
///
/// ```text
///   source, 8 bits · 4 bits unused · label · ifunc · not weak · global · offset in source, 48 bits
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameRef(u64);

/// Names of a table.
#[derive(Debug, Default)]
pub(crate) struct PackedNames {
    /// Bytes that hold names, each ended by a zero byte.
    pub(crate) sources: Vec<Bytes>,
    /// Names that are not in a file: source number 0.
    pub(crate) own: Vec<u8>,
}

impl NameRef {
    /// Marks symbols that are to be removed.
    pub(crate) const NONE: Self = Self(u64::MAX);
    const OFFSET: u64 = (1 << 48) - 1;
    const GLOBAL: u64 = 1 << 48;
    /// Higher for a symbol that is preferred: not weak, then global.
    const BINDING: u64 = 3 << 48;
    /// Greatest [`Self::BINDING`] of a weak symbol.
    const WEAK: u64 = 1 << 48;
    /// [`Self::BINDING`] of a symbol that is neither weak nor global.
    const LOCAL: u64 = 2 << 48;
    /// The symbol is an indirect function, or was preferred to an alias that is one.
    const IFUNC: u64 = 4 << 48;
    /// The symbol has no type: it is a label.
    const LABEL: u64 = 8 << 48;

    pub(crate) fn new(source: u8, offset: u64) -> Self {
        Self(u64::from(source) << 56 | (offset & Self::OFFSET))
    }

    /// Adds what decides between symbols.
    pub(crate) fn ranked(self, binding: SymbolBind, ifunc: bool) -> Self {
        let binding = u64::from(binding != STB_WEAK) << 49 | u64::from(binding == STB_GLOBAL) << 48;
        Self(self.0 | binding).with_ifunc(ifunc)
    }

    pub(crate) fn is_ifunc(self) -> bool {
        self.0 & Self::IFUNC != 0
    }

    pub(crate) fn with_ifunc(self, ifunc: bool) -> Self {
        Self(self.0 | if ifunc { Self::IFUNC } else { 0 })
    }

    pub(crate) fn is_label(self) -> bool {
        self.0 & Self::LABEL != 0
    }

    pub(crate) fn with_label(self, label: bool) -> Self {
        Self(self.0 | if label { Self::LABEL } else { 0 })
    }

    /// Returns the rank of the symbol's binding: higher if it is not weak, then if it is global.
    pub(crate) fn binding(self) -> u64 {
        self.0 & Self::BINDING
    }

    pub(crate) fn is_weak(self) -> bool {
        self.binding() <= Self::WEAK
    }

    /// Returns whether the symbol may be one that only a part of its file sees. Names that are not
    /// in a file may be.
    pub(crate) fn is_local(self) -> bool {
        self.source() == 0 || self.0 & Self::BINDING == Self::LOCAL
    }

    pub(crate) fn is_global(self) -> bool {
        self.0 & Self::GLOBAL != 0
    }

    fn source(self) -> u8 {
        (self.0 >> 56) as u8
    }

    /// Returns the number of the tie, if this refers to one.
    pub(crate) fn tie(self) -> Option<usize> {
        (self.source() == TIE).then(|| self.offset())
    }

    pub(crate) fn offset(self) -> usize {
        usize::try_from(self.0 & Self::OFFSET).unwrap_or(usize::MAX)
    }
}

impl PackedNames {
    pub(crate) fn get(&self, name: NameRef) -> &[u8] {
        let source = match name.source() {
            0 => Some(self.own.as_slice()),
            number => self.sources.get(usize::from(number) - 1).map(|source| &**source),
        };
        name_at(source.unwrap_or_default(), name.offset())
    }
}

/// Returns the name at `offset` of a table of names, each ended by a zero byte.
pub(crate) fn name_at(table: &[u8], offset: usize) -> &[u8] {
    let name = table.get(offset..).unwrap_or_default();
    memchr::memchr(0, name).and_then(|end| name.get(..end)).unwrap_or(name)
}

/// Returns the number by which names of a table are compared.
pub(crate) fn name_hash(name: &[u8]) -> u64 {
    FxBuildHasher.hash_one(name)
}

/// Returns the name of a function that has none: its module, and the linked address of its start.
pub(crate) fn inferred_name(module: &str, start: u64) -> String {
    format!("{module}+{start:#x}")
}

/// Returns whether this is an [`inferred_name`] of the module, or stands for all code of a JIT without
/// names.
pub(crate) fn is_inferred_name(name: &[u8], module: &str) -> bool {
    if module.starts_with("[JIT] ") && name == module.as_bytes() {
        return true;
    }
    let address = name.strip_prefix(module.as_bytes()).and_then(|rest| rest.strip_prefix(b"+0x"));
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    address.is_some_and(|digits| !digits.is_empty() && digits.iter().all(is_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_inferred_functions_are_known_by_their_form() {
        assert!(is_inferred_name(inferred_name("lib.so", 0x8202a).as_bytes(), "lib.so"));
        for name in ["lib.so+0x", "lib.so+0x8G", "lib.s+0x82", "lib.so", "f+0x1", "lib.so+0x1 x"] {
            assert!(!is_inferred_name(name.as_bytes(), "lib.so"), "{name}");
        }
        assert!(
            is_inferred_name(b"[JIT] tid 7", "[JIT] tid 7") && !is_inferred_name(b"sort", "sort")
        );
    }
}
