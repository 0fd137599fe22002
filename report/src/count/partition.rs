//! Keys with what they have metrics, each once: the table that counts and rows are kept in.
//!
//! A table is cut into [`PARTITIONS`] by the hashes of its keys. What is added waits at the end of its partition until there is much of
//! it, or until [`Partition::settle`]; only then are equal keys looked for. So a partition is worked on at a time, whose keys are in
//! a core's cache, and tables of several workers are merged partition by partition on all cores.
//!
//! ```text
//!   words    │ a │ b │ c │ d ┊ b │ e │ a │        each of `width` words, in the order of arrival
//!   values   │ 2 │ 9 │ 1 │ 1 ┊ 1 │ 1 │ 5 │
//!              └── settled ──┘ └─ waiting ─┘  ─►  a 7, b 10, c 1, d 1, e 1
//! ```

use std::hash::Hasher as _;

use hashbrown::HashTable;
use rayon::prelude::*;
use rustc_hash::FxHasher;

/// How many partitions a table has.
pub const PARTITIONS: usize = 64;

/// How many bytes of a partition wait before they are settled.
const WAITING: usize = 1 << 20;

/// What can be added up, in any order.
pub trait Sum: Send {
    /// Adds another.
    fn add(&mut self, other: &Self);
}

/// The hash of a key. Its bits 10 to 25 are its [`place`], the highest of them its partition.
#[inline]
pub(super) fn hash(key: &[u64]) -> u64 {
    let mut hasher = FxHasher::default();
    key.iter().for_each(|word| hasher.write_u64(*word));
    hasher.finish()
}

