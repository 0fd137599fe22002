//! Contents of a file that may have symbols.
//!
//! Only the parts that are needed are read: a library of 200 MB may have 30 MB of symbols. Large parts, tables of
//! names above all, are mapped, since few names are shown: of 37 MB a histogram reads 3. If the file is changed while
//! it is mapped (the program is being rebuilt), `Bytes::lost` tells, and the answer is made again.
//!
//! A recorded path is untrusted: it may name a pipe that blocks when opened or a device on which opening has effects.
//! So only regular files are opened.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use super::bytes::Bytes;
use super::origin::FileId;
use super::outcome::Refusal;
use crate::input::map::Mapped;

/// Size of the parts that are mapped, in bytes: smaller ones are copied in less time.
const LARGE: u64 = 128 << 10;

/// Contents of a file, on disk or in memory.
#[derive(Debug)]
pub(super) enum Contents {
    File { file: File, len: u64, map: OnceLock<Option<Arc<Mapped>>> },
    Memory(Vec<u8>),
}

impl Contents {
    /// Opens the regular file at `path`.
    pub(super) fn open(path: &Path) -> Result<Self, Refusal> {
        let file = open_regular(path)?;
        let len = file.metadata()?.len();
        Ok(Self::File { file, len, map: OnceLock::new() })
    }

    /// Checks that this is the recorded file and was not modified after `written`, the end of the recording.
    pub(super) fn check_recorded(&self, file: Option<FileId>, written: Option<SystemTime>) -> Result<(), Refusal> {
        let (Self::File { file: found, .. }, Some(recorded)) = (self, file) else { return Err(Refusal::NoInode) };
        let found = found.metadata()?;
        let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
        if (FileId { major, minor, inode: found.ino() }) != recorded {
            return Err(Refusal::OtherInode);
        }
        // Inode numbers are reused: a new file may have the number of the one that it replaced.
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

    /// Computes the CRC-32 of the whole file.
    pub(super) fn crc(&self) -> Result<u32, Refusal> {
        const CHUNK: usize = 1 << 20;
        let mut hasher = crc32fast::Hasher::new();
        for at in (0..self.len()).step_by(CHUNK) {
            hasher.update(&self.read(at, (self.len() - at).min(CHUNK as u64))?);
        }
        Ok(hasher.finalize())
    }

    /// Returns `size` bytes at `offset`, mapped if they are many.
    pub(super) fn view(&self, offset: u64, size: u64) -> Result<Bytes, Refusal> {
        let map = match self {
            Self::File { file, map, .. } if size >= LARGE => {
                let new = || Mapped::new(file.try_clone().ok()?).ok().map(Arc::new);
                map.get_or_init(new).as_ref()
            }
            _ => None,
        };
        let range = offset.checked_add(size).and_then(|end| Some(offset.try_into().ok()?..end.try_into().ok()?));
        match map.zip(range).filter(|(map, range)| map.bytes().get(range.clone()).is_some()) {
            Some((map, range)) => Ok(Bytes::Mapped(map.clone(), range)),
            None => Ok(self.read(offset, size)?.into()),
        }
    }

    /// Reads `size` bytes at `offset`. Allocates only after checking that the file is that long.
    pub(super) fn read(&self, offset: u64, size: u64) -> Result<Vec<u8>, Refusal> {
        let beyond = || Refusal::Malformed(format!("{size} bytes at offset {offset:#x} are beyond its end"));
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

/// Reads the whole regular file at `path`, also one without a known size (below `/proc`).
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
    fn device_inode_and_modification_time_identify_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, b"abcdef").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        let id = FileId { major, minor, inode: metadata.ino() };
        let (contents, modified) = (Contents::open(&path).unwrap(), metadata.modified().unwrap());
        assert!(
            contents.check_recorded(Some(id), Some(modified)).is_ok()
                && contents.check_recorded(Some(id), None).is_ok()
        );
        let before = modified - std::time::Duration::from_secs(1);
        assert!(matches!(contents.check_recorded(Some(id), Some(before)), Err(Refusal::Changed)));
        for other in [FileId { major: major + 1, ..id }, FileId { minor: minor + 1, ..id }, FileId { inode: 1, ..id }] {
            assert!(matches!(contents.check_recorded(Some(other), None), Err(Refusal::OtherInode)));
        }
        assert!(matches!(contents.check_recorded(None, None), Err(Refusal::NoInode)));
        assert!(matches!(Contents::Memory(Vec::new()).check_recorded(Some(id), None), Err(Refusal::NoInode)));
    }

    #[test]
    fn large_parts_are_mapped_and_changes_of_the_file_are_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, vec![7; 3 << 17]).unwrap();
        let contents = Contents::open(&path).unwrap();
        let (copied, mapped) = (contents.view(1, LARGE - 1).unwrap(), contents.view(1, LARGE).unwrap());
        assert!(matches!((&copied, &mapped), (Bytes::Copied(_), Bytes::Mapped(..))));
        assert_eq!((copied.len() + 1, mapped.len(), mapped[5], mapped.lost()), (mapped.len(), 1 << 17, 7, None));
        assert!(matches!(contents.view((3 << 17) - LARGE + 1, LARGE), Err(Refusal::Malformed(_))));
        File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        assert_eq!((copied.lost(), mapped.lost()), (None, Some(100)));
        assert_eq!((copied[4096], mapped[4096]), (7, 0));
    }

    #[test]
    fn reads_beyond_the_end_fail() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, b"abcdef").unwrap();
        for contents in [Contents::open(&path).unwrap(), Contents::Memory(b"abcdef".to_vec())] {
            assert_eq!(contents.read(2, 3).unwrap(), b"cde");
            assert_eq!(contents.read(6, 0).unwrap(), b"");
            assert_eq!(*contents.view(1, 2).unwrap(), *b"bc");
            assert!(matches!(contents.read(2, 5), Err(Refusal::Malformed(_))));
            assert!(matches!(contents.read(u64::MAX, 2), Err(Refusal::Malformed(_))));
        }
    }
}
