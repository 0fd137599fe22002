//! Making the file where it is asked for, and nothing else there.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::messages::error::{Error, Result};

/// A file that was made, and what became of the one that was there.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) path: PathBuf,
    /// Where the file that was there before went.
    old: Option<PathBuf>,
    /// Whether the file is ours to remove again.
    created: bool,
}

impl Made {
    /// Makes the file. One that is there becomes `PATH.old`. The new one is always created, never followed to through a
    /// link, and for its owner's eyes only (0600). A device is written to as it is; what is neither is left alone.
    pub(super) fn at(path: &Path) -> Result<(Self, File)> {
        let there = There::at(path)?;
        let device = there == There::Device;
        let old = if there == There::File { Some(keep_old(path)?) } else { None };
        let mut options = OpenOptions::new();
        // Read back where it could not be written to the end.
        options.read(!device).write(true).create_new(!device).mode(0o600);
        let file = options.open(path).map_err(|e| {
            restore(path, old.as_deref());
            Error::io(format!("cannot create '{}' (-o names another file)", path.display()), e)
        })?;
        Ok((Self { path: path.to_owned(), old, created: !device }, file))
    }

    /// Undoes the making: the file goes, the one that was there before comes back.
    pub(super) fn undo(&self) {
        if self.created {
            // What cannot be removed stays, and is a valid file.
            let _ = fs::remove_file(&self.path);
            restore(&self.path, self.old.as_deref());
        }
    }

    /// Gives the file another name. Gives that.
    pub(super) fn rename(&mut self, name: PathBuf) -> Result<()> {
        if self.created {
            fs::rename(&self.path, &name).map_err(|e| {
                Error::io(format!("cannot rename '{}' to '{}'", self.path.display(), name.display()), e)
            })?;
            self.path = name;
        }
        Ok(())
    }
}

/// What is where the file is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    Nothing,
    /// A device, or a link to one by root or ourselves: written to, not replaced.
    Device,
    /// A file, or a link to one or to nothing: renamed.
    File,
}

impl There {
    /// Looks. What a perf.data file can neither be written to nor put in the place of is an error.
    pub(super) fn at(path: &Path) -> Result<Self> {
        let Ok(itself) = fs::symlink_metadata(path) else { return Ok(Self::Nothing) };
        // Judged by what a link leads to: /dev/stdout is a pipe or a terminal, and nothing to rename.
        let end = fs::metadata(path).unwrap_or_else(|_| itself.clone()).file_type();
        let what = if end.is_fifo() || end.is_socket() {
            "a pipe or a socket, and a perf.data file is written in more than one place"
        } else if end.is_dir() {
            "a directory"
        } else if end.is_char_device() || end.is_block_device() {
            // Somebody else's link is not followed: root could write to a disk through it.
            let trusted = [0, rustix::process::geteuid().as_raw()].contains(&itself.uid());
            return Ok(if itself.is_symlink() && !trusted { Self::File } else { Self::Device });
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
