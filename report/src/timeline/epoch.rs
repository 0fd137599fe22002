//! Periods in which the mappings do not change.

use std::hash::Hash;
use std::ops::Range;

use indexmap::IndexSet;
use recrep_format::abi::CpuMode;
use rustc_hash::FxBuildHasher;

use super::{Moment, SpaceId, Timeline};

/// Version of an address space, which decides the meaning of an address: the space, and the number
/// of changes to its mappings and to the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SpaceEpoch {
    pub space: Option<SpaceId>,
    pub mapped: u32,
    pub kernel: u32,
}

impl SpaceEpoch {
    /// Returns the part that matters in a CPU mode: the kernel is the same in every space, and a
    /// space does not depend on the kernel. Without a mode, both matter.
    #[inline]
    pub(crate) fn in_mode(self, mode: CpuMode) -> Self {
        match mode {
            CpuMode::Kernel => Self { space: None, mapped: 0, ..self },
            _ => Self { kernel: 0, ..self },
        }
    }

    /// Returns the epoch of a guest's code, which is in no space.
    pub(crate) fn of_guest(mode: CpuMode) -> Self {
        Self { space: None, mapped: mode.bits().into(), kernel: u32::MAX }
    }
}

/// A context and its number.
type NumberedContext<K> = ((K, SpaceEpoch), u32);

/// Numbers, from 0 on, for the contexts in which an address means the same: a `K` and an epoch of
/// its space.
#[derive(Debug)]
pub(crate) struct Contexts<K> {
    all: IndexSet<(K, SpaceEpoch), FxBuildHasher>,
    /// The contexts that were asked for last in the kernel and in each of some spaces: those of
    /// several CPUs alternate.
    last: [[Option<NumberedContext<K>>; 4]; 8],
}

impl<K> Default for Contexts<K> {
    fn default() -> Self {
        Self { all: IndexSet::default(), last: [const { [None, None, None, None] }; 8] }
    }
}

impl<K: Copy + Eq + Hash> Contexts<K> {
    #[inline]
    pub(crate) fn number(&mut self, kind: K, epoch: SpaceEpoch) -> u32 {
        let of_space = epoch.space.map_or(0, |space| space.0 as usize + 1) % self.last.len();
        let Some(last) = self.last.get_mut(of_space) else { return 0 };
        for (known, number) in last.iter().flatten() {
            if *known == (kind, epoch) {
                return *number;
            }
        }
        let number = u32::try_from(self.all.insert_full((kind, epoch)).0).unwrap_or(u32::MAX);
        last.rotate_right(1);
        if let Some(first) = last.first_mut() {
            *first = Some(((kind, epoch), number));
        }
        number
    }

    /// Returns the context with this number.
    pub(crate) fn get(&self, number: u32) -> Option<(K, SpaceEpoch)> {
        self.all.get_index(number as usize).copied()
    }
}

/// Returns the place of a block of addresses, of the context or image `of`, in a cache with
/// 2^`bits` places.
#[inline]
pub(crate) fn cache_place(block: u64, of: u32, bits: u32) -> usize {
    let mixed = (block ^ u64::from(of) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> (64 - bits)).unwrap_or(0)
}

/// A time in which neither a space nor the kernel's changes. Within one, and between two that have
/// seen as many changes of the same space, an address means the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    /// The space, and what it had seen.
    pub of: SpaceEpoch,
    pub moments: Range<Moment>,
}

impl Epoch {
    /// Returns whether this epoch is valid for this space at this moment.
    #[inline]
    pub(crate) fn covers(&self, space: Option<SpaceId>, at: Moment) -> bool {
        self.of.space == space && self.moments.contains(&at)
    }
}

impl Timeline {
    /// Returns the epoch of a space that this moment is in.
    pub(crate) fn epoch(&self, space: Option<SpaceId>, at: Moment) -> Epoch {
        let own = space.and_then(|id| self.spaces.get(id.0 as usize));
        let own = own.map_or((0, Moment::START, Moment::END), |space| space.seen(at));
        let kernel = self.kernel.seen(at);
        Epoch {
            of: SpaceEpoch { space, mapped: own.0, kernel: kernel.0 },
            moments: own.1.max(kernel.1)..own.2.min(kernel.2),
        }
    }
}
