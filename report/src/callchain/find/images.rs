//! The pieces of mappings that a worker met last, the properties that all frames of a piece share
//! (its image), and the words of keys that stand for frames.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::callchain::tree::stacks::{Frame, Stacks};
use crate::timeline::{ModuleId, cache_place};

/// Fields that distinguish frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameFields {
    /// `true` if the CPU mode is part of a frame.
    pub cpu_mode: bool,
    /// `true` if the recorded address is part of a frame.
    pub ip: bool,
    /// `true` if the size of the mapping is part of a frame.
    pub size: bool,
    /// `true` if addresses that differ only in the lookup of inlined functions are distinguished.
    pub inlined: bool,
    /// `true` if unmapped addresses are distinguished from each other.
    pub unmapped: bool,
    /// `true` if addresses of a module without a function are distinguished from each other.
    pub unnamed: bool,
}

/// Address that stands for all unmapped addresses, or for all of a module without a function, if
/// these are not distinguished.
pub(crate) const UNMAPPED: u64 = u64::MAX;

/// Properties that all frames of a piece share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Image {
    /// A frame of it, without address.
    pub(crate) frame: Frame,
    /// `true` if its addresses get functions.
    pub(crate) is_named: bool,
    /// Number to add to a recorded address to get the address in the module, if frames have
    /// recorded addresses: equal addresses in the module are then different frames.
    pub(crate) shift: Option<u64>,
}

impl Image {
    /// Returns an address's own frame.
    #[inline]
    pub(crate) fn at(&self, address: u64) -> Frame {
        Frame {
            address,
            ip: self.shift.map_or(0, |shift| address.wrapping_sub(shift)),
            ..self.frame
        }
    }
}

/// Images that a worker met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images(IndexSet<Image, FxBuildHasher>);

impl Images {
    /// Returns the number of an image, adding it if it is new.
    pub(crate) fn number(&mut self, image: Image) -> u32 {
        u32::try_from(self.0.insert_full(image).0).unwrap_or(u32::MAX)
    }

    /// Returns the image with this number.
    pub(crate) fn get(&self, number: u32) -> Option<&Image> {
        self.0.get_index(number as usize)
    }

    /// Returns the module of an image; `None` if nothing is mapped there.
    pub(crate) fn module(&self, number: u32) -> Option<u32> {
        self.get(number)?.frame.module.checked_sub(1)
    }

    /// Returns the frame for which a word of [`Field::Frame`](crate::query::Field::Frame) stands:
    /// one of the worker's `stacks`, or with the highest bit set an address's own. There may be
    /// many of these, so they are in no list.
    #[inline]
    pub(crate) fn frame(&self, word: u64, stacks: &Stacks) -> Option<Frame> {
        if word >> 63 == 0 {
            return stacks.frame(u32::try_from(word).ok()?).copied();
        }
        let image = word >> ADDRESS_BITS & ((1 << IMAGE_BITS) - 1);
        Some(self.get(u32::try_from(image).ok()?)?.at(word & ((1 << ADDRESS_BITS) - 1)))
    }

    /// Returns the modules in which addresses were looked up.
    pub(crate) fn modules(&self) -> impl Iterator<Item = ModuleId> {
        self.0.iter().filter_map(|image| image.frame.module.checked_sub(1)).map(ModuleId)
    }
}

/// Number of bits of an address in a word that has no frame's number: of one in a file, or in a
/// process.
const ADDRESS_BITS: u32 = 48;

/// Number of bits of an image's number in such a word.
const IMAGE_BITS: u32 = 63 - ADDRESS_BITS;

/// Returns the word for an address's own frame; `None` if it does not fit.
#[inline]
pub(crate) fn word_of(image: u32, address: u64) -> Option<u64> {
    let fits = image >> IMAGE_BITS == 0 && address >> ADDRESS_BITS == 0;
    fits.then_some(1 << 63 | u64::from(image) << ADDRESS_BITS | address)
}

/// Piece of an address space in which the same is mapped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MappedPiece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Number to add to an address to get the address in the module.
    pub(crate) shift: u64,
    /// 0 if all its addresses have the same frame, else all ones. Like `is_mapped` a copy of what
    /// the image says, since each address needs it.
    pub(crate) mask: u64,
    pub(crate) context: u32,
    pub(crate) image: u32,
    pub(crate) is_mapped: bool,
    /// `true` if the steps from its addresses are checked.
    pub(crate) is_checked: bool,
}

