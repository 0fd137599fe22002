//! Existing cgroups: a CGROUP record for each directory of the hierarchy that perf events use (the
//! version 1 hierarchy of perf_event if mounted, else version 2).

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::writer::Synthesizer;
use crate::messages::error::Result;
use crate::tasks::cgroup;

/// Writes a CGROUP record for each cgroup, if requested.
pub(crate) fn cgroups(to: &mut Synthesizer<'_>) -> Result<()> {
    if !to.wants_cgroups() {
        return Ok(());
    }
    let Some(root) = cgroup::mounted() else { return Ok(()) };
    below(&root).into_iter().try_for_each(|(id, path)| to.cgroup(id, &path))
}

/// Returns the ids of all cgroups of a hierarchy, each with its path from the root.
fn below(root: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        // A cgroup that was just removed is skipped.
        let Ok(this) = fs::metadata(&dir) else { continue };
        let below = dir.strip_prefix(root).unwrap_or(&dir);
        // A cgroup's id is its directory's inode number.
        all.push((this.ino(), [b"/", below.as_os_str().as_bytes()].concat()));
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        left.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_are_named_from_the_root_of_their_hierarchy() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(root.path().join("tasks"), "").unwrap();
        let id = |name: &str| fs::metadata(root.path().join(name)).unwrap().ino();
        let named = [("", &b"/"[..]), ("a", b"/a"), ("a/b", b"/a/b")];
        assert_eq!(below(root.path()), named.map(|(name, path)| (id(name), path.to_vec())));
    }
}
