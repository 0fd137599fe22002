//! Blocks of memory for a stream of bytes: records are framed where they were read, and may stay
//! there.
//!
//! ```text
//!   block 0 ┌─────────────────────────┐   block 1 ┌─────────────────────────┐
//!           │ A │ B │ C │ D │ first h…│           │ first half, rest │ F │ … │   room
//!           └─────────────────────────┘           └─────────────────────────┘
//!                 held: B               copied ────▲            ^start      ^end
//! ```
//!
//! Bytes are appended to the current block, and consumed from its beginning. A record that is
//! needed longer is held, and its block with it. Where the current block is full, what was not
//! consumed is copied to another, so that a record is always in one piece. A block is used again
//! when nothing in it is held.

/// Consecutive bytes that were read and not consumed, and records that are held.
#[derive(Debug)]
pub(super) struct Blocks {
    all: Vec<Block>,
    free: Vec<u32>,
    current: u32,
    /// Number of bytes of other blocks with held records.
    pinned: usize,
    /// Start and end in the current block of the bytes that were not consumed.
    start: usize,
    end: usize,
}

#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// Number of held records.
    held: usize,
}

/// Place of a held record.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    block: u32,
    start: usize,
}

impl Held {
    /// Returns the place of a record in memory that has no blocks.
    pub(super) fn at(start: usize) -> Self {
        Self { block: 0, start }
    }

    /// Returns the place in the block.
    #[inline]
    pub(super) fn start(self) -> usize {
        self.start
    }
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            all: vec![Block::default()],
            free: Vec::new(),
            current: 0,
            pinned: 0,
            start: 0,
            end: 0,
        }
    }
}

impl Blocks {
    /// Length of a block in bytes, unless a record needs more.
    pub(super) const LEN: usize = 256 << 10;

    #[inline]
    fn current(&self) -> &[u8] {
        self.all.get(self.current as usize).map_or(&[], |block| &block.bytes)
    }

    /// Returns the bytes that were not consumed.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.current().get(self.start..self.end).unwrap_or_default()
    }

    /// Drops the first `len` bytes.
    #[inline]
    pub(super) fn consume(&mut self, len: usize) {
        self.start = self.end.min(self.start + len);
    }

    /// Returns room for more bytes, at least one.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.end == self.current().len() {
            self.make_room();
        }
        let end = self.end;
        self.all
            .get_mut(self.current as usize)
            .and_then(|block| block.bytes.get_mut(end..))
            .unwrap_or_default()
    }

    /// Adds the first `len` bytes of the room.
    pub(super) fn append(&mut self, len: usize) {
        self.end = self.current().len().min(self.end + len);
    }

    /// Holds the first record; it stays in memory until it is released.
    #[inline]
    pub(super) fn hold(&mut self) -> Held {
        if let Some(block) = self.all.get_mut(self.current as usize) {
            block.held += 1;
        }
        Held { block: self.current, start: self.start }
    }

    /// Returns a held record, and what follows it in its block.
    #[inline]
    pub(super) fn get(&self, held: Held) -> &[u8] {
        self.all
            .get(held.block as usize)
            .and_then(|block| block.bytes.get(held.start..))
            .unwrap_or_default()
    }

    /// Releases a held record.
    #[inline]
    pub(super) fn release(&mut self, held: Held) {
        let Some(block) = self.all.get_mut(held.block as usize) else { return };
        block.held -= 1;
        if block.held == 0 && held.block != self.current {
            self.pinned -= block.bytes.len();
            self.free.push(held.block);
        }
    }

    /// Returns the number of bytes of the blocks that held records keep, but for the current one.
    #[inline]
    pub(super) fn pinned(&self) -> usize {
        self.pinned
    }

    /// Returns the number of bytes of the blocks in use.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        (self.all.len() - self.free.len()) * Self::LEN
    }

    /// Moves what was not consumed to the beginning of a block with room for as much again.
    #[cold]
    fn make_room(&mut self) {
        let len = self.end - self.start;
        let needed = Self::LEN.max((2 * len).next_power_of_two());
        let is_held = self.all.get(self.current as usize).is_some_and(|block| block.held > 0);
        if is_held {
            let next = self.free.pop().unwrap_or_else(|| {
                self.all.push(Block::default());
                u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
            });
            let [before, after] = [self.current, next].map(|number| number as usize);
            if let Ok([before, after]) = self.all.get_disjoint_mut([before, after]) {
                self.pinned += before.bytes.len();
                after.bytes.resize(needed.max(after.bytes.len()), 0);
                let rest = before.bytes.get(self.start..self.end).unwrap_or_default();
                after.bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            }
            self.current = next;
        } else if let Some(block) = self.all.get_mut(self.current as usize) {
            block.bytes.copy_within(self.start..self.end, 0);
            block.bytes.resize(needed.max(block.bytes.len()), 0);
        }
        (self.start, self.end) = (0, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(blocks: &mut Blocks, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = blocks.room();
            let len = room.len().min(bytes.len());
            room[..len].copy_from_slice(&bytes[..len]);
            blocks.append(len);
            bytes = &bytes[len..];
        }
    }

    #[test]
    fn held_bytes_stay_and_their_block_is_used_again() {
        let mut blocks = Blocks::default();
        let piece = |n: u8| vec![n; 100_000];
        let held: Vec<_> = (0..10)
            .map(|n| {
                add(&mut blocks, &piece(n));
                assert_eq!(blocks.bytes(), piece(n));
                let held = blocks.hold();
                blocks.consume(100_000);
                held
            })
            .collect();
        for (n, held) in (0..).zip(&held) {
            assert_eq!(blocks.get(*held)[..100_000], piece(n));
        }
        let before = blocks.len();
        assert!(before >= 1_000_000);
        held.into_iter().for_each(|held| blocks.release(held));
        assert_eq!((blocks.len(), blocks.pinned()), (Blocks::LEN, 0));
        (0..30).for_each(|n| {
            add(&mut blocks, &piece(n));
            blocks.consume(100_000);
        });
        assert_eq!(blocks.len(), Blocks::LEN, "without held records one block is enough");
    }

    #[test]
    fn a_block_grows_with_what_is_not_consumed() {
        let mut blocks = Blocks::default();
        let all: Vec<u8> = (0..=u8::MAX).cycle().take(3_000_000).collect();
        add(&mut blocks, &all);
        assert!(blocks.bytes() == all);
    }
}
