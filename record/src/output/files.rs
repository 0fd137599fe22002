//! A recording in the making: its file, or its directory of files, and the threads that write them.

use std::fs::File;
use std::io::{self, IoSlice, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recrep_format::attr::AttrEntry;
use recrep_format::feature::DirFormat;
use recrep_format::record::RawRecord;
use recrep_format::write::FeatureWriter;

use super::data_file::{DataFile, unwritable};
use super::pack::Packer;
use super::place::{self, Made};
use super::queue::{Batch, Written};
use super::tally::Counts;
use super::unwind::{Rewriter, Spaces, Unwinding};
use super::writer::Writer;
use crate::messages::error::{Error, Result};
use crate::plan::config;

/// A perf.data file, a directory of them, or a stream in pipe mode, in the making.
///
/// Appended records are copied into a queue, and written by a thread. So an error may be that of an
/// earlier append.
#[derive(Debug)]
pub struct Output {
    /// The file or the directory; none for standard output.
    made: Option<Made>,
    /// Writers; those of a directory's records come after the first, which then has the file of the
    /// header alone.
    writers: Vec<Writer>,
    /// Files of all writers, once these have ended.
    ended: Vec<DataFile>,
    /// Summary of the written records, once the writers have ended.
    written: Written,
    /// Each ring's writer, and its file among those of the writer; none where all is in one file.
    places: Vec<Option<(usize, usize)>>,
    length: Arc<AtomicU64>,
    is_pipe: bool,
    unwinding: Option<Arc<Unwinding>>,
    /// Room for the features, held until the end so that a disk that fills up has it.
    reserve: Option<File>,
}

fn packer(to: &config::OutputOptions) -> Result<Option<Packer>> {
    to.compression.map(Packer::new).transpose()
}

/// Bytes that are held for the features.
const RESERVE: u64 = 8 << 10;
/// Bytes that wait in the queue of one of many writers at least.
const LEAST_QUEUE: usize = 1 << 20;

/// Distribution of a recording over files.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The rings of each thread that writes a file for each of them, into a directory; none: all is
    /// in one file.
    pub groups: Vec<Vec<usize>>,
    /// Number of bytes that may wait to be written.
    pub queue: usize,
    /// State for unwinding copied stacks; `None` if samples are written unchanged.
    pub unwinding: Option<Arc<Unwinding>>,
}

/// Length and place of a recording that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    pub length: u64,
    /// The file or the directory; none for standard output.
    pub path: Option<PathBuf>,
}

impl Output {
    /// Makes the file or the directory, its header for a recording that was killed: all records up
    /// to the end of the file. Or begins the stream, with all that is known by now, `head`.
    pub fn create(
        to: &config::OutputOptions,
        attrs: &[AttrEntry],
        head: &FeatureWriter,
        layout: &Layout,
    ) -> Result<Self> {
        let mut output = Self {
            made: None,
            writers: Vec::new(),
            ended: Vec::new(),
            written: Written::default(),
            places: Vec::new(),
            length: Arc::new(AtomicU64::new(0)),
            is_pipe: to.is_stdout(),
            unwinding: layout.unwinding.clone(),
            reserve: None,
        };
        if output.is_pipe {
            let data = DataFile::stream(stdout()?, attrs, head, packer(to)?)?;
            output.start_writer(vec![data], layout.queue)?;
            return Ok(output);
        }
        let rings = layout.groups.iter().flatten().max().map_or(0, |last| last + 1);
        let (made, mut files) = if layout.groups.is_empty() {
            Made::at(&to.path).map(|(made, file)| (made, vec![(to.path.clone(), file)]))?
        } else {
            Made::directory(&to.path, place::names(rings))?
        };
        let streams = files.split_off(1);
        output.places = vec![None; rings];
        let started = output
            .start_first(files, to, attrs, layout)
            .and_then(|()| output.start_others(streams, to, layout));
        if let Err(error) = started {
            // The writers end first. There is nothing to keep, unlike in the file that was there
            // before.
            drop(output);
            made.undo();
            return Err(error);
        }
        output.made = Some(made);
        output.reserve = reserve_beside(&to.path);
        Ok(output)
    }

    fn start_writer(&mut self, files: Vec<DataFile>, queue: usize) -> Result<()> {
        let writer = Writer::start(files, queue, &self.length, self.unwinding.as_ref())?;
        self.writers.push(writer);
        Ok(())
    }

