//! Root directories of running containers, through which the files mapped by their processes can be
//! read.
//!
//! A recording with `NAMESPACES` records has the inode of each process's mount namespace. As long
//! as any process lives in a namespace with that inode, its files are below that process's
//! `/proc/PID/root`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// Root directories of the mount namespaces that exist now.
#[derive(Debug)]
pub(crate) struct Roots {
    /// `/proc`.
    proc: PathBuf,
    /// Root directories by the inode of the mount namespace, without our own.
    living: OnceLock<FxHashMap<u64, PathBuf>>,
}

impl Roots {
    pub(crate) fn new(root: &Path) -> Self {
        Self { proc: root.join("proc"), living: OnceLock::new() }
    }

    /// Returns the root directory of this mount namespace, if it exists and is not our own.
    pub(crate) fn of(&self, mounts: u64) -> Option<&Path> {
        self.living.get_or_init(|| self.find_living()).get(&mounts).map(PathBuf::as_path)
    }

    /// Returns whether this mount namespace is neither our own nor that of a living process.
    pub(crate) fn is_gone(&self, mounts: u64) -> bool {
        let ours = fs::metadata(self.proc.join("self/ns/mnt")).ok().map(|found| found.ino());
        ours.is_some_and(|ours| ours != mounts) && self.of(mounts).is_none()
    }

    fn find_living(&self) -> FxHashMap<u64, PathBuf> {
        let inode = |process: &Path| {
            fs::metadata(process.join("ns/mnt")).ok().map(|metadata| metadata.ino())
        };
        let ours = inode(&self.proc.join("self"));
        let mut living = FxHashMap::default();
        for process in fs::read_dir(&self.proc).into_iter().flatten().flatten() {
            let is_process =
                process.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
            let found = is_process.then(|| inode(&process.path())).flatten();
            if let Some(mounts) = found.filter(|mounts| Some(*mounts) != ours) {
                living.entry(mounts).or_insert_with(|| process.path().join("root"));
            }
        }
        living
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_mount_namespace() {
        let machine = tempfile::tempdir().unwrap();
        let at = |path: &str| machine.path().join("proc").join(path);
        for process in ["self", "7", "9"] {
            fs::create_dir_all(at(process).join("ns")).unwrap();
            fs::write(at(process).join("ns/mnt"), "").unwrap();
        }
        let inode = fs::metadata(at("9/ns/mnt")).unwrap().ino();
        let roots = Roots::new(machine.path());
        assert_eq!(roots.of(inode), Some(at("9/root").as_path()));
        let ours = fs::metadata(at("self/ns/mnt")).unwrap().ino();
        assert_eq!((roots.of(ours), roots.is_gone(ours)), (None, false));
        assert_eq!((roots.is_gone(inode), roots.is_gone(u64::MAX)), (false, true));
    }
}
