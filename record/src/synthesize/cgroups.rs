//! Cgroups that are there already: a CGROUP record for each directory of the unified hierarchy.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::writer::Synthesizer;
use crate::error::Result;

/// Where it may be mounted: alone, or beside the old ones.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Writes them, if they are wanted.
///
/// # Errors
/// What writing gives.
pub fn cgroups(to: &mut Synthesizer<'_>) -> Result<()> {
    if !to.wants_cgroups() {
        return Ok(());
    }
    let mounted = MOUNTS.iter().map(Path::new).find(|mount| mount.join("cgroup.procs").exists());
    let Some(root) = mounted else { return Ok(()) };
    let mut left: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        // One that is removed just now is left out.
        let Ok(this) = fs::metadata(&dir) else { continue };
        let below = dir.strip_prefix(root).unwrap_or(&dir);
        let path = [b"/", below.as_os_str().as_bytes()].concat();
        // A cgroup's id is the number of its directory's inode.
        to.cgroup(this.ino(), &path)?;
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        left.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
    Ok(())
}
