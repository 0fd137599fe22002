//! A file in the making: appended to by vectored writes, completed at the end.

use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom};
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
use crate::messages::error::{Error, Result};

/// A perf.data file, a stream in pipe mode, or a file of a directory that has records only, in the
/// making.
#[derive(Debug)]
pub(super) struct DataFile {
    /// The file; none for standard output.
    path: Option<PathBuf>,
    form: Form,
    packer: Option<Packer>,
}

#[derive(Debug)]
enum Form {
    File(FileWriter<File>),
    Pipe(PipeWriter<File>),
    Records { file: File, length: u64 },
}

impl DataFile {
    /// Writes the header of a file for a recording that was killed: all records up to the end of
    /// the file.
    pub(super) fn new(
        file: File,
        path: &Path,
        attrs: &[AttrEntry],
        packer: Option<Packer>,
    ) -> Result<Self> {
        let writer =
            FileWriter::new(file, Endian::NATIVE, attrs).map_err(|e| unwritable(Some(path), e))?;
        Ok(Self { path: Some(path.to_owned()), form: Form::File(writer), packer })
    }

    /// Begins a stream, with all that is known by now, `head`.
    pub(super) fn stream(
        file: File,
        attrs: &[AttrEntry],
        head: &FeatureWriter,
        packer: Option<Packer>,
    ) -> Result<Self> {
        let mut known = head.clone();
        if let Some(packer) = &packer {
            known.add(&packer.feature());
        }
        let writer = PipeWriter::new(file, Endian::NATIVE, attrs, &known)
            .map_err(|e| unwritable(None, e))?;
        Ok(Self { path: None, form: Form::Pipe(writer), packer })
    }

    /// Begins a file that has records only.
    pub(super) fn records(file: File, path: PathBuf, packer: Option<Packer>) -> Self {
        Self { path: Some(path), form: Form::Records { file, length: 0 }, packer }
    }

    /// Returns whether records are compressed.
    pub(super) fn packs(&self) -> bool {
        self.packer.is_some()
    }

    /// Returns what compresses the records.
    pub(super) fn packer(&self) -> Option<&Packer> {
        self.packer.as_ref()
    }

    /// Returns the length by now: the place of the next record.
    pub(super) fn position(&self) -> u64 {
        match &self.form {
            Form::File(writer) => writer.position(),
            Form::Pipe(writer) => writer.position(),
            Form::Records { length, .. } => *length,
        }
    }

    /// Appends records, which may be compressed, and then bytes as they are.
    pub(super) fn write(&mut self, packable: &[u8], plain: &[u8]) -> Result<()> {
        let Some(mut packer) = self.packer.take() else {
            return self.write_whole(&mut [packable, plain].map(IoSlice::new));
        };
        let packed = packer.add(packable).and_then(|()| packer.flush());
        let written = packed
            .and_then(|()| self.write_whole(&mut [packer.records(), plain].map(IoSlice::new)));
        packer.clear();
        self.packer = Some(packer);
        written
    }