/// Whether two keys are equal. They are short: calling memcmp would take longer.
#[inline]
pub(super) fn are_equal(a: &[u64], b: &[u64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// How many places [`place`] tells apart.
pub(super) const PLACES: usize = 1 << 16;

/// One of [`PLACES`] for a hash; those of a partition follow each other.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "sixteen bits are left")]
pub(super) fn place(hash: u64) -> usize {
    (hash >> 10) as usize & (PLACES - 1)
}

/// The partition of a place.
#[inline]
pub(super) fn of_place(place: usize) -> usize {
    place / (PLACES / PARTITIONS)
}

/// The partition of a key.
#[must_use]
pub fn partition_of(key: &[u64]) -> usize {
    of_place(place(hash(key)))
}

/// The keys whose hashes are alike.
#[derive(Clone, Debug)]
pub struct Partition<V> {
    width: usize,
    words: Vec<u64>,
    values: Vec<V>,
    /// The settled keys: a part of the hash, and the place among them.
    index: HashTable<(u32, u32)>,
}

impl<V: Sum> Partition<V> {
    /// An empty one, for keys of so many words.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { width, words: Vec::new(), values: Vec::new(), index: HashTable::new() }
    }

    /// [`PARTITIONS`] of them.
    #[must_use]
    pub fn table(width: usize) -> Vec<Self> {
        (0..PARTITIONS).map(|_| Self::new(width)).collect()
    }

    /// Adds to a key. It may wait.
    #[inline]
    pub fn push(&mut self, key: &[u64], value: V) {
        self.words.extend(key);
        self.values.push(value);
        let waiting = self.values.len() - self.index.len();
        if waiting * (size_of::<V>() + 8 * self.width) >= WAITING {
            self.settle();
        }
    }

    /// Adds to a key, and tells its place. Nothing may wait.
    pub fn add(&mut self, key: &[u64], value: V) -> usize {
        self.words.extend_from_slice(key);
        self.values.push(value);
        let at = self.settle_one(self.values.len() - 1);
        self.values.truncate(self.index.len());
        self.words.truncate(self.index.len() * self.width);
        at
    }

    /// Adds all of another.
    pub fn append(&mut self, other: Self) {
        self.words.extend(other.words);
        self.values.extend(other.values);
    }

    /// Adds up what waits.
    pub fn settle(&mut self) {
        for waiting in self.index.len()..self.values.len() {
            self.settle_one(waiting);
        }
        self.values.truncate(self.index.len());
        self.words.truncate(self.index.len() * self.width);
    }

    /// Adds the value at `from` to its key's, if that is settled, else puts it behind those that are; its place.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "settled places and `from` are below the number of values")]
    fn settle_one(&mut self, from: usize) -> usize {
        let (width, settled) = (self.width, self.index.len());
        let (before, key) = self.words.split_at(from * width);
        let key = &key[..width];
        let hash = hash(key);
        #[allow(clippy::cast_possible_truncation, reason = "a part of the hash tells most keys apart")]
        let tag = (hash >> 32) as u32;
        let of = |at: u32| &before[at as usize * width..][..width];
        if let Some(&(_, at)) = self.index.find(hash, |&(have, at)| have == tag && are_equal(of(at), key)) {
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

    /// How many keys it has; nothing may wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The key at a place.
    #[must_use]
    #[inline]
    pub fn key(&self, at: usize) -> &[u64] {
        self.words.get(at * self.width..(at + 1) * self.width).unwrap_or_default()
    }

    /// The value at a place.
    #[must_use]
    #[inline]
    pub fn value(&self, at: usize) -> Option<&V> {
        self.values.get(at)
    }

    /// All values.
    #[must_use]
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// All keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], &V)> {
        self.values.iter().enumerate().map(|(at, value)| (self.key(at), value))
    }

    /// The words of all keys, and their values.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u64>, Vec<V>) {
        (self.words, self.values)
    }
}

/// Merges tables of keys of so many words, each partition on some core; all is settled then.
#[must_use]
pub fn merged<V: Sum>(width: usize, tables: Vec<Vec<Partition<V>>>) -> Vec<Partition<V>> {
    let mut of_partition: Vec<Vec<Partition<V>>> = (0..PARTITIONS).map(|_| Vec::with_capacity(tables.len())).collect();
    for table in tables {
        of_partition.iter_mut().zip(table).for_each(|(all, one)| all.push(one));
    }
    let merge = |mut all: Vec<Partition<V>>| {
        // The one with most is settled already, if any is.
        all.sort_by_key(|one| std::cmp::Reverse(one.index.len()));
        let mut all = all.into_iter();
        let mut merged = all.next().unwrap_or_else(|| Partition::new(width));
        all.for_each(|one| merged.append(one));
        merged.settle();
        merged
    };
    of_partition.into_par_iter().map(merge).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl Sum for u64 {
        fn add(&mut self, other: &Self) {
            *self += other;
        }
    }

    proptest! {
        #[test]
        fn each_key_is_there_once_with_its_sum(
            adds in prop::collection::vec((0u64..20, 0u64..3, 1u64..9), 0..300),
            cuts in prop::collection::vec(0usize..300, 0..3),
            settled_after in 0usize..300,
        ) {
            let mut expected = BTreeMap::<[u64; 2], u64>::new();
            let mut tables = vec![Partition::<u64>::table(2)];
            for (number, (a, b, value)) in adds.iter().enumerate() {
                *expected.entry([*a, *b]).or_default() += value;
                if cuts.contains(&number) {
                    tables.push(Partition::table(2));
                }
                let partition = &mut tables.last_mut().unwrap()[partition_of(&[*a, *b])];
                partition.push(&[*a, *b], *value);
                if number == settled_after {
                    partition.settle();
                }
            }
            let merged = merged(2, tables);
            let found: Vec<([u64; 2], u64)> =
                merged.iter().flat_map(|one| one.iter().map(|(key, value)| ([key[0], key[1]], *value))).collect();
            prop_assert_eq!(found.len(), expected.len());
            prop_assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected);
        }
    }

    #[test]
    fn what_waits_is_settled_when_it_is_much() {
        let mut partition = Partition::<u64>::new(1);
        (0..200_000).for_each(|n| partition.push(&[n % 3], 1));
        assert!(partition.values.capacity() * 16 <= 4 * WAITING, "{}", partition.values.capacity());
        assert_eq!(partition.add(&[7], 1), partition.len() - 1);
        partition.settle();
        assert_eq!(partition.len(), 4);
    }
}
