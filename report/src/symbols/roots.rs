//! Root directories of running containers, through which the files mapped by their processes can be read.
//!
//! A recording with `NAMESPACES` records has the inode of each process's mount namespace. As long as any process lives
//! in a namespace with that inode, its files are below that process's `/proc/PID/root`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// Root directories of the mount namespaces that exist now.
#[derive(Debug)]
pub(super) struct Roots {
    /// `/proc`.
    proc: PathBuf,
    /// Root directories by the inode of the mount namespace, without our own.
    living: OnceLock<FxHashMap<u64, PathBuf>>,
}

impl Roots {
    pub(super) fn new(root: &Path) -> Self {
        Self { proc: root.join("proc"), living: OnceLock::new() }
    }

    /// Returns the root directory of this mount namespace, if it exists and is not our own.
    pub(super) fn of(&self, mounts: u64) -> Option<&Path> {
        self.living.get_or_init(|| self.find_living()).get(&mounts).map(PathBuf::as_path)
    }

    fn find_living(&self) -> FxHashMap<u64, PathBuf> {
        let inode = |process: &Path| fs::metadata(process.join("ns/mnt")).ok().map(|metadata| metadata.ino());
        let ours = inode(&self.proc.join("self"));
        let mut living = FxHashMap::default();
        for process in fs::read_dir(&self.proc).into_iter().flatten().flatten() {
            let is_process = process.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
            let found = is_process.then(|| inode(&process.path())).flatten();
            if let Some(mounts) = found.filter(|mounts| Some(*mounts) != ours) {
                living.entry(mounts).or_insert_with(|| process.path().join("root"));
            }
        }
        living
    }

    /// Returns the path of the `/tmp/perf-PID.map` of process `pid` (in the recorder's pid namespace), which is named
    /// after the pid in its own namespace. `None` if its mount namespace is not `mounts`: the pid was reused.
    pub(super) fn perf_map(&self, pid: i32, mounts: u64) -> Option<PathBuf> {
        let process = self.proc.join(pid.to_string());
        if fs::metadata(process.join("ns/mnt")).ok()?.ino() != mounts {
            return None;
        }
        let status = fs::read_to_string(process.join("status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let inner: i32 = numbers.split_whitespace().next_back()?.parse().ok()?;
        Some(process.join("root/tmp").join(format!("perf-{inner}.map")))
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
        fs::write(at("9/status"), "Name:\tx\nNSpid:\t9\t1\n").unwrap();
        let inode = fs::metadata(at("9/ns/mnt")).unwrap().ino();
        let roots = Roots::new(machine.path());
        assert_eq!(roots.of(inode), Some(at("9/root").as_path()));
        assert_eq!(roots.of(fs::metadata(at("self/ns/mnt")).unwrap().ino()), None);
        assert_eq!(roots.perf_map(9, inode), Some(at("9/root/tmp/perf-1.map")));
        assert_eq!(roots.perf_map(7, inode), None);
    }
}
