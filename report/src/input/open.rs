//! Opening what is to be read: a mapped file, or standard input in memory.
//!
//! What `perf record --threads` writes is a directory: `data`, a perf.data file, and `data.0`, `data.1`, …, each a stream
//! of records without a header. It is one input. Any other directory stands for the perf.data files in it.
//!
//! perf.data files are read in place (`input_map`), so that
//! memory does not grow with them and all cores can start at once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use recrep_format::error::Error;
use recrep_format::read::{self, Magic};

use crate::input::map::Mapped;
use crate::query::Source;

/// The bytes of an input and its name.
#[derive(Debug)]
pub struct Input {
    /// What the user called it.
    pub name: String,
    bytes: Bytes,
    streams: Vec<Stream>,
    written: Option<SystemTime>,
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
    Mapped(Mapped),
    Read(Vec<u8>),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map.bytes(),
            Self::Read(bytes) => bytes,
        }
    }

    fn lost(&self) -> Option<u64> {
        match self {
            Self::Mapped(map) => map.lost(),
            Self::Read(_) => None,
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
    /// Not a perf.data file, or one whose header or attrs cannot be read.
    #[error("cannot read {0}: {1}")]
    Format(String, Error),
    /// None of several inputs can be read.
    #[error("{}", .0.iter().map(Self::to_string).collect::<Vec<_>>().join("; "))]
    All(Vec<Self>),
}

/// An input that was cut short or rewritten while it was read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name}: another process changed it from byte {from} on while it was read")]
pub struct Changed {
    name: String,
    /// The first byte that may not be what was there at first.
    from: u64,
}

fn hint(path: &Path) -> &'static str {
    if path == Path::new("perf.data") { " (nor out.data); name the file, or record one: rec -- COMMAND" } else { "" }
}

impl Input {
    /// Returns the inputs that a source stands for: itself, or the perf.data files of a directory in the order of their
    /// names, with those that cannot be opened.
    ///
    /// # Errors
    /// In a directory there is no perf.data file, or it cannot be read.
    pub fn sources(source: &Source) -> Result<Vec<Source>, OpenError> {
        match source {
            Source::Path(path) if path.is_dir() && !is_recording(path) => {
                let mut files = files_in(path)?;
                files.retain(|file| {
                    begins_as_perf_data(file).unwrap_or_else(|e| e.kind() != io::ErrorKind::UnexpectedEof)
                });
                if files.is_empty() {
                    return Err(OpenError::NothingIn(path.clone()));
                }
                Ok(files.into_iter().map(Source::Path).collect())
            }
            source => Ok(vec![source.clone()]),
        }
    }

    /// Opens one input.
    ///
    /// # Errors
    /// It is not there, may not be read, is empty or is a directory that is not one recording.
    pub fn open(source: &Source) -> Result<Self, OpenError> {
        match source {
            Source::Stdin => {
                let bytes = read_all(&mut io::stdin().lock(), Path::new("-"))?;
                Ok(Self { name: "-".into(), bytes, streams: Vec::new(), written: None })
            }
            Source::Path(path) => Self::open_path(path),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get()
    }

    /// Acts on the parts of the file.
    ///
    /// # Errors
    /// It is not a perf.data file ([`OpenError::Format`]); what `act` returns; [`Changed`] if the file is not what was
    /// acted on any more.
    pub fn read<R>(&self, act: impl FnOnce(&read::File<'_>) -> anyhow::Result<R>) -> anyhow::Result<R> {
        let file = read::File::parse(self.bytes()).map_err(|error| OpenError::Format(self.name.clone(), error).into());
        let outcome = file.and_then(|file| act(&file));
        self.changed().map_or(outcome, |changed| Err(changed.into()))
    }

    fn changed(&self) -> Option<Changed> {
        let beside = |stream: &Stream| Some((format!("{}/{}", self.name, stream.name), stream.bytes.as_ref()?.lost()?));
        let own = self.bytes.lost().map(|from| (self.name.clone(), from));
        let (name, from) = own.or_else(|| self.streams.iter().find_map(beside))?;
        Some(Changed { name, from })
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

    /// The time at which it was last written; `None` for a pipe.
    #[must_use]
    pub fn written(&self) -> Option<SystemTime> {
        self.written
    }

    /// The streams beside it, in the order of their numbers.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    fn open_path(path: &Path) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        if !path.is_dir() {
            return Ok(Self { name, bytes: open_file(path)?, streams: Vec::new(), written: written(path) });
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
        let data = path.join(DATA);
        Ok(Self { name, bytes: open_file(&data)?, streams, written: written(&data) })
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
    path.is_file() && begins_as_perf_data(path).unwrap_or(false)
}

fn begins_as_perf_data(path: &Path) -> io::Result<bool> {
    let mut head = [0; 8];
    File::open(path)?.read_exact(&mut head)?;
    Ok(Magic::read(&head).is_ok())
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

/// The time at which a regular file was last written.
fn written(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?.modified().ok()
}

fn open_file(path: &Path) -> Result<Bytes, OpenError> {
    let kind = fs::metadata(path).map_err(failed(path))?;
    let mut file = File::open(path).map_err(failed(path))?;
    if !kind.is_file() {
        return read_all(&mut file, path);
    }
    if kind.len() == 0 {
        return Err(OpenError::Empty(path.into()));
    }
    Ok(Bytes::Mapped(Mapped::new(file).map_err(failed(path))?))
}

fn read_all(from: &mut impl Read, path: &Path) -> Result<Bytes, OpenError> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(|e| OpenError::Io(path.into(), e))?;
    if bytes.is_empty() {
        return Err(OpenError::Empty(path.into()));
    }
    Ok(Bytes::Read(bytes))
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
