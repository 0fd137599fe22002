//! The choice of the decoder.

use object::elf::{EM_386, EM_AARCH64, EM_X86_64};

use super::instruction::Instruction;
use super::{aarch64, x86};
use crate::symbols::MachineCode;

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
        self.decode_first(usize::MAX, code, address)
    }

    /// Decodes the first instructions of code, at most so many.
    pub(super) fn decode_first(self, most: usize, code: &[u8], address: u64) -> Vec<Instruction> {
        match self {
            Self::X86 => x86::decode(most, code, address, 32),
            Self::X86_64 => x86::decode(most, code, address, 64),
            Self::Aarch64 => aarch64::decode(most, code, address),
        }
    }

    /// Returns the lengths of all instructions, which takes a small part of the time that their texts
    /// take.
    pub(super) fn lengths(self, code: &[u8]) -> Vec<usize> {
        match self {
            Self::X86 => x86::lengths(code, 32),
            Self::X86_64 => x86::lengths(code, 64),
            Self::Aarch64 => code.chunks(4).map(<[u8]>::len).collect(),
        }
    }
}
