//! Properties of frames: those that distinguish them, those that all frames of a mapped piece share (its image), and
//! the words of keys that stand for frames.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::stacks::Frame;
use crate::timeline::ModuleId;

/// Fields that distinguish frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameFields {
    /// `true` if the CPU mode is part of a frame.
    pub cpu_mode: bool,
    /// `true` if the recorded address is part of a frame.
    pub ip: bool,
    /// `true` if the size of the mapping is part of a frame.
    pub size: bool,
    /// `true` if return addresses are distinguished from sampled addresses.
    pub returns: bool,
    /// `true` if unmapped addresses are distinguished from each other.
    pub unmapped: bool,
    /// `true` if addresses of a module without a function are distinguished from each other.
    pub unnamed: bool,
}

/// Address that stands for all unmapped addresses, or for all of a module without a function, if these are not
/// distinguished.
pub(crate) const UNMAPPED: u64 = u64::MAX;

/// Properties that all frames of a piece share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Image {
    /// A frame of it, without address.
    pub(super) frame: Frame,
    /// `true` if its addresses get functions.
    pub(super) is_named: bool,
    /// Number to add to a recorded address to get the address in the module, if frames have recorded addresses: equal
    /// addresses in the module are then different frames.
    pub(super) shift: Option<u64>,
}

impl Image {
    /// Returns an address's own frame.
    #[inline]
    pub(super) fn at(&self, address: u64) -> Frame {
        Frame { address, ip: self.shift.map_or(0, |shift| address.wrapping_sub(shift)), ..self.frame }
    }
}

/// Images that a worker met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images(IndexSet<Image, FxBuildHasher>);

impl Images {
    /// Returns the number of an image, adding it if it is new.
    pub(super) fn number(&mut self, image: Image) -> u32 {
        u32::try_from(self.0.insert_full(image).0).unwrap_or(u32::MAX)
    }

    /// Returns the image with this number.
    pub(super) fn get(&self, number: u32) -> Option<&Image> {
        self.0.get_index(number as usize)
    }

    /// Returns the frame for which a word of [`Field::Frame`](crate::query::key::Field::Frame) stands: one of
    /// `numbered`, or with the highest bit set an address's own. There may be many of these, so they are in no list.
    #[inline]
    pub(crate) fn frame(&self, word: u64, numbered: &[Frame]) -> Option<Frame> {
        if word >> 63 == 0 {
            return numbered.get(usize::try_from(word).ok()?).copied();
        }
        let image = word >> ADDRESS_BITS & ((1 << IMAGE_BITS) - 1);
        Some(self.get(u32::try_from(image).ok()?)?.at(word & ((1 << ADDRESS_BITS) - 1)))
    }

    /// Returns the modules in which addresses were looked up.
    pub(crate) fn modules(&self) -> impl Iterator<Item = ModuleId> {
        self.0.iter().filter_map(|image| image.frame.module.checked_sub(1)).map(ModuleId)
    }
}

/// Number of bits of an address in a word that has no frame's number: of one in a file, or in a process.
const ADDRESS_BITS: u32 = 48;

/// Number of bits of an image's number in such a word.
const IMAGE_BITS: u32 = 63 - ADDRESS_BITS;

/// Returns the word for an address's own frame; `None` if it does not fit.
#[inline]
pub(super) fn word_of(image: u32, address: u64) -> Option<u64> {
    let fits = image >> IMAGE_BITS == 0 && address >> ADDRESS_BITS == 0;
    fits.then_some(1 << 63 | u64::from(image) << ADDRESS_BITS | address)
}
