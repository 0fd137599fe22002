//! The rule that leads from a frame to its caller, in two forms: the plain one has room for nearly
//! all rules that compilers write and is small; the full one has every rule.

use gimli::{CfaRule, Encoding, Register, RegisterRule, UnwindContextStorage, UnwindTableRow};

use super::machine::{Machine, PRESERVED};

/// Room for the rows of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows;

impl UnwindContextStorage<usize> for Rows {
    type Rules = [(Register, RegisterRule<usize>); 64];
    type Stack = Vec<UnwindTableRow<usize, Self>>;
}

/// A rule of a module at an address.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    Plain(PlainRule),
    Full(Box<FullRule>),
}

/// CFA = register + offset; preserved registers are kept or saved at the CFA + offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlainRule {
    pub(super) cfa: Base,
    /// Where the preserved registers are saved, in the order of [`Machine::preserved`].
    pub(super) saved: [Slot; PRESERVED],
    pub(super) return_address: ReturnAddress,
    /// `true` for the trampoline that a signal handler returns to.
    pub(super) is_signal: bool,
}

/// A register and an offset from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) register: u8,
    pub(super) offset: i32,
}

/// Where a register is saved: the offset from the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(i16);

impl Slot {
    /// The register keeps its value.
    pub(super) const KEPT: Self = Self(i16::MIN);
    /// The register's value is lost.
    pub(super) const LOST: Self = Self(i16::MIN + 1);

    fn at(offset: i64) -> Option<Self> {
        i16::try_from(offset).ok().map(Self).filter(|slot| slot.offset().is_some())
    }

    /// Returns the offset from the CFA, if the register is saved.
    pub(super) fn offset(self) -> Option<i64> {
        (self != Self::KEPT && self != Self::LOST).then_some(self.0.into())
    }
}

/// Where the return address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReturnAddress {
    /// There is none: the frame is the outermost.
    None,
    /// At this offset from the CFA.
    Saved(Slot),
    /// In the register for it, as before.
    Kept,
}

/// Any rule.
#[derive(Clone, Debug)]
pub(super) struct FullRule {
    pub(super) cfa: CfaRule<usize>,
    pub(super) registers: Vec<(Register, RegisterRule<usize>)>,
    pub(super) context: RuleContext,
}

impl FullRule {
    /// Returns the rule of a register, if there is one.
    pub(super) fn of(&self, register: Register) -> Option<&RegisterRule<usize>> {
        self.registers.iter().find(|(number, _)| *number == register).map(|(_, rule)| rule)
    }
}

/// What else a rule depends on, besides its row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleContext {
    pub(super) machine: Machine,
    pub(super) return_address: Register,
    pub(super) is_signal: bool,
    pub(super) encoding: Encoding,
    /// `true` if expressions are in `.debug_frame`.
    pub(super) in_debug_frame: bool,
}

impl Rule {
    /// Returns the rule that a row of a table stands for.
    pub(super) fn of(row: &UnwindTableRow<usize, Rows>, context: RuleContext) -> Self {
        match PlainRule::of(row, context) {
            Some(plain) => Self::Plain(plain),
            None => Self::Full(Box::new(FullRule {
                cfa: row.cfa().clone(),
                registers: row.registers().cloned().collect(),
                context,
            })),
        }
    }

    pub(super) fn is_signal(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.is_signal,
            Self::Full(full) => full.context.is_signal,
        }
    }

    /// Returns whether the frame is the outermost.
    pub(super) fn is_root(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.return_address == ReturnAddress::None,
            Self::Full(full) => {
                matches!(full.of(full.context.return_address), Some(RegisterRule::Undefined))
            }
        }
    }

    /// Returns whether the frame leaves a preserved register as it was.
    pub(super) fn keeps(&self, machine: Machine, register: u8) -> bool {
        match self {
            Self::Plain(plain) => plain.slot(machine, register) == Slot::KEPT,
            Self::Full(full) => {
                matches!(full.of(Register(register.into())), None | Some(RegisterRule::SameValue))
            }
        }
    }
}

