//! Source lines and inlined functions of one module, from its debug information.
//!
//! ```text
//!   address as looked up ─► linked address (segments of the mapped file) ─► addr2line ─► frames, innermost first
//! ```
//!
//! Debug information is read when the first address is asked for, and of it only the units that have an address that is
//! asked for. It cannot be shared by threads, so there are as many readers as ask at one time, kept for the next that
//! does. Split debug information (`.dwo`, `.dwp`), compressed sections and what `dwz` has moved to a file of its own are
//! found by the reader.
//!
//! Each address is asked for once: [`Lines::line`] keeps the answers as numbers of texts.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use addr2line::Loader;
use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use super::demangle;
use super::search::DebugFile;
use crate::input::map;

/// A function at an address: inlined ones first, the one that is called last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlined {
    /// The function's name as it is shown, where it is known.
    pub function: Option<String>,
    /// The source file's path.
    pub file: Option<String>,
    /// The line in it; 0 where it is not known.
    pub line: u32,
}

/// The number of a text of [`Lines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineId(pub u32);

/// What debug information says of a module.
pub struct Lines {
    file: Option<DebugFile>,
    demangle: bool,
    whole_paths: bool,
    spare: Mutex<Vec<Loader>>,
    known: Mutex<FxHashMap<u64, LineId>>,
    texts: Mutex<IndexSet<String>>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("file", &self.file).finish_non_exhaustive()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lines {
    pub(super) fn new(file: Option<DebugFile>, demangle: bool, whole_paths: bool) -> Self {
        let loader = file.as_ref().and_then(open);
        let file = file.filter(|_| loader.is_some());
        Self {
            file,
            demangle,
            whole_paths,
            spare: Mutex::new(loader.into_iter().collect()),
            known: Mutex::default(),
            texts: Mutex::default(),
        }
    }

    /// Whether there is debug information.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.file.is_some()
    }

    /// The functions at an address as [`super::Module::lookup_address`] gives it, innermost first. Of a return address, ask
    /// for the byte before. Nothing where debug information has nothing.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Inlined> {
        let Some(file) = &self.file else { return Vec::new() };
        let Some(segment) = file.segments.iter().find(|segment| segment.has_offset(address)) else { return Vec::new() };
        let linked = segment.to_address(address);
        let spare = lock(&self.spare).pop();
        let Some(loader) = spare.or_else(|| open(file)) else { return Vec::new() };
        // The reader maps the file, which may be written anew meanwhile: then nothing that it says is true.
        let Some(frames) = map::tolerating(|| self.read(&loader, linked)) else { return Vec::new() };
        lock(&self.spare).push(loader);
        frames
    }

    fn read(&self, loader: &Loader, linked: u64) -> Vec<Inlined> {
        let mut all = Vec::new();
        let Ok(mut frames) = loader.find_frames(linked) else { return all };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let shown = |name: &str| match self.demangle {
                true => demangle::demangled(name.as_bytes()).into_owned(),
                false => name.to_owned(),
            };
            all.push(Inlined {
                function: name.as_deref().map(shown),
                file: frame.location.as_ref().and_then(|at| at.file).map(str::to_owned),
                line: frame.location.as_ref().and_then(|at| at.line).unwrap_or(0),
            });
        }
        all
    }

    /// The number of the text `file:line` at an address; `otherwise` where debug information has none.
    pub fn line(&self, address: u64, otherwise: impl FnOnce() -> String) -> LineId {
        if let Some(known) = lock(&self.known).get(&address) {
            return *known;
        }
        let innermost = self.frames(address).into_iter().next();
        let number = innermost.and_then(|at| self.place(&at)).unwrap_or_else(|| self.number(otherwise()));
        lock(&self.known).insert(address, number);
        number
    }

    /// The number of the text `file:line` of a frame, where it is known.
    pub fn place(&self, at: &Inlined) -> Option<LineId> {
        let file = at.file.as_deref()?;
        let name = file.rsplit('/').next().filter(|_| !self.whole_paths);
        Some(self.number(format!("{}:{}", name.unwrap_or(file), at.line)))
    }

    /// The number of a text.
    pub fn number(&self, text: String) -> LineId {
        LineId(u32::try_from(lock(&self.texts).insert_full(text).0).unwrap_or(u32::MAX))
    }

    /// The text of a number.
    #[must_use]
    pub fn text(&self, id: LineId) -> String {
        lock(&self.texts).get_index(id.0 as usize).cloned().unwrap_or_default()
    }
}

fn open(file: &DebugFile) -> Option<Loader> {
    let shared = file.shared.as_ref().filter(|path| path.is_file());
    match map::tolerating(|| Loader::new_with_sup(&file.path, shared))? {
        Ok(loader) => Some(loader),
        Err(error) => {
            log::debug!("{}: no debug information can be read: {error}", file.path.display());
            None
        }
    }
}
