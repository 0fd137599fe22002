//! Result of the search for a module's symbols: every place that was tried, with the number of
//! symbols or the reason for refusing it.
//!
//! All attempts are kept, also those before a successful one, so that unresolved samples can always
//! be explained.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use recrep_format::build_id::BuildId;
use rustc_hash::FxHashSet;

use super::table::{SymbolId, SymbolTable};

#[derive(Debug, Default)]
pub struct Outcome {
    /// Places that were tried, in the order of the search.
    pub attempts: Vec<Attempt>,
    /// `true` if only dynamic symbols were found: the file is stripped, and no file with its other
    /// symbols was found.
    pub dynamic_only: bool,
    /// `true` if the module was mapped in a container (another mount namespace) of which no process
    /// lives.
    pub is_elsewhere: bool,
    /// Sentence about a file that is used because the user trusts it although its build ID is not
    /// the recorded one.
    pub contradiction: Option<String>,
    /// Sentence about names that are right only under a condition.
    pub note: Option<Cow<'static, str>>,
    /// Functions that the note is about; `None` if it is about all.
    pub judged: Option<FxHashSet<SymbolId>>,
}

/// Attempt to read symbols from one place.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub source: Source,
    /// Path or URL of the place.
    pub path: PathBuf,
    /// Number of symbols read, or the reason for reading none.
    pub result: Result<usize, Refusal>,
}

/// Kind of place that may have symbols; [`super::search::candidates`] lists those of a mapped
/// file's copies and debug files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Path,
    /// A living process that has the file mapped; the path leads to it through `/proc`.
    Process,
    DebugLink,
    BuildIdCache,
    /// Copy that rec kept of a recorded file, or of a JIT's list of its code.
    Kept,
    DebugDirectory,
    DebugBuildId,
    /// Compressed symbol table in the file itself (`.gnu_debugdata`).
    MiniDebugInfo,
    /// Table of functions in a Go program (`.gopclntab`).
    GoFunctions,
    Debuginfod,
    /// Debuginfod server; the path is the requested URL.
    DebuginfodServer,
    /// `/proc/kallsyms` of the running kernel, or the file given with `--kallsyms`.
    Kallsyms,
    Vmlinux,
    /// Memory of the running kernel (`/proc/kcore`), for code alone.
    Memory,
    /// Names that the recording has in a bundle; the path is what they were taken from.
    Bundle,
    /// `KSYMBOL` record that announced the code.
    Record,
    /// Symbols that the recorder left in the recording.
    Recording,
    RunningVdso,
    /// `/tmp/perf-PID.map`, written by a JIT.
    PerfMap,
    /// `jit-PID.dump`, written by a JIT.
    JitDump,
}

/// Reason why no symbols were read from a place.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Refusal {
    #[error("no such file")]
    Missing,
    #[error("not a regular file: not opened")]
    NotRegular,
    #[error("cannot be read: {0}")]
    Io(String),
    #[error("damaged or of the wrong format: {0}")]
    Malformed(String),
    #[error("build ID is {found}, but {recorded} was recorded: another version of the file")]
    BuildIdMismatch { recorded: BuildId, found: BuildId },
    #[error(
        "its checksum is {found:08x}, the debuglink says {linked:08x}: another version of the \
         debug file"
    )]
    CrcMismatch { linked: u32, found: u32 },
    #[error("has no build ID, but {recorded} was recorded: not known to be the same file")]
    NoBuildId { recorded: BuildId },
    #[error("has no symbol table (stripped)")]
    NoSymbols,
    #[error(
        "addresses are hidden (kernel.kptr_restrict or no CAP_SYSLOG): read as root or set \
         kernel.kptr_restrict=0"
    )]
    Restricted,
    #[error(
        "the running kernel has build ID {found}, but {recorded} was recorded: use --kallsyms \
         FILE of that kernel"
    )]
    OtherKernel { recorded: BuildId, found: BuildId },
    #[error(
        "the running kernel's build ID cannot be read, but {recorded} was recorded: use \
         --kallsyms FILE"
    )]
    UnknownKernel { recorded: BuildId },
    #[error(
        "no build ID was recorded, and the recorded {what} is {recorded}, but here it is {found}"
    )]
    OtherMachine { what: &'static str, recorded: String, found: String },
    #[error(
        "no build ID was recorded, and the recording does not say that it was made on this machine"
    )]
    UnknownMachine,
    #[error("neither its build ID nor its device and inode were recorded")]
    NoInode,
    #[error(
        "no build ID was recorded, and device and inode are not the recorded ones: the file was \
         replaced"
    )]
    OtherInode,
    #[error("no build ID was recorded, and the file was written to after the recording")]
    Changed,
    #[error("several recorded processes had this pid")]
    ReusedPid,
    #[error(
        "was last written to before the recorded process began: by another process that had the pid"
    )]
    MapBeforeProcess,
    #[error(
        "was written to after the end of the recorded process or, if that is not known, of the \
         recording"
    )]
    MapAfterProcess,
    #[error("belongs to user {owner}: not to the process's, nor to root")]
    OtherUser { owner: u32 },
    #[error("neither a build ID nor a checksum shows that it belongs to the recorded file")]
    NoChecksum,
    #[error(
        "no kernel build ID was recorded, and the running kernel has {symbol} at {found:#x}, not \
         at {recorded}"
    )]
    MovedKernel { symbol: String, recorded: String, found: u64 },
    #[error(
        "neither the kernel's build ID nor its release was recorded: an address alone does not \
         tell kernels apart"
    )]
    NoRelease,
    #[error(
        "no address of a kernel symbol, such as _text, was recorded: each boot may load the \
         kernel elsewhere"
    )]
    NoReference,
    #[error("is for another architecture than the recorded {recorded}")]
    OtherArchitecture { recorded: String },
    #[error("not loaded at the recorded address {recorded:#x}")]
    MovedKernelModule { recorded: u64 },
    #[error("not used: --symfs says that the recording is from another machine")]
    Symfs,
    #[error("not fetched: {0}")]
    NotFetched(String),
    #[error("{0}")]
    Other(&'static str),
}

