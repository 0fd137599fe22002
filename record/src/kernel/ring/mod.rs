//! Rings: buffers shared between the kernel and rec.
//!
//! ```text
//!   one page                 data area: a power of two of pages            AUX area: likewise
//!  ┌──────────────────────┐ ┌───────────────┬──────────────┬────────────┐ ┌─────────┬────────────┬─────────┐
//!  │ perf_event_mmap_page │ │ (free)        │ records      │ (free)     │ │ (free)  │ trace      │ (free)  │
//!  │ data_head  data_tail │ │               ▲data_tail     ▲data_head   │ │         ▲aux_tail    ▲aux_head │
//!  │ aux_head   aux_tail  │ └───────────────┴──────────────┴────────────┘ └─────────┴────────────┴─────────┘
//!  └──────────────────────┘
//! ```
//!
//! The control page and the data area are one mapping ([`Ring`]). What the CPU's tracing hardware
//! writes has an area of its own ([`AuxRing`]), mapped afterwards where `aux_offset` and `aux_size`
//! in the control page say.
//!
//! Heads and tails only grow; modulo the area's size they are places in it. The kernel writes
//! behind its head and then moves it; we read up to it and then move our tail, which gives the room
//! back. What is between them is not touched by the kernel until then, so it can be lent out as
//! slices: two where it wraps. The order of the accesses is in [`protocol`], which a model check
//! goes through.
//!
//! An area that is overwritten is mapped without the right to write, so that the kernel knows that
//! no tail will come. Nothing of it is lent out: it is copied word by word, so that a kernel that
//! writes meanwhile can damage what is read, and nothing else. Its output is paused (data) or its
//! counters are stopped (AUX) before, so that it does not.

mod area;
mod clock;
mod data;
mod memory;
mod page;
mod pending;
pub(crate) mod protocol;

pub use area::AuxRing;
pub use clock::Clock;
pub(crate) use clock::cycles;
pub use data::Ring;
pub use memory::SharedMemory;
pub(crate) use pending::{Mark, Pending};
pub(crate) use protocol::Overrun;
pub use protocol::SharedWord;

#[cfg(test)]
mod tests;
