//! An instruction of any machine.

/// An instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Number of bytes.
    pub len: usize,
    /// Text as `objdump -d` has it, but for the names in angle brackets.
    pub text: String,
    /// Address that it refers to: the target of a jump or call, or data.
    pub target: Option<u64>,
    /// Where execution goes on.
    pub flow: Flow,
}

/// Where execution goes on after an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// At the next one.
    #[default]
    Next,
    /// Elsewhere.
    Jump,
    /// Elsewhere or at the next one.
    Branch,
    /// In a function, and then at the next one.
    Call,
    /// Where the function was called.
    Return,
}
