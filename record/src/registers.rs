//! The registers that samples can carry, by architecture (`asm/perf_regs.h`): their names and numbers.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// An architecture, as far as rec knows its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// Another one: registers cannot be sampled.
    Other,
}

/// Whose registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Those at the interrupt, wherever it came (`-I`).
    Interrupt,
    /// Those of user space (`--user-regs`).
    User,
}

/// A register: its name and the bits it takes in a mask.
type Register = (&'static str, u64);

const fn bit(name: &'static str, number: u32) -> Register {
    (name, 1 << number)
}

const UNKNOWN: &str = "rec does not know the registers of this architecture";

/// x86-64. The segment registers DS to GS (12 to 15) cannot be sampled.
const X86_64: &[Register] = &[
    bit("AX", 0),
    bit("BX", 1),
    bit("CX", 2),
    bit("DX", 3),
    bit("SI", 4),
    bit("DI", 5),
    bit("BP", 6),
    bit("SP", 7),
    bit("IP", 8),
    bit("FLAGS", 9),
    bit("CS", 10),
    bit("SS", 11),
    bit("R8", 16),
    bit("R9", 17),
    bit("R10", 18),
    bit("R11", 19),
    bit("R12", 20),
    bit("R13", 21),
    bit("R14", 22),
    bit("R15", 23),
];

const fn xmm(name: &'static str, number: u32) -> Register {
    (name, 3 << (32 + 2 * number))
}

/// x86-64's vector registers: at the interrupt only, of events that are precise, on machines whose PEBS has them.
const XMM: &[Register] = &[
    xmm("XMM0", 0),
    xmm("XMM1", 1),
    xmm("XMM2", 2),
    xmm("XMM3", 3),
    xmm("XMM4", 4),
    xmm("XMM5", 5),
    xmm("XMM6", 6),
    xmm("XMM7", 7),
    xmm("XMM8", 8),
    xmm("XMM9", 9),
    xmm("XMM10", 10),
    xmm("XMM11", 11),
    xmm("XMM12", 12),
    xmm("XMM13", 13),
    xmm("XMM14", 14),
    xmm("XMM15", 15),
];

/// aarch64.
const AARCH64: &[Register] = &[
    bit("x0", 0),
    bit("x1", 1),
    bit("x2", 2),
    bit("x3", 3),
    bit("x4", 4),
    bit("x5", 5),
    bit("x6", 6),
    bit("x7", 7),
    bit("x8", 8),
    bit("x9", 9),
    bit("x10", 10),
    bit("x11", 11),
    bit("x12", 12),
    bit("x13", 13),
    bit("x14", 14),
    bit("x15", 15),
    bit("x16", 16),
    bit("x17", 17),
    bit("x18", 18),
    bit("x19", 19),
    bit("x20", 20),
    bit("x21", 21),
    bit("x22", 22),
    bit("x23", 23),
    bit("x24", 24),
    bit("x25", 25),
    bit("x26", 26),
    bit("x27", 27),
    bit("x28", 28),
    bit("x29", 29),
    bit("lr", 30),
    bit("sp", 31),
    bit("pc", 32),
];

/// The length of aarch64's scalable vectors, where the machine has them.
const SVE: &[Register] = &[bit("vg", 46)];

impl Arch {
    /// The architecture that rec was built for.
    pub const NATIVE: Self = if cfg!(target_arch = "x86_64") {
        Self::X86_64
    } else if cfg!(target_arch = "aarch64") {
        Self::Aarch64
    } else {
        Self::Other
    };

    /// aarch64's `lr`, in a mask.
    pub const LINK_REGISTER: u64 = 1 << 30;

    /// All registers; `sve`: of a machine with scalable vectors.
    fn registers(self, of: Of, sve: bool) -> Vec<Register> {
        let more = match (self, of) {
            (Self::X86_64, Of::Interrupt) => XMM,
            (Self::Aarch64, Of::User) if sve => SVE,
            _ => &[],
        };
        let usual = match self {
            Self::X86_64 => X86_64,
            Self::Aarch64 => AARCH64,
            Self::Other => &[],
        };
        usual.iter().chain(more).copied().collect()
    }

    /// What is sampled where no register is named: all general ones.
    #[must_use]
    pub fn all(self, of: Of, sve: bool) -> u64 {
        let vectors = XMM.iter().fold(0, |mask, (_, bits)| mask | bits);
        let all = self.registers(of, sve).iter().fold(0, |mask, (_, bits)| mask | bits);
        if self == Self::X86_64 { all & !vectors } else { all }
    }

    /// [`Arch::all`], where there are any.
    ///
    /// # Errors
    /// In words, that rec does not know the registers.
    pub fn parse_all(self, of: Of, sve: bool) -> Result<u64, String> {
        Some(self.all(of, sve)).filter(|mask| *mask != 0).ok_or_else(|| UNKNOWN.to_owned())
    }

    /// What a stack cannot be unwound without: the instruction and the stack pointer.
    #[must_use]
    pub fn least_to_unwind(self) -> u64 {
        match self {
            Self::X86_64 => 1 << 7 | 1 << 8,
            Self::Aarch64 => 1 << 31 | 1 << 32,
            Self::Other => 0,
        }
    }

    /// Reads a list of registers.
    ///
    /// # Errors
    /// In words, what is none; for `?`, which there are.
    pub fn parse(self, list: &str, of: Of, sve: bool) -> Result<u64, String> {
        let all = self.registers(of, sve);
        if all.is_empty() {
            return Err(UNKNOWN.to_owned());
        }
        let mut mask = 0;
        for word in list.split(',') {
            if word == "?" {
                return Err(format!("there are{}", listed(&all)));
            }
            let known = all.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            mask |= known
                .map(|(_, bits)| bits)
                .ok_or_else(|| format!("there is no register '{word}'; there are{}", listed(&all)))?;
        }
        Ok(mask)
    }

    /// The names of all registers.
    #[must_use]
    pub fn names(self, of: Of, sve: bool) -> String {
        listed(&self.registers(of, sve)).trim_start().to_owned()
    }
}

fn listed(registers: &[Register]) -> String {
    let mut text = String::new();
    for (name, _) in registers {
        // Writing into memory does not fail.
        let _ = write!(text, " {name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_masks_of_the_kernel_s_headers() {
        assert_eq!(Arch::X86_64.all(Of::User, false), 0xff_0fff);
        assert_eq!(Arch::X86_64.all(Of::Interrupt, false), 0xff_0fff);
        assert_eq!(Arch::Aarch64.all(Of::User, false), (1 << 33) - 1);
        assert_eq!(Arch::Aarch64.all(Of::User, true), ((1 << 33) - 1) | 1 << 46);
        assert_eq!(Arch::Aarch64.all(Of::Interrupt, true), (1 << 33) - 1);
        assert_eq!(Arch::Other.all(Of::User, true), 0);
    }

    #[test]
    fn registers_by_name() {
        assert_eq!(Arch::X86_64.parse("ax,IP,r15", Of::User, false), Ok(1 | 1 << 8 | 1 << 23));
        assert_eq!(Arch::X86_64.parse("xmm0,xmm15", Of::Interrupt, false), Ok(3 << 32 | 3 << 62));
        assert!(Arch::X86_64.parse("xmm0", Of::User, false).unwrap_err().contains("no register 'xmm0'"));
        assert_eq!(Arch::Aarch64.parse("lr,sp,pc", Of::User, false), Ok(7 << 30));
        assert_eq!(Arch::Aarch64.parse("vg", Of::User, true), Ok(1 << 46));
        assert!(Arch::Aarch64.parse("vg", Of::User, false).is_err());
        assert!(Arch::Other.parse("ax", Of::User, false).unwrap_err().contains("does not know"));
        assert!(Arch::X86_64.names(Of::User, false).starts_with("AX BX"));
    }
}
