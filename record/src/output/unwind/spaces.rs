//! The mappings of all processes: from side-band records, and from `/proc` where these are
//! missing.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use recrep_format::abi::{CpuMode, misc};
use recrep_format::record::{Body, MmapIdentity, Record};
use rustc_hash::FxHashMap;

use super::modules::{Mapping, Source};
use super::space::Space;
use crate::output::build_ids::{FileId, FileIdentity, MapsLine};

/// The mappings of all processes. Threads share them.
#[derive(Default)]
pub(crate) struct Spaces {
    /// Changes from drained records, in any order.
    gathered: Mutex<Vec<Change>>,
    known: Mutex<SpaceTable>,
    /// Changes with each change of `known`.
    version: AtomicU64,
}

#[derive(Default)]
struct SpaceTable {
    spaces: FxHashMap<u32, Arc<Space>>,
    /// Changes that are newer than all samples so far.
    later: Vec<Change>,
    /// Processes that have ended, oldest first. Their last samples may still come.
    ended: VecDeque<u32>,
    /// Time of the last loss: spaces that were not checked since may lack a mapping.
    lost: u64,
    /// When `/proc` was last read for a process, and whether it lived.
    read: FxHashMap<u32, (Instant, bool)>,
}

/// A change of a process's mappings.
#[derive(Debug)]
struct Change {
    time: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Map { pid: u32, mapping: Mapping },
    Fork { parent: u32, child: u32 },
    Exec(u32),
    Exit(u32),
    Lost,
}

/// Number of processes. If there are more, those that live are looked at again.
const MOST_PROCESSES: usize = 1 << 15;
/// Number of processes that are remembered after their end.
const MOST_ENDED: usize = 1024;
/// Number of changes that may wait for a sample.
const MOST_LATER: usize = 1 << 16;
/// `/proc` is not read more often for a process.
const AGAIN: Duration = Duration::from_millis(100);
/// Maximum size of a list of mappings in `/proc`.
const MOST_READ: u64 = 4 << 20;

/// A process's mappings, as last seen by a thread that writes.
#[derive(Default)]
pub(super) struct SpaceCache {
    version: u64,
    spaces: FxHashMap<u32, Option<Arc<Space>>>,
}

impl Spaces {
    /// Takes note of a side-band record.
    pub(crate) fn gather(&self, record: &Record<'_>) {
        let time = record.trailer.time.unwrap_or(0);
        let is_code =
            record.misc & misc::MMAP_DATA == 0 && CpuMode::of(record.misc) == CpuMode::User;
        let what = match &record.body {
            Body::Mmap(map) if is_code => {
                let range = map.addr..map.addr.saturating_add(map.len);
                let identity = FileIdentity::File(FileId::default());
                mapped(map.pid, range, map.pgoff, map.filename.as_bytes(), identity)
            }
            Body::Mmap2(map) if is_code => {
                let range = map.addr..map.addr.saturating_add(map.len);
                let identity = match map.identity {
                    MmapIdentity::Inode(inode) => FileIdentity::File(inode.into()),
                    MmapIdentity::BuildId(_) => match map.identity.build_id() {
                        Some(id) => FileIdentity::BuildId(id),
                        None => return,
                    },
                };
                mapped(map.pid, range, map.pgoff, map.filename.as_bytes(), identity)
            }
            Body::Comm(comm) if record.misc & misc::COMM_EXEC != 0 => What::Exec(comm.pid),
            Body::Fork(task) if task.pid == task.tid && task.pid != task.ppid => {
                What::Fork { parent: task.ppid, child: task.pid }
            }
            Body::Exit(task) if task.pid == task.tid => What::Exit(task.pid),
            Body::Lost(_) => What::Lost,
            _ => return,
        };
        lock(&self.gathered).push(Change { time, what });
    }

    /// Takes note of a mapping that existed before the recording.
    pub(crate) fn existing(&self, pid: u32, map: &MapsLine<'_>) {
        if map.is_code() {
            lock(&self.gathered).push(Change { time: 0, what: listed(pid, map) });
        }
    }

