//! Registers that rec can sample, by architecture.

use std::fmt::Write as _;

use recrep_format::abi::{Register, RegsArch};
use serde::{Deserialize, Serialize};

/// An architecture, by the registers that can be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// Another architecture, whose registers cannot be sampled.
    Other,
}

/// Kind of sampled registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Registers at the interrupt, in user space or kernel (`-I`).
    Interrupt,
    /// Registers of user space (`--user-regs`).
    User,
}

const UNKNOWN: &str = "rec does not know the registers of this architecture; leave the flag out";

/// Segment registers DS to GS, which cannot be sampled.
const SEGMENTS: std::ops::RangeInclusive<u32> = 12..=15;

impl Arch {
    /// Architecture that rec was built for.
    pub const NATIVE: Self = if cfg!(target_arch = "x86_64") {
        Self::X86_64
    } else if cfg!(target_arch = "aarch64") {
        Self::Aarch64
    } else {
        Self::Other
    };

    /// Mask of aarch64's `lr`.
    pub const LINK_REGISTER: u64 = 1 << 30;

    /// Returns the registers that tell whether a system call is of the 32-bit table: their width, and
    /// on x86-64 whether `cx` is the address that the call returns to, as the instruction `syscall`
    /// leaves it.
    pub fn of_system_calls(self) -> u64 {
        const CX: u32 = 2;
        let pointer = self.names_of().map_or(0, |arch| 1 << arch.instruction_pointer());
        if self == Self::X86_64 { pointer | 1 << CX } else { pointer }
    }

    /// Returns the numbers of the registers that have the first three arguments of a system call.
    pub fn arguments(self) -> Option<[u32; 3]> {
        const DX: u32 = 3;
        const SI: u32 = 4;
        const DI: u32 = 5;
        match self {
            Self::X86_64 => Some([DI, SI, DX]),
            Self::Aarch64 => Some([0, 1, 2]),
            Self::Other => None,
        }
    }

    /// Returns the numbers of the instruction pointer and the stack pointer.
    pub fn pointers(self) -> Option<[u32; 2]> {
        self.names_of().map(|arch| [arch.instruction_pointer(), arch.stack_pointer()])
    }

    fn names_of(self) -> Option<RegsArch> {
        match self {
            Self::X86_64 => Some(RegsArch::X86),
            Self::Aarch64 => Some(RegsArch::Arm64),
            Self::Other => None,
        }
    }

    /// Returns the registers that can be sampled; `sve` includes the length of scalable vectors.
    /// The vector registers of x86-64 can be sampled only at the interrupt, by precise events, on
    /// machines whose PEBS supports them.
    fn registers(self, of: Of, sve: bool) -> Vec<Register> {
        let all = self.names_of().into_iter().flat_map(RegsArch::registers);
        all.filter(|register| match self {
            Self::X86_64 if is_vector(*register) => of == Of::Interrupt,
            Self::X86_64 => !SEGMENTS.contains(&register.number),
            _ => !is_vector(*register) || (of == Of::User && sve),
        })
        .collect()
    }

    /// Returns the default registers: all general ones, and the length of aarch64's scalable
    /// vectors.
    pub fn all(self, of: Of, sve: bool) -> u64 {
        let registers = self.registers(of, sve);
        let general =
            registers.iter().filter(|register| self != Self::X86_64 || !is_vector(**register));
        general.fold(0, |mask, register| mask | register.mask())
    }

    /// Returns [`Arch::all`].
    pub fn parse_all(self, of: Of, sve: bool) -> Result<u64, String> {
        Some(self.all(of, sve)).filter(|mask| *mask != 0).ok_or_else(|| UNKNOWN.to_owned())
    }

    /// Returns the registers that unwinding requires: instruction pointer and stack pointer.
    pub fn least_to_unwind(self) -> u64 {
        self.names_of()
            .map_or(0, |arch| 1 << arch.stack_pointer() | 1 << arch.instruction_pointer())
    }

    /// Parses a list of registers.
    ///
    /// # Errors
    /// Returns a message about an unknown register; for `?`, the list of all registers.
    pub fn parse(self, list: &str, of: Of, sve: bool) -> Result<u64, String> {
        let all = self.registers(of, sve);
        if all.is_empty() {
            return Err(UNKNOWN.to_owned());
        }
        let mut mask = 0;
        for word in list.split(',') {
            if word == "?" {
                return Err(format!("the registers are{}", listed(&all)));
            }
            let known = all.iter().find(|register| register.name.eq_ignore_ascii_case(word));
            mask |= known.map(|register| register.mask()).ok_or_else(|| {
                format!("there is no register '{word}'; the registers are{}", listed(&all))
            })?;
        }
        Ok(mask)
    }

    pub fn names(self, of: Of, sve: bool) -> String {
        listed(&self.registers(of, sve)).trim_start().to_owned()
    }
}

/// Returns whether it is a vector register or the length of scalable vectors, which follow the
/// general registers.
fn is_vector(register: Register) -> bool {
    register.words > 1 || register.number > LAST_GENERAL
}

/// Highest number of a general register: aarch64's `pc`.
const LAST_GENERAL: u32 = 32;

fn listed(registers: &[Register]) -> String {
    let mut text = String::new();
    for register in registers {
        // Writing to a String cannot fail.
        let _ = write!(text, " {}", register.name);
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
        assert!(
            Arch::X86_64.parse("xmm0", Of::User, false).unwrap_err().contains("no register 'xmm0'")
        );
        assert_eq!(Arch::Aarch64.parse("lr,sp,pc", Of::User, false), Ok(7 << 30));
        assert_eq!(Arch::Aarch64.parse("vg", Of::User, true), Ok(1 << 46));
        assert!(Arch::Aarch64.parse("vg", Of::User, false).is_err());
        assert!(Arch::Other.parse("ax", Of::User, false).unwrap_err().contains("does not know"));
        assert!(Arch::X86_64.names(Of::User, false).starts_with("AX BX"));
    }
}