impl MappedPiece {
    #[inline]
    pub(crate) fn has(&self, context: u32, ip: u64) -> bool {
        self.context == context && self.start <= ip && ip < self.end
    }
}

/// Recent pieces of each kind: small ones and large ones.
#[derive(Debug, Default)]
pub(crate) struct RecentPieces([Vec<MappedPiece>; 2]);

/// Log2 of the number of recent pieces of each kind.
const PIECES: u32 = 10;

/// Size from which a piece is large, in bytes.
const LARGE: u64 = 1 << 26;

impl RecentPieces {
    /// Returns the piece that has an address, if it is known.
    #[inline]
    pub(crate) fn get(&self, context: u32, ip: u64) -> Option<MappedPiece> {
        self.0.iter().zip(places(context, ip)).find_map(|(pieces, place)| {
            pieces.get(place).filter(|piece| piece.has(context, ip)).copied()
        })
    }

    /// Adds the piece that has an address.
    pub(crate) fn put(&mut self, piece: MappedPiece, ip: u64) {
        let kind = usize::from(piece.end - piece.start >= LARGE);
        if let Some((pieces, at)) =
            self.0.get_mut(kind).zip(places(piece.context, ip).get(kind).copied())
        {
            pieces.resize(1 << PIECES, MappedPiece::default());
            if let Some(slot) = pieces.get_mut(at) {
                *slot = piece;
            }
        }
    }
}

/// Returns the places of an address among the pieces of each kind.
#[inline]
fn places(context: u32, ip: u64) -> [usize; 2] {
    // User code is below 2^47; what chains have above it that is no code is in one large piece.
    [ip >> 18, (ip >> 30).min(1 << 17)].map(|block| cache_place(block, context, PIECES))
}

/// A range of addresses of an image that have a value in common.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ImageRange<T> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) image: u32,
    pub(crate) value: T,
}

/// Recent ranges of addresses: a direct-mapped cache.
#[derive(Debug, Default)]
pub(crate) struct RecentRanges<T>(Vec<ImageRange<T>>);

/// Log2 of the number of recent ranges.
const RANGES: u32 = 14;

/// Log2 of the number of neighboring addresses that share a slot in the cache of ranges.
const NEIGHBORS: u32 = 6;

impl<T: Copy + Default> RecentRanges<T> {
    #[inline]
    fn slot(image: u32, address: u64) -> usize {
        cache_place(address >> NEIGHBORS, image, RANGES)
    }

    /// Returns the value at an address of an image, if it is known.
    #[inline]
    pub(crate) fn get(&self, image: u32, address: u64) -> Option<T> {
        let range = self.0.get(Self::slot(image, address))?;
        let has = range.image == image && range.start <= address && address < range.end;
        has.then_some(range.value)
    }

    /// Adds the range that has an address.
    pub(crate) fn put(&mut self, range: ImageRange<T>, address: u64) {
        self.0.resize(1 << RANGES, ImageRange::default());
        if let Some(slot) = self.0.get_mut(Self::slot(range.image, address)) {
            *slot = range;
        }
    }
}

/// Values at recent addresses of images: a direct-mapped cache.
#[derive(Debug, Default)]
pub(crate) struct RecentAddresses<T>(Vec<(u64, u32, T)>);

impl<T: Copy + Default> RecentAddresses<T> {
    /// Log2 of the number of addresses.
    const ADDRESSES: u32 = 15;

    #[inline]
    fn slot(image: u32, address: u64) -> usize {
        cache_place(address, image, Self::ADDRESSES)
    }

    /// Returns the value at an address, if it is known.
    #[inline]
    pub(crate) fn get(&self, image: u32, address: u64) -> Option<T> {
        let (known, of, value) = self.0.get(Self::slot(image, address))?;
        ((*of, *known) == (image, address)).then_some(*value)
    }

    /// Adds an address.
    pub(crate) fn put(&mut self, image: u32, address: u64, value: T) {
        // No image has this number.
        self.0.resize(1 << Self::ADDRESSES, (0, u32::MAX, T::default()));
        if let Some(slot) = self.0.get_mut(Self::slot(image, address)) {
            *slot = (address, image, value);
        }
    }
}
