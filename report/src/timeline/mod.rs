//! Threads, comms, mappings and cgroups at any moment; time off CPUs; counts of lost records. All
//! is built before samples are counted, and not changed after that.
//!
//! ```text
//!   records ──► Change at a Moment ──► sort ──► build (one pass, perf's rules)     ──► Timeline
//!                                                                                          │ shared by all workers
//!   sample: (pid, tid, moment) ──► Timeline::span ───► comm, thread, space                ▼
//!           (space, ip, moment) ─► Timeline::place ──► module, address in it
//! ```
//!
//! Samples need no order: each looks up the state at its own moment. That state follows
//! `perf report` (its `machine.c`, `thread.c`, `maps.c`): a thread's first comm also applies to the
//! time before it; a fork copies comm and mappings, and a child with a tid that was used before is
//! a new thread; an exit changes nothing (the task still runs in the kernel); an exec keeps the old
//! mappings; and a new mapping covers what it overlaps.
//!
//! A `Timeline` knows no symbols and no files: a module is a number in it.

mod build;
mod cgroups;
mod clock;
mod epoch;
mod frozen;
mod jit_code;
mod lives;
mod moved_text;
mod off_cpu;
mod sideband;
mod space;
mod wait_kinds;
mod waits;

pub(crate) use build::Change;
pub(crate) use cgroups::Groups;
pub(crate) use clock::{Clock, Moment};
pub(crate) use epoch::{Contexts, Epoch, SpaceEpoch, cache_place};
pub(crate) use frozen::{CommRef, Life, Place, RecentSpans, Span, Task, ThreadRef, Timeline};
pub(crate) use off_cpu::{
    Activity, BusyTime, IdleThreads, InterruptWakes, OffCpu, Parallelism, RanSpan, RanThread,
    Recorder, Role, StandIn, Stretch, StretchKind, SwitchCounts, Unsampled, Wake, WakeFields,
    Waker, is_switches,
};
pub(crate) use sideband::{SideBand, mapping_in, total};
pub(crate) use space::{
    Mapping, Memory, ModuleId, SampleContext, SpaceId, VisiblePart, grouped, starts,
};
pub(crate) use wait_kinds::{InterruptSource, KernelFunction, KernelPart, WaitKind};
pub(crate) use waits::{
    Barrier, CriticalPiece, PathShares, PathSpan, PieceKind, Savings, WaitingThread, Waits,
};
