//! The guard: a process that removes rec's probes when rec ends, even if it is killed.
//!
//! ```text
//!  rec ── names, a line each ──▶ standard input of the guard ── end of file: rec has ended ──▶ removal of each name
//! ```
//!
//! It is rec's own program under another name, so that nothing else has to be installed. It has
//! nothing of rec's but that pipe and the list of probes, in a process group of its own, which
//! Ctrl-C does not reach.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;

use super::definition::{GROUP, removal};
use super::tracing::write;
use crate::tasks::GUARD;

/// Number of times that the removal of a probe is tried that is still in use, and the time between.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    /// `None` once it may begin.
    names: Option<PipeWriter>,
    list: File,
    known: Vec<String>,
}

impl Guard {
    pub(super) fn start(list: &File) -> io::Result<Self> {
        let (reader, names) = io::pipe()?;
        let child = Command::new("/proc/self/exe")
            .arg0(GUARD)
            .stdin(reader)
            .stdout(list.try_clone()?)
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn()?;
        Ok(Self { child, names: Some(names), list: list.try_clone()?, known: Vec::new() })
    }

    /// Names a probe that is to be removed.
    ///
    /// # Errors
    /// A guard that has ended.
    pub(super) fn add(&mut self, name: &str) -> io::Result<()> {
        self.known.push(name.to_owned());
        self.names
            .as_ref()
            .map_or(Ok(()), |mut names| names.write_all(format!("{name}\n").as_bytes()))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.names.take());
        let has_removed = self.child.wait().is_ok_and(|status| status.success());
        if !has_removed {
            remove(&self.list, &self.known);
        }
    }
}

/// Returns whether this process was started as a guard.
pub fn is_meant(words: &[OsString]) -> bool {
    words.first().is_some_and(|name| name == GUARD)
}

/// Waits for the end of rec, and removes the probes that it named. Returns the exit status.
pub fn run() -> u8 {
    let mut names = String::new();
    let read = io::read_to_string(io::stdin()).map(|text| names = text);
    let names: Vec<String> = names.lines().map(str::to_owned).collect();
    let Ok(list) = io::stdout().as_fd().try_clone_to_owned().map(File::from) else { return 1 };
    let removed = remove(&list, &names);
    u8::from(read.is_err() || !removed)
}

/// Removes probes. One that is in use is so by counters that are being closed. Returns whether none
/// is left.
fn remove(list: &File, names: &[String]) -> bool {
    let mut all = true;
    for name in names {
        let mut tries = 0..TRIES;
        all &= loop {
            match write(list, &removal(GROUP, name)) {
                Err(why)
                    if Errno::from_io_error(&why) == Some(Errno::BUSY)
                        && tries.next().is_some() =>
                {
                    sleep(PAUSE);
                }
                Err(why) => break why.kind() == io::ErrorKind::NotFound,
                Ok(()) => break true,
            }
        };
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_removed_by_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("uprobe_events");
        let list = File::create(&path).unwrap();
        assert!(remove(&list, &["a".to_owned(), "b".to_owned()]));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "-:recrep/a\n-:recrep/b\n");
    }

    #[test]
    fn only_a_process_of_its_name_is_one() {
        assert!(is_meant(&[GUARD.into()]));
        assert!(!is_meant(&["rec".into(), GUARD.into()]));
        assert!(!is_meant(&[]));
    }
}
