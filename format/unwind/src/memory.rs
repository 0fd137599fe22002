//! The memory that unwinding reads: the copy of a stack, and beyond it what the kernel's chain says.
//!
//! ```text
//!  kernel's chain    ip  ra1  ra2  …         fp0 = frame pointer of the sample
//!  so there is       [fp0 + 8] = ra1         [fp0] = fp1, from the copy; if it is not there, a symbol
//!                    [fp1 + 8] = ra2         [fp1] = fp2 …
//! ```
//!
//! A symbol is a number that is no address, far from all others, so that no offset leads from one
//! to the next.

use std::ops::Range;

use recrep_format::endian::Endian;

use super::machine::{Machine, Registers};

/// A copied stack, and what the kernel's callchain says of memory that the copy lacks.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// Address of the first byte: the stack pointer.
    pub start: u64,
    /// The bytes that were copied (`dyn_size` of them).
    pub bytes: &'a [u8],
    /// Their byte order.
    pub endian: Endian,
    /// The user part of the kernel's callchain without the sampled address: return addresses; empty
    /// if there is none.
    pub links: &'a [u64],
}

/// Reason why a word cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is on the stack, but was not copied.
    Copy,
    /// It is not on the stack.
    Elsewhere,
}

/// Default limit of the stack size (8 MiB): addresses farther from the stack pointer are not on
/// this stack.
const MAX_STACK_SIZE: u64 = 8 << 20;

/// Chains of the kernel that are longer than this may have been cut; its limit has room for both
/// parts of a chain.
const FULL: usize = 64;

/// Symbols begin here: no process has such an address.
const SYMBOLS: u64 = 1 << 63;
/// Distance of symbols.
const SYMBOL: u64 = 1 << 32;

/// Returns the frame pointer that the kernel followed after `number` others, if the copy lacks it.
fn symbol(number: usize) -> u64 {
    SYMBOLS + SYMBOL * (number as u64 & 0xffff)
}

/// Memory of a sample, ready to be read.
#[derive(Debug)]
pub(super) struct Readable<'a> {
    memory: &'a Memory<'a>,
    machine: Machine,
    /// Frame pointers that the kernel followed: one for each link, and the one after the last.
    pointers: &'a [u64],
    /// The code that stands in place of return addresses ([`Code::trampoline`](super::Code)).
    trampoline: Range<u64>,
}

impl<'a> Readable<'a> {
    /// Finds the frame pointers that the kernel followed, and stores them in `pointers`. Where
    /// return addresses of the stack are those of the `trampoline`, the kernel's chain has the true
    /// ones.
    pub(super) fn new(
        memory: &'a Memory<'a>,
        registers: &Registers,
        trampoline: Range<u64>,
        pointers: &'a mut Vec<u64>,
    ) -> Self {
        pointers.clear();
        let machine = registers.machine();
        // The kernel's walk of 32-bit stacks has its own form; copies of them are enough.
        if let Some(mut pointer) = registers.get(machine.fp()).filter(|_| machine != Machine::X86) {
            for (number, link) in memory.links.iter().enumerate() {
                let copied = memory.word(pointer.wrapping_add(8), machine);
                let is_other = |word| {
                    machine.address(word) != machine.address(*link) && !trampoline.contains(&word)
                };
                if copied.is_ok_and(is_other) {
                    break;
                }
                pointers.push(pointer);
                pointer = memory.word(pointer, machine).unwrap_or_else(|_| symbol(number + 1));
            }
            if !pointers.is_empty() {
                pointers.push(pointer);
            }
        }
        Self { memory, machine, pointers, trampoline }
    }

    /// Returns the machine that the memory is of.
    pub(super) fn machine(&self) -> Machine {
        self.machine
    }

    /// Reads the word at an address.
    #[inline]
    pub(super) fn word(&self, address: u64) -> Result<u64, Missing> {
        match self.memory.word(address, self.machine) {
            Err(missing) if !self.pointers.is_empty() => {
                self.linked(address).ok_or(if address >= SYMBOLS { Missing::Copy } else { missing })
            }
            Ok(word) if self.trampoline.contains(&word) => Ok(self.linked(address).unwrap_or(word)),
            word => word,
        }
    }

    /// Returns what the kernel's chain says of the word at an address.
    fn linked(&self, address: u64) -> Option<u64> {
        let [.., last] = self.pointers else { return None };
        let (number, pointer) = self
            .pointers
            .iter()
            .enumerate()
            .find(|(_, pointer)| address.wrapping_sub(**pointer) <= 8)?;
        match address.wrapping_sub(*pointer) {
            0 if pointer != last => self.pointers.get(number + 1).copied(),
            8 => self.memory.links.get(number).copied(),
            _ => None,
        }
    }

    /// Returns whether the kernel's chain ended at a frame pointer, and not for want of room.
    pub(super) fn is_end(&self, pointer: u64) -> bool {
        let is_last = pointer >= SYMBOLS && self.pointers.last() == Some(&pointer);
        is_last && self.memory.links.len() < FULL
    }

    /// Returns the frame that the kernel found at a frame pointer.
    pub(super) fn link(&self, pointer: u64) -> Option<Link> {
        let number = self.pointers.iter().position(|found| *found == pointer)?;
        Some(Link {
            return_address: *self.memory.links.get(number)?,
            caller: *self.pointers.get(number + 1)?,
        })
    }
}

/// A frame that the kernel found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) return_address: u64,
    /// The caller's frame pointer.
    pub(super) caller: u64,
}

impl Memory<'_> {
    /// Reads a word of the copy.
    #[inline]
    fn word(&self, address: u64, machine: Machine) -> Result<u64, Missing> {
        let offset = address.checked_sub(self.start).ok_or(Missing::Elsewhere)?;
        let word = usize::try_from(offset).ok().and_then(|at| match machine {
            Machine::X86 => self.endian.u32_at(self.bytes, at).map(u64::from),
            Machine::X86_64 | Machine::Aarch64 => self.endian.u64_at(self.bytes, at),
        });
        match word {
            Some(word) => Ok(word),
            None if offset < MAX_STACK_SIZE => Err(Missing::Copy),
            None => Err(Missing::Elsewhere),
        }
    }
}
