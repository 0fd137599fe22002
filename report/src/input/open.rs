//! Opening of inputs: a file is mapped, or copied if it is small; standard input is read into
//! memory.
//!
//! `perf record --threads` writes a directory: `data`, a perf.data file, and `data.0`, `data.1`, …,
//! each a stream of records without a header. Such a directory is one input. Any other directory
//! stands for the perf.data files in it.
//!
//! Large files are mapped (`input::map`), so that memory use does not grow with them and all cores
//! can start at once.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use recrep_format::error::{Error, ErrorKind};
use recrep_format::read::{self, Magic, Mode};

use crate::input::compressed::{Compression, UnpackError};
use crate::input::map::Bytes;
use crate::input::others;
use crate::input::pprof::{self, ProfileError};
use crate::pprof::is_profile;
use crate::query::Source;

/// An open input.
#[derive(Debug)]
pub struct Input {
    /// Name as the user gave it; `-` for standard input.
    pub name: String,
    bytes: Bytes,
    /// Time of the last modification before it was opened; `None` for a pipe.
    written: Option<SystemTime>,
    /// Reason for which not all of a compressed file was unpacked.
    torn: Option<String>,
    streams: Vec<Stream>,
    /// What a profile was, of which the bytes were made.
    profile: Option<ProfileInput>,
}

/// Facts about a profile of pprof.
#[derive(Clone, Copy, Debug)]
struct ProfileInput {
    bytes: u64,
    /// Number of samples of all events.
    samples: u64,
    /// `true` if inlined functions are frames unless the user asks otherwise.
    shows_inlined: bool,
}

/// Contents of a file.
#[derive(Debug, Default)]
struct Opened {
    bytes: Bytes,
    written: Option<SystemTime>,
    torn: Option<String>,
    profile: Option<ProfileInput>,
}

/// A stream of records in a file of its own, beside the `data` file of a directory.
#[derive(Debug)]
pub struct Stream {
    /// File name in the directory.
    pub name: String,
    /// Its records.
    pub(crate) bytes: Bytes,
}

/// An input that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot read {}: there is no such file{}", .0.display(), hint(.0))]
    Missing(PathBuf),
    #[error("cannot read {}: permission denied; its owner can allow it with chmod", .0.display())]
    Permission(PathBuf),
    #[error(
        "cannot read {}: it is a directory without a recording (`data`); name a perf.data file",
        .0.display()
    )]
    Directory(PathBuf),
    #[error(
        "cannot read {}: no file in this directory is a perf.data file or a pprof profile",
        .0.display()
    )]
    NothingIn(PathBuf),
    #[error(
        "cannot read {}: it is empty; the recording never started, or a copy was interrupted",
        shown(.0)
    )]
    Empty(PathBuf),
    #[error("cannot read {}: {}", shown(.0), .1)]
    Io(PathBuf, io::Error),
    /// Not a perf.data file, or its header or attrs cannot be parsed.
    #[error("cannot read {}: {}", shown(.0), .1)]
    Format(PathBuf, Error),
    /// A file of another known format.
    #[error("cannot read {}: not a perf.data file: {}", shown(.0), .1)]
    Other(PathBuf, &'static str),
    #[error(
        "cannot read {}: its header is all zeros: the recorder ended before it had written any, or \
         a copy failed",
        shown(.0)
    )]
    Zeroed(PathBuf),
    #[error("cannot read {}: {}", shown(.0), .1)]
    Packed(PathBuf, UnpackError),
    #[error("cannot read {}: it is {}", shown(.0), .1)]
    Profile(PathBuf, ProfileError),
    #[error(
        "{} is a pprof profile: it has sums of samples, and no other records; {} needs the \
         recording itself (perf.data)",
        shown(.0), .1
    )]
    Summed(PathBuf, &'static str),
    #[error("{}", .0.iter().map(Self::to_string).collect::<Vec<_>>().join("; "))]
    All(Vec<Self>),
}

/// A file that was truncated or rewritten while it was read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name}: another process changed it from byte {from} on while it was read")]
pub struct Changed {
    pub name: String,
    /// Offset of the first byte that may differ from the file that was opened.
    pub from: u64,
}

/// Returns the name of an input as messages have it.
fn shown(path: &Path) -> Cow<'_, str> {
    if path == Path::new(STDIN) { "standard input".into() } else { path.to_string_lossy() }
}

fn hint(path: &Path) -> &'static str {
    if path == Path::new("perf.data") {
        " (nor out.data); name the file, or record one: rec -- COMMAND"
    } else {
        ""
    }
}