impl Refusal {
    /// Returns whether the place was refused because nothing proves that its file is the recorded
    /// one.
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
                | Self::ReusedPid
                | Self::MapBeforeProcess
                | Self::MapAfterProcess
                | Self::OtherUser { .. }
                | Self::NoChecksum
                | Self::MovedKernel { .. }
                | Self::NoRelease
                | Self::NoReference
                | Self::OtherArchitecture { .. }
                | Self::MovedKernelModule { .. }
        )
    }
}

impl Outcome {
    /// Returns the first refusal for lack of proof, if no symbols were found at all.
    pub fn unproven(&self) -> Option<&Refusal> {
        self.refusals()
            .find(|refusal| refusal.is_unproven())
            .filter(|_| self.found().next().is_none())
    }

    pub(super) fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.attempts.iter().filter_map(|attempt| attempt.result.as_ref().err())
    }

    /// Returns whether a name is right only under the condition of the note; an inlined function
    /// has no number.
    pub fn is_judged(&self, function: Option<SymbolId>) -> bool {
        let is_judged = self
            .judged
            .as_ref()
            .is_none_or(|judged| function.is_some_and(|function| judged.contains(&function)));
        self.note.is_some() && is_judged
    }

    /// Returns the failed requests to debuginfod servers, with the reasons.
    pub fn not_fetched(&self) -> impl DoubleEndedIterator<Item = (&Attempt, &Refusal)> {
        let asked =
            self.attempts.iter().filter(|attempt| attempt.source == Source::DebuginfodServer);
        asked.filter_map(|attempt| Some((attempt, attempt.result.as_ref().err()?)))
    }

    /// Returns the attempts that gave symbols.
    pub fn found(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| attempt.result.is_ok())
    }

    pub(super) fn add(
        &mut self,
        source: Source,
        path: impl Into<PathBuf>,
        result: Result<usize, Refusal>,
    ) {
        self.attempts.push(Attempt { source, path: path.into(), result });
    }

    /// Adds the attempt to read a table; returns the table if it has symbols.
    pub(super) fn keep(
        &mut self,
        source: Source,
        path: &Path,
        found: Result<SymbolTable, Refusal>,
    ) -> Option<SymbolTable> {
        let found = found
            .and_then(|table| if table.is_empty() { Err(Refusal::NoSymbols) } else { Ok(table) });
        self.add(source, path, found.as_ref().map(SymbolTable::len).map_err(Refusal::clone));
        found.ok()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Path => "recorded path",
            Self::Process => "living process",
            Self::DebugLink => "debuglink",
            Self::BuildIdCache => "build ID cache",
            Self::Kept => "kept by rec",
            Self::DebugDirectory => "debug directory",
            Self::DebugBuildId => "debug directory by build ID",
            Self::MiniDebugInfo => "mini debug information",
            Self::GoFunctions => "table of Go functions",
            Self::Debuginfod => "debuginfod cache",
            Self::DebuginfodServer => "debuginfod server",
            Self::Kallsyms => "kallsyms",
            Self::Vmlinux => "kernel image",
            Self::Memory => "running kernel",
            Self::Bundle => "bundle",
            Self::Record => "record",
            Self::Recording => "in the recording",
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
    fn an_attempt_is_displayed_as_a_sentence() {
        let recorded = BuildId::new(&[1]).unwrap();
        let found = BuildId::new(&[2]).unwrap();
        let mut outcome = Outcome::default();
        outcome.add(Source::Path, "/bin/x", Err(Refusal::BuildIdMismatch { recorded, found }));
        outcome.add(Source::DebugBuildId, "/d", Ok(7));
        let refused = "/bin/x (recorded path): build ID is 02, but 01 was recorded: another \
                       version of the file";
        assert_eq!(outcome.attempts[0].to_string(), refused);
        let found = outcome.found().next().unwrap().to_string();
        assert_eq!(found, "/d (debug directory by build ID): 7 symbols");
    }

    #[test]
    fn a_missing_file_is_not_an_io_refusal() {
        let of = |kind| Refusal::from(io::Error::from(kind));
        assert!(matches!(of(io::ErrorKind::NotFound), Refusal::Missing));
        assert!(matches!(of(io::ErrorKind::PermissionDenied), Refusal::Io(_)));
    }
}
