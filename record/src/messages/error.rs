//! Why a recording could not be made, and the exit status that says so.

use thiserror::Error;

/// A recording that failed. Every message says what was tried, what is wrong, and what would help.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line asks for something that does not exist or does not go together.
    #[error("{0}")]
    Usage(String),
    /// The recording failed.
    #[error("{0}")]
    Failed(String),
    /// The recording could not be written on: the disk is full, say. What there is by then is kept.
    #[error("{0}")]
    Unwritable(String),
    /// The command is there but cannot be executed.
    #[error("{0}")]
    CannotExecute(String),
    /// There is no such command.
    #[error("{0}")]
    NotFound(String),
}

/// The result of a part of the recording.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The process's exit status for this error: 2 usage, 125 rec failed, 126 cannot execute, 127 not found.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) | Self::Unwritable(_) => 125,
            Self::CannotExecute(_) => 126,
            Self::NotFound(_) => 127,
        }
    }

    /// What could not be written, and the system's own words for why, with what would help.
    pub fn unwritable(tried: impl std::fmt::Display, why: impl Into<std::io::Error>) -> Self {
        let why = why.into();
        let help = match why.kind() {
            std::io::ErrorKind::StorageFull => " (make room, or name a file elsewhere with -o)",
            std::io::ErrorKind::QuotaExceeded => " (the quota is used up: name a file elsewhere with -o)",
            std::io::ErrorKind::FileTooLarge => " (ulimit -f, or the file system, allows no larger files)",
            std::io::ErrorKind::BrokenPipe => " (who read it has ended)",
            _ => "",
        };
        Self::Unwritable(format!("{tried}: {}{help}", why_words(&why)))
    }

    /// What was tried, and the system's own words for why it did not work.
    pub fn io(tried: impl std::fmt::Display, why: impl Into<std::io::Error>) -> Self {
        Self::Failed(format!("{tried}: {}", why_words(&why.into())))
    }
}

/// An I/O error in words, without the `(os error N)` of the standard library.
#[must_use]
pub fn why_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(end) => text.get(..end).unwrap_or(&text).to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_s_exit_statuses() {
        let s = String::new;
        assert_eq!(Error::Usage(s()).exit_status(), 2);
        assert_eq!(Error::Failed(s()).exit_status(), 125);
        assert_eq!(Error::CannotExecute(s()).exit_status(), 126);
        assert_eq!(Error::NotFound(s()).exit_status(), 127);
    }

    #[test]
    fn no_bare_errno() {
        let e = Error::io("cannot open /x", std::io::Error::from_raw_os_error(13));
        assert_eq!(e.to_string(), "cannot open /x: Permission denied");
    }
}
