//! The directory of kept files: `DIR/xx/yy….elf` by build ID, `DIR/jit` for the lists of JITs. It
//! is the user's alone.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use recrep_format::build_id::BuildId;
use recrep_unwind::image::{Contents, Reduction};

/// Suffix of kept programs and libraries.
const SUFFIX: &str = "elf";
/// Suffixes of all kept files.
const SUFFIXES: [&str; 3] = [SUFFIX, "map", "dump"];
/// Age of a temporary file from which its recorder is taken for dead.
const STALE: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
    /// Maximum size of all files in bytes.
    limit: u64,
    /// Number of temporary files made.
    made: AtomicU64,
}

impl Store {
    pub(super) fn new(directory: PathBuf, limit: u64) -> Self {
        Self { directory, limit, made: AtomicU64::new(0) }
    }

    /// Returns the size of the kept file with this build ID, whole or reduced; `None` if there is
    /// none.
    pub(super) fn size_of(&self, id: BuildId) -> Option<u64> {
        let kept = fs::symlink_metadata(self.place(id)?).ok()?;
        Some(kept.len())
    }

    fn place(&self, id: BuildId) -> Option<PathBuf> {
        let digits = id.to_string();
        let (first, rest) = digits.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
        Some(self.directory.join(first).join(rest).with_extension(SUFFIX))
    }

    /// Stores a file that was like `before` when its build ID was read, `whole` or reduced. Returns
    /// the size of the new file; 0 if there is one, and no better one is wanted.
    pub(super) fn put(
        &self,
        id: BuildId,
        file: &File,
        before: &Metadata,
        whole: bool,
    ) -> io::Result<u64> {
        let place = self.place(id).ok_or(ErrorKind::InvalidInput)?;
        if self.size_of(id).is_some_and(|there| !whole || there >= before.len()) {
            // The last use, by which the oldest are removed.
            File::options().write(true).open(&place)?.set_modified(SystemTime::now())?;
            return Ok(0);
        }
        let directory = place.parent().ok_or(ErrorKind::InvalidInput)?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let temporary = place.with_extension(format!("{}-{number}", std::process::id()));
        let copied = self.copy(file, before, &temporary, whole).and_then(|bytes| {
            fs::rename(&temporary, &place)?;
            Ok(bytes)
        });
        if copied.is_err() {
            // It may not have been made.
            let _ = fs::remove_file(&temporary);
        }
        copied
    }

    /// Clones, copies or reduces a file that was like `before`.
    fn copy(&self, file: &File, before: &Metadata, to: &Path, whole: bool) -> io::Result<u64> {
        let mut out =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(to)?;
        let mut source = FromStart { file, at: 0 };
        if rustix::fs::ioctl_ficlone(&out, file).is_err() {
            // A file that has nothing to leave out is copied, too.
            let is_reduced = !whole || before.len() > self.limit / 4;
            let reduction =
                is_reduced.then(|| Reduction::new(&mut source, Contents::Names).ok()).flatten();
            let size = reduction.as_ref().map_or(before.len(), Reduction::size);
            self.check_room(size, &out)?;
            source.at = 0;
            match reduction {
                Some(reduction) => {
                    reduction.write(&mut source, &mut out).map_err(io::Error::other)?;
                }
                None => copy_whole(file, &out, before.len())?,
            }
        }
        if version(before) != version(&file.metadata()?) {
            return Err(io::Error::other("it was changed after its build ID was read"));
        }
        Ok(out.metadata()?.len())
    }

    /// Checks that a file of this size neither exceeds the limit nor fills the disk.
    fn check_room(&self, size: u64, out: &File) -> io::Result<()> {
        let disk = rustix::fs::fstatvfs(out)?;
        let is_tight = disk.f_bavail.saturating_mul(disk.f_frsize) / 4 < size;
        if size > self.limit || is_tight { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// Returns the directory of JITs' lists.
    pub(super) fn lists(&self) -> PathBuf {
        self.directory.join("jit")
    }

    /// Writes a file of this size into the directory of JITs' lists, under a temporary name.
    pub(super) fn add_temporary(
        &self,
        size: u64,
        fill: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        let directory = self.lists();
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{}-{number}", std::process::id()));
        let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let filled = self.check_room(size, &out).and_then(|()| fill(&out));
        if filled.is_err() {
            // It is removed as an old temporary file otherwise.
            let _ = fs::remove_file(&path);
        }
        filled.map(|()| path)
    }

    /// Clones or copies a dump to which its process may append.
    pub(super) fn copy_dump(&self, dump: &File, out: &File, size: u64) -> io::Result<()> {
        if rustix::fs::ioctl_ficlone(out, dump).is_ok() {
            return Ok(());
        }
        if size > self.limit / 4 {
            Err(ErrorKind::StorageFull.into())
        } else {
            copy_whole(dump, out, size)
        }
    }

    /// Removes the files that were used longest ago until the rest is within the limit, and what
    /// recorders left that were killed.
    pub(super) fn trim(&self) {
        let mut files = Vec::new();
        for directory in entries(&self.directory) {
            for file in entries(&directory) {
                let Ok(metadata) = fs::symlink_metadata(&file) else { continue };
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if file
                    .extension()
                    .is_some_and(|suffix| SUFFIXES.iter().any(|kept| suffix == *kept))
                {
                    files.push((used, metadata.blocks() * 512, file));
                } else if used.elapsed().is_ok_and(|age| age > STALE) {
                    let _ = fs::remove_file(file);
                }
            }
        }
        files.sort_unstable();
        let mut size: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, bytes, file) in files {
            if size <= self.limit {
                break;
            }
            // Another recorder may have removed it.
            let _ = fs::remove_file(file);
            size -= bytes;
        }
    }
}

fn version(file: &Metadata) -> (i64, i64, u64) {
    (file.mtime(), file.mtime_nsec(), file.len())
}

/// Copies a file within the kernel where that is possible.
fn copy_whole(file: &File, out: &File, size: u64) -> io::Result<()> {
    let (mut from, mut to) = (0, 0);
    while from < size {
        let left = usize::try_from(size - from).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(file, Some(&mut from), out, Some(&mut to), left) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(_) if from == 0 => {
                let copied = io::copy(&mut FromStart { file, at: 0 }, &mut &*out)?;
                return if copied == size { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) };
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Reader of a file from its beginning, without changing the offset of the open file.
struct FromStart<'f> {
    file: &'f File,
    at: u64,
}

impl io::Read for FromStart<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl io::Seek for FromStart<'_> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let from = |base: u64, by: i64| base.checked_add_signed(by).ok_or(ErrorKind::InvalidInput);
        self.at = match to {
            io::SeekFrom::Start(at) => at,
            io::SeekFrom::Current(by) => from(self.at, by)?,
            io::SeekFrom::End(by) => from(self.file.metadata()?.len(), by)?,
        };
        Ok(self.at)
    }
}
