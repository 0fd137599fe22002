//! Instructions of 64-bit Arm: what they do to the stack pointer, the frame pointer and the return
//! address (Arm Architecture Reference Manual, chapter C4).

use super::effect::{Effect, Kept, Next, Step};

const FP: u32 = 29;
const LINK: u32 = 30;
const SP: u32 = 31;

/// Returns a signed number of so many bits.
fn signed(value: u32, bits: u32) -> i64 {
    let unused = 32 - bits;
    i64::from((value << unused).cast_signed() >> unused)
}

/// Returns what an instruction does; `None` if not all of its bytes are there.
pub(super) fn step(code: &[u8]) -> Option<Step> {
    let word = u32::from_le_bytes(*code.first_chunk()?);
    let jump = |distance: i64| 4 * distance - 4;
    let next = match word {
        // `ret`, `retaa`, `retab`
        0xd65f_03c0 | 0xd65f_0bff | 0xd65f_0fff => Next::Return(0),
        _ if word >> 26 == 0b00_0101 => Next::Jump(jump(signed(word, 26))),
        _ if word >> 26 == 0b10_0101 => Next::Call,
        // `b.cond`, `cbz`, `cbnz`
        _ if word >> 24 == 0x54 || word >> 25 & 0x3f == 0b01_1010 => {
            Next::Branch(jump(signed(word >> 5, 19)))
        }
        // `tbz`, `tbnz`
        _ if word >> 25 & 0x3f == 0b01_1011 => Next::Branch(jump(signed(word >> 5, 14))),
        // `blr` and `br`, without and with authentication.
        _ if word & 0xfeff_f000 == 0xd63f_0000 => Next::Call,
        _ if word & 0xfeff_f000 == 0xd61f_0000 => Next::Elsewhere,
        // `udf`, `brk`
        _ if word >> 16 == 0 || word & 0xffe0_001f == 0xd420_0000 => Next::Nowhere,
        _ => Next::On,
    };
    let effects = if next == Next::On { effects(word) } else { [Effect::None; 3] };
    Some(Step { length: 4, effects, next })
}

fn effects(word: u32) -> [Effect; 3] {
    let (first, base) = (word & 31, word >> 5 & 31);
    let one = |effect| [effect, Effect::None, Effect::None];
    let kept = |register| match register {
        FP => Some(Kept::Fp),
        LINK => Some(Kept::Link),
        _ => None,
    };
    // `add` and `sub` of a constant
    if word & 0xbf80_0000 == 0x9100_0000 {
        let constant = i64::from(word >> 10 & 0xfff) << (12 * (word >> 22 & 1));
        let constant = if word >> 30 & 1 == 1 { -constant } else { constant };
        return one(match (first, base) {
            (SP, SP) => Effect::MoveSp(constant),
            (SP, FP) => Effect::SpFromFp(constant),
            (FP, SP) => Effect::FpFromSp(constant),
            (FP, FP) => Effect::MoveFp(constant),
            (SP, _) => Effect::LoseSp,
            _ => kept(first).map_or(Effect::None, Effect::Lose),
        });
    }
    // `stp`, `ldp` of two words relative to the stack pointer
    if word & 0xfe00_0000 == 0xa800_0000 && base == SP {
        let offset = 8 * signed(word >> 15, 7);
        let (is_load, second) = (word >> 22 & 1 == 1, word >> 10 & 31);
        let (before, at, after) = match word >> 23 & 3 {
            1 => (0, 0, offset),
            3 => (offset, 0, 0),
            _ => (0, offset, 0),
        };
        let access = if is_load { Effect::Load } else { Effect::Store };
        let first = kept(first).map_or(Effect::None, |kept| access(kept, at + before));
        let second = kept(second).map_or(Effect::None, |kept| access(kept, at + before + 8));
        return [first, second, Effect::MoveSp(before + after)];
    }
    // `str`, `ldr` of a word: with a constant that is added afterwards or before, and without.
    if word & 0xffa0_0400 == 0xf800_0400 && base == SP {
        let offset = signed(word >> 12, 9);
        let is_before = word >> 11 & 1 == 1;
        let access = if word >> 22 & 1 == 1 { Effect::Load } else { Effect::Store };
        let at = if is_before { offset } else { 0 };
        let access = kept(first).map_or(Effect::None, |kept| access(kept, at));
        return [access, Effect::MoveSp(offset), Effect::None];
    }
    if word & 0xff80_0000 == 0xf900_0000 && base == SP {
        let access = if word >> 22 & 1 == 1 { Effect::Load } else { Effect::Store };
        let at = 8 * i64::from(word >> 10 & 0xfff);
        return one(kept(first).map_or(Effect::None, |kept| access(kept, at)));
    }
    // `mov` of a register, and other loads
    let is_move = word & 0xffe0_ffe0 == 0xaa00_03e0;
    let is_load = word & 0xffc0_0000 == 0xf940_0000;
    one(match kept(first).filter(|_| is_move || is_load) {
        Some(kept) => Effect::Lose(kept),
        None => Effect::None,
    })
}