impl Input {
    /// Returns the inputs that a source stands for: itself, or the perf.data files of a directory
    /// in name order. Files of the directory that cannot be opened are included, so that they are
    /// reported.
    pub fn sources(source: &Source) -> Result<Vec<Source>, OpenError> {
        match source {
            Source::Path(path) if path.is_dir() && !is_recording(path) => {
                let mut files = files_in(path)?;
                files.retain(|file| {
                    is_perf_or_profile(file)
                        .unwrap_or_else(|e| e.kind() != io::ErrorKind::UnexpectedEof)
                });
                if files.is_empty() {
                    return Err(OpenError::NothingIn(path.clone()));
                }
                Ok(files.into_iter().map(Source::Path).collect())
            }
            source => Ok(vec![source.clone()]),
        }
    }

    /// Returns the inputs that several sources stand for, in their order.
    pub(crate) fn all_sources(sources: &[Source]) -> Result<Vec<Source>, OpenError> {
        let each: Vec<Vec<Source>> = sources.iter().map(Self::sources).collect::<Result<_, _>>()?;
        Ok(each.concat())
    }

    /// Opens one input.
    pub fn open(source: &Source) -> Result<Self, OpenError> {
        let Source::Path(path) = source else {
            let opened = read_all(&mut io::stdin().lock(), Path::new(STDIN))?;
            return Ok(Self::of(STDIN.into(), opened, Vec::new()));
        };
        let name = path.display().to_string();
        if !path.is_dir() {
            return Ok(Self::of(name, open_file(path)?, Vec::new()));
        }
        if !is_recording(path) {
            return Err(OpenError::Directory(path.into()));
        }
        let files = files_in(path)?.into_iter();
        let mut numbered: Vec<(u32, PathBuf)> =
            files.filter_map(|file| Some((stream_number(&file)?, file))).collect();
        numbered.sort();
        let mut streams = Vec::new();
        for (_, file) in numbered {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let opened = match open_file(&file) {
                // The file of a thread that wrote nothing.
                Err(OpenError::Empty(_)) => Opened::default(),
                opened => opened?,
            };
            streams.push(Stream { name, bytes: opened.bytes });
        }
        Ok(Self::of(name, open_file(&path.join(DATA))?, streams))
    }

    fn of(name: String, opened: Opened, streams: Vec<Stream>) -> Self {
        let Opened { bytes, written, torn, profile } = opened;
        Self { name, bytes, written, torn, streams, profile }
    }

    /// Returns the number of samples of all events of a profile; `None` for a recording, which has
    /// each of them.
    pub fn profile_samples(&self) -> Option<u64> {
        self.profile.map(|profile| profile.samples)
    }

    /// Returns whether it is a profile whose inlined functions are frames unless the user asks
    /// otherwise.
    pub(crate) fn shows_inlined(&self) -> bool {
        self.profile.is_some_and(|profile| profile.shows_inlined)
    }

    /// Opens an input for `what` a profile has too little for: single samples, records, times.
    pub(crate) fn recording(source: &Source, what: &'static str) -> Result<Self, OpenError> {
        let input = Self::open(source)?;
        input.check_recording(what).map(|()| input)
    }

    /// Fails for a profile, which has too little for `what` is asked for.
    pub(crate) fn check_recording(&self, what: &'static str) -> Result<(), OpenError> {
        match self.profile {
            Some(_) => Err(OpenError::Summed(PathBuf::from(&self.name), what)),
            None => Ok(()),
        }
    }

    /// Returns whether all records are in one file, not in several of a directory.
    pub fn is_one_file(&self) -> bool {
        self.streams.is_empty()
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the time of the last modification before it was opened; `None` for a pipe.
    pub(crate) fn written(&self) -> Option<SystemTime> {
        self.written
    }

    /// Returns the reason for which not all of a compressed file was unpacked, if so.
    pub(crate) fn torn(&self) -> Option<&str> {
        self.torn.as_deref()
    }

    /// Returns what reading the input gave, or [`Changed`] if it changed meanwhile: then neither an
    /// answer nor an error counts.
    pub(crate) fn unless_changed<R>(&self, outcome: anyhow::Result<R>) -> anyhow::Result<R> {
        self.changed().map_or(outcome, |changed| Err(changed.into()))
    }

    /// Parses the file.
    pub(crate) fn parsed(&self) -> Result<read::File<'_>, OpenError> {
        let path = || PathBuf::from(&self.name);
        let file = read::File::parse(self.bytes()).map_err(|error| match error.kind {
            ErrorKind::Magic => others::describe(self.bytes()).map_or_else(
                || OpenError::Format(path(), error),
                |what| OpenError::Other(path(), what),
            ),
            _ => OpenError::Format(path(), error),
        })?;
        let header = &file.header;
        let is_nowhere =
            [header.attrs, header.data].iter().all(|part| (part.offset, part.size) == (0, 0));
        if file.mode == Mode::File && is_nowhere {
            Err(OpenError::Zeroed(path()))
        } else {
            Ok(file)
        }
    }

    fn changed(&self) -> Option<Changed> {
        if let Some(from) = self.bytes.lost() {
            return Some(Changed { name: self.name.clone(), from });
        }
        self.streams.iter().find_map(|Stream { name, bytes }| {
            Some(Changed { name: format!("{}/{name}", self.name), from: bytes.lost()? })
        })
    }

