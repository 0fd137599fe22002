//! The registers of samples by architecture, numbered as the bits of `sample_regs_user` and
//! `sample_regs_intr`.
//!
//! Source: `arch/*/include/uapi/asm/perf_regs.h`. The names are perf's.

use std::fmt;

use super::constants::constants;

constants! {
    /// The width of a task's registers (`enum perf_sample_regs_abi`).
    pub struct RegsAbi(u64) {
        /// There are no registers.
        NONE = 0;
        /// A 32-bit task.
        ABI_32 = 1;
        /// A 64-bit task.
        ABI_64 = 2;
    }
}

/// An architecture whose registers have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegsArch {
    /// x86, 32 and 64 bits.
    X86,
    /// Arm, 32 bits.
    Arm,
    /// Arm, 64 bits.
    Arm64,
    /// PowerPC.
    PowerPc,
    /// RISC-V.
    RiscV,
    /// s390.
    S390,
    /// LoongArch.
    LoongArch,
    /// MIPS.
    Mips,
    /// C-SKY.
    Csky,
}

/// A register of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Register {
    /// Its name, as perf spells it.
    pub name: &'static str,
    /// The number of its first bit in a mask.
    pub number: u32,
    /// Number of 64-bit words, each with a bit of its own: 2 for the XMM registers, else 1.
    pub words: u32,
}

impl Register {
    /// Returns the register's bits in a mask.
    pub const fn mask(self) -> u64 {
        (u64::MAX >> (64 - self.words)) << self.number
    }
}

/// Consecutive registers: the number of the first, how many words each has, and their names.
type Names = (u32, u32, &'static [&'static str]);

const X86: &[&str] = &[
    "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS",
    "GS", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
];
const XMM: &[&str] = &[
    "XMM0", "XMM1", "XMM2", "XMM3", "XMM4", "XMM5", "XMM6", "XMM7", "XMM8", "XMM9", "XMM10",
    "XMM11", "XMM12", "XMM13", "XMM14", "XMM15",
];
const ARM: &[&str] = &[
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "fp", "ip", "sp", "lr", "pc",
];
const ARM64: &[&str] = &[
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
    "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27",
    "x28", "x29", "lr", "sp", "pc",
];
const POWERPC: &[&str] = &[
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27",
    "r28", "r29", "r30", "r31", "nip", "msr", "orig_r3", "ctr", "link", "xer", "ccr", "softe",
    "trap", "dar", "dsisr", "sier", "mmcra", "mmcr0", "mmcr1", "mmcr2", "mmcr3", "sier2", "sier3",
    "pmc1", "pmc2", "pmc3", "pmc4", "pmc5", "pmc6", "sdar", "siar",
];
const RISCV: &[&str] = &[
    "pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5",
    "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5",
    "t6",
];
const S390: &[&str] = &[
    "R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13", "R14",
    "R15", "FP0", "FP1", "FP2", "FP3", "FP4", "FP5", "FP6", "FP7", "FP8", "FP9", "FP10", "FP11",
    "FP12", "FP13", "FP14", "FP15", "MASK", "PC",
];
const LOONGARCH: &[&str] = &[
    "PC", "%r1", "%r2", "%r3", "%r4", "%r5", "%r6", "%r7", "%r8", "%r9", "%r10", "%r11", "%r12",
    "%r13", "%r14", "%r15", "%r16", "%r17", "%r18", "%r19", "%r20", "%r21", "%r22", "%r23", "%r24",
    "%r25", "%r26", "%r27", "%r28", "%r29", "%r30", "%r31",
];
const MIPS: &[&str] = &[
    "PC", "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13", "$14",
    "$15", "$16", "$17", "$18", "$19", "$20", "$21", "$22", "$23", "$24", "$25", "$26", "$27",
    "$28", "$29", "$30", "$31",
];
const CSKY: &[&str] = &[
    "tls", "lr", "pc", "sr", "sp", "orig_a0", "a0", "a1", "a2", "a3", "regs0", "regs1", "regs2",
    "regs3", "regs4", "regs5", "regs6", "regs7", "regs8", "regs9", "exregs0", "exregs1", "exregs2",
    "exregs3", "exregs4", "exregs5", "exregs6", "exregs7", "exregs8", "exregs9", "exregs10",
    "exregs11", "exregs12", "exregs13", "exregs14", "hi", "lo", "dcsr",
];