    /// Starts the writer of the file with the header.
    fn start_first(
        &mut self,
        files: Vec<(PathBuf, File)>,
        to: &config::OutputOptions,
        attrs: &[AttrEntry],
        layout: &Layout,
    ) -> Result<()> {
        let mut data = Vec::new();
        for (path, file) in files {
            data.push(DataFile::new(file, &path, attrs, packer(to)?)?);
        }
        self.start_writer(data, layout.queue)
    }

    /// Starts a writer for each group of rings, with a file for each ring.
    fn start_others(
        &mut self,
        streams: Vec<(PathBuf, File)>,
        to: &config::OutputOptions,
        layout: &Layout,
    ) -> Result<()> {
        let mut streams: Vec<_> = streams.into_iter().map(Some).collect();
        let share = (layout.queue / layout.groups.len().max(1)).max(LEAST_QUEUE);
        for group in &layout.groups {
            let mut own = Vec::new();
            for ring in group {
                let Some((path, file)) = streams.get_mut(*ring).and_then(Option::take) else {
                    continue;
                };
                if let Some(place) = self.places.get_mut(*ring) {
                    *place = Some((self.writers.len(), own.len()));
                }
                own.push(DataFile::records(file, path, packer(to)?));
            }
            self.start_writer(own, share)?;
        }
        Ok(())
    }

    /// Appends records as they are.
    pub fn write(&self, records: &[u8]) -> Result<()> {
        self.append(&[IoSlice::new(records)], |bytes| Batch { bytes, ..Batch::default() })
    }

    /// Appends records that are counted: samples of our own.
    pub(crate) fn write_counted(&self, records: &[u8], counts: Counts) -> Result<()> {
        self.append(&[IoSlice::new(records)], |bytes| Batch { bytes, counts, ..Batch::default() })
    }

    /// Appends AUX trace, parts of a record and its payload, which stay as they are also where
    /// records are compressed: readers look for the payload behind its record. Its place is among
    /// those that [`settle`](Self::settle) returns.
    pub fn write_trace(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        self.append(parts, |bytes| Batch { bytes, is_trace: true, ..Batch::default() })
    }

