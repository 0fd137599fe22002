//! The pieces of mappings that a worker met last.

use crate::timeline::cache_place;

/// Piece of an address space in which the same is mapped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Number to add to an address to get the address in the module.
    pub(super) shift: u64,
    /// 0 if all its addresses have the same frame, else all ones. Like `is_mapped` a copy of what the image says, since
    /// each address needs it.
    pub(super) mask: u64,
    pub(super) context: u32,
    pub(super) image: u32,
    pub(super) is_mapped: bool,
}

impl Piece {
    #[inline]
    pub(super) fn has(&self, context: u32, ip: u64) -> bool {
        self.context == context && self.start <= ip && ip < self.end
    }
}

/// Recent pieces of each kind: small ones and large ones.
#[derive(Debug, Default)]
pub(super) struct RecentPieces([Vec<Piece>; 2]);

/// Log2 of the number of recent pieces of each kind.
const PIECES: u32 = 10;

/// Size from which a piece is large, in bytes.
const LARGE: u64 = 1 << 26;

impl RecentPieces {
    /// Returns the piece that has an address, if it is known.
    #[inline]
    pub(super) fn get(&self, context: u32, ip: u64) -> Option<Piece> {
        let at =
            |(pieces, place): (&Vec<Piece>, usize)| pieces.get(place).filter(|piece| piece.has(context, ip)).copied();
        self.0.iter().zip(places(context, ip)).find_map(at)
    }

    /// Adds the piece that has an address.
    pub(super) fn put(&mut self, piece: Piece, ip: u64) {
        let kind = usize::from(piece.end - piece.start >= LARGE);
        if let Some((pieces, at)) = self.0.get_mut(kind).zip(places(piece.context, ip).get(kind).copied()) {
            pieces.resize(1 << PIECES, Piece::default());
            pieces.get_mut(at).into_iter().for_each(|slot| *slot = piece);
        }
    }
}

/// Returns the places of an address among the pieces of each kind.
#[inline]
fn places(context: u32, ip: u64) -> [usize; 2] {
    // User code is below 2^47; what chains have above it that is no code is in one large piece.
    [ip >> 18, (ip >> 30).min(1 << 17)].map(|block| cache_place(block, context, PIECES))
}
