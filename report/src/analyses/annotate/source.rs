//! Texts of source lines, from the files that debug information names.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Lines of a file; `None` if it cannot be read.
type Lines = Option<Arc<[String]>>;

/// Source files that were read.
#[derive(Debug, Default)]
pub(super) struct SourceTexts {
    /// Directory below which they are, in place of `/`.
    root: Option<PathBuf>,
    known: Mutex<HashMap<String, Lines>>,
}

impl SourceTexts {
    /// Size of the largest file that is read: people write no larger ones.
    const MAX: u64 = 16 << 20;

    pub(super) fn new(root: Option<PathBuf>) -> Self {
        Self { root, known: Mutex::default() }
    }

    /// Returns the text of a line, without the white space around it; `None` if the file is not
    /// there.
    pub(super) fn line(&self, file: &str, line: u32) -> Option<String> {
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        let lines = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            match known.get(file) {
                Some(lines) => lines.clone(),
                None => known.entry(file.to_owned()).or_insert(self.read(Path::new(file))).clone(),
            }
        };
        lines?.get(index).filter(|text| !text.is_empty()).cloned()
    }

    fn read(&self, path: &Path) -> Lines {
        let below = path.strip_prefix("/").ok()?;
        let path = self.root.as_ref().map_or(path.to_owned(), |root| root.join(below));
        // A path of a recorded program may lead to a pipe or a device.
        fs::metadata(&path).ok().filter(|file| file.is_file() && file.len() <= Self::MAX)?;
        let mut bytes = Vec::new();
        File::open(&path).ok()?.take(Self::MAX).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        Some(text.lines().map(|line| line.trim().replace('\t', " ")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_files_below_a_root() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x.c"), "int x;\n\n\treturn\tx;\n").unwrap();
        let files = SourceTexts::new(Some(dir.path().to_owned()));
        assert_eq!(files.line("/x.c", 1).as_deref(), Some("int x;"));
        assert_eq!(files.line("/x.c", 3).as_deref(), Some("return x;"));
        for (file, line) in [("/x.c", 0), ("/x.c", 2), ("/x.c", 9), ("/y.c", 1), ("x.c", 1)] {
            assert_eq!(files.line(file, line), None);
        }
        assert_eq!(SourceTexts::new(None).line("/dev/null", 1), None);
    }
}
