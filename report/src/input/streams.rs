//! The streams of records of an input: its data section, and in a directory the files beside it.
//!
//! Each is unpacked by itself where it is compressed, since each has its own zstd stream. Places in them go on from one
//! to the next, so that places compare; what is told to the user names the file and the byte in it:
//!
//! ```text
//!   data     data.0        data.1             files
//!   ├────────┼─────────────┼──────────┤       places
//! ```

use recrep_format::endian::Endian;
use recrep_format::read::{File, Frames};

use recrep_format::abi::RecordType;

use crate::input::Input;
use crate::input::split::Split;
use crate::input::unpack;
use crate::input::unpack::Unpacked;
use crate::query::warning::Warning;

/// All streams of an input.
#[derive(Debug)]
pub struct Streams<'f> {
    all: Vec<Stream<'f>>,
}

#[derive(Debug)]
struct Stream<'f> {
    /// The file that it is in; `None` for the data section of the one that was named.
    file: Option<&'f str>,
    /// The place of its first byte.
    begin: u64,
    /// The byte of the file at that place.
    offset: u64,
    packed: &'f [u8],
    unpacked: Option<Unpacked>,
}

impl<'f> Streams<'f> {
    /// The streams of `input`, whose parts `file` has.
    #[must_use]
    pub fn of(input: &'f Input, file: &File<'f>) -> Self {
        let mut streams = Self { all: Vec::new() };
        streams.add(file, None, file.data_bytes(), file.data.offset, file.data.offset);
        for stream in input.streams() {
            let begin = streams.all.last().map_or(0, |last| last.begin + last.bytes().len() as u64);
            streams.add(file, Some(&stream.name), stream.bytes(), begin, 0);
        }
        streams
    }

    fn add(&mut self, parts: &File<'_>, file: Option<&'f str>, packed: &'f [u8], begin: u64, offset: u64) {
        let frames = || Frames::new(packed, offset, parts.endian);
        let unpacked = unpack::is_compressed(frames()).then(|| unpack::unpack(frames(), &parts.attrs));
        // Of unpacked records the place in the unpacked stream is told.
        let (begin, offset) = match (&unpacked, file) {
            (Some(_), None) => (0, 0),
            _ => (begin, offset),
        };
        self.all.push(Stream { file, begin, offset, packed, unpacked });
    }

    /// All records, cut into pieces.
    #[must_use]
    pub fn split(&self, endian: Endian) -> Split<'_> {
        let mut split = Split::default();
        for stream in &self.all {
            split.walk(stream.bytes(), stream.begin, endian);
            let containers = stream.unpacked.as_ref().map_or(0, |unpacked| unpacked.containers);
            if containers > 0 {
                *split.counts.entry(RecordType::COMPRESSED).or_default() += containers;
            }
        }
        split
    }

    /// Whether records were unpacked: then their places are not those of the bytes in the file.
    #[must_use]
    pub fn are_compressed(&self) -> bool {
        self.all.iter().any(|stream| stream.unpacked.is_some())
    }

    /// Why streams could not be unpacked whole.
    pub fn unpacking(&self) -> impl Iterator<Item = Warning> {
        self.all.iter().filter_map(|stream| {
            let error = stream.unpacked.as_ref()?.damage.as_ref()?;
            Some(in_file(stream.file, Warning::from(error)))
        })
    }

    /// A warning whose offset is a place, as one with a byte of a file.
    #[must_use]
    pub fn located(&self, warning: Warning) -> Warning {
        let Some(place) = warning.offset else { return warning };
        match self.all.iter().rev().find(|stream| stream.begin <= place) {
            Some(stream) => {
                let offset = Some(place - stream.begin + stream.offset);
                in_file(stream.file, Warning { offset, ..warning })
            }
            None => warning,
        }
    }
}

fn in_file(file: Option<&str>, warning: Warning) -> Warning {
    match file {
        Some(file) => Warning { message: format!("{file}: {}", warning.message), ..warning },
        None => warning,
    }
}

impl Stream<'_> {
    fn bytes(&self) -> &[u8] {
        self.unpacked.as_ref().map_or(self.packed, |unpacked| &unpacked.bytes)
    }
}
