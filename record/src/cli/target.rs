//! Whom to record or count, as the command line says.

use crate::tasks::{self, Target};

/// The words that say whom to record or count.
pub(super) struct TargetWords<'a> {
    pub(super) pid: Option<&'a str>,
    pub(super) tid: Option<&'a str>,
    pub(super) uid: Option<&'a str>,
    /// `true` for whole CPUs, all or some.
    pub(super) on_cpus: bool,
}

impl TargetWords<'_> {
    pub(super) fn target(&self) -> Result<Target, String> {
        Ok(if let Some(pids) = self.pid {
            Target::Processes(tasks::parse_pids(pids).map_err(|e| format!("-p: {e}"))?)
        } else if let Some(tids) = self.tid {
            Target::Threads(tasks::parse_ids(tids).map_err(|e| format!("-t: {e}"))?)
        } else if let Some(user) = self.uid {
            Target::User(tasks::parse_user(user).map_err(|e| format!("-u: {e}"))?)
        } else if self.on_cpus {
            Target::System
        } else {
            Target::Command
        })
    }
}
