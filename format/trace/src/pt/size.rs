//! Width of code.

/// Width of code: what the processor takes bytes for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CodeSize {
    /// 16-bit code.
    Bits16,
    /// 32-bit code.
    Bits32,
    /// 64-bit code.
    #[default]
    Bits64,
}

impl CodeSize {
    /// Returns the number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Self::Bits16 => 16,
            Self::Bits32 => 32,
            Self::Bits64 => 64,
        }
    }
}
