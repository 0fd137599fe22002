//! tracefs, to register probes in: where it is mounted, or in a mount of rec's own that is nowhere
//! in the tree.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::machine::tracepoint::Tracefs;
use crate::messages::error::why_words;

/// Why no probe can be registered.
#[derive(Debug)]
pub(super) enum NoTracing {
    /// The user may not have probes at all.
    Unprivileged,
    /// tracefs cannot be used, in words.
    Unusable(String),
}

/// A tracefs that probes can be registered in.
#[derive(Debug)]
pub(super) struct Tracing {
    tracefs: Tracefs,
    /// The mount, if it is rec's own; it ends with the descriptor.
    _mount: Option<OwnedFd>,
}

impl Tracing {
    /// Finds one where this list of probes can be written to.
    pub(super) fn find(mounted: Option<&Path>, list: &str) -> Result<Self, NoTracing> {
        let mut why = "it is not mounted".to_owned();
        if let Some(root) = mounted {
            let tracing = Self { tracefs: Tracefs::at(root.to_owned()), _mount: None };
            match tracing.open(list) {
                Ok(_) => return Ok(tracing),
                Err(refused) => why = refused,
            }
        }
        match Self::mount() {
            Ok(tracing) => tracing.open(list).map(|_| tracing).map_err(NoTracing::Unusable),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(NoTracing::Unprivileged)
            }
            Err(error) => Err(NoTracing::Unusable(format!(
                "{why}, and rec cannot mount it: {}",
                why_words(&error)
            ))),
        }
    }

    /// Mounts one of its own, in no directory.
    fn mount() -> io::Result<Self> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Self { tracefs: Tracefs::at(root), _mount: Some(mount) })
    }

    /// Opens a list of probes, to add lines to it. Opened in any other way, the kernel would remove
    /// all of them.
    pub(super) fn open(&self, list: &str) -> Result<File, String> {
        let path = self.tracefs.root().join(list);
        OpenOptions::new().append(true).open(&path).map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => {
                format!(
                    "this kernel has no {list}; it needs CONFIG_UPROBE_EVENTS or \
                         CONFIG_KPROBE_EVENTS"
                )
            }
            _ => format!("{list} cannot be written to: {}", why_words(&why)),
        })
    }

    /// Returns a list of probes; empty if it cannot be read.
    pub(super) fn read(&self, list: &str) -> String {
        fs::read_to_string(self.tracefs.root().join(list)).unwrap_or_default()
    }

    pub(super) fn id(&self, group: &str, name: &str) -> io::Result<u64> {
        self.tracefs
            .id(group, name)
            .map_err(|_| io::Error::other(format!("tracefs has no tracepoint {group}:{name}")))
    }
}

/// Writes a line: the kernel reads each write by itself.
pub(super) fn write(mut list: &File, line: &str) -> io::Result<()> {
    list.write_all(line.as_bytes())
}