    /// Writes everything, or fails.
    fn write_whole(&mut self, mut parts: &mut [IoSlice<'_>]) -> Result<()> {
        let total: u64 = parts.iter().map(|p| p.len() as u64).sum();
        let mut left = total;
        while left > 0 {
            match rustix::io::writev(self.form.file().as_fd(), parts) {
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
        self.form.wrote(total);
        Ok(())
    }

    /// A pipe that does not block may be full.
    fn wait_for_room(&mut self) {
        use rustix::event::{PollFd, PollFlags, poll};
        // An error shows at the next write.
        let _ = poll(&mut [PollFd::new(self.form.file(), PollFlags::OUT)], None);
    }

    /// Completes a file by its features and the header that knows where all is; a stream by the
    /// features that it has not. Returns the length.
    pub(super) fn finish(self, features: &FeatureWriter) -> io::Result<u64> {
        match self.form {
            Form::File(writer) => complete_or_cut(writer, features),
            Form::Pipe(mut writer) => writer.features(features).and_then(|()| {
                let length = writer.position();
                writer.finish().map(|_| length)
            }),
            Form::Records { length, .. } => Ok(length),
        }
    }

    /// Keeps of a batch that could not be written what records of it are whole, as far as `room` is
    /// left for features, and gives each of them to `see`. Nothing of a compressed one, whose parts
    /// say nothing.
    pub(super) fn keep(&mut self, room: u64, mut see: impl FnMut(&RawRecord<'_>)) {
        let start = self.position();
        if self.packer.is_some() || matches!(self.form, Form::Pipe(_)) {
            return;
        }
        let file = self.form.file();
        let length = file.metadata().map_or(0, |found| found.len()).saturating_sub(room);
        let Ok(size) = usize::try_from(length.saturating_sub(start)) else { return };
        let mut bytes = vec![0; size];
        if file.read_exact_at(&mut bytes, start).is_err() {
            return;
        }
        let mut frames = Frames::new(&bytes, start, Endian::NATIVE);
        for record in frames.by_ref().map_while(std::result::Result::ok) {
            see(&record);
        }
        self.form.wrote(frames.offset() - start);
    }

    /// Completes a file that could not be written to any more, up to what was kept, with the
    /// features that there is room for. Returns its length.
    pub(super) fn salvage(mut self, features: &FeatureWriter) -> u64 {
        let length = self.position();
        if matches!(self.form, Form::Pipe(_)) {
            return length;
        }
        // Where even this fails, the file is what a killed recorder leaves: it can be read up to
        // its last whole record.
        let cut = cut(self.form.file(), length);
        let copy = self.form.file().try_clone();
        let done = cut.and_then(|()| self.finish(features));
        done.or_else(|_| copy.and_then(|file| file.metadata()).map(|found| found.len()))
            .unwrap_or(length)
    }

    fn failed(&self, why: io::Error) -> Error {
        unwritable(self.path.as_deref(), why)
    }
}

impl Form {
    fn file(&mut self) -> &mut File {
        match self {
            Self::File(writer) => writer.get_mut(),
            Self::Pipe(writer) => writer.get_mut(),
            Self::Records { file, .. } => file,
        }
    }

    fn wrote(&mut self, bytes: u64) {
        match self {
            Self::File(writer) => writer.wrote(bytes),
            Self::Pipe(writer) => writer.wrote(bytes),
            Self::Records { length, .. } => *length += bytes,
        }
    }
}

/// Writes features and header. Gives the file's length.
fn complete(writer: FileWriter<File>, features: &FeatureWriter) -> io::Result<u64> {
    Ok(writer.finish(features)?.metadata()?.len())
}

/// Writes features and header; if there is no room for all features, those that matter most.
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

/// The features that there is room for: those without which the file cannot be read, what shows
/// which machine it is of, and the build IDs.
fn most_wanted(file: &File, end: u64, features: &FeatureWriter) -> FeatureWriter {
    use FeatureId as Id;
    const WANTED: [FeatureId; 6] =
        [Id::COMPRESSED, Id::DIR_FORMAT, Id::HOSTNAME, Id::OSRELEASE, Id::ARCH, Id::BUILD_ID];
    let first = |count: usize| {
        let mut few = FeatureWriter::new(Endian::NATIVE);
        let wanted = WANTED.iter().take(count);
        for (id, bytes) in wanted.filter_map(|wanted| features.parts().find(|(id, _)| id == wanted))
        {
            few.add_bytes(id, bytes.to_vec());
        }
        few
    };
    (1..=WANTED.len())
        .rev()
        .map(first)
        .find(|few| no_room(file, end, few).is_none())
        .unwrap_or_else(|| first(2))
}

/// Reserves room for the features. Returns why there is none; file systems that cannot reserve are
/// assumed to have it.
fn no_room(file: &File, end: u64, features: &FeatureWriter) -> Option<io::Error> {
    let size = features.parts().map(|(_, bytes)| bytes.len() as u64 + 16).sum::<u64>();
    let asked = rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), end, size.max(1));
    asked
        .err()
        .filter(|why| [Errno::NOSPC, Errno::DQUOT, Errno::FBIG].contains(why))
        .map(io::Error::from)
}

fn cut(file: &mut File, end: u64) -> io::Result<()> {
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end)).map(drop)
}

pub(super) fn unwritable(path: Option<&Path>, why: io::Error) -> Error {
    let tried = match path {
        Some(path) => {
            format!("cannot write '{}'; the records written so far can be read", path.display())
        }
        None => "cannot write to standard output".to_owned(),
    };
    Error::unwritable(tried, why)
}
