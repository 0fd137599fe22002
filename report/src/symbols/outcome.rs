//! What became of the search for a module's symbols: every place that was tried, and why it helped or did not.
//!
//! Unresolved samples must never be a mystery, so nothing here is dropped: the first place that fits may still lie
//! behind three that were refused.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use recrep_format::build_id::BuildId;

use super::table::SymbolTable;

/// The whole search, in the order in which it went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Each place that was looked at.
    pub attempts: Vec<Attempt>,
    /// Whether the symbols are only those that other modules may link to: the file is stripped, and what would have
    /// the others was not found.
    pub dynamic_only: bool,
    /// A file that is used on the user's word although its build ID is not the recorded one.
    pub contradiction: Option<Contradiction>,
}

/// A file that the user trusts and the recording contradicts.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{path} has build ID {found}, recorded was {recorded}", path = .path.display())]
pub struct Contradiction {
    /// The file.
    pub path: PathBuf,
    /// Build ID as recorded.
    pub recorded: BuildId,
    /// Build ID as found.
    pub found: BuildId,
}

/// One place where symbols may have been.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Why this place was looked at.
    pub source: Source,
    /// The place.
    pub path: PathBuf,
    /// How many symbols it gave, or why none.
    pub result: Result<usize, Refusal>,
}

/// Why a place was looked at for symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The recorded path, below `--symfs` if that was given.
    Path,
    /// The file that the module's `.gnu_debuglink` section names, next to it or below `/usr/lib/debug`.
    DebugLink,
    /// The build ID directory in which recorders keep copies (`~/.debug`).
    BuildIdCache,
    /// Below `/usr/lib/debug`, by path.
    DebugDirectory,
    /// Below `/usr/lib/debug/.build-id`.
    DebugBuildId,
    /// The compressed symbol table in the file itself (`.gnu_debugdata`).
    MiniDebugInfo,
    /// What a debuginfod client has fetched.
    Debuginfod,
    /// A debuginfod server; the path is what it was asked for.
    DebuginfodServer,
    /// The running kernel, or the file given with `--kallsyms`.
    Kallsyms,
    /// A kernel image with symbols.
    Vmlinux,
    /// The record that says that the code came.
    Record,
    /// The image of `[vdso]` in this process.
    RunningVdso,
    /// The map that a JIT writes.
    PerfMap,
    /// The dump that a JIT writes.
    JitDump,
}

/// Why a place gave no symbols.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// There is nothing at that path.
    #[error("no such file")]
    Missing,
    /// It is a device, a pipe or a directory: never opened.
    #[error("not a regular file: not opened")]
    NotRegular,
    /// The system would not let us read it.
    #[error("cannot be read: {0}")]
    Io(String),
    /// It is there, but not what it should be.
    #[error("damaged or no ELF file: {0}")]
    Malformed(String),
    /// It is another version of the file.
    #[error("build ID is {found}, recorded was {recorded}: another version of the file")]
    BuildIdMismatch {
        /// As recorded.
        recorded: BuildId,
        /// As found.
        found: BuildId,
    },
    /// It is not the file that the debuglink means.
    #[error("its checksum is {found:08x}, the debuglink says {linked:08x}: another version of the debug file")]
    CrcMismatch {
        /// As the link says.
        linked: u32,
        /// As found.
        found: u32,
    },
    /// It cannot be shown to be the recorded file.
    #[error("has no build ID, recorded was {recorded}: not known to be the same file")]
    NoBuildId {
        /// As recorded.
        recorded: BuildId,
    },
    /// Its symbols were removed.
    #[error("has no symbol table (stripped)")]
    NoSymbols,
    /// `/proc/kallsyms` shows zeros for addresses.
    #[error("addresses are hidden (kernel.kptr_restrict or no CAP_SYSLOG): read as root or set kernel.kptr_restrict=0")]
    Restricted,
    /// The running kernel is not the recorded one.
    #[error("the running kernel has build ID {found}, recorded was {recorded}: give --kallsyms FILE of that kernel")]
    OtherKernel {
        /// As recorded.
        recorded: BuildId,
        /// Of the running kernel.
        found: BuildId,
    },
    /// Nothing tells whether the running kernel is the recorded one.
    #[error("the running kernel's build ID cannot be read, recorded was {recorded}: give --kallsyms FILE")]
    UnknownKernel {
        /// As recorded.
        recorded: BuildId,
    },
    /// The recording has no build ID of it and was made on another machine.
    #[error("no build ID was recorded, and the recorded {what} is {recorded}, here it is {found}")]
    OtherMachine {
        /// What differs.
        what: &'static str,
        /// As recorded.
        recorded: String,
        /// Of this machine.
        found: String,
    },
    /// The recording has no build ID of it and does not describe its machine.
    #[error("no build ID was recorded, and the recording does not say that it was made on this machine")]
    UnknownMachine,
    /// The recording has neither its build ID nor its inode.
    #[error("neither its build ID nor its device and inode were recorded")]
    NoInode,
    /// It is another file than the one that was mapped.
    #[error("no build ID was recorded, and device and inode are not the recorded ones: the file was replaced")]
    OtherInode,
    /// It was written to after the recording.
    #[error("no build ID was recorded, and the file was written to after the recording")]
    Changed,
    /// Neither build ID nor checksum shows that it belongs to the mapped file.
    #[error("neither a build ID nor a checksum shows that it belongs to the recorded file")]
    NoChecksum,
    /// Nothing shows that the running kernel is the recorded one.
    #[error(
        "no build ID of the kernel was recorded, and {symbol} of the running one is at {found:#x}, recorded was {recorded}"
    )]
    MovedKernel {
        /// The reference symbol.
        symbol: String,
        /// Its address as recorded.
        recorded: String,
        /// Its address now.
        found: u64,
    },
    /// It is of another architecture than the recording.
    #[error("is for another architecture than the recorded {recorded}")]
    OtherArchitecture {
        /// As recorded.
        recorded: String,
    },
    /// The kernel's module is not where it was.
    #[error("not loaded at the recorded address {recorded:#x}")]
    MovedKernelModule {
        /// As recorded.
        recorded: u64,
    },
    /// `--symfs` says that the files of this machine are not the recorded ones.
    #[error("not used: with --symfs, this machine is not the recorded one")]
    Symfs,
    /// A server did not give it.
    #[error("not fetched: {0}")]
    NotFetched(String),
    /// Symbols cannot be there.
    #[error("{0}")]
    Other(&'static str),
}

