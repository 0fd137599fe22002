//! The final state of the timeline: all threads and the mappings of their processes.

use super::frozen::Timeline;
use super::space::{SpaceId, VisiblePart, shown};
use super::threads::{CommRef, ThreadRef};

/// Last use of a tid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastLife {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Parent thread, if a fork was recorded.
    pub parent: Option<i32>,
    /// Last comm.
    pub comm: CommRef,
    /// Address space.
    pub space: Option<SpaceId>,
}

impl Timeline {
    /// Returns the last life of each tid whose process is recorded, sorted by tid.
    pub fn last_lives(&self) -> Vec<LastLife> {
        let mut last: Vec<LastLife> = Vec::new();
        for (index, life) in (0u32..).zip(&self.lives) {
            let Some(pid) = life.pid else { continue };
            let (tid, comm) = self.thread_label(ThreadRef::Known(index));
            if last.last().is_some_and(|before| before.tid == tid) {
                last.pop();
            }
            last.push(LastLife { pid, tid, parent: life.parent, comm, space: life.space });
        }
        last
    }

    /// Returns the mappings of a process at the end, sorted by address; one that is partly covered by later mappings is
    /// split into its visible parts.
    pub fn shown(&self, space: SpaceId) -> Vec<VisiblePart> {
        shown(&self.spaces, space)
    }
}
