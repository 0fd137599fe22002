//! Instructions of functions, with their counts and source lines.
//!
//! ```text
//!   FunctionPlace ─► MachineCode ─► x86 · aarch64 ─► Instruction ─┐
//!        └─► source lines, inlined functions, names ──────────────┼─► listing ─► CodeRow
//!   samples by address ───────────────────────────────────────────┘
//! ```
//!
//! Instructions read as in `objdump -d`, so that both can be laid side by side. Where the
//! disassemblers spell one otherwise it is rewritten, as far as compilers emit it; a test compares
//! the code of whole libraries (`tests/tests/all/disassembly.rs`).

mod aarch64;
mod decode;
mod instruction;
mod listing;
mod x86;

pub use decode::InstructionSet;
pub use instruction::{Flow, Instruction};
pub(crate) use listing::{CodeRow, ListingExtent, listing};
