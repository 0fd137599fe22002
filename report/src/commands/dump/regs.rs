//! Names of registers, by their bit numbers in `sample_regs_user` and `sample_regs_intr`.

/// Register names of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterNames {
    /// `arch/x86/include/uapi/asm/perf_regs.h`
    X86,
    /// `arch/arm64/include/uapi/asm/perf_regs.h`
    Arm64,
    /// Other architectures: numbers only.
    Other,
}

const X86: [&str; 24] = [
    "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS", "GS", "R8", "R9",
    "R10", "R11", "R12", "R13", "R14", "R15",
];
/// Number of the first half of XMM0; each XMM register has two numbers.
const XMM0: u32 = 32;

impl RegisterNames {
    /// Returns the names for the architecture in a file's header (`uname -m`).
    #[must_use]
    pub fn of(arch: &str) -> Self {
        match arch {
            "x86_64" | "i386" | "i486" | "i586" | "i686" => Self::X86,
            "aarch64" | "arm64" => Self::Arm64,
            _ => Self::Other,
        }
    }

    /// Returns the name of the register with this number.
    #[must_use]
    pub fn name(self, number: u32) -> String {
        let known = match self {
            Self::X86 if number >= XMM0 => {
                let half = if number.is_multiple_of(2) { "low" } else { "high" };
                return format!("XMM{}.{half}", (number - XMM0) / 2);
            }
            Self::X86 => X86.get(number as usize).copied(),
            Self::Arm64 => match number {
                0..=28 => return format!("x{number}"),
                29 => Some("x29"),
                30 => Some("lr"),
                31 => Some("sp"),
                32 => Some("pc"),
                46 => Some("vg"),
                _ => None,
            },
            Self::Other => None,
        };
        known.map_or_else(|| format!("reg{number}"), str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_the_names_of_their_architecture() {
        let x86 = RegisterNames::of("x86_64");
        assert_eq!([0, 8, 23, 30, 32, 35].map(|n| x86.name(n)), ["AX", "IP", "R15", "reg30", "XMM0.low", "XMM1.high"]);
        let arm = RegisterNames::of("aarch64");
        assert_eq!([0, 29, 32, 40].map(|n| arm.name(n)), ["x0", "x29", "pc", "reg40"]);
        assert_eq!(RegisterNames::of("s390x").name(7), "reg7");
    }
}
