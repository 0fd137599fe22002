//! What an instruction does to a stack.

/// A register that functions keep for their callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The frame pointer.
    Fp,
    /// The return address of Arm.
    Link,
}

/// A change of the stack pointer or of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// sp += n.
    MoveSp(i64),
    /// sp = fp + n.
    SpFromFp(i64),
    /// fp = sp + n.
    FpFromSp(i64),
    /// fp += n.
    MoveFp(i64),
    /// The register = the word at sp + n.
    Load(Kept, i64),
    /// The word at sp + n = the register.
    Store(Kept, i64),
    /// The register is used for something else.
    Lose(Kept),
    /// The same of the stack pointer.
    LoseSp,
}

/// Where code goes on after an instruction; distances are from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    On,
    Jump(i64),
    /// At this distance, or behind the instruction.
    Branch(i64),
    /// After a call.
    Call,
    /// At the caller, after this many bytes of arguments were removed.
    Return(u16),
    /// Where a register or memory says.
    Elsewhere,
    Nowhere,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) length: usize,
    pub(super) effects: [Effect; 3],
    pub(super) next: Next,
}

impl Step {
    pub(super) fn new(length: usize, effect: Effect) -> Self {
        Self { length, effects: [effect, Effect::None, Effect::None], next: Next::On }
    }

    pub(super) fn to(length: usize, next: Next) -> Self {
        Self { next, ..Self::new(length, Effect::None) }
    }
}