impl RegsArch {
    /// Returns the architecture of a machine (`uname -m`, as in a file's header); `None` if its
    /// registers have no names here.
    pub fn of(machine: &str) -> Option<Self> {
        Some(match machine {
            "x86_64" | "x86" | "i386" | "i486" | "i586" | "i686" => Self::X86,
            "aarch64" | "aarch64_be" | "arm64" => Self::Arm64,
            "s390" | "s390x" => Self::S390,
            _ if machine.starts_with("arm") => Self::Arm,
            _ if machine.starts_with("ppc") || machine.starts_with("powerpc") => Self::PowerPc,
            _ if machine.starts_with("riscv") => Self::RiscV,
            _ if machine.starts_with("loongarch") => Self::LoongArch,
            _ if machine.starts_with("mips") => Self::Mips,
            _ if machine.starts_with("csky") => Self::Csky,
            _ => return None,
        })
    }

    /// Returns the general registers, and those beyond them.
    const fn names(self) -> [Names; 2] {
        let (general, more): (&[&str], Names) = match self {
            Self::X86 => (X86, (32, 2, XMM)),
            Self::Arm => (ARM, (0, 1, &[])),
            Self::Arm64 => (ARM64, (46, 1, &["vg"])),
            Self::PowerPc => (POWERPC, (0, 1, &[])),
            Self::RiscV => (RISCV, (0, 1, &[])),
            Self::S390 => (S390, (0, 1, &[])),
            Self::LoongArch => (LOONGARCH, (0, 1, &[])),
            Self::Mips => (MIPS, (0, 1, &[])),
            Self::Csky => (CSKY, (0, 1, &[])),
        };
        [(0, 1, general), more]
    }

    /// Returns all registers in the order of their numbers.
    pub fn registers(self) -> impl Iterator<Item = Register> {
        self.names().into_iter().flat_map(|(first, words, names)| {
            let numbers = (first..).step_by(words as usize);
            numbers.zip(names).map(move |(number, name)| Register { name, number, words })
        })
    }

    /// Returns the register that a bit of a mask stands for.
    pub fn register(self, number: u32) -> Option<Register> {
        self.names().into_iter().find_map(|(first, words, names)| {
            let place = number.checked_sub(first)? / words;
            let name = names.get(place as usize)?;
            Some(Register { name, number: first + place * words, words })
        })
    }

    /// Returns the register with this name, in upper or lower case.
    pub fn find(self, name: &str) -> Option<Register> {
        self.registers().find(|register| register.name.eq_ignore_ascii_case(name))
    }

    /// Returns the number of the instruction pointer.
    pub const fn instruction_pointer(self) -> u32 {
        match self {
            Self::X86 => 8,
            Self::Arm => 15,
            Self::Arm64 | Self::PowerPc => 32,
            Self::RiscV | Self::LoongArch | Self::Mips => 0,
            Self::S390 => 33,
            Self::Csky => 2,
        }
    }

    /// Returns the number of the stack pointer.
    pub const fn stack_pointer(self) -> u32 {
        match self {
            Self::X86 => 7,
            Self::Arm => 13,
            Self::Arm64 => 31,
            Self::PowerPc => 1,
            Self::RiscV => 2,
            Self::S390 => 15,
            Self::LoongArch => 3,
            Self::Mips => 29,
            Self::Csky => 4,
        }
    }
}

/// The name of a bit in a mask of registers. A register of two words prints `.low` or `.high` after
/// its name, a number without a name `reg<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterName {
    number: u32,
    register: Option<Register>,
}

impl RegisterName {
    /// Returns the name of a number on an architecture; `None` if that is not known.
    pub fn of(arch: Option<RegsArch>, number: u32) -> Self {
        Self { number, register: arch.and_then(|arch| arch.register(number)) }
    }
}