impl PlainRule {
    /// Returns the plain form of a row, if it has one.
    fn of(row: &UnwindTableRow<usize, Rows>, context: RuleContext) -> Option<Self> {
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let base =
            Base { register: u8::try_from(register.0).ok()?, offset: i32::try_from(*offset).ok()? };
        // On x86 the return address is always saved; a row without a rule for it is damaged.
        let mut return_address = match context.machine {
            Machine::Aarch64 => ReturnAddress::Kept,
            Machine::X86_64 | Machine::X86 => ReturnAddress::Saved(Slot::LOST),
        };
        let mut saved = [Slot::KEPT; PRESERVED];
        for (register, rule) in row.registers() {
            let slot = match rule {
                RegisterRule::Offset(offset) => Slot::at(*offset)?,
                RegisterRule::SameValue => Slot::KEPT,
                RegisterRule::Undefined => Slot::LOST,
                // Registers of vectors and floating-point numbers, flags.
                _ if register.0 > 32 => continue,
                _ => return None,
            };
            if *register == context.return_address {
                return_address = match slot {
                    Slot::LOST => ReturnAddress::None,
                    Slot::KEPT => ReturnAddress::Kept,
                    _ => ReturnAddress::Saved(slot),
                };
            }
            let mut preserved = context.machine.preserved().iter();
            let place = preserved.position(|number| u16::from(*number) == register.0);
            match place.and_then(|place| saved.get_mut(place)) {
                Some(place) => *place = slot,
                None if register.0 > 32 || *register == context.return_address => {}
                // What calls do not preserve is lost anyway.
                None if slot == Slot::LOST => {}
                None => return None,
            }
        }
        Some(Self { cfa: base, saved, return_address, is_signal: context.is_signal })
    }

    /// Returns where a preserved register is saved.
    pub(super) fn slot(&self, machine: Machine, register: u8) -> Slot {
        let mut slots = machine.preserved().iter().zip(self.saved);
        slots.find(|(number, _)| **number == register).map_or(Slot::LOST, |(_, slot)| slot)
    }
}

/// What the frame pointer is at an address, by the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FramePointer {
    /// It points to the caller's frame pointer and the return address.
    Holds,
    /// The function leaves it to its callers: it is that of a frame further out, and the return
    /// address is elsewhere.
    Untouched,
    /// The function uses it for something else.
    Changed,
    /// The frame is the outermost.
    Root,
    /// The frame is the trampoline that a signal handler returns to: the registers of the
    /// interrupted function are on the stack.
    Signal,
    /// There is no rule for the address.
    Unknown,
}

impl PlainRule {
    /// Returns whether the frame pointer points at where it was saved, with the return address in
    /// the next word.
    fn is_frame(&self, machine: Machine) -> bool {
        let ReturnAddress::Saved(return_address) = self.return_address else { return false };
        self.cfa.register == machine.fp()
            && self.offset_of(self.slot(machine, machine.fp())) == Some(0)
            && self.offset_of(return_address) == Some(i64::from(machine.word()))
    }

    /// Returns the offset of a slot from the register that the CFA is relative to.
    fn offset_of(&self, slot: Slot) -> Option<i64> {
        slot.offset().map(|slot| slot + i64::from(self.cfa.offset))
    }
}

impl FramePointer {
    /// Returns what a rule says of the frame pointer; `next` finds the rule of the instructions after
    /// those of `rule`.
    pub(super) fn of(rule: &Rule, next: impl FnOnce() -> Option<Rule>, machine: Machine) -> Self {
        if rule.is_signal() {
            return Self::Signal;
        }
        if rule.is_root() {
            return Self::Root;
        }
        let (fp, sp) = (machine.fp(), machine.sp());
        let Rule::Plain(plain) = rule else {
            return if rule.keeps(machine, fp) { Self::Untouched } else { Self::Changed };
        };
        let offset = i64::from(plain.cfa.offset);
        let saved = plain.slot(machine, fp);
        let Some(slot) = saved.offset().map(|slot| slot + offset) else {
            return if saved == Slot::KEPT { Self::Untouched } else { Self::Changed };
        };
        let becomes_frame = || matches!(next(), Some(Rule::Plain(next)) if next.is_frame(machine));
        if plain.is_frame(machine) {
            Self::Holds
        } else if plain.cfa.register == sp && (slot < 0 || (slot == 0 && becomes_frame())) {
            // It was popped, or saved and not yet changed.
            Self::Untouched
        } else {
            Self::Changed
        }
    }
}
