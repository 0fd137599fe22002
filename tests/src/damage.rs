//! A perf.data file to be damaged.
//!
//! The offsets are read here by hand, from perf's documentation of the header, so that a test of
//! the parser does not rest on the parser: magic (8 bytes), header size (8), attr size (8), then
//! the sections of the attrs, of the data and of the event types, each an offset and a size (8 and
//! 8).

use std::ops::Range;
use std::path::{Path, PathBuf};

/// The header of a file in file mode, as far as perf has always written it.
pub const HEADER: usize = 104;

/// Place in the header of the length of the data section.
const DATA_SIZE: usize = 48;

/// A whole file, and a place for the damaged one.
#[derive(Debug)]
pub struct Patient {
    /// The file's bytes.
    pub bytes: Vec<u8>,
    copy: PathBuf,
}

impl Patient {
    /// Reads a file that this machine has written; damaged copies go beside it.
    #[track_caller]
    pub fn new(file: &Path) -> Patient {
        let bytes = std::fs::read(file).expect("the recording is there");
        assert!(bytes.starts_with(b"PERFILE2"), "a recording of this machine");
        Patient { bytes, copy: file.with_extension("damaged") }
    }

    fn word(&self, offset: usize) -> usize {
        let bytes = self.bytes[offset..offset + 8].try_into().expect("eight bytes");
        usize::try_from(u64::from_ne_bytes(bytes)).expect("an offset in this file")
    }

    /// The data section.
    pub fn data(&self) -> Range<usize> {
        let start = self.word(DATA_SIZE - 8);
        start..start + self.word(DATA_SIZE)
    }

    /// Returns the places where records start, by the size that each has in its header.
    pub fn records(&self) -> Vec<usize> {
        let data = self.data();
        let size =
            |at: usize| usize::from(u16::from_ne_bytes([self.bytes[at + 6], self.bytes[at + 7]]));
        let next = |&at: &usize| Some(at + size(at)).filter(|at| data.contains(at));
        std::iter::successors(Some(data.start), next).collect()
    }

    /// The first `length` bytes as a file.
    #[track_caller]
    pub fn cut(&self, length: usize) -> &Path {
        self.write(&self.bytes[..length])
    }

    /// The file with `patch` at `offset`.
    #[track_caller]
    pub fn patched(&self, offset: usize, patch: &[u8]) -> &Path {
        let mut bytes = self.bytes.clone();
        bytes[offset..offset + patch.len()].copy_from_slice(patch);
        self.write(&bytes)
    }

    /// The file as it stands when its recorder was killed: no size of the data section, nothing
    /// behind it.
    #[track_caller]
    pub fn killed(&self) -> &Path {
        let mut bytes = self.bytes[..self.data().end].to_vec();
        bytes[DATA_SIZE..DATA_SIZE + 8].fill(0);
        self.write(&bytes)
    }

    #[track_caller]
    fn write(&self, bytes: &[u8]) -> &Path {
        std::fs::write(&self.copy, bytes).expect("a copy can be written");
        &self.copy
    }
}
