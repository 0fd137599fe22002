//! The file: made safely, appended to by vectored writes straight out of the rings, completed at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{IoSlice, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use recrep_format::attrs::AttrEntry;
use recrep_format::endian::Endian;
use recrep_format::write::{FeatureWriter, FileWriter};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// A perf.data file in the making.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// Where the file that was there before went.
    old: Option<PathBuf>,
    /// Whether the file is ours to remove again.
    created: bool,
    writer: FileWriter<File>,
}

impl Output {
    /// Makes the file, its header for a recording that was killed: all records up to the end of the file.
    ///
    /// A file that is there becomes `PATH.old`. The new one is always created, never followed to through a
    /// link, and for its owner's eyes only (0600). A device is written to as it is; what is neither is left alone.
    ///
    /// # Errors
    /// What cannot be created, renamed or written.
    pub fn create(path: &Path, attrs: &[AttrEntry]) -> Result<Self> {
        let there = There::at(path)?;
        let device = there == There::Device;
        let old = if there == There::File { Some(keep_old(path)?) } else { None };
        let mut options = OpenOptions::new();
        options.write(true).create_new(!device).mode(0o600);
        let file = options.open(path).map_err(|e| {
            restore(path, old.as_deref());
            Error::io(format!("cannot create '{}' (-o names another file)", path.display()), e)
        })?;
        let writer = FileWriter::new(file, Endian::NATIVE, attrs).map_err(|e| failed(path, e))?;
        Ok(Self { path: path.to_owned(), old, created: !device, writer })
    }

    /// Appends records.
    ///
    /// # Errors
    /// What writing gives.
    pub fn write(&mut self, records: &[u8]) -> Result<()> {
        self.writer.write(records).map_err(|e| failed(&self.path, e))
    }

    /// Appends the parts, one after the other, in as few system calls as the kernel needs.
    ///
    /// # Errors
    /// What writing gives.
    pub fn write_parts(&mut self, mut parts: &mut [IoSlice<'_>]) -> Result<u64> {
        let total: u64 = parts.iter().map(|p| p.len() as u64).sum();
        let mut left = total;
        while left > 0 {
            match rustix::io::writev(self.writer.get_mut().as_fd(), parts) {
                Ok(0) => return Err(failed(&self.path, std::io::ErrorKind::WriteZero.into())),
                Ok(written) => {
                    IoSlice::advance_slices(&mut parts, written);
                    left -= written as u64;
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(failed(&self.path, e.into())),
            }
        }
        self.writer.wrote(total);
        Ok(total)
    }

    /// Completes the file: features, and the header that knows where all is. Gives the file's length.
    ///
    /// # Errors
    /// What writing gives.
    pub fn finish(self, features: &FeatureWriter) -> Result<u64> {
        let path = self.path;
        let (mut file, header) = self.writer.finish(features).map_err(|e| failed(&path, e))?;
        file.write_all_at(&header, 0).and_then(|()| file.flush()).map_err(|e| failed(&path, e))?;
        let length = file.metadata().map_err(|e| failed(&path, e))?.len();
        Ok(length)
    }

    /// Undoes the making: the file goes, the one that was there before comes back.
    pub fn undo(self) {
        if self.created {
            // What cannot be removed stays, and is a valid file.
            let _ = fs::remove_file(&self.path);
            restore(&self.path, self.old.as_deref());
        }
    }
}

/// What is where the file is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum There {
    Nothing,
    /// A device, or a link to one: written to, not replaced.
    Device,
    /// A file, or a link to one or to nothing: renamed.
    File,
}

impl There {
    /// Looks. What a perf.data file can neither be written to nor put in the place of is an error.
    fn at(path: &Path) -> Result<Self> {
        let Ok(itself) = fs::symlink_metadata(path) else { return Ok(Self::Nothing) };
        // Judged by what a link leads to: /dev/stdout is a pipe or a terminal, and nothing to rename.
        let end = fs::metadata(path).unwrap_or_else(|_| itself.clone()).file_type();
        let what = if end.is_fifo() || end.is_socket() {
            "a pipe or a socket, and a perf.data file is written in more than one place"
        } else if end.is_dir() {
            "a directory"
        } else if end.is_char_device() || end.is_block_device() {
            return Ok(Self::Device);
        } else if itself.is_symlink() && is_system_s(path) {
            "a link of the system's"
        } else {
            return Ok(Self::File);
        };
        let shown = path.display();
        Err(Error::Failed(format!("cannot write to '{shown}': it is {what}; name a regular file with -o")))
    }
}

/// Whether the directory of a link is the kernel's or the devices': what is there serves everyone.
fn is_system_s(link: &Path) -> bool {
    let parent = link.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(parent).is_ok_and(|dir| dir == Path::new("/dev") || dir.starts_with("/proc"))
}

/// Renames what is there to `PATH.old`, over what was called so.
fn keep_old(path: &Path) -> Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    let old = PathBuf::from(name);
    fs::rename(path, &old).map_err(|e| {
        Error::io(format!("cannot rename '{}' to '{}' (-o names another file)", path.display(), old.display()), e)
    })?;
    Ok(old)
}

