//! Machines whose stacks are unwound, and the registers of a frame by their DWARF numbers.

use gimli::Register;

use recrep_format::abi::{RegsAbi, RegsArch};
use recrep_format::record::Regs;

use super::x86::operand_length;

/// A machine whose stacks are unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86.
    X86,
    /// 64-bit Arm.
    Aarch64,
}

/// `e_machine` of ELF files.
const EM_386: u16 = 3;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

/// DWARF numbers of the registers in a sample, in the order of their bits; [`NONE`] for those that
/// no rule names. Source: the psABI of each machine.
const X86_64: [u8; 24] = [
    0, 3, 2, 1, 4, 5, 6, 7, 16, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 8, 9, 10, 11, 12, 13, 14,
    15,
];
const X86: [u8; 9] = [0, 3, 1, 2, 6, 7, 5, 4, 8];
const NONE: u8 = u8::MAX;

/// Greatest number of registers of a machine.
pub(super) const REGISTERS: usize = 33;

/// Greatest number of registers that calls preserve.
pub(super) const PRESERVED: usize = 12;

impl Machine {
    /// Returns the machine of a task whose registers were sampled; `None` if its stacks cannot be
    /// unwound.
    pub fn of(arch: RegsArch, abi: RegsAbi) -> Option<Self> {
        match (arch, abi) {
            (RegsArch::X86, RegsAbi::ABI_64) => Some(Self::X86_64),
            (RegsArch::X86, RegsAbi::ABI_32) => Some(Self::X86),
            (RegsArch::Arm64, RegsAbi::ABI_64) => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// Returns the machine of an ELF file by its header's `e_machine`.
    pub fn of_elf(machine: u16) -> Option<Self> {
        match machine {
            EM_X86_64 => Some(Self::X86_64),
            EM_386 => Some(Self::X86),
            EM_AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// Returns the mask of the registers that a sample needs (`sample_regs_user`).
    pub fn sampled_registers(self) -> u64 {
        match self {
            // Not ds, es, fs, gs: the kernel refuses them for 64-bit tasks.
            Self::X86_64 => 0xff_0fff,
            Self::X86 => 0xfff,
            Self::Aarch64 => (1 << REGISTERS) - 1,
        }
    }

    /// Returns the size of a word in bytes.
    pub(super) fn word(self) -> u8 {
        if self == Self::X86 { 4 } else { 8 }
    }

    /// Returns the number of the stack pointer.
    pub(super) fn sp(self) -> u8 {
        match self {
            Self::X86_64 => 7,
            Self::X86 => 4,
            Self::Aarch64 => 31,
        }
    }

    /// Returns the number of the frame pointer.
    pub(super) fn fp(self) -> u8 {
        match self {
            Self::X86_64 => 6,
            Self::X86 => 5,
            Self::Aarch64 => 29,
        }
    }

    /// Returns the number of the instruction pointer.
    pub(super) fn ip(self) -> u8 {
        match self {
            Self::X86_64 => 16,
            Self::X86 => 8,
            Self::Aarch64 => 32,
        }
    }

    /// Returns the numbers of the registers that calls preserve.
    pub(super) fn preserved(self) -> &'static [u8] {
        match self {
            Self::X86_64 => &[3, 6, 12, 13, 14, 15],
            Self::X86 => &[3, 5, 6, 7],
            Self::Aarch64 => &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30],
        }
    }

    /// Returns the part of a return address that is an address: the upper bits may sign it (pointer
    /// authentication of Arm).
    pub(super) fn address(self, word: u64) -> u64 {
        match self {
            Self::Aarch64 => word & ((1 << 48) - 1),
            Self::X86_64 | Self::X86 => word,
        }
    }

    /// Returns the DWARF number of the register with this bit in a sample's mask.
    fn number(self, bit: u32) -> Option<u8> {
        let bit = usize::try_from(bit).ok()?;
        let number = match self {
            Self::X86_64 => *X86_64.get(bit)?,
            Self::X86 => *X86.get(bit)?,
            Self::Aarch64 => u8::try_from(bit).ok()?,
        };
        (usize::from(number) < REGISTERS).then_some(number)
    }

    /// Returns the target of a direct call that ends before an address, by the code before it;
    /// `None` if there is none.
    pub(super) fn call_target(self, address: u64, code: [u8; 8]) -> Option<u64> {
        let [.., b3, b4, b5, b6, b7] = code;
        let distance = match self {
            Self::X86_64 | Self::X86 if b3 == 0xe8 => {
                i64::from(i32::from_le_bytes([b4, b5, b6, b7]))
            }
            Self::Aarch64 => {
                let code = u32::from_le_bytes([b4, b5, b6, b7]);
                let distance = i64::from((code << 6).cast_signed() >> 6) * 4 - 4;
                (code >> 26 == 0b10_0101).then_some(distance)?
            }
            Self::X86_64 | Self::X86 => return None,
        };
        Some(address.wrapping_add_signed(distance))
    }

    /// Returns whether code that ends with these bytes ends with a call.
    pub fn is_call(self, code: [u8; 8]) -> bool {
        let [.., b1, b2, b3, b4, b5, b6, b7] = code;
        match self {
            // `bl` and `blr` with and without authentication.
            Self::Aarch64 => {
                let code = u32::from_le_bytes([b4, b5, b6, b7]);
                code >> 26 == 0b10_0101
                    || code & 0xffff_fc1f == 0xd63f_0000
                    || code & 0xfeff_f800 == 0xd63f_0800
            }
            // e8 with 4 bytes; ff /2 of 2, 3, 4, 6 and 7 bytes: without and with a displacement of
            // 1 or 4 bytes, without and with a byte for an index.
            Self::X86_64 | Self::X86 => {
                let is_indirect = |byte: u8, modifiers: &[u8]| {
                    byte == 0xff
                        && modifiers.first().is_some_and(|modrm| {
                            modrm >> 3 & 7 == 2
                                && operand_length(*modrm, modifiers) == modifiers.len()
                        })
                };
                b3 == 0xe8
                    || is_indirect(b6, &[b7])
                    || is_indirect(b5, &[b6, b7])
                    || is_indirect(b4, &[b5, b6, b7])
                    || is_indirect(b2, &[b3, b4, b5, b6, b7])
                    || is_indirect(b1, &[b2, b3, b4, b5, b6, b7])
            }
        }
    }
}

/// Registers of a frame, by DWARF numbers; each may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    machine: Machine,
    /// Bits of the registers that are known.
    known: u64,
    values: [u64; REGISTERS],
}

impl Registers {
    /// Returns the registers of a sample; `None` if the instruction or stack pointer is not among
    /// them.
    pub fn of_sample(machine: Machine, regs: &Regs<'_>) -> Option<Self> {
        let mut found = Self { machine, known: 0, values: [0; REGISTERS] };
        for (bit, value) in regs.iter() {
            if let Some(number) = machine.number(bit) {
                found.set(number, Some(value));
            }
        }
        found.get(machine.ip()).and(found.get(machine.sp())).map(|_| found)
    }

