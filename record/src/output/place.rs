//! Safe creation of the output file: never through links, never in place of something else.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::messages::error::{Error, Result};

/// Creates a file, in the way of [`Made::at`].
pub(crate) fn create(path: &Path) -> Result<File> {
    Made::at(path).map(|(_, file)| file)
}

/// A created file, and the previous one.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) path: PathBuf,
    /// New path of the previous file.
    old: Option<PathBuf>,
    /// `true` if rec created the file, and so may remove it.
    created: bool,
}

impl Made {
    /// Creates the file. An existing file is renamed to `PATH.old`. The new file is always created,
    /// never opened through a link, and accessible to its owner only (0600). A device is opened as
    /// it is; anything else is refused.
    pub(super) fn at(path: &Path) -> Result<(Self, File)> {
        let there = There::at(path)?;
        let device = there == There::Device;
        let old = if there == There::File { Some(keep_old(path)?) } else { None };
        let mut options = OpenOptions::new();
        // Read access is for completing a file that could not be written to its end.
        options.read(!device).write(true).create_new(!device).mode(0o600);
        let file = options.open(path).map_err(|e| {
            restore(path, old.as_deref());
            uncreatable(path, e)
        })?;
        Ok((Self { path: path.to_owned(), old, created: !device }, file))
    }

    /// Makes a directory (0700) in the same way, with these files in it.
    pub(super) fn directory(
        path: &Path,
        names: impl Iterator<Item = String>,
    ) -> Result<(Self, Vec<(PathBuf, File)>)> {
        let old = match There::at(path)? {
            There::Nothing => None,
            There::File => Some(keep_old(path)?),
            There::Device => {
                let why = "--threads writes a directory, and '-o' names a device; name a \
                           directory, or leave --threads out";
                return Err(Error::Usage(why.to_owned()));
            }
        };
        let made = Self { path: path.to_owned(), old, created: true };
        let files = fs::DirBuilder::new()
            .mode(0o700)
            .create(path)
            .map_err(|e| uncreatable(path, e))
            .and_then(|()| {
                names
                    .map(|name| {
                        let path = path.join(name);
                        let mut options = OpenOptions::new();
                        options.read(true).write(true).create_new(true).mode(0o600);
                        let file = options.open(&path).map_err(|e| uncreatable(&path, e))?;
                        Ok((path, file))
                    })
                    .collect()
            });
        files.inspect_err(|_| made.undo()).map(|files| (made, files))
    }

    /// Removes the file, and restores the previous one.
    pub(super) fn undo(&self) {
        if self.created {
            // If it cannot be removed, it stays as a valid file.
            let _ = remove(&self.path);
            restore(&self.path, self.old.as_deref());
        }
    }

    /// Renames it to the first of these names that is free, and returns that; `None` for a device,
    /// which keeps its own.
    pub(super) fn rename(
        &mut self,
        names: impl Iterator<Item = PathBuf>,
    ) -> Result<Option<PathBuf>> {
        for name in names.take_while(|_| self.created) {
            match rename_to_free(&self.path, &name) {
                Ok(()) => {
                    self.path.clone_from(&name);
                    return Ok(Some(name));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    let tried =
                        format!("cannot rename '{}' to '{}'", self.path.display(), name.display());
                    return Err(Error::io(tried, e));
                }
            }
        }
        Ok(None)
    }
}

/// Renames, but over nothing.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system that cannot look and rename at once, NFS for one.
        Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(to).is_ok() => {
            Err(io::ErrorKind::AlreadyExists.into())
        }
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        done => done.map_err(io::Error::from),
    }
}

/// Kind of file at the output path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    Nothing,
    /// A device, or a link to one created by root or this user: written to, not replaced.
    Device,
    /// A file, the directory of a recording, or a link to one of them or to nothing: renamed.
    File,
}

impl There {
    /// Inspects the path. Returns an error if a perf.data file can neither be written there nor
    /// replace what exists.
    pub(super) fn at(path: &Path) -> Result<Self> {
        let Ok(itself) = fs::symlink_metadata(path) else { return Ok(Self::Nothing) };
        // A link is judged by its target: /dev/stdout may be a pipe or a terminal, which must not
        // be renamed.
        let end = fs::metadata(path).unwrap_or_else(|_| itself.clone()).file_type();
        let what = if end.is_fifo() || end.is_socket() {
            "a pipe or a socket, which a perf.data file cannot be written to, as its header is \
             completed at the end"
        } else if end.is_dir() && is_recording(path) {
            return Ok(Self::File);
        } else if end.is_dir() {
            "a directory without a recording in it"
        } else if end.is_char_device() || end.is_block_device() {
            // Another user's link is not followed: it could make root write to a disk.
            let trusted = [0, rustix::process::geteuid().as_raw()].contains(&itself.uid());
            return Ok(if itself.is_symlink() && !trusted { Self::File } else { Self::Device });
        } else if itself.is_symlink() && is_system_s(path) {
            "a system link"
        } else {
            return Ok(Self::File);
        };
        let shown = path.display();
        Err(Error::Failed(format!(
            "cannot write to '{shown}': it is {what}; name a regular file with -o"
        )))
    }
}

/// Returns whether a link is in `/dev` or `/proc`, where it must not be renamed, as other processes
/// use it.
fn is_system_s(link: &Path) -> bool {
    let parent = link.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(parent).is_ok_and(|dir| dir == Path::new("/dev") || dir.starts_with("/proc"))
}

/// Renames a file to `PATH.old`, replacing that.
fn keep_old(path: &Path) -> Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    let old = PathBuf::from(name);
    // Neither a file nor a directory can be renamed over a directory that has files, nor a
    // directory over a file.
    let in_the_way = if is_directory(&old) { is_recording(&old) } else { is_directory(path) };
    let room = if in_the_way { remove(&old) } else { Ok(()) };
    let kept = match room {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => fs::rename(path, &old),
    };
    kept.map(|()| old.clone()).map_err(|e| {
        Error::io(
            format!(
                "cannot rename '{}' to '{}' (choose another place with -o FILE)",
                path.display(),
                old.display()
            ),
            e,
        )
    })
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Name of the file with the header in the directory of a recording.
const DATA: &str = "data";

/// Returns whether a directory is a recording: perf's readers look for this file too.
fn is_recording(dir: &Path) -> bool {
    fs::symlink_metadata(dir.join(DATA)).is_ok_and(|data| data.is_file())
}

/// Returns the names of the files in a directory of this many rings.
pub(super) fn names(rings: usize) -> impl Iterator<Item = String> {
    std::iter::once(DATA.to_owned()).chain((0..rings).map(|ring| format!("{DATA}.{ring}")))
}

/// Removes a recording, be it a file or a directory; a directory in which there is anything else
/// stays as it is.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    let entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    if !entries.iter().all(|entry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(DATA));
        let number = number.map(|rest| rest.strip_prefix('.').unwrap_or(rest));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    }) {
        return Err(io::ErrorKind::DirectoryNotEmpty.into());
    }
    entries.iter().try_for_each(|entry| fs::remove_file(entry.path()))?;
    fs::remove_dir(path)
}

fn uncreatable(path: &Path, why: io::Error) -> Error {
    Error::io(
        format!("cannot create '{}' (choose another place with -o FILE)", path.display()),
        why,
    )
}

fn restore(path: &Path, old: Option<&Path>) {
    if let Some(old) = old {
        // If this fails, the file is still there as PATH.old.
        let _ = fs::rename(old, path);
    }
}
