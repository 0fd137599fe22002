//! Opening what is to be read: a mapped file, or standard input in memory.
//!
//! The one `unsafe` of this package is here: mapping a file. perf.data files are read in place, so that
//! memory does not grow with them and all cores can start at once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::query::Source;

/// The bytes of an input and its name.
#[derive(Debug)]
pub struct Input {
    /// What the user called it.
    pub name: String,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Read(Vec<u8>),
}

/// An input that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is not there.
    #[error("cannot read {}: there is no such file{}", .0.display(), hint(.0))]
    Missing(PathBuf),
    /// The file may not be read.
    #[error("cannot read {}: permission denied; its owner can allow it with chmod", .0.display())]
    Permission(PathBuf),
    /// A directory.
    #[error("cannot read {}: it is a directory, not a perf.data file; name the file in it", .0.display())]
    Directory(PathBuf),
    /// Nothing in it.
    #[error("cannot read {}: it is empty; the recording did not begin, or the copy did not end", .0.display())]
    Empty(PathBuf),
    /// Anything else that the system said.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

fn hint(path: &Path) -> &'static str {
    if path == Path::new("perf.data") { " (nor out.data); name the file, or record one: rec -- COMMAND" } else { "" }
}

impl Input {
    /// Opens an input.
    ///
    /// # Errors
    /// It is not there, may not be read, is empty or is a directory.
    pub fn open(source: &Source) -> Result<Self, OpenError> {
        match source {
            Source::Stdin => Self::read(&mut io::stdin().lock(), Path::new("-")),
            Source::Path(path) => Self::open_path(path),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }

    fn open_path(path: &Path) -> Result<Self, OpenError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => OpenError::Missing(path.into()),
            io::ErrorKind::PermissionDenied => OpenError::Permission(path.into()),
            io::ErrorKind::IsADirectory => OpenError::Directory(path.into()),
            _ => OpenError::Io(path.into(), error),
        };
        let kind = fs::metadata(path).map_err(failed)?;
        if kind.is_dir() {
            return Err(OpenError::Directory(path.into()));
        }
        let mut file = File::open(path).map_err(failed)?;
        if !kind.is_file() {
            return Self::read(&mut file, path);
        }
        if kind.len() == 0 {
            return Err(OpenError::Empty(path.into()));
        }
        let map = map(&file).map_err(failed)?;
        Ok(Self { name: path.display().to_string(), bytes: Bytes::Mapped(map) })
    }

    fn read(from: &mut impl Read, path: &Path) -> Result<Self, OpenError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map_err(|e| OpenError::Io(path.into(), e))?;
        if bytes.is_empty() {
            return Err(OpenError::Empty(path.into()));
        }
        Ok(Self { name: path.display().to_string(), bytes: Bytes::Read(bytes) })
    }
}

#[allow(unsafe_code, reason = "a mapped file is the way to read hundreds of megabytes on all cores at once")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only and private to this process, and lives as long as the slice that is taken of it.
    // What Rust cannot rule out is that someone else changes or shortens the file meanwhile. All parsing is of
    // bytes, checked at each read and valid for every bit pattern, so changed bytes give a wrong answer, never undefined
    // behaviour by a broken invariant; a shortened file ends the process with SIGBUS, as it does perf.
    unsafe { Mmap::map(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Result<Input, OpenError> {
        Input::open(&Source::Path(path.into()))
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.data");
        assert!(matches!(open(&file), Err(OpenError::Missing(_))));
        assert!(matches!(open(dir.path()), Err(OpenError::Directory(_))));
        fs::write(&file, b"").unwrap();
        assert!(matches!(open(&file), Err(OpenError::Empty(_))));
        fs::write(&file, b"abc").unwrap();
        assert_eq!(open(&file).unwrap().bytes(), b"abc");
        assert!(matches!(open(Path::new("/dev/null")), Err(OpenError::Empty(_))));
    }
}
