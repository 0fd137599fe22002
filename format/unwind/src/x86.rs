//! Instructions of x86-64: their lengths, and what they do to the stack and frame pointers (Intel
//! SDM, volume 2, appendix A).

use super::effect::{Effect, Kept, Next, Step};

/// Numbers of `rsp` and `rbp` in instructions.
const SP: u8 = 4;
const FP: u8 = 5;

/// Prefixes of an instruction that change its length or its registers.
#[derive(Clone, Copy, Debug, Default)]
struct Prefixes {
    /// The four low bits of REX: W, R, X, B.
    rex: u8,
    /// Operands of 16 bits.
    is_short: bool,
    /// Addresses of 32 bits.
    has_short_addresses: bool,
}

impl Prefixes {
    fn is_wide(self) -> bool {
        self.rex & 8 != 0
    }

    /// Returns the size of an immediate operand that has no more than 4 bytes.
    fn immediate(self) -> usize {
        if self.is_short { 2 } else { 4 }
    }
}

/// A ModRM byte and what belongs to it.
#[derive(Clone, Copy, Debug)]
struct Operand<'a> {
    bytes: &'a [u8],
    modrm: u8,
    length: usize,
    rex: u8,
}

impl<'a> Operand<'a> {
    fn of(bytes: &'a [u8], rex: u8) -> Option<Self> {
        let modrm = *bytes.first()?;
        Some(Self { bytes, modrm, length: operand_length(modrm, bytes), rex })
    }

    /// Returns the number of the register in the `reg` field.
    fn reg(self) -> u8 {
        self.modrm >> 3 & 7 | (self.rex & 4) << 1
    }

    /// Returns the `reg` field as a part of the opcode.
    fn opcode(self) -> u8 {
        self.modrm >> 3 & 7
    }

    /// Returns the number of the register in the `rm` field; `None` if that is memory.
    fn rm(self) -> Option<u8> {
        (self.modrm >> 6 == 3).then_some(self.modrm & 7 | (self.rex & 1) << 3)
    }

    /// Returns the base register and the displacement of memory at `rsp` or `rbp`.
    fn memory(self) -> Option<(u8, i64)> {
        let (mode, base) = (self.modrm >> 6, self.modrm & 7);
        if mode == 3 || self.rex & 3 != 0 {
            return None;
        }
        let at = match base {
            // A SIB byte with `rsp` as base and no index.
            SP if self.bytes.get(1).is_some_and(|sib| sib & 0x3f == 0x24) => 2,
            FP if mode > 0 => 1,
            _ => return None,
        };
        let displacement = match mode {
            0 => 0,
            1 => i64::from((*self.bytes.get(at)?).cast_signed()),
            _ => i64::from(immediate(self.bytes.get(at..)?)?),
        };
        Some((base, displacement))
    }
}

