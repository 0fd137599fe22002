//! Source lines and inlined functions of one module, from its debug information.
//!
//! ```text
//!   lookup address ─► linked address (segments of the mapped file) ─► addr2line ─► frames, innermost first
//! ```
//!
//! Debug information is parsed lazily, and only the units that contain a requested address. A
//! loader cannot be shared by threads, so there are as many as threads that ask at the same time;
//! idle ones are kept for reuse. The loader finds split debug information (`.dwo`, `.dwp`),
//! compressed sections and data that `dwz` has moved to a shared file. Names that it knows without
//! their scopes are completed ([`Scopes`]), but not those of split debug information.
//!
//! [`SourceLines::line`] resolves each address once and caches the result as the number of a line.

use std::borrow::Cow;
use std::os::unix::fs::symlink;
use std::path::{self, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fmt, io};

use addr2line::Loader;
use addr2line::gimli::ReaderOffset;
use indexmap::IndexSet;
use recrep_console::demangle;
use rustc_hash::{FxBuildHasher, FxHashMap};
use tempfile::TempDir;

use crate::input::map;
use crate::query::{Demangle, SymbolOptions};
use crate::symbols::elf::scopes::{self, Scopes};
use crate::symbols::elf::{self, Segment};

/// A file with debug information, and the mapping of its addresses to offsets in the mapped file.
#[derive(Debug)]
pub(crate) struct DebugFile {
    pub(crate) path: PathBuf,
    /// File with debug information shared by several files (`.gnu_debugaltlink`).
    pub(crate) shared: Option<PathBuf>,
    /// Package of split debug information that is not named after this file.
    pub(crate) package: Option<PathBuf>,
    /// Segments of the mapped file, or of this one if the mapped file was not found.
    pub(crate) segments: Vec<Segment>,
}

/// Function at an address: an inlined one, or the one that contains the inlined ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFrame {
    /// Displayed name of the function; `None` if unknown.
    pub function: Option<String>,
    /// Path of the source file; `None` if unknown.
    pub file: Option<String>,
    /// Line in the source file; 0 if unknown.
    pub line: u32,
    /// Line at which the function begins; 0 if unknown, or not asked for.
    pub start_line: u32,
}

/// Number of a line or name of [`SourceLines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineId(pub u32);

/// A source line; it reads `file:line`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// Path or name of the source file.
    pub file: Box<str>,
    /// Line in it; 0 if unknown.
    pub line: u32,
    /// Line at which its function begins; 0 if unknown, or not asked for.
    pub start: u32,
}

/// A source line, or what stands for one that is unknown: the name of a function or a place in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LineOrName {
    Line(SourceLine),
    Name(Box<str>),
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for LineOrName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => line.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Source lines of a module, from its debug information.
pub struct SourceLines {
    /// Frames by address, from a bundle; their names are not demangled.
    bundled: FxHashMap<u64, Vec<SourceFrame>>,
    file: Option<DebugFile>,
    demangle: Demangle,
    whole_paths: bool,
    start_lines: bool,
    spare: Mutex<Vec<Loader>>,
    /// Opened when a name needs it.
    scopes: OnceLock<Option<Scopes>>,
    known: Mutex<FxHashMap<u64, Option<LineId>>>,
    /// By number.
    numbered: Mutex<IndexSet<LineOrName, FxBuildHasher>>,
}

