//! Errors of recordings, and their exit statuses.

use rustix::io::Errno;
use thiserror::Error;

/// Error of a recording. Every message says what was tried, why it failed, and what to do.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line requests something that does not exist, or an invalid combination.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Failed(String),
    /// The recording could not be written to its end, for example because the disk is full. The
    /// written part is kept.
    #[error("{0}")]
    Unwritable(String),
    /// The command exists but cannot be executed.
    #[error("{0}")]
    CannotExecute(String),
    /// The command was not found.
    #[error("{0}")]
    NotFound(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the exit status for this error: 2 usage, 125 rec failed, 126 cannot execute, 127 not
    /// found.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) | Self::Unwritable(_) => 125,
            Self::CannotExecute(_) => 126,
            Self::NotFound(_) => 127,
        }
    }

    /// Creates the error of a failed write: what was tried, the system's message, and advice.
    pub fn unwritable(tried: impl std::fmt::Display, why: impl Into<std::io::Error>) -> Self {
        let why = why.into();
        let help = match why.kind() {
            std::io::ErrorKind::StorageFull => " (free space, or write elsewhere with -o)",
            std::io::ErrorKind::QuotaExceeded => {
                " (the quota is exhausted; write elsewhere with -o)"
            }
            std::io::ErrorKind::FileTooLarge => {
                " (raise ulimit -f, or write to another file system with -o)"
            }
            std::io::ErrorKind::BrokenPipe => " (the reader has ended)",
            _ => "",
        };
        Self::Unwritable(format!("{tried}: {}{help}", why_words(&why)))
    }

    /// Creates the error of a failed operation: what was tried, and the system's message.
    pub fn io(tried: impl std::fmt::Display, why: impl Into<std::io::Error>) -> Self {
        let why = why.into();
        let help = match Errno::from_io_error(&why) {
            Some(Errno::MFILE) => " (raise the limit on open files: ulimit -n)",
            Some(Errno::NFILE) => {
                " (the whole machine has too many files open: raise fs.file-max with sysctl)"
            }
            _ => "",
        };
        Self::Failed(format!("{tried}: {}{help}", why_words(&why)))
    }
}

/// Returns the message of an I/O error, without the `(os error N)` of the standard library.
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
        assert!(
            Error::io("cannot open /x", Errno::MFILE)
                .to_string()
                .ends_with("(raise the limit on open files: ulimit -n)")
        );
    }
}
