//! Hash table of keys and values, split into partitions. It holds counts and rows.
//!
//! Keys are distributed over [`PARTITIONS`] partitions by hash. New entries wait at the end of
//! their partition until they reach a size limit or until [`Partition::settle`]; only then are
//! equal keys merged. This works on one partition at a time, whose keys fit in a core's cache.
//! Tables of several workers are merged in parallel, by partition.
//!
//! ```text
//!   words    │ a │ b │ c │ d ┊ b │ e │ a │        each of `width` words, in the order of arrival
//!   values   │ 2 │ 9 │ 1 │ 1 ┊ 1 │ 1 │ 5 │
//!              └── settled ──┘ └─ waiting ─┘  ─►  a 7, b 10, c 1, d 1, e 1
//! ```

use std::hash::Hasher as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rayon::prelude::*;
use rustc_hash::FxHasher;

/// Number of partitions of a table.
pub(super) const PARTITIONS: usize = 64;

/// Bytes of waiting entries at which a partition is settled.
const MAX_WAITING: usize = 1 << 20;

/// Number of waiting entries for which the index is made large enough before they are merged.
const MAX_RESERVED: usize = 1 << 8;

/// Value that can be added up, in any order.
pub(crate) trait Sum: Clone + Send {
    fn add(&mut self, other: &Self);
}

/// Returns the hash of a key. Bits 12 to 25 are its [`place`]; the highest of these are its
/// partition.
#[inline]
pub(super) fn hash(key: &[u64]) -> u64 {
    let mut hasher = FxHasher::default();
    key.iter().for_each(|word| hasher.write_u64(*word));
    hasher.finish()
}