    /// Releases the memory of the bytes: few of them will be read again.
    pub fn release(&self) {
        for stream in &self.streams {
            stream.bytes.release();
        }
        self.bytes.release();
    }

    /// Returns the streams beside it, in the order of their numbers.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Returns the number of bytes, including the streams beside it.
    pub fn len(&self) -> u64 {
        if let Some(profile) = self.profile {
            return profile.bytes;
        }
        let streams = self.streams.iter().map(|stream| stream.bytes.len() as u64);
        self.bytes().len() as u64 + streams.sum::<u64>()
    }
}

/// Name of standard input.
const STDIN: &str = "-";

/// Name of the file with the header in a directory.
const DATA: &str = "data";

fn open_error(path: &Path) -> impl Fn(io::Error) -> OpenError {
    move |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::Missing(path.into()),
        io::ErrorKind::PermissionDenied => OpenError::Permission(path.into()),
        io::ErrorKind::IsADirectory => OpenError::Directory(path.into()),
        _ => OpenError::Io(path.into(), error),
    }
}

/// Returns whether a directory is a recording.
fn is_recording(dir: &Path) -> bool {
    let path = dir.join(DATA);
    path.is_file() && has_perf_magic(&path).unwrap_or(false)
}

fn has_perf_magic(path: &Path) -> io::Result<bool> {
    let mut head = [0; 8];
    File::open(path)?.read_exact(&mut head)?;
    Ok(Magic::read(&head).is_ok())
}

/// Returns whether a file is a recording, or a profile of pprof.
fn is_perf_or_profile(path: &Path) -> io::Result<bool> {
    const ENOUGH: u64 = 1 << 16;
    if has_perf_magic(path)? {
        return Ok(true);
    }
    let mut head = Vec::new();
    File::open(path)?.take(ENOUGH).read_to_end(&mut head)?;
    if Compression::of(&head) == Some(Compression::Gzip) {
        let mut unpacked = Vec::new();
        // What was cut is an error behind what is there.
        let _cut = flate2::read::GzDecoder::new(&head[..]).take(ENOUGH).read_to_end(&mut unpacked);
        head = unpacked;
    }
    Ok(is_profile(&head))
}

/// Returns N if the file name is `data.N`.
fn stream_number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix(DATA)?.strip_prefix('.')?.parse().ok()
}

/// Returns the files in a directory, in name order.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let paths =
        fs::read_dir(dir).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut files: Vec<PathBuf> = paths.map_err(open_error(dir))?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

fn open_file(path: &Path) -> Result<Opened, OpenError> {
    let kind = fs::metadata(path).map_err(open_error(path))?;
    let mut file = File::open(path).map_err(open_error(path))?;
    if !kind.is_file() {
        return read_all(&mut file, path);
    }
    if kind.len() == 0 {
        return Err(OpenError::Empty(path.into()));
    }
    let opened = unpacked(Bytes::of_file(file, true).map_err(open_error(path))?, path)?;
    let is_recording = opened.profile.is_none();
    Ok(Opened {
        written: opened.written.or(kind.modified().ok().filter(|_| is_recording)),
        ..opened
    })
}

fn read_all(from: &mut impl Read, path: &Path) -> Result<Opened, OpenError> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(|e| OpenError::Io(path.into(), e))?;
    if bytes.is_empty() {
        return Err(OpenError::Empty(path.into()));
    }
    unpacked(bytes.into(), path)
}

/// Returns the bytes, unpacked if they are compressed as a whole, and as a recording if they are a
/// profile.
fn unpacked(bytes: Bytes, path: &Path) -> Result<Opened, OpenError> {
    let Some(compression) = Compression::of(&bytes) else {
        let packed = bytes.len();
        return recording(Opened { bytes, ..Opened::default() }, packed, path);
    };
    let unpacked =
        compression.unpack(&bytes).map_err(|error| OpenError::Packed(path.into(), error))?;
    let opened = Opened { bytes: unpacked.bytes, torn: unpacked.torn, ..Opened::default() };
    recording(opened, bytes.len(), path)
}

/// Returns what was opened, as a recording if it is a profile, of which there were `packed` bytes.
fn recording(opened: Opened, packed: usize, path: &Path) -> Result<Opened, OpenError> {
    if Magic::read(&opened.bytes).is_ok() || !is_profile(&opened.bytes) {
        return Ok(opened);
    }
    let made = pprof::recording(&opened.bytes, packed)
        .map_err(|error| OpenError::Profile(path.into(), error))?;
    let bytes = opened.bytes.len() as u64;
    Ok(Opened {
        bytes: made.bytes.into(),
        written: made.written,
        torn: opened.torn.or(made.torn),
        profile: Some(ProfileInput {
            bytes,
            samples: made.samples,
            shows_inlined: made.shows_inlined,
        }),
    })
}
