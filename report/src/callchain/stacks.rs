//! Chains of frames: callchains after addresses were replaced by functions.

use rustc_hash::FxHashMap;

use crate::count::{End, Field, Key, Meta};

/// A frame: a function, or an address without a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Number of the module plus one; 0 if nothing was mapped.
    pub module: u32,
    /// Kind of [`Frame::address`], and the CPU mode.
    pub end: End,
    /// Address in the module's own terms, or number of a symbol.
    pub address: u64,
    /// Recorded address, if asked for.
    pub ip: u64,
    /// Offset in the function, if asked for.
    pub offset: u32,
    /// Whether it is a return address, if asked for: the call instruction is before it.
    pub is_return: bool,
    /// Number of the source line plus one, if asked for.
    pub line: u32,
    /// Size of the mapping in bytes, if asked for.
    pub size: u64,
    /// Information about the branch whose source or target it is ([`super::BranchInfo`]); 0 for a frame of a call.
    pub branch: u64,
}

/// Reference from a key to its sample's callchain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainRef {
    /// Number of the chain of callers, from 1 on; 0 for none.
    pub callers: u32,
    /// Whether the sampled instruction is the innermost frame.
    pub own: bool,
}

impl ChainRef {
    /// Returns the reference as a word of a key.
    #[must_use]
    #[inline]
    pub fn pack(self) -> u64 {
        u64::from(self.callers) << 1 | u64::from(self.own)
    }

    /// Returns the reference from a word made by [`ChainRef::pack`].
    #[must_use]
    #[inline]
    pub fn unpack(word: u64) -> Self {
        Self { callers: u32::try_from(word >> 1).unwrap_or(0), own: word & 1 == 1 }
    }
}

impl Frame {
    /// Returns the frame of a key's sampled instruction.
    #[must_use]
    #[inline]
    pub fn of(key: &Key) -> Self {
        Self {
            module: u32::try_from(Field::Module.of(key)).unwrap_or(0),
            end: Meta::unpack(Field::Meta.of(key)).at,
            address: Field::Address.of(key),
            ip: Field::Ip.of(key),
            offset: u32::try_from(Field::Offset.of(key)).unwrap_or(u32::MAX),
            is_return: false,
            line: u32::try_from(Field::Line.of(key)).unwrap_or(0),
            size: Field::MapSize.of(key),
            branch: 0,
        }
    }

    /// Replaces the frame of a key's sampled instruction.
    #[inline]
    pub fn put(&self, key: &mut Key) {
        let meta = Meta { at: self.end, ..Meta::unpack(Field::Meta.of(key)) };
        for (field, value) in [
            (Field::Meta, meta.pack()),
            (Field::Module, u64::from(self.module)),
            (Field::Address, self.address),
            (Field::Ip, self.ip),
            (Field::Offset, u64::from(self.offset)),
            (Field::Line, u64::from(self.line)),
            (Field::MapSize, self.size),
        ] {
            *field.of_mut(key) = value;
        }
    }
}

/// Distinct chains of frames, innermost first.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// Distinct frames, indexed by the numbers in chains.
    pub frames: Vec<Frame>,
    numbers: FxHashMap<Frame, u32>,
    words: Vec<u32>,
    ends: Vec<usize>,
}

impl Stacks {
    /// Returns the number of chains.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no chains.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the chain with this number, counted from 1; 0 is the chain without frames.
    #[must_use]
    #[inline]
    pub fn chain(&self, number: u32) -> &[u32] {
        let Some(index) = (number as usize).checked_sub(1) else { return &[] };
        let start = index.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.words.get(start..end).unwrap_or_default()
    }

    /// Returns the frames of a key's sample, innermost first.
    pub fn of(&self, key: &Key) -> impl DoubleEndedIterator<Item = u32> {
        let chained = ChainRef::unpack(Field::Chain.of(key));
        let own = if chained.own { self.numbers.get(&Frame::of(key)).copied() } else { None };
        own.into_iter().chain(self.chain(chained.callers).iter().copied())
    }

    /// Replaces each frame by one or several, and returns the new chains and the new number of each old chain. Frames
    /// and chains that become equal get one number.
    #[must_use]
    pub fn map(&self, frames: impl Fn(Frame, &mut Vec<Frame>)) -> (Self, Vec<u32>) {
        let mut mapped = Self::default();
        let (mut new, mut of_frames, mut ends) = (Vec::new(), Vec::new(), Vec::with_capacity(self.frames.len()));
        for old in &self.frames {
            new.clear();
            frames(*old, &mut new);
            of_frames.extend(new.iter().map(|frame| mapped.number(*frame)));
            ends.push(of_frames.len());
        }
        let of_frame = |word: u32| {
            let end = ends.get(word as usize).copied().unwrap_or(0);
            let start = (word as usize).checked_sub(1).map_or(0, |before| ends.get(before).copied().unwrap_or(0));
            of_frames.get(start..end).unwrap_or_default()
        };
        let mut known = ChainIndex::default();
        let mut scratch = Vec::new();
        let chains = (1..=u32::try_from(self.len()).unwrap_or(u32::MAX)).map(|number| {
            scratch.clear();
            scratch.extend(self.chain(number).iter().flat_map(|word| of_frame(*word)));
            mapped.push_unique(&scratch, &mut known)
        });
        let chains = chains.collect();
        (mapped, chains)
    }

