//! The timeline at its end: every thread as it was last, and what its process had mapped.

use super::frozen::Timeline;
use super::space::{SpaceId, VisiblePart, shown};
use super::threads::{CommRef, ThreadRef};

/// The last use of a thread number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastLife {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The thread that it comes from, where a fork says it.
    pub parent: Option<i32>,
    /// Its last name.
    pub comm: CommRef,
    /// Its memory.
    pub space: Option<SpaceId>,
}

impl Timeline {
    /// Every thread that a record places in a process, as it was last; by thread number.
    #[must_use]
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

    /// What is mapped in a process at the end, by address; a mapping that later ones cover in part is several pieces.
    #[must_use]
    pub fn shown(&self, space: SpaceId) -> Vec<VisiblePart> {
        shown(&self.spaces, space)
    }
}
