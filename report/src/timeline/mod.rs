//! The side-band in time order, frozen: who was what, and what was mapped where, at any moment.
//!
//! ```text
//!   records ──► Change at a Moment ──► sort ──► build (one pass, as perf's machine) ──► Timeline
//!                                                                                          │ shared by all workers
//!   sample: (pid, tid, moment) ──► Timeline::thread ──► comm, thread, space                ▼
//!           (space, ip, moment) ─► Timeline::mapping ─► module, address in it
//! ```
//!
//! Nothing is replayed for samples: they are never sorted, and each asks for its own moment. What a task is at a
//! moment follows `perf report` (its `machine.c`, `thread.c`, `maps.c`): a thread's first name counts for the time before
//! it too, a fork copies name and mappings and ends the use of a thread number that comes again, an exit changes
//! nothing (the kernel still runs for the task), an exec drops nothing, and a new mapping covers what it overlaps.
//!
//! The timeline knows no symbols and no files: a module is a number here.

mod build;
mod moment;
mod space;
mod threads;

pub use build::Change;
pub use moment::{FlushLimits, Moment, is_time};
pub use space::{Mapping, ModuleId, SpaceId};
pub use threads::{CommRef, Span, Task, ThreadRef};

use rustc_hash::FxHashMap;

use space::Space;
use threads::Life;

/// The number that perf gives to the idle task.
const IDLE: i32 = 0;

/// All of the side-band, in the order of its moments.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Where in `lives` the lives of each thread number are.
    tids: FxHashMap<i32, (u32, u32)>,
    lives: Vec<Life>,
    names: Vec<(Moment, u32)>,
    comms: Vec<String>,
    spaces: Vec<Space>,
    kernel: Space,
}

impl Timeline {
    /// What was mapped at `address` of a process.
    #[must_use]
    #[inline]
    pub fn mapping(&self, space: SpaceId, address: u64, at: Moment) -> Option<&Mapping> {
        space::find(&self.spaces, space, address, at)
    }

    /// What was mapped at `address` of the kernel.
    #[must_use]
    #[inline]
    pub fn kernel_mapping(&self, address: u64, at: Moment) -> Option<&Mapping> {
        space::find(std::slice::from_ref(&self.kernel), SpaceId(0), address, at)
    }

    /// The text of a comm.
    #[must_use]
    pub fn comm(&self, comm: CommRef) -> std::borrow::Cow<'_, str> {
        match comm {
            CommRef::Named(id) => self.comms.get(id as usize).map_or("", String::as_str).into(),
            CommRef::Unnamed(tid) => format!(":{tid}").into(),
        }
    }
}
