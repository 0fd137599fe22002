//! The bytes of a file that may hold symbols.
//!
//! Parts are read as they are needed, and only those: a library of 200 MB has symbols of 30. A mapping would do, but a
//! file that is overwritten while we look at it (the program is being rebuilt) would end us with a signal; a read
//! only fails.
//!
//! A recorded path is input from elsewhere: it may name a pipe that blocks when opened or a device that acts on it.
//! Only regular files are opened.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::SystemTime;

use super::origin::FileId;
use super::outcome::Refusal;

/// A file, or bytes that stand for one.
#[derive(Debug)]
pub(super) enum Contents {
    File { file: File, len: u64 },
    Memory(Vec<u8>),
}

impl Contents {
    /// Opens the regular file at `path`.
    pub(super) fn open(path: &Path) -> Result<Self, Refusal> {
        let file = open_regular(path)?;
        let len = file.metadata()?.len();
        Ok(Self::File { file, len })
    }

    /// Checks that this is the recorded file and has not been written to since the recording.
    pub(super) fn is_recorded(&self, file: Option<FileId>, written: Option<SystemTime>) -> Result<(), Refusal> {
        let (Self::File { file: found, .. }, Some(recorded)) = (self, file) else { return Err(Refusal::NoInode) };
        let found = found.metadata()?;
        let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
        if (FileId { major, minor, inode: found.ino() }) != recorded {
            return Err(Refusal::OtherInode);
        }
        // Inodes are used again: a file that was made anew may have the number of the one that it replaced.
        match (found.modified(), written) {
            (Ok(modified), Some(written)) if modified > written => Err(Refusal::Changed),
            _ => Ok(()),
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// The CRC-32 of all of it.
    pub(super) fn crc(&self) -> Result<u32, Refusal> {
        const PIECE: u64 = 1 << 20;
        let mut hasher = crc32fast::Hasher::new();
        let mut at = 0;
        while at < self.len() {
            let size = PIECE.min(self.len() - at);
            hasher.update(&self.read(at, size)?);
            at += size;
        }
        Ok(hasher.finalize())
    }

    /// The `size` bytes at `offset`. Memory is asked for only after the file turns out to be that long.
    pub(super) fn read(&self, offset: u64, size: u64) -> Result<Vec<u8>, Refusal> {
        let beyond = || Refusal::Malformed(format!("it has no {size} bytes at offset {offset:#x}"));
        if offset.checked_add(size).is_none_or(|end| end > self.len()) {
            return Err(beyond());
        }
        let size = usize::try_from(size).map_err(|_| beyond())?;
        match self {
            Self::File { file, .. } => {
                let mut bytes = vec![0; size];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
            Self::Memory(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
                Ok(rest.and_then(|rest| rest.get(..size)).ok_or_else(beyond)?.to_vec())
            }
        }
    }
}

/// All of the regular file at `path`, also of those whose size is not known (below `/proc`).
pub(super) fn read_all(path: &Path) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open_regular(path: &Path) -> Result<File, Refusal> {
    if !fs::metadata(path)?.is_file() {
        return Err(Refusal::NotRegular);
    }
    Ok(File::open(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        assert!(matches!(read_all(Path::new("/dev/null")), Err(Refusal::NotRegular)));
        assert!(matches!(Contents::open(Path::new("/")), Err(Refusal::NotRegular)));
        assert!(matches!(Contents::open(Path::new("/no/such/file")), Err(Refusal::Missing)));
        assert!(!read_all(Path::new("/proc/self/status")).unwrap().is_empty());
    }

    #[test]
    fn a_file_is_known_by_device_inode_and_when_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, b"abcdef").unwrap();
        let about = fs::metadata(&path).unwrap();
        let (major, minor) = (rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()));
        let id = FileId { major, minor, inode: about.ino() };
        let (contents, modified) = (Contents::open(&path).unwrap(), about.modified().unwrap());
        assert!(contents.is_recorded(Some(id), Some(modified)).is_ok() && contents.is_recorded(Some(id), None).is_ok());
        let before = modified - std::time::Duration::from_secs(1);
        assert!(matches!(contents.is_recorded(Some(id), Some(before)), Err(Refusal::Changed)));
        for other in [FileId { major: major + 1, ..id }, FileId { minor: minor + 1, ..id }, FileId { inode: 1, ..id }] {
            assert!(matches!(contents.is_recorded(Some(other), None), Err(Refusal::OtherInode)));
        }
        assert!(matches!(contents.is_recorded(None, None), Err(Refusal::NoInode)));
        assert!(matches!(Contents::Memory(Vec::new()).is_recorded(Some(id), None), Err(Refusal::NoInode)));
    }

    #[test]
    fn what_is_not_there_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, b"abcdef").unwrap();
        for contents in [Contents::open(&path).unwrap(), Contents::Memory(b"abcdef".to_vec())] {
            assert_eq!(contents.read(2, 3).unwrap(), b"cde");
            assert_eq!(contents.read(6, 0).unwrap(), b"");
            assert!(matches!(contents.read(2, 5), Err(Refusal::Malformed(_))));
            assert!(matches!(contents.read(u64::MAX, 2), Err(Refusal::Malformed(_))));
        }
    }
}
