//! Warnings: what is wrong with a file that can be read nevertheless.

/// Something about the input that its reader should know, with a stable code for scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// A short stable word, such as `truncated`.
    pub code: &'static str,
    /// A sentence: what is wrong, and what was done about it.
    pub message: String,
    /// Offset in the file.
    pub offset: u64,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, at byte {}", self.message, self.offset)
    }
}
