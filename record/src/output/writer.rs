//! The thread that writes: what waits in a queue, into one file or several.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use super::data_file::DataFile;
use super::queue::{Batch, Queue};
use crate::messages::error::{Error, Result};

/// A thread and the queue before it.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) queue: Arc<Queue>,
    length: Arc<AtomicU64>,
    /// `true` if the length is known only when a batch is written.
    packs: bool,
    thread: JoinHandle<Vec<DataFile>>,
}

impl Writer {
    pub(super) fn start(
        files: Vec<DataFile>,
        most: usize,
        length: &Arc<AtomicU64>,
    ) -> Result<Self> {
        let queue = Arc::new(Queue::new(most));
        let packs = files.iter().any(DataFile::packs);
        length.fetch_add(files.iter().map(DataFile::position).sum(), Ordering::Relaxed);
        let (its_queue, its_length) = (Arc::clone(&queue), Arc::clone(length));
        let thread = Builder::new()
            .name("writer".to_owned())
            .spawn(move || write(files, &its_queue, &its_length));
        let thread =
            thread.map_err(|e| Error::io("cannot start the thread that writes the file", e))?;
        Ok(Self { queue, length: Arc::clone(length), packs, thread })
    }

    pub(super) fn push(&self, batch: Batch) -> Result<()> {
        let length = batch.bytes.len() as u64;
        self.queue.push(batch)?;
        if !self.packs {
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

/// Ends the queue if the thread panics, so that nobody waits for room for ever.
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
fn write(mut files: Vec<DataFile>, queue: &Queue, length: &AtomicU64) -> Vec<DataFile> {
    let _guard = EndOnPanic(queue);
    while let Some(batch) = queue.next() {
        let Some(file) = files.get_mut(batch.file) else { break };
        let at = file.position();
        match file.write(&batch.bytes, batch.packable) {
            Ok(()) => {
                if file.packs() {
                    length.fetch_add(file.position() - at, Ordering::Relaxed);
                }
                queue.wrote(batch, at);
            }
            Err(error) => queue.fail(error),
        }
    }
    files
}
