//! Whose sample came first under each row: perf makes its column of comms as wide as these threads' last names.
//!
//! Few files need it (see `label`), so it is a pass of its own over the samples of the comms in doubt, not something that every
//! row carries.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::timeline::Moment;

/// A key's first sample: when, and the thread's packed number.
pub(super) type First = (Moment, u64);

/// What a worker gathers.
pub(super) struct Firsts<'s, const N: usize> {
    /// The comms, packed, whose samples count.
    pub(super) comms: &'s FxHashSet<u64>,
    /// The first sample of each key.
    pub(super) keys: FxHashMap<[u64; N], First>,
}

/// Takes note of a sample.
pub(super) fn note<K: std::hash::Hash + Eq>(rows: &mut FxHashMap<K, First>, key: K, first: First) {
    rows.entry(key).and_modify(|known| *known = first.min(*known)).or_insert(first);
}
