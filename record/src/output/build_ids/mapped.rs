//! The file behind a mapping: found while its process lives, in whatever container that is.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use object::ReadCache;
use recrep_format::build_id::BuildId;
use recrep_format::record::Inode;
use rustix::fs::{Mode, OFlags};

use super::elf;
use crate::output::keep::{Keeper, Mapped, is_elsewhere};

/// A file by device and inode, as a mapping gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device's major number.
    pub maj: u32,
    /// The device's minor number.
    pub min: u32,
    pub ino: u64,
    /// The generation of the inode, which file systems use again for other files; 0 if unknown.
    pub generation: u64,
}

impl From<Inode> for FileId {
    fn from(inode: Inode) -> Self {
        Self { maj: inode.maj, min: inode.min, ino: inode.ino, generation: inode.ino_generation }
    }
}

/// Identity of a mapped file, as the record of the mapping has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileIdentity {
    File(FileId),
    BuildId(BuildId),
}

impl Default for FileIdentity {
    fn default() -> Self {
        Self::File(FileId::default())
    }
}

/// A process's mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    pub pid: u32,
    pub range: Range<u64>,
    pub file: FileId,
}

impl MappedFile {
    /// Reads the build ID, if there is one, from the file that is mapped, `path` to the process,
    /// and gives the file to `keeper`. None: that file cannot be found any more.
    pub(super) fn read(&self, path: &[u8], keeper: Option<&Keeper>) -> Option<Option<BuildId>> {
        if path == b"[vdso]" {
            return Some(elf::of_vdso());
        }
        // Without an inode, the program cannot be distinguished from its libraries.
        let places = self.places(path, self.file.ino != 0);
        let file = places.iter().find_map(|place| self.open(place))?;
        let id = elf::in_elf(&ReadCache::new(&file));
        if let (Some(keeper), Some(id)) = (keeper, id) {
            keeper.take(id, file, Mapped { path, is_elsewhere: is_elsewhere(self.pid) });
        }
        Some(id)
    }

    /// Gives the file, whose build ID the kernel gave, to `keeper`.
    pub(super) fn keep(&self, path: &[u8], id: BuildId, keeper: &Keeper) {
        if let Some(file) = self.identified(path, &id) {
            keeper.take(id, file, Mapped { path, is_elsewhere: is_elsewhere(self.pid) });
        }
    }

    /// Opens the file that is mapped and has this build ID.
    pub(crate) fn identified(&self, path: &[u8], id: &BuildId) -> Option<File> {
        let places = self.places(path, true);
        let mut files = places.iter().filter_map(|place| self.open(place));
        // The path may be that of another version by now, which has replaced the one that runs.
        files.find(|file| elf::in_elf(&ReadCache::new(file)).is_some_and(|found| found.is_same(id)))
    }

    /// Opens the file that is mapped.
    pub(crate) fn file(&self, path: &[u8]) -> Option<File> {
        self.places(path, self.file.ino != 0).iter().find_map(|place| self.open(place))
    }

    /// Returns the paths at which the file may be. As long as the process lives, its mapping leads
    /// to the very file, deleted or not, but for `CAP_CHECKPOINT_RESTORE` only. Then the path in
    /// its own root, as in a container; its program, which may have been deleted; the path in ours.
    fn places(&self, path: &[u8], has_program: bool) -> Vec<Vec<u8>> {
        let Self { pid, range, .. } = self;
        let mapping =
            format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end).into_bytes();
        let root = [format!("/proc/{pid}/root").as_bytes(), path].concat();
        let program = has_program.then(|| format!("/proc/{pid}/exe").into_bytes());
        [mapping, root].into_iter().chain(program).chain([path.to_vec()]).collect()
    }

    /// Opens the file at `path` if it is the one that is mapped.
    fn open(&self, path: &[u8]) -> Option<File> {
        let file = open_regular(path).ok()?;
        // By the inode alone: some file systems (overlayfs, btrfs) show another device in mappings
        // than in stat. What has another inode was replaced meanwhile, or is a namesake in another
        // container.
        let same = self.file.ino == 0 || self.file.ino == file.metadata().ok()?.ino();
        same.then_some(file)
    }
}

/// Opens a regular file. Anything else is never opened, not even if it takes the file's place
/// meanwhile: a pipe would block, a device may act.
fn open_regular(path: &[u8]) -> io::Result<File> {
    let path = std::ffi::OsStr::from_bytes(path);
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let place = File::from(place);
    if !place.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    Ok(rustix::fs::open(link, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    /// Reads the build ID of what no living process has mapped, so that only the path is left.
    fn read(path: &Path, file: FileId) -> Option<Option<BuildId>> {
        MappedFile { pid: u32::MAX, range: 0..1, file }.read(path.as_os_str().as_bytes(), None)
    }

    fn id_of(path: &Path) -> FileId {
        let meta = fs::metadata(path).unwrap();
        let (maj, min) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        FileId { maj, min, ino: meta.ino(), generation: 0 }
    }

    #[test]
    fn a_file_that_was_replaced_is_not_identified() {
        let me = std::env::current_exe().unwrap();
        let id = id_of(&me);
        let known = elf::in_elf(fs::read(&me).unwrap().as_slice());
        assert!(known.is_some());
        let other = FileId { ino: id.ino + 1, ..id };
        assert_eq!(read(&me, other), None);
        let on_overlayfs = FileId { min: id.min + 1, ..id };
        assert_eq!(read(&me, on_overlayfs), Some(known));
        assert_eq!(read(&me, id), Some(known));
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("module.so");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        let file = id_of(&path);
        let reader = std::thread::spawn(move || read(&path, file));
        for _ in 0..500 {
            if reader.is_finished() {
                assert_eq!(reader.join().unwrap(), None);
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it is waited for a writer");
    }

    #[test]
    fn what_is_no_elf_file_has_none() {
        let read = |path| read(Path::new(path), FileId::default());
        assert_eq!(read("/etc/passwd"), Some(None));
        assert_eq!(read("/dev/zero"), None);
        assert_eq!(read("/no/such/file"), None);
    }

    #[test]
    fn a_deleted_program_is_found_by_its_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gone");
        fs::copy("/bin/sleep", &path).unwrap();
        let mut child = std::process::Command::new(&path).arg("100").spawn().unwrap();
        let file = id_of(&path);
        let known = elf::in_elf(fs::read(&path).unwrap().as_slice());
        fs::remove_file(&path).unwrap();
        // By its program, whatever the addresses.
        let mapped = MappedFile { pid: child.id(), range: 0..1, file };
        assert!(known.is_some());
        assert_eq!(mapped.read(path.as_os_str().as_bytes(), None), Some(known));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(mapped.read(path.as_os_str().as_bytes(), None), None);
    }
}
