//! The bytes of a file that may hold symbols.
//!
//! A recorded path is input from elsewhere: it may name a pipe that blocks when opened or a device that acts on it.
//! Only regular files are opened.

use std::fs;
use std::ops::Deref;
use std::path::Path;

use super::Refusal;

/// A file's bytes, read whole.
#[derive(Debug)]
pub(super) struct FileBytes(Vec<u8>);

impl FileBytes {
    /// Reads the regular file at `path`.
    pub(super) fn open(path: &Path) -> Result<Self, Refusal> {
        if !fs::metadata(path)?.is_file() {
            return Err(Refusal::NotRegular);
        }
        Ok(Self(fs::read(path)?))
    }

    /// Bytes that are no file's.
    pub(super) fn from_vec(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(super) fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        assert!(matches!(FileBytes::open(Path::new("/dev/null")), Err(Refusal::NotRegular)));
        assert!(matches!(FileBytes::open(Path::new("/")), Err(Refusal::NotRegular)));
        assert!(matches!(FileBytes::open(Path::new("/no/such/file")), Err(Refusal::Missing)));
        assert!(!FileBytes::open(Path::new("/proc/self/status")).unwrap().is_empty());
    }
}
