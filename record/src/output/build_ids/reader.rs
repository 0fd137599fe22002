//! Reads the build IDs of mapped files aside, in a thread of its own, so that no disk slows the
//! drain down.
//!
//! A file is looked for as soon as its mapping is drained: what a short-lived process mapped may be
//! gone a moment later.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use recrep_format::build_id::BuildId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::mapped::{FileId, MappedFile};
use crate::output::keep::{Keeper, Kept};

/// The build IDs of mapped files, read at most once for each file. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct BuildIdReader(Arc<SharedReader>);

#[derive(Debug, Default)]
struct SharedReader {
    state: Mutex<ReaderState>,
    /// Something was added to the queue.
    added: Condvar,
    /// The thread has read all that was in the queue.
    idle: Condvar,
    keeper: Option<Keeper>,
}

#[derive(Debug, Default)]
struct ReaderState {
    queue: VecDeque<(Vec<u8>, MappedFile)>,
    to_keep: VecDeque<ToKeep>,
    /// Living processes with JITs whose lists are to be kept.
    jits: FxHashSet<u32>,
    found: FxHashMap<Vec<u8>, Vec<(FileId, Option<BuildId>)>>,
    is_busy: bool,
}

/// Something to keep, or to do for that.
#[derive(Debug)]
pub(super) enum ToKeep {
    /// A file whose build ID the kernel gave.
    File { path: Vec<u8>, id: BuildId, mapped: MappedFile },
    /// The list of code of a process with a JIT, once it ends.
    Jit(u32),
    /// The dump with such a list that a process mapped.
    Dump { path: Vec<u8>, mapped: MappedFile },
    /// A process with a JIT that has ended.
    Ended(u32),
}

impl ToKeep {
    fn give(self, keeper: &Keeper) {
        match self {
            Self::File { path, id, mapped } => mapped.keep(&path, id, keeper),
            Self::Jit(pid) => keeper.open_jit(pid),
            Self::Dump { path, mapped } => {
                keeper.open_jit(mapped.pid);
                if let Some(file) = mapped.file(&path) {
                    keeper.take_dump(mapped.pid, file);
                }
            }
            Self::Ended(pid) => keeper.end_jit(pid),
        }
    }
}

impl BuildIdReader {
    /// Returns a reader with a thread, which runs as urgently as this one does now. The default has
    /// none, and reads when it is waited for.
    pub fn in_thread(keeper: Option<Keeper>) -> Self {
        let reader = Self(Arc::new(SharedReader { keeper, ..SharedReader::default() }));
        let other = reader.clone();
        // Without the thread, files are read later, by whoever needs their build IDs.
        let _ = thread::Builder::new().name("build-ids".to_owned()).spawn(move || other.work());
        reader
    }

    /// Queues a file to be read.
    pub fn later(&self, path: &[u8], mapped: MappedFile) {
        let mut state = self.lock();
        if state.known(path, mapped.file).is_some() {
            return;
        }
        state.queue.push_back((path.to_vec(), mapped));
        drop(state);
        self.0.added.notify_one();
    }

    /// Returns whether files are kept.
    pub(super) fn has_keeper(&self) -> bool {
        self.0.keeper.is_some()
    }

    /// Queues something to be kept.
    pub(super) fn keep_later(&self, what: ToKeep) {
        if self.0.keeper.is_some() {
            let mut state = self.lock();
            if let ToKeep::Jit(pid) | ToKeep::Dump { mapped: MappedFile { pid, .. }, .. } = &what {
                state.jits.insert(*pid);
            }
            state.to_keep.push_back(what);
            drop(state);
            self.0.added.notify_one();
        }
    }

    /// Queues the lists of a JIT to be kept, as its process has ended.
    pub(super) fn end_process(&self, pid: u32) {
        let mut state = self.lock();
        if state.jits.remove(&pid) {
            state.to_keep.push_back(ToKeep::Ended(pid));
            drop(state);
            self.0.added.notify_one();
        }
    }

    /// Keeps the lists of JITs for a file whose samples are from `first` to `last`.
    pub(super) fn keep_jits(&self, first: u64, last: u64) {
        if let Some(keeper) = &self.0.keeper {
            self.settle();
            keeper.keep_jits(first, last);
        }
    }

    /// Stores the files that are to be kept; `None` if none are.
    pub fn keep(&self) -> Option<Kept> {
        let keeper = self.0.keeper.as_ref()?;
        self.settle();
        Some(keeper.finish())
    }

    /// Returns the build ID of a file, which is read now if it was not before.
    pub fn now(&self, path: &[u8], mapped: &MappedFile) -> Option<BuildId> {
        if let Some(known) = self.lock().known(path, mapped.file) {
            return known;
        }
        // A file that cannot be found may be by another mapping of it.
        let id = mapped.read(path, self.0.keeper.as_ref())?;
        self.lock().found.entry(path.to_vec()).or_default().push((mapped.file, id));
        id
    }

    /// Waits until all files that were asked for have been read.
    pub fn settle(&self) {
        while let Some((path, mapped)) = self.next() {
            let _ = self.now(&path, &mapped);
        }
        while let Some(what) = self.next_to_keep() {
            self.give(what);
        }
        let mut state = self.lock();
        while state.is_busy {
            state = self.0.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the build ID of a file that was read before.
    pub fn known(&self, path: &[u8], file: FileId) -> Option<BuildId> {
        self.lock().known(path, file).flatten()
    }

    fn next(&self) -> Option<(Vec<u8>, MappedFile)> {
        self.lock().queue.pop_front()
    }

    fn next_to_keep(&self) -> Option<ToKeep> {
        self.lock().to_keep.pop_front()
    }

    fn give(&self, what: ToKeep) {
        if let Some(keeper) = &self.0.keeper {
            what.give(keeper);
        }
    }

    fn work(&self) {
        let _end = IdleOnDrop(self);
        let mut state = self.lock();
        loop {
            while let Some((path, mapped)) = state.queue.pop_front() {
                state.is_busy = true;
                drop(state);
                let _ = self.now(&path, &mapped);
                state = self.lock();
            }
            if let Some(what) = state.to_keep.pop_front() {
                state.is_busy = true;
                drop(state);
                self.give(what);
                state = self.lock();
                continue;
            }
            state.is_busy = false;
            self.0.idle.notify_all();
            state = self.0.added.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReaderState> {
        // Each change of the state is a single step, so a panic leaves it consistent.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the reader as idle when its thread ends, even by a panic, so that nothing waits for it.
struct IdleOnDrop<'a>(&'a BuildIdReader);

impl Drop for IdleOnDrop<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_busy = false;
        self.0.0.idle.notify_all();
    }
}

impl ReaderState {
    fn known(&self, path: &[u8], file: FileId) -> Option<Option<BuildId>> {
        self.found.get(path)?.iter().find(|(known, _)| *known == file).map(|(_, id)| *id)
    }
}
