//! Files that may have symbols.
//!
//! They are mapped, so only the parts that are needed are read: a library of 200 MB may have 30 MB
//! of symbols. Large tables of names stay mapped, since few names are shown: of 37 MB a histogram
//! reads 3. If the file is changed while it is mapped (the program is being rebuilt), `Bytes::lost`
//! shows it, and the answer is computed again.
//!
//! A recorded path is untrusted: it may name a pipe that blocks when opened or a device on which
//! opening has effects. So only regular files are opened.

mod refusal;

use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use crate::input::map::Bytes;
pub(crate) use refusal::Refusal;

/// Size of the parts that stay mapped, in bytes: smaller ones are copied in less time.
const LARGE: u64 = 128 << 10;

/// Returns the bytes of a file: mapped, or read if that fails.
pub(crate) fn bytes_of(mut file: File) -> Result<Bytes, Refusal> {
    file.try_clone().and_then(|file| Bytes::of_file(file, false)).or_else(|_| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes.into())
    })
}

/// Reads the whole regular file at `path`, also one without a known size (below `/proc`).
pub(crate) fn read_all(path: &Path) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens the regular file at `path`.
pub(crate) fn open(path: &Path) -> Result<File, Refusal> {
    if !fs::metadata(path)?.is_file() {
        return Err(Refusal::NotRegular);
    }
    Ok(File::open(path)?)
}

/// Returns `size` bytes at `offset` of a file.
pub(crate) fn part(file: &[u8], offset: u64, size: u64) -> Result<&[u8], Refusal> {
    let part = range(offset, size).and_then(|range| file.get(range));
    part.ok_or_else(|| {
        Refusal::Malformed(format!("{size} bytes at offset {offset:#x} are beyond its end"))
    })
}

/// Returns `size` bytes at `offset` of a whole file to keep: a copy if they are few, unless the
/// file was changed, which only mapped bytes tell later.
pub(crate) fn kept(file: &Bytes, offset: u64, size: u64) -> Result<Bytes, Refusal> {
    let part = part(file, offset, size)?;
    match (file, range(offset, size)) {
        (Bytes::OfFile(file, _), Some(range)) if size >= LARGE || file.lost().is_some() => {
            Ok(Bytes::OfFile(file.clone(), range))
        }
        _ => Ok(part.to_vec().into()),
    }
}

fn range(offset: u64, size: u64) -> Option<Range<usize>> {
    Some(offset.try_into().ok()?..offset.checked_add(size)?.try_into().ok()?)
}

/// Returns the hexadecimal number at the start of a line, and the text after the space that follows
/// it.
pub(crate) fn hexadecimal(line: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = line.split_at_checked(memchr::memchr(b' ', line)?)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    Some((u64::from_str_radix(digits, 16).ok()?, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        assert!(matches!(read_all(Path::new("/dev/null")), Err(Refusal::NotRegular)));
        assert!(matches!(open(Path::new("/")), Err(Refusal::NotRegular)));
        assert!(matches!(open(Path::new("/no/such/file")), Err(Refusal::Missing)));
        assert!(!read_all(Path::new("/proc/self/status")).unwrap().is_empty());
    }

    #[test]
    fn large_parts_stay_mapped_and_changes_of_the_file_are_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, vec![7; 3 << 17]).unwrap();
        let file = bytes_of(open(&path).unwrap()).unwrap();
        let (copied, mapped) = (kept(&file, 1, LARGE - 1).unwrap(), kept(&file, 1, LARGE).unwrap());
        assert!(matches!((&copied, &mapped), (Bytes::Copied(_), Bytes::OfFile(..))));
        assert_eq!(
            (copied.len() + 1, mapped.len(), mapped[5], mapped.lost()),
            (mapped.len(), 1 << 17, 7, None)
        );
        assert!(matches!(kept(&file, (3 << 17) - LARGE + 1, LARGE), Err(Refusal::Malformed(_))));
        File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        assert_eq!((copied.lost(), mapped.lost()), (None, Some(100)));
        assert_eq!((copied[4096], mapped[4096]), (7, 0));
        assert_eq!(kept(&file, 1, 2).unwrap().lost(), Some(100));
    }

    #[test]
    fn reads_beyond_the_end_fail() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, b"abcdef").unwrap();
        for file in [bytes_of(open(&path).unwrap()).unwrap(), b"abcdef".to_vec().into()] {
            assert_eq!(part(&file, 2, 3).unwrap(), b"cde");
            assert_eq!(part(&file, 6, 0).unwrap(), b"");
            assert_eq!(*kept(&file, 1, 2).unwrap(), *b"bc");
            assert!(matches!(part(&file, 2, 5), Err(Refusal::Malformed(_))));
            assert!(matches!(part(&file, u64::MAX, 2), Err(Refusal::Malformed(_))));
        }
    }
}