/// Returns half of a hash, which distinguishes most keys.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "32 bits remain")]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Returns whether two keys are equal. Keys are short, so a call of memcmp would take longer.
#[inline]
pub(super) fn are_equal(a: &[u64], b: &[u64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Number of different results of [`place`].
pub(super) const PLACES: usize = 1 << 14;

/// Returns the place of a hash, below [`PLACES`]. The places of a partition are contiguous.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "only 14 bits remain")]
pub(super) fn place(hash: u64) -> usize {
    (hash >> 12) as usize & (PLACES - 1)
}

/// Returns the partition of a place.
#[inline]
pub(super) fn of_place(place: usize) -> usize {
    place / (PLACES / PARTITIONS)
}

/// Calls a function for keys of a fixed number of words, so that loops over them are unrolled;
/// wider keys have the number 0, which stands for any.
macro_rules! for_width {
    ($width:expr, $this:ident.$method:ident($($arg:expr),*)) => {
        match $width {
            1 => $this.$method::<1>($($arg),*),
            2 => $this.$method::<2>($($arg),*),
            3 => $this.$method::<3>($($arg),*),
            4 => $this.$method::<4>($($arg),*),
            _ => $this.$method::<0>($($arg),*),
        }
    };
}
pub(crate) use for_width;

/// Part of a table: the keys whose hashes belong to one partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partition<V> {
    width: usize,
    words: Vec<u64>,
    values: Vec<V>,
    /// Settled keys: the upper half of the hash, and the index of the key.
    index: HashTable<(u32, u32)>,
}

impl<V: Sum> Partition<V> {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, words: Vec::new(), values: Vec::new(), index: HashTable::new() }
    }

    /// Creates a table: `PARTITIONS` empty partitions.
    pub(crate) fn table(width: usize) -> Vec<Self> {
        (0..PARTITIONS).map(|_| Self::new(width)).collect()
    }

    /// Creates a partition of keys that are all different. They wait.
    pub(crate) fn of_distinct(width: usize, words: Vec<u64>, values: Vec<V>) -> Self {
        Self { words, values, ..Self::new(width) }
    }

    /// Adds to a key. The entry may wait until the partition is settled.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u64], value: V) {
        if self.values.len() == self.values.capacity() {
            self.grow();
        }
        // Keys are short, so a call of memcpy would take longer.
        key.iter().for_each(|word| self.words.push(*word));
        self.values.push(value);
        let waiting = self.values.len() - self.index.len();
        if waiting * (size_of::<V>() + 8 * self.width) >= MAX_WAITING {
            self.settle();
        }
    }

    /// Makes room for as many entries again, and for some at first: small tables would grow many
    /// times.
    #[cold]
    fn grow(&mut self) {
        let more = self.values.len().max(64);
        self.values.reserve_exact(more);
        self.words.reserve_exact(more * self.width);
    }

    /// Adds to a key at once and returns its index. Keys have the length of the first one.
    pub(crate) fn add(&mut self, key: &[u64], value: &V) -> usize {
        if self.is_empty() {
            self.width = key.len();
        }
        self.settle();
        self.add_hashed(hash(key), key, value)
    }

    /// Adds to the key with this hash, where no entries wait, and returns its index.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "settled indexes are below the number of values")]
    fn add_hashed(&mut self, hash: u64, key: &[u64], value: &V) -> usize {
        let (width, words) = (self.width, &self.words);
        let key_at = |at: u32| &words[at as usize * width..][..width];
        if let Some(&(_, at)) =
            self.index.find(hash, |&(have, at)| have == tag(hash) && are_equal(key_at(at), key))
        {
            self.values[at as usize].add(value);
            return at as usize;
        }
        let settled = self.values.len();
        let rehash = |&(_, at): &(u32, u32)| self::hash(key_at(at));
        self.index.insert_unique(
            hash,
            (tag(hash), u32::try_from(settled).unwrap_or(u32::MAX)),
            rehash,
        );
        self.words.extend_from_slice(key);
        self.values.push(value.clone());
        settled
    }

    /// Joins partitions; the entries of all but the first wait.
    pub(crate) fn joined(mut parts: impl Iterator<Item = Self>) -> Self {
        let mut all = parts.next().unwrap_or_else(|| Self::new(0));
        for part in parts {
            all.append(part);
        }
        all
    }

    /// Sets the first word of each key to `word` of it. Entries whose keys become equal wait.
    pub(crate) fn set_first(&mut self, word: impl Fn(u64) -> u64) {
        for key in self.words.chunks_exact_mut(self.width.max(1)) {
            if let Some(first) = key.first_mut() {
                *first = word(*first);
            }
        }
        self.index.clear();
    }

    /// Appends all entries of another partition. They wait.
    pub(crate) fn append(&mut self, other: Self) {
        self.words.extend(other.words);
        self.values.extend(other.values);
    }

    /// Merges the waiting entries into the settled ones.
    pub(crate) fn settle(&mut self) {
        for_width!(self.width, self.settle_all());
    }

    #[allow(clippy::indexing_slicing, reason = "settled indexes are below the number of values")]
    fn settle_all<const WIDTH: usize>(&mut self) {
        let (width, words) = (self.width, &self.words);
        let rehash = |&(_, at): &(u32, u32)| hash(&words[at as usize * width..][..width]);
        // Many may be equal, so only some are reserved: a small table need not grow.
        self.index.reserve((self.values.len() - self.index.len()).min(MAX_RESERVED), rehash);
        for waiting in self.index.len()..self.values.len() {
            self.settle_one::<WIDTH>(waiting);
        }
        self.values.truncate(self.index.len());
        self.words.truncate(self.index.len() * self.width);
    }

    /// Merges the entry at `from` into the settled entry of its key, or settles it as the last one.
    /// Returns its index.
    #[inline]
    #[allow(
        clippy::indexing_slicing,
        reason = "settled indexes and `from` are below the number of values"
    )]
    fn settle_one<const WIDTH: usize>(&mut self, from: usize) -> usize {
        let (width, settled) = (if WIDTH > 0 { WIDTH } else { self.width }, self.index.len());
        let (before, key) = self.words.split_at(from * width);
        let key = &key[..width];
        let (hash, tag) = (hash(key), tag(hash(key)));
        let of = |at: u32| &before[at as usize * width..][..width];
        if let Some(&(_, at)) =
            self.index.find(hash, |&(have, at)| have == tag && are_equal(of(at), key))
        {
            let (before, value) = self.values.split_at_mut(from);
            before[at as usize].add(&value[0]);
            return at as usize;
        }
        self.words.copy_within(from * width..(from + 1) * width, settled * width);
        self.values.swap(settled, from);
        let words = &self.words;
        let rehash = |&(_, at): &(u32, u32)| self::hash(&words[at as usize * width..][..width]);
        self.index.insert_unique(hash, (tag, u32::try_from(settled).unwrap_or(u32::MAX)), rehash);
        settled
    }

    /// Returns the number of keys. Only entries of different keys may be waiting, here and below.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    #[inline]
    pub(crate) fn key(&self, at: usize) -> &[u64] {
        self.words.get(at * self.width..(at + 1) * self.width).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn value(&self, at: usize) -> Option<&V> {
        self.values.get(at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u64], &V)> {
        self.values.iter().enumerate().map(|(at, value)| (self.key(at), value))
    }

    /// Returns the words of all keys, and the values.
    pub(crate) fn into_parts(self) -> (Vec<u64>, Vec<V>) {
        (self.words, self.values)
    }
}