    /// Applies what was gathered up to this time.
    pub(super) fn apply(&self, until: u64) {
        let gathered = std::mem::take(&mut *lock(&self.gathered));
        let mut known = lock(&self.known);
        if gathered.is_empty() && known.later.first().is_none_or(|change| change.time > until) {
            return;
        }
        let mut changes = std::mem::take(&mut known.later);
        changes.extend(gathered);
        changes.sort_by_key(|change| change.time);
        let mut ripe = changes.partition_point(|change| change.time <= until);
        if changes.len() - ripe > MOST_LATER {
            ripe = changes.len();
        }
        known.later = changes.split_off(ripe);
        for change in changes {
            known.apply(change);
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the mappings of a process; `None` if they are not known.
    pub(super) fn of(&self, pid: u32, seen: &mut SpaceCache) -> Option<Arc<Space>> {
        let version = self.version.load(Ordering::Acquire);
        if seen.version != version {
            seen.spaces.clear();
            seen.version = version;
        }
        if let Some(space) = seen.spaces.get(&pid) {
            return space.clone();
        }
        let space = lock(&self.known).of(pid);
        seen.spaces.insert(pid, space.clone());
        space
    }
}

impl SpaceTable {
    fn apply(&mut self, Change { time, what }: Change) {
        match what {
            What::Map { pid, mapping } => {
                let space = Arc::make_mut(self.spaces.entry(pid).or_default());
                space.is_whole |= time == 0;
                space.add(time, mapping);
            }
            What::Fork { parent, child } => {
                let space = self.spaces.get(&parent).map(|parent| parent.forked(time));
                // Of a parent that nothing is known of, neither is the child's.
                let space = space.unwrap_or_else(|| Arc::new(Space::unknown(time)));
                if self.spaces.len() >= MOST_PROCESSES {
                    self.spaces.clear();
                }
                self.spaces.insert(child, space);
            }
            What::Exec(pid) => {
                let before = self.spaces.remove(&pid);
                self.spaces.insert(pid, Arc::new(Space::executed(time, before)));
            }
            What::Exit(pid) => {
                self.ended.push_back(pid);
                if self.ended.len() > MOST_ENDED
                    && let Some(pid) = self.ended.pop_front()
                    && !self.ended.contains(&pid)
                {
                    self.spaces.remove(&pid);
                    self.read.remove(&pid);
                }
            }
            What::Lost => self.lost = self.lost.max(time),
        }
    }

    fn of(&mut self, pid: u32) -> Option<Arc<Space>> {
        let known = self.spaces.get(&pid);
        let (lost, since) = (self.lost, known.map_or(0, |known| known.since));
        let sure = known.filter(|known| known.checked.max(known.since) >= lost);
        if let Some(known) = sure.filter(|known| known.is_whole) {
            return Some(Arc::clone(known));
        }
        match self.read.get(&pid).filter(|(read, _)| read.elapsed() < AGAIN) {
            Some((_, true)) => return known.cloned(),
            Some((_, false)) => return sure.cloned(),
            None => {}
        }
        let listed = listed_now(pid);
        self.read.insert(pid, (Instant::now(), listed.is_some()));
        let Some(mut listed) = listed else {
            // It has ended. Its last known mappings hold if no record was lost since.
            return sure.cloned();
        };
        (listed.checked, listed.since) = (lost, since);
        let listed = Arc::new(listed);
        self.spaces.insert(pid, Arc::clone(&listed));
        Some(listed)
    }
}

/// Returns what a process has mapped now, by `/proc`; `None` if it has ended.
fn listed_now(pid: u32) -> Option<Space> {
    let mut maps = Vec::new();
    let file = File::open(format!("/proc/{pid}/maps")).ok()?;
    file.take(MOST_READ + 1).read_to_end(&mut maps).ok()?;
    if maps.is_empty() || maps.len() as u64 > MOST_READ {
        return None;
    }
    let mut space = Space::unknown(0);
    for line in maps.split(|byte| *byte == b'\n').filter_map(MapsLine::parse) {
        if let What::Map { mapping, .. } = listed(pid, &line)
            && line.is_code()
        {
            space.add(0, mapping);
        }
    }
    Some(space)
}

fn listed(pid: u32, map: &MapsLine<'_>) -> What {
    mapped(pid, map.start..map.end, map.pgoff, map.name(), FileIdentity::File(map.file))
}

fn mapped(pid: u32, range: Range<u64>, pgoff: u64, path: &[u8], identity: FileIdentity) -> What {
    let mapping = Mapping { range, pgoff, source: Arc::new(Source::new(path, identity)) };
    let is_other = mapping.source.is_vdso() && mapping.is_low();
    let source =
        if is_other { Arc::new(Source::vdso_of_32_bits()) } else { Arc::clone(&mapping.source) };
    What::Map { pid, mapping: Mapping { source, ..mapping } }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked ends the recording; what it left is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
