//! Tasks whose records are kept, and their children.

use recrep_format::record::{Body, RawRecord};
use rustc_hash::FxHashSet;

use crate::output::layouts::Layouts;

/// The tasks whose records are kept.
#[derive(Debug)]
pub struct Members {
    /// Processes, or threads.
    pub ids: FxHashSet<u32>,
    /// `true` if they are threads.
    pub threads: bool,
    /// `true` if their children belong to them.
    pub inherit: bool,
}

/// A FORK record: process and thread of the child and of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fork {
    pub(super) time: u64,
    pub(super) child: [u32; 2],
    parent: [u32; 2],
}

impl Members {
    /// The number by which a task is known here: of the process, or of the thread.
    fn number(&self, [pid, tid]: [u32; 2]) -> u32 {
        if self.threads { tid } else { pid }
    }

    /// Returns whether a record is of a member, or of no task.
    pub(super) fn keeps(&self, record: &RawRecord<'_>, layouts: &Layouts) -> bool {
        let contains = |task| self.ids.contains(&self.number(task));
        task(record, layouts)
            .is_none_or(|(task, parent)| contains(task) || parent.is_some_and(contains))
    }

    /// A child of a member is one, if that was asked for; another's child that has a member's
    /// number is a new task.
    pub(super) fn apply(&mut self, fork: Fork) {
        let [child, parent] = [fork.child, fork.parent].map(|task| self.number(task));
        if child == parent {
            // A new thread of the same process.
            return;
        }
        if self.inherit && self.ids.contains(&parent) {
            self.ids.insert(child);
        } else {
            self.ids.remove(&child);
        }
    }
}

/// Returns a FORK record's contents.
pub(super) fn fork(record: &RawRecord<'_>, layouts: &Layouts) -> Option<Fork> {
    let Body::Fork(of) = layouts.decode(record).ok()?.body else { return None };
    Some(Fork { time: of.time, child: [of.pid, of.tid], parent: [of.ppid, of.ptid] })
}

/// Returns the process and thread that a record is of, and those that forked it; nothing if it is
/// of none: losses, throttling and what the kernel loads are of the CPU or the machine.
fn task(record: &RawRecord<'_>, layouts: &Layouts) -> Option<([u32; 2], Option<[u32; 2]>)> {
    if let Some(sample) = layouts.sample(record) {
        return Some(([sample.pid()?, sample.tid()?], None));
    }
    let record = layouts.decode(record).ok()?;
    let task = match record.body {
        Body::Comm(of) => [of.pid, of.tid],
        Body::Mmap(of) => [of.pid, of.tid],
        Body::Mmap2(of) => [of.pid, of.tid],
        Body::Read(of) => [of.pid, of.tid],
        Body::Namespaces(of) => [of.pid, of.tid],
        Body::ItraceStart(of) => [of.pid, of.tid],
        Body::Exit(of) => [of.pid, of.tid],
        Body::Fork(of) => return Some(([of.pid, of.tid], Some([of.ppid, of.ptid]))),
        Body::Switch | Body::SwitchCpuWide(_) => record.trailer.tid?,
        _ => return None,
    };
    Some((task, None))
}
