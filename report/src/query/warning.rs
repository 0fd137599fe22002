//! Warnings about the input.

use recrep_format::error::Error;

/// A warning: printed on standard error, and listed in JSON.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// Short stable word for scripts.
    pub code: &'static str,
    /// Sentence that says what is wrong and what was done about it.
    pub message: String,
    /// Byte offset in the input, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Number of samples, callchains or records that it is about, if it is about some only.
    #[serde(skip)]
    pub(crate) affected: Option<u64>,
}

impl Warning {
    /// Code if the inputs have no samples.
    pub const NO_SAMPLES: &'static str = "no-samples";
    /// Code of an input that cannot be read, and is left out.
    pub const UNREADABLE: &'static str = "unreadable";
    /// Code if no sample passes the filters.
    pub const NO_MATCH: &'static str = "no-match";

    /// Code if much time is in an interpreter whose functions have no names.
    pub const INTERPRETER: &'static str = "interpreter";
    /// Code if much time is in code of a JIT that has no names.
    pub const NAMELESS_JIT: &'static str = "nameless-jit";
    /// Code if many user stacks do not reach the start of their program.
    pub const BROKEN_STACKS: &'static str = "broken-stacks";

    /// Code if callers are missing in callchains of code without frame pointers, though most of
    /// them reach the start of their program.
    pub const MISSING_CALLERS: &'static str = "missing-callers";

    /// Code if much of a critical path is in code that spins.
    pub const SPINNING: &'static str = "spinning";

    /// Returns whether it says what would show more: nothing is wrong with the input.
    pub fn is_hint(&self) -> bool {
        matches!(
            self.code,
            Self::INTERPRETER
                | Self::NAMELESS_JIT
                | Self::BROKEN_STACKS
                | Self::MISSING_CALLERS
                | Self::SPINNING
        )
    }

    /// Creates a warning about the whole input.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), offset: None, affected: None }
    }

    /// Creates a warning about so many samples, callchains or records.
    pub(crate) fn about(affected: u64, code: &'static str, message: impl Into<String>) -> Self {
        Self { affected: Some(affected), ..Self::new(code, message) }
    }

    /// Returns whether it says that there is no answer: no sample was recorded, or none passes the
    /// filters.
    pub fn is_failure(&self) -> bool {
        matches!(self.code, Self::NO_SAMPLES | Self::NO_MATCH)
    }

    /// Creates a warning whose message begins with this count, and goes on with one of the texts:
    /// for one, or for several; `None` if it is 0.
    pub fn counted(count: u64, code: &'static str, [one, several]: [&str; 2]) -> Option<Self> {
        let message = if count == 1 { one } else { several };
        (count > 0).then(|| Self::about(count, code, format!("{count} {message}")))
    }
}

impl From<&Error> for Warning {
    fn from(error: &Error) -> Self {
        Self {
            code: error.kind.code(),
            message: error.kind.to_string(),
            offset: Some(error.offset),
            affected: None,
        }
    }
}

impl From<recrep_format::read::Warning> for Warning {
    fn from(warning: recrep_format::read::Warning) -> Self {
        Self { offset: Some(warning.offset), ..Self::new(warning.code, warning.message) }
    }
}