    /// Returns registers of which only the instruction and the stack pointer are known.
    pub fn of_pointers(machine: Machine, ip: u64, sp: u64) -> Self {
        let mut found = Self { machine, known: 0, values: [0; REGISTERS] };
        found.set(machine.ip(), Some(ip));
        found.set(machine.sp(), Some(sp));
        found
    }

    /// Returns the machine that they belong to.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Returns the instruction pointer; 0 if it is not known.
    pub fn ip(&self) -> u64 {
        self.get(self.machine.ip()).unwrap_or(0)
    }

    /// Returns the stack pointer; 0 if it is not known.
    pub fn sp(&self) -> u64 {
        self.get(self.machine.sp()).unwrap_or(0)
    }

    /// Returns the value of a register, if it is known.
    #[inline]
    pub(super) fn get(&self, number: u8) -> Option<u64> {
        let is_known = self.known.checked_shr(number.into()).unwrap_or(0) & 1 == 1;
        self.values.get(usize::from(number)).copied().filter(|_| is_known)
    }

    /// Returns the value of a register that a rule names.
    pub(super) fn named(&self, register: Register) -> Option<u64> {
        self.get(u8::try_from(register.0).ok()?)
    }

    /// Sets a register, or says that it is not known.
    #[inline]
    pub(super) fn set(&mut self, number: u8, value: Option<u64>) {
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value.unwrap_or(0);
            self.known = self.known & !(1 << number) | u64::from(value.is_some()) << number;
        }
    }

    /// Forgets all registers.
    pub(super) fn forget(&mut self) {
        self.known = 0;
    }
}
