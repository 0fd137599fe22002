//! For how long addresses keep their meaning.

use recrep_format::abi::CpuMode;

use super::frozen::{Place, Timeline};
use super::moment::Moment;
use super::space::{Space, SpaceId};
use super::threads::Task;
use super::threads::{CommRef, ThreadRef};

/// A time in which neither a space nor the kernel's changes. Within one, and between two that have seen as many changes
/// of the same space, an address means the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// The address space; `None` where nothing is known of it.
    pub space: Option<SpaceId>,
    /// How many mappings it had seen.
    pub mapped: u32,
    /// How many mappings the kernel had seen.
    pub kernel: u32,
    from: Moment,
    until: Moment,
}

impl Epoch {
    /// Whether it answers for this space at this moment.
    #[must_use]
    #[inline]
    pub fn covers(&self, space: Option<SpaceId>, at: Moment) -> bool {
        self.space == space && self.from <= at && at < self.until
    }
}

impl Timeline {
    /// The stretch of a space that this moment is in.
    #[must_use]
    pub fn stretch(&self, space: Option<SpaceId>, at: Moment) -> Epoch {
        let of = |space: Option<&Space>| space.map_or((0, Moment::START, Moment::END), |space| space.seen(at));
        let own = of(space.and_then(|id| self.spaces.get(id.0 as usize)));
        let kernel = of(Some(&self.kernel));
        Epoch { space, mapped: own.0, kernel: kernel.0, from: own.1.max(kernel.1), until: own.2.min(kernel.2) }
    }

    /// Where an address of a space belongs, in this CPU mode.
    #[must_use]
    pub fn place_in(&self, mode: CpuMode, space: Option<SpaceId>, address: u64, at: Moment) -> Place {
        let task = Task { thread: ThreadRef::Bare(-1), pid: -1, comm: CommRef::Unnamed(-1), space };
        self.place(mode, &task, address, at)
    }
}
