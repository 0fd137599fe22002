//! Keys of a histogram: words that hold what was asked for.

use crate::query::{Query, SortKey};

/// A word of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Event, level, CPU and what the address is: [`Meta`].
    Meta,
    /// A comm ([`crate::timeline::CommRef::pack`]).
    Comm,
    /// A module's number plus one; 0 where nothing was mapped.
    Module,
    /// The address in the module's own terms; the sampled one where there is no module.
    Address,
    /// The sampled address.
    Ip,
    /// A thread ([`crate::timeline::ThreadRef::pack`]).
    Thread,
}

/// The words of a key that are in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    fields: Vec<Field>,
    /// Whether the level is part of the key.
    pub level: bool,
    /// Whether the CPU is part of the key.
    pub cpu: bool,
}

/// A key with room for every word; those not in use are 0.
pub type Key = [u64; Layout::MOST];

impl Layout {
    /// How many words a key has at most.
    pub const MOST: usize = 6;
    const ALL: [Field; Self::MOST] =
        [Field::Meta, Field::Comm, Field::Module, Field::Address, Field::Ip, Field::Thread];

    /// What this question needs.
    #[must_use]
    pub fn of(query: &Query) -> Self {
        let needed = |field: &Field| match field {
            Field::Meta => true,
            Field::Comm => query.has(SortKey::Comm),
            Field::Module => query.needs_modules(),
            Field::Address => query.needs_symbols(),
            Field::Ip => query.has(SortKey::Ip),
            Field::Thread => query.has(SortKey::Pid) || query.has(SortKey::Tid),
        };
        Self {
            fields: Self::ALL.into_iter().filter(needed).collect(),
            level: query.has(SortKey::Symbol),
            cpu: query.has(SortKey::Cpu),
        }
    }

    /// How many words are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Never: a key has at least its [`Meta`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether this word is in use.
    #[must_use]
    pub fn has(&self, field: Field) -> bool {
        self.fields.contains(&field)
    }

    /// The words in use of a whole key.
    #[must_use]
    #[inline]
    pub fn pack<const N: usize>(&self, key: &Key) -> [u64; N] {
        let mut packed = [0; N];
        for (word, field) in packed.iter_mut().zip(&self.fields) {
            *word = field.of(key);
        }
        packed
    }

    /// The whole key of the words in use.
    #[must_use]
    pub fn unpack<const N: usize>(&self, packed: &[u64; N]) -> Key {
        let mut key = Key::default();
        for (word, field) in packed.iter().zip(&self.fields) {
            *field.of_mut(&mut key) = *word;
        }
        key
    }
}

#[allow(clippy::indexing_slicing, reason = "a field's number is below the length of a key")]
impl Field {
    /// This word of a key.
    #[must_use]
    #[inline]
    pub fn of(self, key: &Key) -> u64 {
        key[self as usize]
    }

    /// This word of a key, to set.
    #[inline]
    pub fn of_mut(self, key: &mut Key) -> &mut u64 {
        &mut key[self as usize]
    }
}

/// The small parts of a key in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The event's place in the file.
    pub event: u16,
    /// The CPU mode: the low bits of the record's `misc`.
    pub level: u8,
    /// Whether [`Field::Address`] is a symbol's number in its module, in the place of the address.
    pub is_symbol: bool,
    /// The CPU; all ones where it is not sampled.
    pub cpu: u32,
}

impl Meta {
    /// As a word.
    #[must_use]
    #[inline]
    pub fn pack(self) -> u64 {
        let small = u64::from(self.level) << 8 | u64::from(self.is_symbol);
        u64::from(self.event) << 48 | small << 32 | u64::from(self.cpu)
    }

    /// The reverse of [`Meta::pack`].
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the parts are cut out by their widths")]
    pub fn unpack(word: u64) -> Self {
        let is_symbol = word >> 32 & 1 == 1;
        Self { event: (word >> 48) as u16, level: (word >> 40) as u8, is_symbol, cpu: word as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    #[test]
    fn only_what_is_needed_is_in_a_key() {
        let layout = |sort: &str| Layout::of(&args::parse(["rep", "-s", sort, "x"].map(Into::into)).unwrap());
        assert_eq!(layout("comm").fields, [Field::Meta, Field::Comm]);
        assert_eq!(layout("sym").fields, [Field::Meta, Field::Module, Field::Address]);
        assert_eq!(layout("comm,dso,sym,ip,pid,cpu,event").len(), Layout::MOST);
        assert!(layout("cpu").cpu && !layout("cpu").level);
    }

    #[test]
    fn packing_keeps_every_part() {
        let meta = Meta { event: 0xfedc, level: 5, is_symbol: true, cpu: u32::MAX };
        assert_eq!(Meta::unpack(meta.pack()), meta);
        let layout = Layout { fields: vec![Field::Meta, Field::Address], level: true, cpu: false };
        let key: Key = [1, 0, 0, 4, 0, 0];
        assert_eq!(layout.pack::<2>(&key), [1, 4]);
        assert_eq!(layout.unpack(&[1, 4]), key);
    }
}
