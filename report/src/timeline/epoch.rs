//! Periods in which the mappings do not change.

use recrep_format::abi::CpuMode;

use super::frozen::{Place, Timeline};
use super::moment::Moment;
use super::space::{Space, SpaceId};
use super::threads::Task;
use super::threads::{CommRef, ThreadRef};

/// A period in which neither the mappings of an address space nor those of the kernel change. An address has the same
/// meaning within an epoch, and in two epochs with equal `space`, `mapped` and `kernel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Address space; `None` if unknown.
    pub space: Option<SpaceId>,
    /// Number of mappings added to the space so far.
    pub mapped: u32,
    /// Number of mappings added to the kernel so far.
    pub kernel: u32,
    from: Moment,
    until: Moment,
}

impl Epoch {
    /// Returns whether this epoch is valid for this space at this moment.
    #[must_use]
    #[inline]
    pub fn covers(&self, space: Option<SpaceId>, at: Moment) -> bool {
        self.space == space && self.from <= at && at < self.until
    }
}

impl Timeline {
    /// Returns the epoch of a space that this moment is in.
    #[must_use]
    pub fn stretch(&self, space: Option<SpaceId>, at: Moment) -> Epoch {
        let of = |space: Option<&Space>| space.map_or((0, Moment::START, Moment::END), |space| space.seen(at));
        let own = of(space.and_then(|id| self.spaces.get(id.0 as usize)));
        let kernel = of(Some(&self.kernel));
        Epoch { space, mapped: own.0, kernel: kernel.0, from: own.1.max(kernel.1), until: own.2.min(kernel.2) }
    }

    /// Looks up an address of a space in this CPU mode.
    #[must_use]
    pub fn place_in(&self, mode: CpuMode, space: Option<SpaceId>, address: u64, at: Moment) -> Place {
        let task = Task { thread: ThreadRef::Bare(-1), pid: -1, comm: CommRef::Unnamed(-1), space };
        self.place(mode, &task, address, at)
    }
}
