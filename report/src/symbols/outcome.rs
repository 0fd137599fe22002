//! Result of the search for a module's symbols: every place that was tried, with the number of
//! symbols or the reason for refusing it.
//!
//! All attempts are kept, also those before a successful one, so that unresolved samples can always
//! be explained.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use crate::symbols::file::Refusal;
use crate::symbols::names::table::{SymbolId, SymbolTable};

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

/// Kind of place that may have symbols; `search::candidates` lists those of a mapped
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

#[cfg(test)]
mod tests {
    use recrep_format::build_id::BuildId;

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
}