impl fmt::Display for RegisterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.register {
            Some(Register { name, words: 1, .. }) => f.pad(name),
            Some(Register { name, number, .. }) => {
                let half = if self.number == number { "low" } else { "high" };
                f.pad(&format!("{name}.{half}"))
            }
            None => f.pad(&format!("reg{}", self.number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [RegsArch; 9] = [
        RegsArch::X86,
        RegsArch::Arm,
        RegsArch::Arm64,
        RegsArch::PowerPc,
        RegsArch::RiscV,
        RegsArch::S390,
        RegsArch::LoongArch,
        RegsArch::Mips,
        RegsArch::Csky,
    ];

    /// The counts are those of `PERF_REG_*_MAX`; the last register of each has the number before
    /// it.
    #[test]
    fn numbers_are_those_of_the_kernels_headers() {
        let of = |arch: RegsArch, number| arch.register(number).map(|register| register.name);
        for (arch, max, last) in [
            (RegsArch::X86, 24, "R15"),
            (RegsArch::Arm, 16, "pc"),
            (RegsArch::Arm64, 33, "pc"),
            (RegsArch::PowerPc, 59, "siar"),
            (RegsArch::RiscV, 32, "t6"),
            (RegsArch::S390, 34, "PC"),
            (RegsArch::LoongArch, 32, "%r31"),
            (RegsArch::Mips, 32, "$31"),
            (RegsArch::Csky, 38, "dcsr"),
        ] {
            assert_eq!((of(arch, max - 1), of(arch, max)), (Some(last), None), "{arch:?}");
        }
        assert_eq!(of(RegsArch::Arm64, 46), Some("vg"));
        assert_eq!(of(RegsArch::Arm64, 45), None);
        assert_eq!(of(RegsArch::Arm64, 47), None);
        assert_eq!(of(RegsArch::PowerPc, 44), Some("mmcra"));
        assert_eq!(of(RegsArch::PowerPc, 45), Some("mmcr0"));
        assert_eq!(of(RegsArch::X86, 31), None);
        assert_eq!(of(RegsArch::X86, 32), Some("XMM0"));
        assert_eq!(of(RegsArch::X86, 63), Some("XMM15"));
        assert_eq!(of(RegsArch::X86, 64), None);
    }

    #[test]
    fn pointers_have_their_names() {
        let names = ALL.map(|arch| {
            [arch.instruction_pointer(), arch.stack_pointer()]
                .map(|n| arch.register(n).unwrap().name)
        });
        let expected = [
            ["IP", "SP"],
            ["pc", "sp"],
            ["pc", "sp"],
            ["nip", "r1"],
            ["pc", "sp"],
            ["PC", "R15"],
            ["PC", "%r3"],
            ["PC", "$29"],
            ["pc", "sp"],
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn names_lead_to_masks() {
        let mask = |arch: RegsArch, name| arch.find(name).map(Register::mask);
        assert_eq!(mask(RegsArch::X86, "ip"), Some(1 << 8));
        assert_eq!(mask(RegsArch::X86, "XMM15"), Some(3 << 62));
        assert_eq!(mask(RegsArch::Arm64, "vg"), Some(1 << 46));
        assert_eq!(mask(RegsArch::Arm64, "ax"), None);
        for arch in ALL {
            let union = arch.registers().fold(0, |mask, register| {
                assert_eq!(mask & register.mask(), 0, "{arch:?} {}", register.name);
                mask | register.mask()
            });
            assert_eq!(
                (0..64).filter(|n| arch.register(*n).is_some()).fold(0, |mask, n| mask | 1 << n),
                union
            );
        }
    }

    #[test]
    fn names_of_bits() {
        let name = |arch, number| RegisterName::of(arch, number).to_string();
        let x86 = RegsArch::of("x86_64");
        assert_eq!(
            [0, 8, 23, 30, 32, 35].map(|n| name(x86, n)),
            ["AX", "IP", "R15", "reg30", "XMM0.low", "XMM1.high"]
        );
        let arm = RegsArch::of("aarch64");
        assert_eq!([0, 29, 32, 40].map(|n| name(arm, n)), ["x0", "x29", "pc", "reg40"]);
        assert_eq!(name(RegsArch::of("vax"), 7), "reg7");
        assert_eq!(name(RegsArch::of("armv7l"), 11), "fp");
        assert_eq!(
            format!("{:<9}|{:>5}", RegisterName::of(x86, 0), RegisterName::of(x86, 1)),
            "AX       |   BX"
        );
    }
}
