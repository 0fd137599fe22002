//! Directories of cgroups.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use crate::messages::error::{Error, Result};

/// Returns the root of the hierarchy that perf events use, if mounted.
pub(crate) fn mounted() -> Option<PathBuf> {
    root(&fs::read_to_string("/proc/self/mounts").unwrap_or_default())
}

/// Opens the directory of a cgroup, given by its path from the root of the hierarchy.
pub(crate) fn open(name: &str) -> Result<File> {
    let root = mounted().ok_or_else(|| {
        Error::Failed(
            "cannot count a cgroup (-G): no cgroup hierarchy is mounted; as root: \
             mount -t cgroup2 none /sys/fs/cgroup"
                .to_owned(),
        )
    })?;
    let path = root.join(name.trim_start_matches('/'));
    File::open(&path).map_err(|e| {
        Error::io(format!("cannot count cgroup '{name}' (-G): '{}'", path.display()), e)
    })
}

/// Returns the root of the hierarchy that perf events use: version 1 with the perf_event
/// controller, otherwise version 2.
fn root(mounts: &str) -> Option<PathBuf> {
    let mut unified = None;
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(path), Some(kind), Some(options)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        match kind {
            "cgroup" if options.split(',').any(|option| option == "perf_event") => {
                return Some(unescaped(path));
            }
            "cgroup2" => unified = unified.or_else(|| Some(unescaped(path))),
            _ => {}
        }
    }
    unified
}

/// Decodes a path in the list of mounts, where special characters are a backslash and three octal
/// digits.
fn unescaped(path: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let byte =
            octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_perf_events_is_found() {
        let v2 = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(root(v2), Some("/sys/fs/cgroup".into()));
        let both = format!("{v2}cgroup /sys/fs/cgroup/perf_event cgroup rw,perf_event 0 0\n");
        assert_eq!(root(&both), Some("/sys/fs/cgroup/perf_event".into()));
        assert_eq!(root("proc /proc proc rw 0 0\n"), None);
        let others = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified \
                      cgroup2 rw 0 0\n";
        assert_eq!(root(others), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(root("x /a\\040b\\134c\\9 cgroup2 rw 0 0\n"), Some(r"/a b\c\9".into()));
    }
}
