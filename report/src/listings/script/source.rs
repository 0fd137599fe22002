//! Source lines of addresses, and their text.

use std::fs;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::frames::Finder;
use crate::symbols::SourceFrame;
use crate::terminal::escape::escape;
use crate::timeline::Place;

/// Maximum size of a source file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Lines of source files; each file is read once.
#[derive(Default)]
pub(super) struct SourceTexts {
    files: FxHashMap<String, Option<Vec<String>>>,
    /// Last line that was printed for each thread; it is not repeated.
    last: FxHashMap<i32, (String, u32)>,
}

/// Returns the source line at a place as `file:line`, or `module[address]` if debug information has
/// none; `None` if nothing was mapped there.
pub(super) fn line(finder: &mut Finder<'_>, place: Place, whole_path: bool) -> Option<String> {
    let module = finder.module(place.module)?;
    let found = finder.inlined(place, place.address).first().and_then(|at| written(at, whole_path));
    Some(found.unwrap_or_else(|| format!("{}[{:x}]", escape(&module.name()), place.address)))
}

/// Returns the source line of a frame as `file:line`.
pub(super) fn written(at: &SourceFrame, whole_path: bool) -> Option<String> {
    let file = at.file.as_deref()?;
    let name = if whole_path { file } else { file.rsplit('/').next().unwrap_or(file) };
    Some(format!("{}:{}", escape(name), at.line))
}

/// Prints a source line, beginning on a new line.
pub(super) fn print(line: Option<String>, out: &mut Vec<u8>) {
    if let Some(line) = line {
        out.extend_from_slice(b"\n  ");
        out.extend_from_slice(line.as_bytes());
    }
}

impl SourceTexts {
    /// Returns the text of the source line at a place, unless it was the thread's last one.
    pub(super) fn code(
        &mut self,
        finder: &mut Finder<'_>,
        place: Place,
        tid: i32,
    ) -> Option<String> {
        let at = finder.inlined(place, place.address).first().cloned()?;
        let (file, line) = (at.file?, at.line);
        if self.last.get(&tid).is_some_and(|(last, number)| *last == file && *number == line) {
            return None;
        }
        let lines = self.files.entry(file.clone()).or_insert_with_key(|file| read(Path::new(file)));
        let text = lines.as_ref()?.get(usize::try_from(line).ok()?.checked_sub(1)?)?;
        self.last.insert(tid, (file, line));
        Some(format!("|{line:<8} {}", escape(text)))
    }
}

fn read(path: &Path) -> Option<Vec<String>> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    let text = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}
