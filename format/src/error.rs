//! Errors: what is wrong with the bytes, and where.
//!
//! Every error carries the byte offset in the file (or stream) at which reading failed, so that a
//! message can always say *where*; [`ErrorKind::code`] is the short stable word that JSON warnings
//! use.

use thiserror::Error;

/// The result of reading or writing a part of a perf.data file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something in the bytes is not as the format has it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind}, at byte {offset}")]
pub struct Error {
    /// The byte of the file or stream where the trouble begins.
    pub offset: u64,
    /// The kind.
    pub kind: ErrorKind,
}

impl Error {
    /// Returns an error of this kind at this byte.
    pub fn new(offset: u64, kind: ErrorKind) -> Self {
        Self { offset, kind }
    }

    /// Returns the error that `what` needs `needed` bytes and only `left` are there.
    pub fn truncated(offset: u64, what: &'static str, needed: u64, left: u64) -> Self {
        Self::new(offset, ErrorKind::Truncated { what, needed, left })
    }

    /// Returns the error of an input that could not be read.
    pub fn io(offset: u64, error: &std::io::Error) -> Self {
        Self::new(offset, ErrorKind::Io { kind: error.kind(), detail: error.to_string() })
    }

    /// Returns the error that `what` has a value that the format does not allow.
    pub fn invalid(offset: u64, what: &'static str, detail: impl Into<String>) -> Self {
        Self::new(offset, ErrorKind::Invalid { what, detail: detail.into() })
    }
}

/// The kinds of trouble.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes end inside something.
    #[error("{what} needs {needed} bytes, and {left} are left")]
    Truncated {
        /// Name of the item that was read.
        what: &'static str,
        /// Number of bytes that it needs.
        needed: u64,
        /// Number of bytes left.
        left: u64,
    },
    /// The file does not begin with `PERFILE2` or `PERFFILE`.
    #[error("not a perf.data file: it does not begin with the magic PERFILE2")]
    Magic,
    /// A record's `size` is smaller than its header.
    #[error("a record of type {kind} says that it has {size} bytes, less than a record header")]
    RecordSize {
        /// The record's type number.
        kind: u32,
        /// The size that its header gives.
        size: u16,
    },
    /// Returns the error of an input that could not be read.
    #[error("the input cannot be read: {detail}")]
    Io {
        /// Kind of the I/O error.
        kind: std::io::ErrorKind,
        /// Its message.
        detail: String,
    },
    /// A value is outside what the format allows.
    #[error("{what}: {detail}")]
    Invalid {
        /// The part of the format.
        what: &'static str,
        /// The reason.
        detail: String,
    },
}

impl ErrorKind {
    /// Returns the stable word for this kind of trouble, as JSON warnings give it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Truncated { .. } => "truncated",
            Self::Magic => "not-perf-data",
            Self::RecordSize { .. } => "bad-record-size",
            Self::Io { .. } => "io",
            Self::Invalid { .. } => "invalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_and_where() {
        let e = Error::truncated(104, "perf_event_attr", 144, 12);
        assert_eq!(e.to_string(), "perf_event_attr needs 144 bytes, and 12 are left, at byte 104");
        assert_eq!(e.kind.code(), "truncated");
        let e = Error::new(8, ErrorKind::RecordSize { kind: 9, size: 0 });
        assert_eq!(
            e.to_string(),
            "a record of type 9 says that it has 0 bytes, less than a record header, at byte 8"
        );
    }
}