fn restore(path: &Path, old: Option<&Path>) {
    if let Some(old) = old {
        // If it cannot go back it is still there under its other name.
        let _ = fs::rename(old, path);
    }
}

fn failed(path: &Path, why: std::io::Error) -> Error {
    let tried = format!("cannot write '{}'; what is in it up to there can be read", path.display());
    Error::io(tried, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recrep_format::read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn attrs() -> Vec<AttrEntry> {
        let attr = recrep_format::attr::Attr { size: 128, ..Default::default() };
        vec![AttrEntry { attr, ids: vec![1], name: None }]
    }

    fn round() -> Vec<u8> {
        crate::ring::fake::fake_record(68, &[])
    }

    #[test]
    fn parts_arrive_in_order_and_the_file_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.data");
        let mut output = Output::create(&path, &attrs()).unwrap();
        output.write(&round()).unwrap();
        let (a, b) = (round(), round());
        let parts = &mut [IoSlice::new(&a[..3]), IoSlice::new(&a[3..]), IoSlice::new(&[]), IoSlice::new(&b)];
        assert_eq!(output.write_parts(parts).unwrap(), 16);
        let length = output.finish(&FeatureWriter::new(Endian::NATIVE)).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, length);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let file = read::File::parse(&bytes).unwrap();
        assert_eq!(file.warnings, []);
        assert_eq!(file.records().map(Result::unwrap).count(), 3);
    }

    #[test]
    fn a_file_that_is_there_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("x"), dir.path().join("x.old"));
        fs::write(&path, "before").unwrap();
        let output = Output::create(&path, &attrs()).unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "before");
        output.undo();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert!(!old.exists());
    }

    #[test]
    fn a_link_is_moved_away_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, victim) = (dir.path().join("x"), dir.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        Output::create(&path, &attrs()).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn what_is_no_file_is_left_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let link = |to: &str, name: &str| {
            let path = dir.path().join(name);
            std::os::unix::fs::symlink(to, &path).unwrap();
            path
        };
        let refused = |path: &Path| {
            let before = fs::symlink_metadata(path).unwrap().ino();
            let message = Output::create(path, &attrs()).unwrap_err().to_string();
            assert_eq!(fs::symlink_metadata(path).unwrap().ino(), before, "{message}");
            message
        };
        let (_read, write) = std::io::pipe().unwrap();
        let pipe = link(&format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&write)), "pipe");
        assert!(refused(&pipe).contains("it is a pipe"));
        assert!(refused(dir.path()).contains("it is a directory"));
        assert!(refused(&link("/", "root")).contains("it is a directory"));
        let file = File::create(dir.path().join("file")).unwrap();
        let fd = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        assert!(refused(Path::new(&fd)).contains("it is a link of the system's"));
        assert_eq!(There::at(&link("/dev/null", "null")).unwrap(), There::Device);
        assert_eq!(There::at(&link("nowhere", "dangling")).unwrap(), There::File);
    }

    #[test]
    fn what_cannot_be_made_is_a_sentence() {
        let message = Output::create(Path::new("/no/such/dir/x"), &attrs()).unwrap_err().to_string();
        assert_eq!(message, "cannot create '/no/such/dir/x' (-o names another file): No such file or directory");
    }
}
