//! Unwinding of user stacks by call frame information; [`image`], which reduces ELF files to what
//! that and the names of functions need; and [`jitdump`], the files in which JITs write theirs.
//!
//! ```text
//!  registers of a sample ─┐
//!  copy of its stack ─────┤               ┌ place: which module has this address?
//!  the kernel's chain ────┴─▶ Unwinder ◀──┤ rules: how is a frame of it left?      (Code: asked by address)
//!                                │        └ code: does it follow a call, where does it return?
//!                                ▼
//!               frames, innermost first, and how the chain ended
//! ```
//!
//! A frame's rule says where its canonical frame address (CFA) is and where the registers of its
//! caller are saved (DWARF 5, section 6.4; `.eh_frame`: System V ABI). The [`Unwinder`] keeps the
//! rules that it found before in short form; finding one is what costs time.
//!
//! The kernel's chain says what is at frame pointer + one word, for each frame pointer that it
//! followed. So it is memory which the copy may lack: a rule that reads there goes on with it, and
//! one that reads elsewhere does not believe it ([`Memory::links`]).
//!
//! Where there is no rule, as in the code of JITs, the code itself is followed to its returns, and
//! the frame pointer is a second witness (`unruled`). Go's runtime switches stacks, which its rules
//! do not say: its frame pointers do (`go`).
//!
//! Nothing here does I/O. Call frame information may be damaged or hostile: no input makes this
//! panic, and the work for a frame is bounded.

#![forbid(unsafe_code)]

mod arm;
mod chain;
mod effect;
mod exits;
mod expression;
mod go;
pub mod image;
mod index;
pub mod jitdump;
mod machine;
mod memory;
mod recover;
mod rule;
mod rules;
mod unruled;
mod walk;
mod x86;

pub use chain::{Cause, End, Frame};
pub use exits::end_of_code;
pub use go::GoRuntime;
pub use index::ArmIndex;
pub use machine::{Machine, Registers};
pub use memory::Memory;
pub use rule::FramePointer;
pub use rules::{Rules, Section, Sections};
pub use walk::{Code, Place, Unreadable, Unwinder};

#[cfg(test)]
mod tests;