    /// Appends what rings gave, `parts`, one after the other, and then a record of our own, `mark`.
    /// If each ring has a file, the parts are of `ring`, and there is no mark: such files have no
    /// rounds.
    pub fn write_rings(
        &self,
        ring: usize,
        parts: &[IoSlice<'_>],
        mark: &[u8],
        counts: Counts,
    ) -> Result<()> {
        let packable = parts.iter().map(|part| part.len()).sum();
        let (writer, file) = self.places.get(ring).copied().flatten().unwrap_or_default();
        let Some(writer) = self.writers.get(writer) else { return Err(over()) };
        let mut bytes = writer.queue.gather(parts);
        if !self.is_split() {
            bytes.extend_from_slice(mark);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let round = self.unwinding.as_ref().map(|unwinding| unwinding.rounds());
        writer.push(Batch { bytes, packable, counts, file, round, is_trace: false })
    }

    /// Says that all rings have been emptied once more.
    pub fn end_round(&self) {
        let Some(unwinding) = &self.unwinding else { return };
        let rounds = unwinding.end_round();
        for writer in &self.writers {
            writer.queue.end_round(rounds);
        }
    }

    /// Returns an unwinder of the stacks of processes, with what is known of them if samples are
    /// unwound.
    pub(crate) fn rewriter(&self) -> Rewriter {
        Rewriter::new(self.unwinding.clone().unwrap_or_default())
    }

    /// Returns what is known of the mappings of processes, if samples are unwound.
    pub(crate) fn spaces(&self) -> Option<&Spaces> {
        self.unwinding.as_ref().map(|unwinding| &unwinding.spaces)
    }

    fn append(&self, parts: &[IoSlice<'_>], batch: impl FnOnce(Vec<u8>) -> Batch) -> Result<()> {
        let writer = self.writers.first().ok_or_else(over)?;
        let bytes = writer.queue.gather(parts);
        if bytes.is_empty() { Ok(()) } else { writer.push(batch(bytes)) }
    }

    /// Returns whether each ring has a file of its own, in a directory.
    pub fn is_split(&self) -> bool {
        !self.places.is_empty()
    }

    /// Returns the number of bytes by now: what was appended, or what was written where that is
    /// less for being compressed.
    pub fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// Returns whether it is a stream: then nothing can be said of it at its end but in records.
    pub fn is_pipe(&self) -> bool {
        self.is_pipe
    }

    /// Waits until all is written that was appended.
    pub fn settle(&self) -> Result<Written> {
        let mut all = Written::default();
        for writer in &self.writers {
            all.add(&writer.queue.settle()?);
        }
        Ok(all)
    }

    pub fn written(&self) -> Written {
        let mut all = self.written.clone();
        for writer in &self.writers {
            all.add(&writer.queue.written());
        }
        all
    }

    /// Finishes the file: writes the features, then the final header. In pipe mode, sends the
    /// remaining features.
    pub fn finish(mut self, features: FeatureWriter) -> Result<Finished> {
        self.settle()?;
        self.end()?;
        let features = self.complete(features);
        let mut length = 0;
        let path = self.made.as_ref().map(|made| made.path.clone());
        drop(self.reserve);
        for file in self.ended {
            length += file.finish(&features).map_err(|e| unwritable(path.as_deref(), e))?;
        }
        Ok(Finished { length, path })
    }

    /// Ends the writing, and keeps of batches that could not be written what records of them are
    /// whole, as far as `room` is left for features; gives each of them to `see`. Returns what was
    /// written before.
    pub fn keep(&mut self, room: u64, mut see: impl FnMut(&RawRecord<'_>)) -> Written {
        // A thread that panicked has said so itself, and its files are those of a killed recorder.
        let _ = self.end();
        for file in &mut self.ended {
            file.keep(room, &mut see);
        }
        self.written.clone()
    }

    /// Completes a file that could not be written to any more, up to what was kept, with the
    /// features that there is room for. Returns its length.
    pub fn salvage(mut self, features: FeatureWriter) -> u64 {
        let _ = self.end();
        let features = self.complete(features);
        drop(self.reserve);
        self.ended.into_iter().map(|file| file.salvage(&features)).sum()
    }

    /// Renames it to the first of these names that is free, and returns that; `None` for what has
    /// no name to change.
    pub fn rename(&mut self, names: impl Iterator<Item = PathBuf>) -> Result<Option<PathBuf>> {
        self.made.as_mut().map_or(Ok(None), |made| made.rename(names))
    }

    /// Undoes the making: the file goes, the one that was there before comes back.
    pub fn undo(mut self) {
        let _ = self.end();
        if let Some(made) = self.made {
            made.undo();
        }
    }

    /// Ends the threads that write, when they have written all that waits or have failed.
    fn end(&mut self) -> Result<()> {
        let mut ended = Ok(());
        for writer in self.writers.drain(..) {
            let queue = Arc::clone(&writer.queue);
            match writer.end() {
                Ok(files) => self.ended.extend(files),
                Err(error) => ended = Err(error),
            }
            self.written.add(&queue.written());
        }
        ended
    }

    /// Adds the features that say how its files are read.
    fn complete(&self, mut features: FeatureWriter) -> FeatureWriter {
        let packers: Vec<_> = self.ended.iter().filter_map(DataFile::packer).collect();
        if !packers.is_empty() {
            features.add(&Packer::feature_of(packers));
        }
        if self.is_split() {
            features.add(&DirFormat { version: 1 });
        }
        features
    }
}

/// Standard output, if it can take a recording.
fn stdout() -> Result<File> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        let message = "cannot write to standard output (-o -): it is a terminal; pipe it to rep \
                       -, or to a file";
        return Err(Error::Usage(message.to_owned()));
    }
    stdout.as_fd().try_clone_to_owned().map(File::from).map_err(|e| unwritable(None, e))
}

fn over() -> Error {
    Error::Failed(
        "cannot write to a recording that has ended; please report it as a bug of rec".to_owned(),
    )
}

/// Room on the file system of `path`, in a file without a name that goes with its descriptor;
/// `None` if there is none to be had.
fn reserve_beside(path: &Path) -> Option<File> {
    use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file =
        open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)
            .ok()?;
    fallocate(&file, FallocateFlags::empty(), 0, RESERVE).ok()?;
    Some(file.into())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
