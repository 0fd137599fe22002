//! Proofs that a file, the kernel or a machine is the recorded one.
//!
//! A symbol name is shown only if it is proven to come from the recorded file. What proves it, by
//! where names come from:
//!
//! * A mapped file: its build ID ([`checked_image`]). If none was recorded, the recording was made
//!   on this machine ([`Origin::made`]), and the file has the recorded device and inode and was not
//!   written to since ([`check_recorded`]).
//! * A separate debug file: the build ID of the mapped file or, if that has none, the checksum in
//!   its debuglink. One that several share (dwz): the build ID in the link to it. Compressed symbols
//!   are in the file itself.
//! * The running kernel: its build ID; if none was recorded, its release *and* the address of its
//!   reference symbol ([`super::kernel`]). A kept list: the build ID it is kept under; the
//!   reference symbol says how far it was moved.
//! * A kernel module: its own build ID, or the proof of its kernel, and in both cases that it is
//!   still at its address. Its file: the build ID, or this machine and that the file was not written
//!   to since.
//! * The vdso: its build ID, or that of its kernel, or this machine.
//! * A copy (perf's cache, rec's): as the mapped file, its build ID.
//! * A file of a living process: as the mapped file, and this machine: `/proc/PID/map_files`, `exe`
//!   and `root` only lead to it ([`super::processes`]).
//! * A JIT's map: this machine; written to since the process began, and not after it ended (or, if
//!   it neither lives nor has a recorded end, after the recording); its user's or root's
//!   ([`super::jit`]). If its beginning is not known, written to since the boot: `rep
//!   modules` says that this is a judgement. One kept by rec, or a jitdump: the times of the
//!   recording's first and last sample, and the pid, if the recording has no two processes with it;
//!   rec checked the rest while it knew the process.
//! * A jitdump: this machine, and the device and inode of the mapped page of it, if it was not
//!   created after the process had ended.
//! * BPF programs and trampolines: the records themselves.
//! * Text that was moved to anonymous memory: the proof of the file that was mapped there before;
//!   `rep modules` says that this is a judgement.
//! * A bundle: the recording itself has it.
//! * `--vmlinux`, `--kallsyms`, `--symfs`, `--trust-paths`: none; the user says so, and a build ID
//!   that contradicts is reported.
//!
//! What does not count: a build ID of zeros (a field that the recorder left empty); a build ID that was
//! recorded for a path from which several files were mapped; a host name alone; the address of the
//! kernel alone, which many kernels share; a kernel's build ID where its load address was not
//! recorded, unless it is still the same boot. Guests' code has no name.
//!
//! Without proof no name is shown, and `rep modules` says which proof is missing.

use std::fs::{File, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

use recrep_format::build_id::BuildId;

use crate::input::map::Bytes;
use crate::symbols::elf::ElfImage;
use crate::symbols::file::{self, Refusal};
use crate::symbols::module::origin::{FileId, Origin};

/// Proof required that a file is the recorded one, or belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The file must have this build ID.
    BuildId(BuildId),
    /// The file's contents must have this checksum.
    Checksum(u32),
    /// No further proof: the file is proven otherwise, or the user trusts it.
    Trust,
}

/// Opens a file as [`checked_image`] does.
pub(crate) fn open_image(path: &Path, proof: Proof, origin: &Origin) -> Result<ElfImage, Refusal> {
    checked_image(file::bytes_of(file::open(path)?)?, proof, origin)
}

/// Parses a file and checks the proof and that the recorded machine can run its architecture.
pub(crate) fn checked_image(
    file: Bytes,
    proof: Proof,
    origin: &Origin,
) -> Result<ElfImage, Refusal> {
    let image = ElfImage::parse(file)?;
    origin.runs(image.machine)?;
    match (proof, image.build_id) {
        (Proof::BuildId(recorded), None) => Err(Refusal::NoBuildId { recorded }),
        (Proof::BuildId(recorded), Some(found)) if !recorded.is_same(&found) => {
            Err(Refusal::BuildIdMismatch { recorded, found })
        }
        (Proof::Checksum(linked), _) => {
            let found = crc32fast::hash(&image.file);
            if found == linked { Ok(image) } else { Err(Refusal::CrcMismatch { linked, found }) }
        }
        _ => Ok(image),
    }
}

/// Returns a sentence if the build ID found in the file at `path`, which is used, is not the
/// recorded one.
pub(crate) fn contradiction(
    path: &Path,
    recorded: Option<BuildId>,
    found: Option<BuildId>,
) -> Option<String> {
    let (recorded, found) =
        recorded.zip(found).filter(|(recorded, found)| !recorded.is_same(found))?;
    Some(format!("{} has build ID {found}, but {recorded} was recorded", path.display()))
}

/// Returns the time at which this machine was booted.
pub(crate) fn booted() -> SystemTime {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = Duration::from_secs(u64::try_from(since.tv_sec).unwrap_or(0));
    SystemTime::now().checked_sub(seconds).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Checks that a file is the recorded one and was not modified after `written`, the end of the
/// recording.
pub(crate) fn check_recorded(
    file: &File,
    recorded: Option<FileId>,
    written: Option<SystemTime>,
) -> Result<(), Refusal> {
    let recorded = recorded.ok_or(Refusal::NoInode)?;
    let found = file.metadata()?;
    if FileId::from(&found) != recorded {
        return Err(Refusal::OtherInode);
    }
    // Inode numbers are reused: a new file may have the number of the one that it replaced.
    check_unchanged(&found, written)
}

/// Checks that a file was not modified after `written`, the end of the recording.
pub(crate) fn check_unchanged(file: &Metadata, written: Option<SystemTime>) -> Result<(), Refusal> {
    match (file.modified(), written) {
        (Ok(modified), Some(written)) if modified > written => Err(Refusal::Changed),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_inode_and_modification_time_identify_a_file() {
        let file = tempfile::tempfile().unwrap();
        let metadata = file.metadata().unwrap();
        let (id, modified) = (FileId::from(&metadata), metadata.modified().unwrap());
        assert!(
            check_recorded(&file, Some(id), Some(modified)).is_ok()
                && check_recorded(&file, Some(id), None).is_ok()
        );
        let before = modified - Duration::from_secs(1);
        assert!(matches!(check_recorded(&file, Some(id), Some(before)), Err(Refusal::Changed)));
        let (major, minor) = (id.major + 1, id.minor + 1);
        for other in [FileId { major, ..id }, FileId { minor, ..id }, FileId { inode: 1, ..id }] {
            assert!(matches!(check_recorded(&file, Some(other), None), Err(Refusal::OtherInode)));
        }
        assert!(matches!(check_recorded(&file, None, None), Err(Refusal::NoInode)));
    }
}
