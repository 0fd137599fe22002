//! The choice of one name among the aliases of a function.
//!
//! Libraries have many names for one address: `__GI___libc_write`, `__libc_write`, `__write` and
//! `write`. The name is the one that callers write, of these by the first rule that decides:
//!
//! | rule | chosen | not |
//! |---|---|---|
//! | not an alias that glibc keeps for its own calls | `__xstat` | `__GI___xstat` |
//! | fewer leading underscores | `write`, `puts` | `__libc_write`, `_IO_puts` |
//! | not the name for large files | `open` | `open64` |
//! | not weak, then global | | |
//! | of weak names the shorter one | `strtol`, `cosf` | `strtoimax`, `cosf32` |
//! | of others the longer one, as in perf | | |
//! | the first of the file | | |
//!
//! Names are compared as they are shown, that is, demangled.

use std::cmp::Reverse;

use recrep_console::demangle;

use super::packed::{PackedNames, PackedSymbol};

/// Rank of a name among the aliases of its function; the highest one is shown.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct AliasRank {
    is_public: bool,
    underscores: Reverse<usize>,
    is_of_any_files: bool,
    binding: u64,
    /// Less than 0 for weak names.
    length: isize,
}

impl AliasRank {
    fn of(symbol: &PackedSymbol, names: &PackedNames, demangle: bool) -> Self {
        let name = names.get(symbol.name);
        let shown =
            if demangle { demangle::demangled(name) } else { String::from_utf8_lossy(name) };
        let length = isize::try_from(shown.len()).unwrap_or(isize::MAX);
        Self {
            is_public: !shown.starts_with("__GI_"),
            underscores: Reverse(shown.bytes().take_while(|&byte| byte == b'_').count()),
            is_of_any_files: !shown.ends_with("64"),
            binding: symbol.name.binding(),
            length: if symbol.name.is_weak() { length.saturating_neg() } else { length },
        }
    }
}

/// Returns those symbols of one start between which only demangling can decide.
pub(super) fn rivals(group: &[PackedSymbol], names: &PackedNames) -> Vec<PackedSymbol> {
    let mut kept: Vec<PackedSymbol> = Vec::new();
    for symbol in group {
        let name = names.get(symbol.name);
        // There is at most one plain name among the rivals.
        let both_plain = |other: &[u8]| !demangle::is_mangled(other) && !demangle::is_mangled(name);
        let is_same = |rival: &&mut PackedSymbol| {
            let other = names.get(rival.name);
            other == name || demangle::same_when_demangled(other, name) || both_plain(other)
        };
        match kept.iter_mut().find(is_same) {
            Some(rival) => {
                let is_better = if both_plain(names.get(rival.name)) {
                    AliasRank::of(symbol, names, false) > AliasRank::of(rival, names, false)
                } else {
                    symbol.name.binding() > rival.name.binding()
                };
                if is_better {
                    *rival = *symbol;
                }
            }
            None => kept.push(*symbol),
        }
    }
    kept
}

/// Returns the best of these by its shown name; of equal ones the first.
pub(super) fn best(
    rivals: Vec<PackedSymbol>,
    names: &PackedNames,
    demangle: bool,
) -> Option<PackedSymbol> {
    match rivals.as_slice() {
        [only] => Some(*only),
        _ => rivals.into_iter().rev().max_by_key(|rival| AliasRank::of(rival, names, demangle)),
    }
}
