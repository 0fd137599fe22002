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
mod listing;
mod x86;

use object::elf::{EM_386, EM_AARCH64, EM_X86_64};

use crate::symbols::MachineCode;

pub(crate) use listing::{CodeRow, listing};

/// An instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Number of bytes.
    pub len: usize,
    /// Text as `objdump -d` has it, but for the names in angle brackets.
    pub text: String,
    /// Address that it refers to: the target of a jump or call, or data.
    pub target: Option<u64>,
    /// Where execution goes on.
    pub flow: Flow,
}

/// Where execution goes on after an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// At the next one.
    #[default]
    Next,
    /// Elsewhere.
    Jump,
    /// Elsewhere or at the next one.
    Branch,
    /// In a function, and then at the next one.
    Call,
    /// Where the function was called.
    Return,
}

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// That of 32 bits.
    X86,
    /// That of 64 bits.
    X86_64,
    /// That of ARMv8's 64-bit state.
    Aarch64,
}

impl InstructionSet {
    /// Returns the instruction set of code; `None` if it is not supported.
    pub(crate) fn of(code: &MachineCode) -> Option<Self> {
        match code.machine {
            EM_386 => Some(Self::X86),
            EM_X86_64 => Some(Self::X86_64),
            EM_AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// Decodes code whose first byte has this address. Bytes that are no instruction have texts,
    /// too: the lengths add up to that of the code.
    pub fn decode(self, code: &[u8], address: u64) -> Vec<Instruction> {
        match self {
            Self::X86 => x86::decode(code, address, 32),
            Self::X86_64 => x86::decode(code, address, 64),
            Self::Aarch64 => aarch64::decode(code, address),
        }
    }
}
