//! The thread that writes: what waits in a queue, into one file or several.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use super::data_file::DataFile;
use super::queue::{Batch, Queue};
use super::unwind::{Chains, Rewriter, Unwinding};
use crate::messages::error::{Error, Result};

/// A thread and the queue before it.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) queue: Arc<Queue>,
    length: Arc<AtomicU64>,
    /// `true` if records are rewritten or compressed: the length is known only when a batch is
    /// written.
    changes: bool,
    thread: JoinHandle<Vec<DataFile>>,
}

impl Writer {
    pub(super) fn start(
        files: Vec<DataFile>,
        most: usize,
        length: &Arc<AtomicU64>,
        unwinding: Option<&Arc<Unwinding>>,
    ) -> Result<Self> {
        let queue = Arc::new(Queue::new(most));
        let changes = unwinding.is_some() || files.iter().any(DataFile::packs);
        length.fetch_add(files.iter().map(DataFile::position).sum(), Ordering::Relaxed);
        let rewriter = unwinding.map(|shared| Rewriter::new(Arc::clone(shared)));
        let (its_queue, its_length) = (Arc::clone(&queue), Arc::clone(length));
        let thread = Builder::new()
            .name("writer".to_owned())
            .spawn(move || write(files, &its_queue, &its_length, rewriter));
        let thread =
            thread.map_err(|e| Error::io("cannot start the thread that writes the file", e))?;
        Ok(Self { queue, length: Arc::clone(length), changes, thread })
    }

    pub(super) fn push(&self, batch: Batch) -> Result<()> {
        let length = batch.bytes.len() as u64;
        self.queue.push(batch)?;
        if !self.changes {
            self.length.fetch_add(length, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Waits until all is written that was queued, or writing has failed, and returns the files.
    pub(super) fn end(self) -> Result<Vec<DataFile>> {
        self.queue.close();
        self.thread.join().map_err(|_| panicked())
    }
}

/// Ends the queue if the thread panics, so that no one waits for room forever.
struct EndOnPanic<'a>(&'a Queue);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(panicked());
        }
    }
}

fn panicked() -> Error {
    Error::Failed(
        "the thread that writes the file panicked; please report it as a bug of rec".to_owned(),
    )
}

/// Writes until the queue ends.
fn write(
    mut files: Vec<DataFile>,
    queue: &Queue,
    length: &AtomicU64,
    mut rewriter: Option<Rewriter>,
) -> Vec<DataFile> {
    let _guard = EndOnPanic(queue);
    let changes = rewriter.is_some();
    while let Some(batch) = queue.next() {
        let Some(file) = files.get_mut(batch.file) else { break };
        let at = file.position();
        let mut chains = Chains::default();
        let (records, rest) = batch.bytes.split_at(batch.packable.min(batch.bytes.len()));
        let written = match rewriter.as_mut().filter(|_| !records.is_empty()) {
            Some(rewriter) => {
                let written = file.write(rewriter.rewrite(records, batch.counts.last), rest);
                chains = rewriter.take_chains();
                written
            }
            None => file.write(records, rest),
        };
        match written {
            Ok(()) => {
                if changes || file.packs() {
                    length.fetch_add(file.position() - at, Ordering::Relaxed);
                }
                queue.wrote(batch, at, &chains);
            }
            Err(error) => queue.fail(error),
        }
    }
    files
}