/// Adds to a key of a table. The entry may wait.
#[inline]
pub(crate) fn push<V: Sum>(table: &mut [Partition<V>], key: &[u64], value: V) {
    if let Some(partition) = table.get_mut(of_place(place(hash(key)))) {
        partition.push(key, value);
    }
}

/// Merges tables, partitions in parallel. The result is settled.
pub(crate) fn merged<V: Sum>(tables: Vec<Vec<Partition<V>>>) -> Vec<Partition<V>> {
    let parts = by_part(tables).into_par_iter().map(|mut all| {
        // Start with the partition that has most settled keys: they need no merging.
        all.sort_by_key(|one| std::cmp::Reverse(one.index.len()));
        let mut merged = Partition::joined(all.into_iter());
        merged.settle();
        merged
    });
    parts.collect()
}

/// Returns the parts of tables that have equally many: the first parts of all, then the second
/// ones, and so on.
pub(crate) fn by_part<T>(tables: Vec<Vec<T>>) -> Vec<Vec<T>> {
    let mut parts = Vec::new();
    for table in tables {
        parts.resize_with(table.len(), Vec::new);
        parts.iter_mut().zip(table).for_each(|(all, one)| all.push(one));
    }
    parts
}

/// Adds all entries of `from` to a table without waiting entries, partitions in parallel. The table
/// may have no partitions yet. Returns the places of the entries in the table, for [`joined`].
pub(crate) fn add_all<V: Sum + Sync>(
    table: &mut Vec<Partition<V>>,
    from: &[Partition<V>],
) -> Vec<Vec<AtomicUsize>> {
    let places = from.iter().map(|from| from.values.iter().map(|_| AtomicUsize::new(0)).collect());
    let places: Vec<Vec<AtomicUsize>> = places.collect();
    let Some(width) = from.first().map(|first| first.width) else { return places };
    if table.is_empty() {
        *table = Partition::table(width);
    }
    let parts: Vec<Distributed> =
        from.par_iter().map(|from| distributed(width, &from.words)).collect();
    table.par_iter_mut().enumerate().for_each(|(number, into)| {
        for ((from, parts), places) in from.iter().zip(&parts).zip(&places) {
            for (hash, entry) in of_partition(parts, number) {
                if let Some((value, place)) = from.value(*entry).zip(places.get(*entry)) {
                    let index = into.add_hashed(*hash, from.key(*entry), value);
                    place.store(index * PARTITIONS + number, Ordering::Relaxed);
                }
            }
        }
    });
    places
}

/// Joins the partitions of a table to one. Also returns a function from places in the table
/// ([`add_all`]) to indexes.
pub(crate) fn joined<V: Sum>(table: Vec<Partition<V>>) -> (Partition<V>, impl Fn(usize) -> usize) {
    let (mut starts, mut end) = (Vec::with_capacity(table.len()), 0);
    for part in &table {
        starts.push(end);
        end += part.len();
    }
    let index = move |place: usize| {
        starts.get(place % PARTITIONS).map_or(0, |start| start + place / PARTITIONS)
    };
    (Partition::joined(table.into_iter()), index)
}

