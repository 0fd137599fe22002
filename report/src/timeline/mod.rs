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
pub mod cgroups;
pub mod clock;
mod epoch;
mod frozen;
mod listing;
mod moment;
pub mod sideband;
mod space;
mod threads;

pub use build::Change;
pub use epoch::Epoch;
pub use frozen::{Place, Timeline};
pub use listing::LastLife;
pub use moment::{FlushLimits, Moment, is_time};
pub use space::{Mapping, ModuleId, SpaceId, VisiblePart};
pub use threads::{CommRef, Span, Task, ThreadRef};
