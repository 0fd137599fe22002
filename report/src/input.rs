//! Opening what is to be read: a mapped file, or standard input in memory.
//!
//! What `perf record --threads` writes is a directory: `data`, a perf.data file, and `data.0`, `data.1`, …, each a stream
//! of records without a header. It is one input. Any other directory stands for the perf.data files in it.
//!
//! The one `unsafe` of this package is here: mapping a file. perf.data files are read in place, so that
//! memory does not grow with them and all cores can start at once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use recrep_format::read::Magic;

use crate::query::Source;

/// The bytes of an input and its name.
#[derive(Debug)]
pub struct Input {
    /// What the user called it.
    pub name: String,
    bytes: Bytes,
    streams: Vec<Stream>,
}

/// Records that lie beside a perf.data file, in a file of their own.
#[derive(Debug)]
pub struct Stream {
    /// The name of the file in its directory.
    pub name: String,
    bytes: Option<Bytes>,
}

impl Stream {
    /// The records.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], Bytes::get)
    }
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Read(Vec<u8>),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(bytes) => bytes,
        }
    }
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
    /// A directory that is not one recording.
    #[error("cannot read {}: it is a directory without a recording (`data`) in it; name a perf.data file", .0.display())]
    Directory(PathBuf),
    /// A directory in which there is nothing to read.
    #[error("cannot read {}: no file in this directory is a perf.data file", .0.display())]
    NothingIn(PathBuf),
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
    /// Opens everything that a source stands for: one input, or the perf.data files of a directory in the order of
    /// their names.
    ///
    /// # Errors
    /// It is not there, may not be read or is empty; in a directory there is no perf.data file.
    pub fn all(source: &Source) -> Result<Vec<Self>, OpenError> {
        match source {
            Source::Path(path) if path.is_dir() && !is_recording(path) => {
                let mut files = files_in(path)?;
                files.retain(|file| is_perf_data(file));
                if files.is_empty() {
                    return Err(OpenError::NothingIn(path.clone()));
                }
                files.iter().map(|file| Self::open_path(file)).collect()
            }
            source => Ok(vec![Self::open(source)?]),
        }
    }

    /// Opens one input.
    ///
    /// # Errors
    /// It is not there, may not be read, is empty or is a directory that is not one recording.
    pub fn open(source: &Source) -> Result<Self, OpenError> {
        match source {
            Source::Stdin => {
                let bytes = read(&mut io::stdin().lock(), Path::new("-"))?;
                Ok(Self { name: "-".into(), bytes, streams: Vec::new() })
            }
            Source::Path(path) => Self::open_path(path),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get()
    }

    /// How many bytes it has, with the streams beside it.
    #[must_use]
    pub fn len(&self) -> u64 {
        let streams = self.streams.iter().map(|stream| stream.bytes().len() as u64);
        self.bytes().len() as u64 + streams.sum::<u64>()
    }

    /// Never: an empty input is not opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The streams beside it, in the order of their numbers.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    fn open_path(path: &Path) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        if !path.is_dir() {
            return Ok(Self { name, bytes: open_file(path)?, streams: Vec::new() });
        }
        if !is_recording(path) {
            return Err(OpenError::Directory(path.into()));
        }
        let mut numbered: Vec<(u32, PathBuf)> =
            files_in(path)?.into_iter().filter_map(|file| Some((stream_number(&file)?, file))).collect();
        numbered.sort();
        let stream = |(_, file): (u32, PathBuf)| {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match open_file(&file) {
                Ok(bytes) => Ok(Stream { name, bytes: Some(bytes) }),
                // A thread that had nothing to write.
                Err(OpenError::Empty(_)) => Ok(Stream { name, bytes: None }),
                Err(error) => Err(error),
            }
        };
        let streams = numbered.into_iter().map(stream).collect::<Result<_, _>>()?;
        Ok(Self { name, bytes: open_file(&path.join(DATA))?, streams })
    }
}

/// The file of a directory that has the header.
const DATA: &str = "data";

fn failed(path: &Path) -> impl Fn(io::Error) -> OpenError {
    move |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::Missing(path.into()),
        io::ErrorKind::PermissionDenied => OpenError::Permission(path.into()),
        io::ErrorKind::IsADirectory => OpenError::Directory(path.into()),
        _ => OpenError::Io(path.into(), error),
    }
}

/// Whether a directory is one recording.
fn is_recording(dir: &Path) -> bool {
    is_perf_data(&dir.join(DATA))
}

/// Whether a file begins as perf.data files do.
fn is_perf_data(path: &Path) -> bool {
    let mut head = [0; 8];
    let regular = fs::metadata(path).is_ok_and(|kind| kind.is_file());
    regular && File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && Magic::read(&head).is_ok()
}

/// What `data.N` says of N.
fn stream_number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix(DATA)?.strip_prefix('.')?.parse().ok()
}

/// The files in a directory, in the order of their names.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let paths = fs::read_dir(dir).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut files: Vec<PathBuf> = paths.map_err(failed(dir))?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

fn open_file(path: &Path) -> Result<Bytes, OpenError> {
    let kind = fs::metadata(path).map_err(failed(path))?;
    let mut file = File::open(path).map_err(failed(path))?;
    if !kind.is_file() {
        return read(&mut file, path);
    }
    if kind.len() == 0 {
        return Err(OpenError::Empty(path.into()));
    }
    Ok(Bytes::Mapped(map(&file).map_err(failed(path))?))
}

fn read(from: &mut impl Read, path: &Path) -> Result<Bytes, OpenError> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(|e| OpenError::Io(path.into(), e))?;
    if bytes.is_empty() {
        return Err(OpenError::Empty(path.into()));
    }
    Ok(Bytes::Read(bytes))
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