/// Returns the length of an operand: its ModRM byte, and the SIB byte and the displacement that it
/// says.
pub(super) fn operand_length(modrm: u8, operand: &[u8]) -> usize {
    let (mode, base) = (modrm >> 6, modrm & 7);
    let index = usize::from(mode != 3 && base == 4);
    let displacement = match mode {
        0 if base == 5 => 4,
        // A SIB byte without base register.
        0 if base == 4 && operand.get(1).is_some_and(|sib| sib & 7 == 5) => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    1 + index + displacement
}

fn immediate(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
}

/// Returns what an instruction does; `None` if it is none that is known, or not all of its bytes
/// are there.
pub(super) fn step(code: &[u8]) -> Option<Step> {
    let mut prefixes = Prefixes::default();
    let mut at = 0;
    loop {
        match *code.get(at)? {
            0x66 => prefixes.is_short = true,
            0x67 => prefixes.has_short_addresses = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0xf2 | 0xf3 => {}
            rex @ 0x40..=0x4f => {
                prefixes.rex = rex & 0xf;
                at += 1;
                break;
            }
            _ => break,
        }
        at += 1;
    }
    let opcode = *code.get(at)?;
    let rest = code.get(at + 1..)?;
    let mut step = match opcode {
        0x0f => two_bytes(rest, prefixes),
        0xc4 | 0xc5 | 0x62 => vector(opcode, rest),
        _ => one_byte(opcode, rest, prefixes),
    }?;
    step.length += at + 1;
    (step.length <= code.len()).then_some(step)
}

/// Returns what an instruction with an opcode of one byte does; the length is that of its operands.
fn one_byte(opcode: u8, rest: &[u8], prefixes: Prefixes) -> Option<Step> {
    let operand = || Operand::of(rest, prefixes.rex);
    let immediate_of = |length| move |operand: Operand<'_>| operand.length + length;
    let length = match opcode {
        0x00..=0x3f => match opcode & 7 {
            0..=3 => return arithmetic(opcode, operand()?),
            4 => 1,
            5 => prefixes.immediate(),
            _ => return None,
        },
        0x50..=0x57 => return Some(push(opcode & 7 == FP && prefixes.rex & 1 == 0)),
        0x58..=0x5f => return Some(pop(opcode & 7 | (prefixes.rex & 1) << 3)),
        0x68 => return Some(Step::new(4, Effect::MoveSp(-8))),
        0x6a => return Some(Step::new(1, Effect::MoveSp(-8))),
        0x63 | 0x84..=0x8f => return moves(opcode, operand()?),
        0x69 => return to_register(operand()?, prefixes.immediate()),
        0x6b => return to_register(operand()?, 1),
        0x70..=0x7f | 0xe0..=0xe3 => return jump(Next::Branch, 1, rest),
        0x80 => operand().map(immediate_of(1))?,
        0x81 | 0x83 => return sums(opcode, operand()?, prefixes),
        0x9c => return Some(Step::new(0, Effect::MoveSp(-8))),
        0x9d => return Some(Step::new(0, Effect::MoveSp(8))),
        0x90..=0x99 | 0x9b | 0x9e | 0x9f | 0xa4..=0xa7 | 0xaa..=0xaf | 0xd7 | 0xf5 => 0,
        0xa0..=0xa3 => {
            if prefixes.has_short_addresses {
                4
            } else {
                8
            }
        }
        0xa8 | 0xb0..=0xb7 | 0xcd | 0xe4..=0xe7 => 1,
        0xa9 => prefixes.immediate(),
        0xb8..=0xbf if prefixes.is_wide() => 8,
        0xb8..=0xbf => prefixes.immediate(),
        0xc0 | 0xc1 | 0xc6 => operand().map(immediate_of(1))?,
        0xc7 => operand().map(immediate_of(prefixes.immediate()))?,
        0xc2 => {
            let bytes = u16::from_le_bytes(*rest.first_chunk()?);
            return Some(Step::to(2, Next::Return(bytes)));
        }
        0xc3 => return Some(Step::to(0, Next::Return(0))),
        0xc9 => {
            let effects = [Effect::SpFromFp(0), Effect::Load(Kept::Fp, 0), Effect::MoveSp(8)];
            return Some(Step { effects, ..Step::new(0, Effect::None) });
        }
        0xcc | 0xf1 | 0xf4 => return Some(Step::to(0, Next::Nowhere)),
        0xd0..=0xd3 | 0xd8..=0xdf | 0xfe => operand()?.length,
        0xe8 => {
            // A call of the next instruction only pushes its address.
            let is_push = immediate(rest)? == 0;
            let step = Step::to(4, Next::Call);
            return Some(if is_push { Step::new(4, Effect::MoveSp(-8)) } else { step });
        }
        0xe9 => return jump(Next::Jump, 4, rest),
        0xeb => return jump(Next::Jump, 1, rest),
        0xec..=0xef | 0xf8..=0xfd => 0,
        0xf6 | 0xf7 => {
            let operand = operand()?;
            let size = if opcode == 0xf6 { 1 } else { prefixes.immediate() };
            operand.length + if operand.opcode() < 2 { size } else { 0 }
        }
        0xff => return indirect(operand()?),
        _ => return None,
    };
    Some(Step::new(length, Effect::None))
}

fn push(is_fp: bool) -> Step {
    let store = if is_fp { Effect::Store(Kept::Fp, 0) } else { Effect::None };
    Step { effects: [Effect::MoveSp(-8), store, Effect::None], ..Step::new(0, Effect::None) }
}

fn pop(register: u8) -> Step {
    let load = match register {
        SP => return Step::new(0, Effect::LoseSp),
        FP => Effect::Load(Kept::Fp, 0),
        _ => Effect::None,
    };
    Step { effects: [load, Effect::MoveSp(8), Effect::None], ..Step::new(0, Effect::None) }
}

/// Returns a step to a place that the first bytes of `rest` say, relative to the next instruction.
fn jump(next: fn(i64) -> Next, length: usize, rest: &[u8]) -> Option<Step> {
    let distance = match length {
        1 => i64::from(rest.first()?.cast_signed()),
        _ => i64::from(immediate(rest)?),
    };
    Some(Step::to(length, next(distance)))
}

/// Returns the effect of an instruction that writes a register of which no more is known.
fn writes(register: Option<u8>) -> Effect {
    match register {
        Some(SP) => Effect::LoseSp,
        Some(FP) => Effect::Lose(Kept::Fp),
        _ => Effect::None,
    }
}

/// An instruction that writes the register of the `reg` field.
fn to_register(operand: Operand<'_>, immediate: usize) -> Option<Step> {
    Some(Step::new(operand.length + immediate, writes(Some(operand.reg()))))
}

/// Sums, differences, bits, comparisons of two operands.
fn arithmetic(opcode: u8, operand: Operand<'_>) -> Option<Step> {
    let effect = match opcode & 7 {
        _ if opcode >= 0x38 => Effect::None,
        1 => writes(operand.rm()),
        3 => writes(Some(operand.reg())),
        _ => Effect::None,
    };
    Some(Step::new(operand.length, effect))
}

/// The same with a constant: frames are made and left so.
fn sums(opcode: u8, operand: Operand<'_>, prefixes: Prefixes) -> Option<Step> {
    let size = if opcode == 0x83 { 1 } else { prefixes.immediate() };
    let bytes = operand.bytes.get(operand.length..)?;
    let constant = match opcode {
        0x83 => i64::from(bytes.first()?.cast_signed()),
        _ => i64::from(immediate(bytes).unwrap_or_default()),
    };
    let constant = if operand.opcode() == 5 { -constant } else { constant };
    let effect = match (operand.opcode(), operand.rm()) {
        (7, _) => Effect::None,
        (0 | 5, Some(SP)) if prefixes.is_wide() => Effect::MoveSp(constant),
        (0 | 5, Some(FP)) if prefixes.is_wide() => Effect::MoveFp(constant),
        (_, register) => writes(register),
    };
    Some(Step::new(operand.length + size, effect))
}

/// Moves, `lea`, `pop` of memory, `test` and `xchg`.
fn moves(opcode: u8, operand: Operand<'_>) -> Option<Step> {
    let (reg, rm, memory) = (operand.reg(), operand.rm(), operand.memory());
    let effect = match opcode {
        0x89 => match (reg, rm, memory) {
            (SP, Some(FP), _) => Effect::FpFromSp(0),
            (FP, Some(SP), _) => Effect::SpFromFp(0),
            (_, Some(register), _) => writes(Some(register)),
            (FP, None, Some((SP, offset))) => Effect::Store(Kept::Fp, offset),
            _ => Effect::None,
        },
        0x8b => match (reg, rm, memory) {
            (SP, Some(FP), _) => Effect::SpFromFp(0),
            (FP, Some(SP), _) => Effect::FpFromSp(0),
            (FP, None, Some((SP, offset))) => Effect::Load(Kept::Fp, offset),
            _ => writes(Some(reg)),
        },
        0x8d => match (reg, memory) {
            (SP, Some((SP, offset))) => Effect::MoveSp(offset),
            (SP, Some((_, offset))) => Effect::SpFromFp(offset),
            (FP, Some((SP, offset))) => Effect::FpFromSp(offset),
            (FP, Some((_, offset))) => Effect::MoveFp(offset),
            _ => writes(Some(reg)),
        },
        0x63 => writes(Some(reg)),
        0x87 if rm.is_some() && (reg == SP || rm == Some(SP)) => Effect::LoseSp,
        0x87 => writes([Some(reg), rm].into_iter().flatten().find(|register| *register == FP)),
        // Others than `pop` are instructions of XOP.
        0x8f if operand.opcode() > 0 => return None,
        0x8f => Effect::MoveSp(8),
        _ => Effect::None,
    };
    Some(Step::new(operand.length, effect))
}

/// Calls and jumps to where a register or memory says, and `push` of memory.
fn indirect(operand: Operand<'_>) -> Option<Step> {
    let length = operand.length;
    match operand.opcode() {
        0 | 1 => Some(Step::new(length, writes(operand.rm()))),
        2 => Some(Step::to(length, Next::Call)),
        4 => Some(Step::to(length, Next::Elsewhere)),
        6 => Some(Step::new(length, Effect::MoveSp(-8))),
        _ => None,
    }
}

/// Opcodes after 0x0f with a constant of one byte.
fn has_byte(opcode: u8) -> bool {
    matches!(opcode, 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6)
}

fn two_bytes(rest: &[u8], prefixes: Prefixes) -> Option<Step> {
    let (opcode, rest) = rest.split_first()?;
    let operand = |rest| Operand::of(rest, prefixes.rex);
    let step = match *opcode {
        0x38 => Step::new(1 + operand(rest.get(1..)?)?.length, Effect::None),
        0x3a => Step::new(2 + operand(rest.get(1..)?)?.length, Effect::None),
        0x0b => Step::to(0, Next::Nowhere),
        0x05..=0x09 | 0x30..=0x37 | 0x77 | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf => {
            Step::new(0, Effect::None)
        }
        0x80..=0x8f => jump(Next::Branch, 4, rest)?,
        0x40..=0x4f | 0xaf | 0xb6..=0xb8 | 0xbc..=0xbf => to_register(operand(rest)?, 0)?,
        opcode => Step::new(operand(rest)?.length + usize::from(has_byte(opcode)), Effect::None),
    };
    Some(Step { length: step.length + 1, ..step })
}

/// Instructions of AVX and AVX-512: none of them concerns the stack.
fn vector(first: u8, rest: &[u8]) -> Option<Step> {
    let (prefix, map) = match first {
        0xc5 => (1, 1),
        0xc4 => (2, rest.first()? & 0x1f),
        _ => (3, rest.first()? & 7),
    };
    let opcode = *rest.get(prefix)?;
    let length = match (map, opcode) {
        (1, 0x77) => 0,
        _ => {
            let bytes = rest.get(prefix + 1..)?;
            let modrm = *bytes.first()?;
            // AVX-512 scales displacements of one byte; they are as long.
            operand_length(modrm, bytes) + usize::from(map == 3 || map == 1 && has_byte(opcode))
        }
    };
    Some(Step::new(prefix + 1 + length, Effect::None))
}