impl fmt::Debug for SourceLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceLines").field("file", &self.file).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SourceLines {
    pub(crate) fn new(
        file: Option<DebugFile>,
        bundled: FxHashMap<u64, Vec<SourceFrame>>,
        demangle: Demangle,
        options: &SymbolOptions,
    ) -> Self {
        let loader = file.as_ref().and_then(open);
        let file = file.filter(|_| loader.is_some());
        Self {
            bundled,
            file,
            demangle,
            whole_paths: options.source_paths,
            start_lines: options.start_lines,
            spare: Mutex::new(loader.into_iter().collect()),
            scopes: OnceLock::new(),
            known: Mutex::default(),
            numbered: Mutex::default(),
        }
    }

    /// Returns whether there is debug information.
    pub fn is_known(&self) -> bool {
        self.file.is_some() || !self.bundled.is_empty()
    }

    /// Returns the functions at an address of the module (`ModuleKind::first_address`),
    /// innermost first; empty if debug information has none. For a return address, pass the address
    /// of the byte before.
    pub fn frames(&self, address: u64) -> Vec<SourceFrame> {
        let mut frames = self.raw_frames(address);
        if self.demangle != Demangle::No {
            for name in frames.iter_mut().filter_map(|frame| frame.function.as_mut()) {
                *name = self.demangle.spelt(name.as_bytes()).into_owned();
            }
        }
        frames
    }

    /// Returns the functions at an address as [`SourceLines::frames`] does, with their names as debug
    /// information has them.
    pub(crate) fn raw_frames(&self, address: u64) -> Vec<SourceFrame> {
        if let Some(known) = self.bundled.get(&address) {
            return known.clone();
        }
        let Some(file) = &self.file else { return Vec::new() };
        let Some(linked) = elf::address_of(&file.segments, address) else { return Vec::new() };
        let spare = lock(&self.spare).pop();
        let Some(loader) = spare.or_else(|| open(file)) else { return Vec::new() };
        // The loader maps the file. If that is truncated meanwhile, the answer is wrong: discard it
        // and the loader.
        let Some(frames) = map::tolerating(|| self.read(&loader, linked)) else {
            return Vec::new();
        };
        lock(&self.spare).push(loader);
        frames
    }

    fn read(&self, loader: &Loader, linked: u64) -> Vec<SourceFrame> {
        let mut all = Vec::new();
        let Ok(mut frames) = loader.find_frames(linked) else { return all };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref();
            let mut name = function.and_then(|name| name.raw_name().ok()).map(Cow::into_owned);
            let entry =
                frame.dw_die_offset.and_then(|offset| usize::try_from(offset.0.into_u64()).ok());
            if let (Some(name), Some(entry)) = (&mut name, entry)
                && !demangle::is_mangled(name.as_bytes())
                && scopes::are_completed(function.and_then(|function| function.language))
                && let Some(whole) =
                    self.scopes().and_then(|scopes| scopes.name(linked, entry, name))
            {
                *name = whole;
            }
            let scopes = if self.start_lines { self.scopes() } else { None };
            let start = entry.zip(scopes).map(|(entry, scopes)| scopes.start_line(linked, entry));
            all.push(SourceFrame {
                function: name,
                file: frame.location.as_ref().and_then(|at| at.file).map(str::to_owned),
                line: frame.location.as_ref().and_then(|at| at.line).unwrap_or(0),
                start_line: start.unwrap_or(0),
            });
        }
        all
    }

    fn scopes(&self) -> Option<&Scopes> {
        let file = self.file.as_ref();
        let scopes = self
            .scopes
            .get_or_init(|| file.and_then(|file| Scopes::open(&file.path, file.shared.as_deref())));
        scopes.as_ref()
    }

    /// Returns the number of the source line at an address; `None` if that is unknown.
    pub fn line(&self, address: u64) -> Option<LineId> {
        if let Some(known) = lock(&self.known).get(&address) {
            return *known;
        }
        let line = self.frames(address).first().and_then(|innermost| self.place(innermost));
        lock(&self.known).insert(address, line);
        line
    }

    /// Returns the number of the source line of a frame; `None` if its file is unknown.
    pub fn place(&self, at: &SourceFrame) -> Option<LineId> {
        let file = at.file.as_deref()?;
        let name = file.rsplit('/').next().filter(|_| !self.whole_paths);
        let file = name.unwrap_or(file).into();
        let line = SourceLine { file, line: at.line, start: at.start_line };
        Some(self.insert(LineOrName::Line(line)))
    }

    /// Returns the number of a name; equal names have the same number.
    pub fn number(&self, name: String) -> LineId {
        self.insert(LineOrName::Name(name.into()))
    }

    fn insert(&self, new: LineOrName) -> LineId {
        LineId(u32::try_from(lock(&self.numbered).insert_full(new).0).unwrap_or(u32::MAX))
    }

    /// Returns the line or name with this number.
    pub fn get(&self, id: LineId) -> LineOrName {
        let known = lock(&self.numbered).get_index(id.0 as usize).cloned();
        known.unwrap_or_else(|| LineOrName::Name(Box::default()))
    }
}

fn open(file: &DebugFile) -> Option<Loader> {
    let shared = file.shared.as_ref().filter(|path| path.is_file());
    let links = file.package.as_ref().and_then(|package| linked(&file.path, package).ok());
    let path = links.as_ref().map_or(file.path.clone(), |links| links.path().join(LINK));
    map::tolerating(|| Loader::new_with_sup(&path, shared))?.ok()
}

/// Name of the link to a debug file.
const LINK: &str = "debug";

/// Makes a directory with links to a debug file and its package: the loader finds only one of the
/// debug file's name. It opens both at once, so that the directory can be removed then.
fn linked(debug: &Path, package: &Path) -> io::Result<TempDir> {
    let links = tempfile::tempdir()?;
    symlink(path::absolute(debug)?, links.path().join(LINK))?;
    symlink(path::absolute(package)?, links.path().join(LINK).with_extension("dwp"))?;
    Ok(links)
}