/// Sorts values by their keys and merges those with equal keys.
pub(crate) fn merge_equal<V: Send, K: Ord>(
    values: &mut Vec<V>,
    key: impl Fn(&V) -> K + Sync,
    add: impl Fn(&mut V, &V),
) {
    values.par_sort_unstable_by_key(&key);
    values.dedup_by(|next, value| {
        let is_equal = key(next) == key(value);
        if is_equal {
            add(value, next);
        }
        is_equal
    });
}

/// Hashes and indexes of entries: lists for each partition, by parts of the entries.
type Distributed = Vec<Vec<Vec<(u64, usize)>>>;

/// Distributes entries with keys of `width` words over the partitions, in parallel.
fn distributed(width: usize, words: &[u64]) -> Distributed {
    /// Number of entries that a core distributes at a time.
    const PART: usize = 1 << 14;
    let width = width.max(1);
    let distributed = words.par_chunks(PART * width).enumerate().map(|(part, words)| {
        let mut parts = vec![Vec::new(); PARTITIONS];
        for (entry, key) in (part * PART..).zip(words.chunks_exact(width)) {
            let hash = hash(key);
            if let Some(part) = parts.get_mut(of_place(place(hash))) {
                part.push((hash, entry));
            }
        }
        parts
    });
    distributed.collect()
}

/// Iterates over the entries of a partition, in order.
fn of_partition(parts: &Distributed, partition: usize) -> impl Iterator<Item = &(u64, usize)> {
    parts.iter().filter_map(move |parts| parts.get(partition)).flatten()
}

/// Merges equal keys of `width` words each, in parallel. Returns the different keys in the order of
/// their first entries, and the index of each entry's key.
pub(crate) fn distinct<V: Sum + Sync>(
    width: usize,
    mut words: Vec<u64>,
    mut values: Vec<V>,
) -> (Partition<V>, Vec<usize>) {
    let key = |entry: usize| words.get(entry * width..(entry + 1) * width).unwrap_or_default();
    let parts = distributed(width, &words);
    // Of each entry whose key came before: itself, and the first entry of the key.
    let repeated = |partition: usize| {
        let mut firsts = HashTable::with_capacity(
            parts.iter().filter_map(|parts| parts.get(partition)).map(Vec::len).sum(),
        );
        let mut repeated = Vec::new();
        for &(hash, entry) in of_partition(&parts, partition) {
            let is_equal =
                |&(have, first): &(u64, usize)| have == hash && are_equal(key(first), key(entry));
            match firsts.entry(hash, is_equal, |(hash, _)| *hash) {
                Entry::Occupied(first) => repeated.push((entry, first.get().1)),
                Entry::Vacant(slot) => {
                    slot.insert((hash, entry));
                }
            }
        }
        repeated
    };
    let mut repeated: Vec<(usize, usize)> =
        (0..PARTITIONS).into_par_iter().flat_map_iter(repeated).collect();
    repeated.par_sort_unstable();
    let mut indexes: Vec<usize> = (0..values.len()).collect();
    let first = repeated.first().map_or(values.len(), |(entry, _)| *entry);
    let (mut kept, mut repeated) = (first, repeated.into_iter().peekable());
    for entry in first..values.len() {
        let index = match repeated.next_if(|(next, _)| *next == entry) {
            Some((_, first)) => {
                let index = indexes.get(first).copied().unwrap_or(0);
                let (before, value) = values.split_at_mut(entry);
                before
                    .get_mut(index)
                    .zip(value.first())
                    .into_iter()
                    .for_each(|(into, value)| into.add(value));
                index
            }
            None => {
                values.swap(kept, entry);
                words.copy_within(entry * width..(entry + 1) * width, kept * width);
                kept += 1;
                kept - 1
            }
        };
        indexes.get_mut(entry).into_iter().for_each(|slot| *slot = index);
    }
    values.truncate(kept);
    words.truncate(kept * width);
    (Partition::of_distinct(width, words, values), indexes)
}

#[cfg(test)]
mod tests;