    /// Appends the chains of `other`, and returns the offset to add to their numbers.
    pub fn append(&mut self, other: &Self) -> u32 {
        let grown = u32::try_from(self.len()).unwrap_or(u32::MAX);
        let of_frame: Vec<u32> = other.frames.iter().map(|frame| self.number(*frame)).collect();
        let first = self.words.len();
        self.words.extend(other.words.iter().filter_map(|word| of_frame.get(*word as usize)));
        self.ends.extend(other.ends.iter().map(|end| first + end));
        grown
    }

    /// Adds a chain and returns its number.
    pub fn push(&mut self, words: impl IntoIterator<Item = u32>) -> u32 {
        self.words.extend(words);
        self.ends.push(self.words.len());
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of a frame; `None` if it is unknown.
    #[must_use]
    pub fn find(&self, frame: &Frame) -> Option<u32> {
        self.numbers.get(frame).copied()
    }

    /// Returns the number of a frame, adding the frame if it is new.
    pub fn number(&mut self, frame: Frame) -> u32 {
        *self.numbers.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            u32::try_from(self.frames.len()).unwrap_or(u32::MAX) - 1
        })
    }

    fn push_unique(&mut self, words: &[u32], known: &mut ChainIndex) -> u32 {
        let hash = {
            use std::hash::Hasher;
            let mut hasher = rustc_hash::FxHasher::default();
            words.iter().for_each(|word| hasher.write_u32(*word));
            hasher.finish()
        };
        let last = known.last.get(&hash).copied().unwrap_or(0);
        let mut next = last;
        while next > 0 {
            if self.chain(next) == words {
                return next;
            }
            next = known.next.get(next as usize - 1).copied().unwrap_or(0);
        }
        let number = self.push(words.iter().copied());
        known.last.insert(hash, number);
        known.next.push(last);
        number
    }
}

/// Chains by hash: the last chain of each hash, and for each chain the previous one with its hash; 0 for none.
#[derive(Debug, Default)]
struct ChainIndex {
    last: FxHashMap<u64, u32>,
    next: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::NO_KEY;

    fn frame(address: u64) -> Frame {
        Frame { module: 1, address, ..Frame::default() }
    }

    #[test]
    fn chains_that_become_equal_are_merged() {
        let mut stacks = Stacks { frames: [10, 11, 20].map(frame).to_vec(), ..Stacks::default() };
        for chain in [&[0, 2][..], &[1, 2], &[2], &[]] {
            stacks.push(chain.iter().copied());
        }
        let (folded, numbers) = stacks.map(|f, new| new.push(frame(f.address / 10)));
        assert_eq!(numbers, [1, 1, 2, 3]);
        assert_eq!(folded.frames, [frame(1), frame(2)]);
        assert_eq!([folded.chain(1), folded.chain(2), folded.chain(3), folded.chain(0)], [&[0, 1][..], &[1], &[], &[]]);
    }

    #[test]
    fn appended_chains_keep_their_frames() {
        let (mut all, mut part) = (Stacks::default(), Stacks::default());
        let [five, six] = [5, 6].map(|address| part.number(frame(address)));
        part.push([six, five]);
        assert_eq!([all.append(&part), all.append(&part)], [0, 1]);
        assert_eq!((all.frames.len(), all.len()), (2, 2));
        assert_eq!(all.chain(1), all.chain(2));
    }

    #[test]
    fn a_sample_has_its_own_frame_and_its_callers() {
        let mut stacks = Stacks::default();
        let [inner, a, b, outer] = [1, 2, 3, 4].map(|address| stacks.number(frame(address)));
        let callers = stacks.push([a, b, outer]);
        let mut key = NO_KEY;
        (*Field::Module.of_mut(&mut key), *Field::Address.of_mut(&mut key)) = (1, 1);
        let mut of = |own| {
            *Field::Chain.of_mut(&mut key) = ChainRef { callers, own }.pack();
            stacks.of(&key).collect::<Vec<_>>()
        };
        assert_eq!(of(true), [inner, a, b, outer]);
        assert_eq!(of(false), [a, b, outer]);
    }
}
