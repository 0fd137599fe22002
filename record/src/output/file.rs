//! A recording in the making: appended to by vectored writes straight out of the rings, completed at the end.

use std::fs::{self, File};
use std::io::{self, IoSlice, IsTerminal, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use recrep_format::attr::AttrEntry;
use recrep_format::endian::Endian;
use recrep_format::feature::FeatureId;
use recrep_format::read::Frames;
use recrep_format::record::RawRecord;
use recrep_format::write::{FeatureWriter, FileWriter, PipeWriter};
use rustix::io::Errno;

use super::pack::Packer;
use super::place::Made;
use crate::messages::error::{Error, Result};
use crate::plan::config;

/// A perf.data file, or a stream in pipe mode, in the making.
#[derive(Debug)]
pub struct Output {
    /// The file; none for standard output.
    made: Option<Made>,
    sink: Form,
    packer: Option<Packer>,
    /// Room for the features, held until the end so that a disk that fills up has it.
    reserve: Option<File>,
}

/// Bytes that are held for the features.
const RESERVE: u64 = 8 << 10;

#[derive(Debug)]
enum Form {
    File(FileWriter<File>),
    Pipe(PipeWriter<File>),
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How long it is.
    pub length: u64,
    /// The file; none for standard output.
    pub path: Option<PathBuf>,
}

impl Output {
    /// Makes the file, its header for a recording that was killed: all records up to the end of the file. Or begins the
    /// stream, with all that is known by now, `head`.
    ///
    /// # Errors
    /// What cannot be created, renamed or written; a terminal as standard output.
    pub fn create(to: &config::Output, attrs: &[AttrEntry], head: &FeatureWriter) -> Result<Self> {
        let mut packer = to.compression.map(Packer::new).transpose()?;
        if to.is_stdout() {
            let stdout = io::stdout();
            if stdout.is_terminal() {
                let message =
                    "cannot write to standard output (-o -): it is a terminal; pipe it to rep -, or to a file";
                return Err(Error::Usage(message.to_owned()));
            }
            let file = stdout.as_fd().try_clone_to_owned().map_err(|e| unwritable(None, e))?;
            let mut known = head.clone();
            if let Some(packer) = &mut packer {
                known.add(&packer.feature());
            }
            let writer =
                PipeWriter::new(file.into(), Endian::NATIVE, attrs, &known).map_err(|e| unwritable(None, e))?;
            return Ok(Self { made: None, sink: Form::Pipe(writer), packer, reserve: None });
        }
        let (made, file) = Made::at(&to.path)?;
        let writer = FileWriter::new(file, Endian::NATIVE, attrs).map_err(|e| {
            // There is nothing in it that could be kept, unlike in the one that was there before.
            made.undo();
            unwritable(Some(&to.path), e)
        })?;
        let reserve = reserve_beside(&to.path);
        Ok(Self { made: Some(made), sink: Form::File(writer), packer, reserve })
    }

    /// Appends records as they are.
    ///
    /// # Errors
    /// What writing gives.
    pub fn write(&mut self, records: &[u8]) -> Result<()> {
        self.write_whole(&mut [IoSlice::new(records)]).map(drop)
    }

    /// Appends what the rings gave, `parts`, one after the other, and then a record of our own, in as few system calls as the
    /// kernel needs. Gives the number of bytes that were appended.
    ///
    /// # Errors
    /// What writing gives.
    pub fn write_parts(&mut self, parts: &[IoSlice<'_>], mark: &[u8]) -> Result<u64> {
        match self.packer.take() {
            None => {
                let mut parts: Vec<IoSlice<'_>> = parts.to_vec();
                parts.push(IoSlice::new(mark));
                self.write_whole(&mut parts)
            }
            Some(mut packer) => {
                let packed = parts.iter().try_for_each(|part| packer.add(part)).and_then(|()| packer.flush());
                let records = [packer.records(), mark];
                let written = packed.and_then(|()| self.write_whole(&mut records.map(IoSlice::new)));
                packer.clear();
                self.packer = Some(packer);
                written
            }
        }
    }

    /// Appends records as they are, in parts, also where what the rings give is compressed: a payload that follows its record
    /// must be where readers find it. Gives the number of bytes.
    ///
    /// # Errors
    /// What writing gives.
    pub fn write_plain(&mut self, parts: &[IoSlice<'_>]) -> Result<u64> {
        self.write_whole(&mut parts.to_vec())
    }

    /// Writes everything, or fails.
    fn write_whole(&mut self, mut parts: &mut [IoSlice<'_>]) -> Result<u64> {
        let total: u64 = parts.iter().map(|p| p.len() as u64).sum();
        let mut left = total;
        while left > 0 {
            match rustix::io::writev(self.sink.file().as_fd(), parts) {
                Ok(0) => return Err(self.failed(io::ErrorKind::WriteZero.into())),
                Ok(written) => {
                    IoSlice::advance_slices(&mut parts, written);
                    left -= written as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_for_room(),
                Err(e) => return Err(self.failed(e.into())),
            }
        }
        match &mut self.sink {
            Form::File(writer) => writer.wrote(total),
            Form::Pipe(writer) => writer.wrote(total),
        }
        Ok(total)
    }

    /// A pipe that does not block may be full.
    fn wait_for_room(&mut self) {
        use rustix::event::{PollFd, PollFlags, poll};
        // Whatever it says, the next write tells.
        let _ = poll(&mut [PollFd::new(self.sink.file(), PollFlags::OUT)], None);
    }

    /// How many bytes there are by now: where the next record goes.
    #[must_use]
    pub fn length(&self) -> u64 {
        match &self.sink {
            Form::File(writer) => writer.position(),
            Form::Pipe(writer) => writer.position(),
        }
    }

    /// Whether it is a stream: then nothing can be said of it at its end but in records.
    #[must_use]
    pub fn is_pipe(&self) -> bool {
        matches!(self.sink, Form::Pipe(_))
    }

    /// Completes the file: features, and the header that knows where all is; or the stream, by the features that it has not.
    ///
    /// # Errors
    /// What writing gives.
    pub fn finish(self, mut features: FeatureWriter) -> Result<Finished> {
        let path = self.made.map(|made| made.path);
        drop(self.reserve);
        if let Some(packer) = &self.packer {
            features.add(&packer.feature());
        }
        let length = match self.sink {
            Form::File(writer) => complete_or_cut(writer, &features),
            Form::Pipe(mut writer) => writer.features(&features).and_then(|()| {
                let length = writer.position();
                writer.finish().map(|_| length)
            }),
        };
        Ok(Finished { length: length.map_err(|e| unwritable(path.as_deref(), e))?, path })
    }

    /// Keeps of the batch that could not be written what records of it are whole, as far as `room` is left for features, and
    /// gives each of them to `see`. Nothing of a compressed one, whose parts say nothing.
    pub fn keep(&mut self, room: u64, mut see: impl FnMut(&RawRecord<'_>)) {
        let Form::File(writer) = &mut self.sink else { return };
        let start = writer.position();
        let length = writer.get_mut().metadata().map_or(0, |found| found.len()).saturating_sub(room);
        let Ok(size) = usize::try_from(length.saturating_sub(start)) else { return };
        let mut bytes = vec![0; size];
        if self.packer.is_some() || writer.get_mut().read_exact_at(&mut bytes, start).is_err() {
            return;
        }
        let mut frames = Frames::new(&bytes, start, Endian::NATIVE);
        frames.by_ref().map_while(std::result::Result::ok).for_each(|record| see(&record));
        writer.wrote(frames.offset() - start);
    }

    /// Completes a file that could not be written to any more, up to what was kept, with the features that there is room for. Gives
    /// its length.
    pub fn salvage(self, mut features: FeatureWriter) -> u64 {
        let length = self.length();
        if let Some(packer) = &self.packer {
            features.add(&packer.feature());
        }
        let Form::File(mut writer) = self.sink else { return length };
        drop(self.reserve);
        // Where even this fails, the file is what a killed recorder leaves: it can be read up to its last whole record.
        let cut = cut(writer.get_mut(), length);
        let path = self.made.map(|made| made.path).unwrap_or_default();
        let done = cut.and_then(|()| complete_or_cut(writer, &features));
        done.or_else(|_| fs::metadata(path).map(|found| found.len())).unwrap_or(length)
    }

    /// Gives the file another name.
    ///
    /// # Errors
    /// What renaming gives.
    pub fn rename(&mut self, name: PathBuf) -> Result<()> {
        self.made.as_mut().map_or(Ok(()), |made| made.rename(name))
    }

    /// Undoes the making: the file goes, the one that was there before comes back.
    pub fn undo(self) {
        if let Some(made) = self.made {
            made.undo();
        }
    }

    fn failed(&self, why: io::Error) -> Error {
        unwritable(self.made.as_ref().map(|made| made.path.as_path()), why)
    }
}

impl Form {
    fn file(&mut self) -> &mut File {
        match self {
            Self::File(writer) => writer.get_mut(),
            Self::Pipe(writer) => writer.get_mut(),
        }
    }
}

/// Writes features and header. Gives the file's length.
fn complete(writer: FileWriter<File>, features: &FeatureWriter) -> io::Result<u64> {
    Ok(writer.finish(features)?.metadata()?.len())
}

/// The same; where there is no room for all features, the file has those that matter most.
fn complete_or_cut(mut writer: FileWriter<File>, features: &FeatureWriter) -> io::Result<u64> {
    let (end, bare) = (writer.position(), writer.bare_header());
    let mut file = writer.get_mut().try_clone()?;
    let full = no_room(&file, end, features);
    let length = match full {
        None => complete(writer, features),
        Some(_) => complete(writer, &most_wanted(&file, end, features)),
    };
    let length = length.inspect_err(|_| {
        if cut(&mut file, end).is_ok() {
            // The header's place was written to before.
            let _ = file.write_all_at(&bare, 0);
        }
    });
    full.map_or(length, Err)
}

/// The features that there is room for: the one without which the file cannot be unpacked, what shows which machine it is of,
/// and the build IDs.
fn most_wanted(file: &File, end: u64, features: &FeatureWriter) -> FeatureWriter {
    const WANTED: [FeatureId; 5] =
        [FeatureId::COMPRESSED, FeatureId::HOSTNAME, FeatureId::OSRELEASE, FeatureId::ARCH, FeatureId::BUILD_ID];
    let first = |count: usize| {
        let mut few = FeatureWriter::new(Endian::NATIVE);
        let wanted = WANTED.iter().take(count);
        for (id, bytes) in wanted.filter_map(|wanted| features.parts().find(|(id, _)| id == wanted)) {
            few.add_bytes(id, bytes.to_vec());
        }
        few
    };
    let fits = |few: &FeatureWriter| no_room(file, end, few).is_none();
    (1..=WANTED.len()).rev().map(first).find(fits).unwrap_or_else(|| first(1))
}

/// Asks for room for the features. Why there is none; a file system that cannot tell is taken to have it.
fn no_room(file: &File, end: u64, features: &FeatureWriter) -> Option<io::Error> {
    let size = features.parts().map(|(_, bytes)| bytes.len() as u64 + 16).sum::<u64>();
    let asked = rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), end, size.max(1));
    asked.err().filter(|why| [Errno::NOSPC, Errno::DQUOT, Errno::FBIG].contains(why)).map(io::Error::from)
}

/// Room on the file system of `path`, in a file without a name that goes with its descriptor; `None` if there is none to be had.
fn reserve_beside(path: &Path) -> Option<File> {
    use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR).ok()?;
    fallocate(&file, FallocateFlags::empty(), 0, RESERVE).ok()?;
    Some(file.into())
}

fn cut(file: &mut File, end: u64) -> io::Result<()> {
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end)).map(drop)
}

fn unwritable(path: Option<&Path>, why: io::Error) -> Error {
    let tried = match path {
        Some(path) => format!("cannot write '{}'; what is in it up to there can be read", path.display()),
        None => "cannot write to standard output".to_owned(),
    };
    Error::unwritable(tried, why)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