impl Refusal {
    /// Whether what is there was refused because nothing proves it to be the recorded file.
    #[must_use]
    pub fn is_unproven(&self) -> bool {
        matches!(
            self,
            Self::BuildIdMismatch { .. }
                | Self::NoBuildId { .. }
                | Self::OtherKernel { .. }
                | Self::UnknownKernel { .. }
                | Self::OtherMachine { .. }
                | Self::UnknownMachine
                | Self::NoInode
                | Self::OtherInode
                | Self::Changed
                | Self::NoChecksum
                | Self::MovedKernel { .. }
                | Self::OtherArchitecture { .. }
                | Self::MovedKernelModule { .. }
        )
    }
}

impl Outcome {
    /// Why what is there was refused, if nothing was found and something was refused for lack of proof.
    #[must_use]
    pub fn unproven(&self) -> Option<&Refusal> {
        let refusals = self.attempts.iter().map(|attempt| attempt.result.as_ref().err());
        let first = refusals.flatten().find(|refusal| refusal.is_unproven());
        first.filter(|_| self.found().next().is_none())
    }

    /// How many symbols there are in all.
    #[must_use]
    pub fn symbols(&self) -> usize {
        self.attempts.iter().filter_map(|attempt| attempt.result.as_ref().ok()).sum()
    }

    /// What servers were asked for, and why they did not give it.
    pub fn not_fetched(&self) -> impl DoubleEndedIterator<Item = (&Attempt, &Refusal)> {
        let asked = self.attempts.iter().filter(|attempt| attempt.source == Source::DebuginfodServer);
        asked.filter_map(|attempt| Some((attempt, attempt.result.as_ref().err()?)))
    }

    /// The places that gave symbols.
    pub fn found(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| attempt.result.is_ok())
    }

    pub(super) fn add(&mut self, source: Source, path: impl Into<PathBuf>, result: Result<usize, Refusal>) {
        self.attempts.push(Attempt { source, path: path.into(), result });
    }

    /// Notes what became of a table, and keeps it if it has symbols.
    pub(super) fn keep(
        &mut self,
        source: Source,
        path: &Path,
        found: Result<SymbolTable, Refusal>,
    ) -> Option<SymbolTable> {
        let (table, result) = match found {
            Ok(table) if table.is_empty() => (None, Err(Refusal::NoSymbols)),
            Ok(table) => {
                let symbols = table.len();
                (Some(table), Ok(symbols))
            }
            Err(refusal) => (None, Err(refusal)),
        };
        self.add(source, path, result);
        table
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Path => "recorded path",
            Self::DebugLink => "debuglink",
            Self::BuildIdCache => "build ID cache",
            Self::DebugDirectory => "debug directory",
            Self::DebugBuildId => "debug directory by build ID",
            Self::MiniDebugInfo => "mini debug information",
            Self::Debuginfod => "debuginfod cache",
            Self::DebuginfodServer => "debuginfod server",
            Self::Kallsyms => "kallsyms",
            Self::Vmlinux => "kernel image",
            Self::Record => "record",
            Self::RunningVdso => "running vdso",
            Self::PerfMap => "JIT map",
            Self::JitDump => "JIT dump",
        })
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.path.display(), self.source)?;
        match &self.result {
            Ok(symbols) => write!(f, "{symbols} symbols"),
            Err(refusal) => write!(f, "{refusal}"),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Io(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_reads_as_a_sentence() {
        let recorded = BuildId::new(&[1]).unwrap();
        let found = BuildId::new(&[2]).unwrap();
        let mut outcome = Outcome::default();
        outcome.add(Source::Path, "/bin/x", Err(Refusal::BuildIdMismatch { recorded, found }));
        outcome.add(Source::DebugBuildId, "/d", Ok(7));
        assert_eq!(
            outcome.attempts[0].to_string(),
            "/bin/x (recorded path): build ID is 02, recorded was 01: another version of the file"
        );
        assert_eq!(outcome.found().next().unwrap().to_string(), "/d (debug directory by build ID): 7 symbols");
        assert_eq!(outcome.symbols(), 7);
    }

    #[test]
    fn a_missing_file_is_no_mere_io_error() {
        assert!(matches!(Refusal::from(io::Error::from(io::ErrorKind::NotFound)), Refusal::Missing));
        assert!(matches!(Refusal::from(io::Error::from(io::ErrorKind::PermissionDenied)), Refusal::Io(_)));
    }
}
