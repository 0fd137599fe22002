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
//!   reference symbol ([`super::super::kernel`]). A kept list: the build ID it is kept under; the
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
//!   ([`super::super::jit`]). If its beginning is not known, written to since the boot: `rep
//!   modules` says that this is a judgement. One kept by rec, or a jitdump: the times of the
//!   recording's first and last sample, and the pid, if the recording has no two processes with it;
//!   rec checked the rest while it knew the process.
//! * A jitdump: this machine, and the device and inode of the mapped page of it.
//! * BPF programs and trampolines: the records themselves.
//! * Text that was moved to anonymous memory: the proof of the file that was mapped there before;
//!   `rep modules` says that this is a judgement.
//! * A bundle: the recording itself has it.
//! * `--vmlinux`, `--kallsyms`, `--symfs`, `--trust-paths`: none; the user says so, and a build ID
//!   that contradicts is told.
//!
//! What does not count: a build ID of zeros (a place that nobody filled); a build ID that was
//! recorded for a path from which several files were mapped; a host name alone; the address of the
//! kernel alone, which many kernels share; a kernel's build ID where its load address was not
//! recorded, unless it is still the same boot. Guests' code has no name.
//!
//! Without proof no name is shown, and `rep modules` says which proof is missing.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use object::elf;
use recrep_format::build_id::BuildId;
use recrep_format::error::Error;
use recrep_format::feature::{Arch, CpuDesc, Hostname, OsRelease};
use recrep_format::read;
use recrep_format::record::Inode;

use super::bundle::Bundle;
use super::file;
use crate::input::map::Bytes;
use crate::symbols::elf::ElfImage;
use crate::symbols::outcome::Refusal;

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

/// Recorded machine, as far as the recording describes it; or this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Host name (`HOSTNAME`).
    pub hostname: Option<String>,
    /// Kernel release (`OSRELEASE`).
    pub release: Option<String>,
    /// Architecture as `uname -m` prints it (`ARCH`).
    pub arch: Option<String>,
    /// Description of its processor (`CPUDESC`). Names of hosts repeat.
    pub cpu: Option<String>,
    /// Build ID of the kernel.
    pub kernel: Option<BuildId>,
    /// Symbol of the kernel with its recorded address.
    pub reference: Option<Reference>,
    /// Names that the recording has itself: they come before all files.
    pub(crate) bundle: Option<Arc<Bundle>>,
}

/// Reference symbol of the kernel (`_text` or `_stext`) with its recorded address, from the name
/// and the page offset of the kernel's `MMAP` record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    pub symbol: String,
    pub address: u64,
}

impl Reference {
    /// Returns the reference symbol from the name of the kernel's `MMAP` record
    /// (`[kernel.kallsyms]_text`) and its address from that record's page offset; `None` if the
    /// recorder could not read it.
    pub fn of(name: &[u8], pgoff: u64) -> Option<Self> {
        let end = name.iter().position(|&byte| byte == b']')? + 1;
        let symbol = name.get(end..).filter(|symbol| !symbol.is_empty() && pgoff != 0)?;
        Some(Self { symbol: String::from_utf8_lossy(symbol).into_owned(), address: pgoff })
    }
}

impl Origin {
    /// Returns the machine described by the features of `file`, and the error of a bundle whose
    /// names cannot be read.
    pub fn of(file: &read::File<'_>) -> (Self, Option<Error>) {
        let (bundle, error) = match Bundle::of(file) {
            Some(Ok(bundle)) => (Some(bundle.into()), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let mut origin = Self { bundle, ..Self::default() };
        if let Some(Ok(name)) = file.feature::<Hostname<'_>>() {
            origin.hostname = Some(name.0.to_text().into_owned());
        }
        if let Some(Ok(release)) = file.feature::<OsRelease<'_>>() {
            origin.release = Some(release.0.to_text().into_owned());
        }
        if let Some(Ok(arch)) = file.feature::<Arch<'_>>() {
            origin.arch = Some(arch.0.to_text().into_owned());
        }
        if let Some(Ok(cpu)) = file.feature::<CpuDesc<'_>>() {
            origin.cpu = Some(spaced(&cpu.0.to_text()));
        }
        (origin, error)
    }

    /// Returns this machine as `uname(2)` describes it.
    pub(crate) fn here() -> Self {
        let name = rustix::system::uname();
        let [hostname, release, arch] = [name.nodename(), name.release(), name.machine()]
            .map(|name| Some(name.to_string_lossy().into_owned()));
        Self { hostname, release, arch, cpu: described_cpu(), ..Self::default() }
    }

    /// Checks that the recording was made on this machine, with the kernel release that runs now.
    pub(crate) fn made(&self, recording: &Self) -> Result<(), Refusal> {
        self.is_like(recording)?;
        check_same("host name", &recording.hostname, &self.hostname)?;
        check_same("processor", &recording.cpu, &self.cpu)?;
        let known = [&recording.hostname, &recording.release, &recording.arch];
        if known.iter().all(|text| text.is_some()) { Ok(()) } else { Err(Refusal::UnknownMachine) }
    }

    /// Checks that neither release nor architecture was recorded with another value than this
    /// machine has.
    pub(crate) fn is_like(&self, recording: &Self) -> Result<(), Refusal> {
        check_same("kernel release", &recording.release, &self.release)?;
        check_same("architecture", &recording.arch, &self.arch)
    }

    /// Checks that a file for this ELF machine can run on the recorded architecture, if that is
    /// known.
    pub(crate) fn runs(&self, machine: elf::Machine) -> Result<(), Refusal> {
        let Some(arch) = self.arch.as_deref() else { return Ok(()) };
        match machines_of(arch) {
            Some(machines) if !machines.contains(&machine) => {
                Err(Refusal::OtherArchitecture { recorded: arch.into() })
            }
            _ => Ok(()),
        }
    }
}

fn check_same(
    what: &'static str,
    recorded: &Option<String>,
    found: &Option<String>,
) -> Result<(), Refusal> {
    match (recorded, found) {
        (Some(recorded), Some(found)) if recorded != found => {
            Err(Refusal::OtherMachine { what, recorded: recorded.clone(), found: found.clone() })
        }
        _ => Ok(()),
    }
}

/// Returns the description of this machine's processor, as recorders write it.
fn described_cpu() -> Option<String> {
    const FIRST: u64 = 4096;
    let mut text = Vec::new();
    // The whole file is long where there are many processors.
    File::open("/proc/cpuinfo").ok()?.take(FIRST).read_to_end(&mut text).ok()?;
    cpu_in(&String::from_utf8_lossy(&text))
}

fn cpu_in(cpuinfo: &str) -> Option<String> {
    let names = ["model name", "Processor", "cpu", "vendor_id", "cpu model", "uarch"];
    names.into_iter().find_map(|name| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields.find_map(|(key, value)| (key.trim_end() == name).then(|| spaced(value)))
    })
}

/// Returns the text with a single space between words.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the time at which this machine was booted.
pub(crate) fn booted() -> SystemTime {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = Duration::from_secs(u64::try_from(since.tv_sec).unwrap_or(0));
    SystemTime::now().checked_sub(seconds).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns the ELF machines whose programs run on an architecture; `None` if the architecture is
/// unknown.
fn machines_of(arch: &str) -> Option<&'static [elf::Machine]> {
    Some(match arch {
        "x86_64" | "amd64" => &[elf::EM_X86_64, elf::EM_386],
        "i386" | "i486" | "i586" | "i686" => &[elf::EM_386],
        "aarch64" | "aarch64_be" | "arm64" => &[elf::EM_AARCH64, elf::EM_ARM],
        _ if arch.starts_with("arm") => &[elf::EM_ARM],
        _ if arch.starts_with("ppc") => &[elf::EM_PPC64, elf::EM_PPC],
        _ if arch.starts_with("s390") => &[elf::EM_S390],
        _ if arch.starts_with("riscv") => &[elf::EM_RISCV],
        _ if arch.starts_with("mips") => &[elf::EM_MIPS],
        _ if arch.starts_with("loongarch") => &[elf::EM_LOONGARCH],
        _ if arch.starts_with("sparc") => &[elf::EM_SPARC, elf::EM_SPARC32PLUS, elf::EM_SPARCV9],
        _ => return None,
    })
}

/// Device and inode of a file, as in an `MMAP2` record and in `stat(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    pub major: u32,
    pub minor: u32,
    pub inode: u64,
}

impl From<&Metadata> for FileId {
    fn from(file: &Metadata) -> Self {
        Self {
            major: rustix::fs::major(file.dev()),
            minor: rustix::fs::minor(file.dev()),
            inode: file.ino(),
        }
    }
}

impl FileId {
    /// Returns the device and inode in a record; `None` if the inode is 0, which means unknown.
    pub fn of(inode: &Inode) -> Option<Self> {
        (inode.ino != 0).then_some(Self { major: inode.maj, minor: inode.min, inode: inode.ino })
    }
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
    fn the_kernel_has_a_reference_symbol() {
        let reference = Reference::of(b"[kernel.kallsyms]_text", 0xffff_ffff_8100_0000);
        assert_eq!(
            reference,
            Some(Reference { symbol: "_text".into(), address: 0xffff_ffff_8100_0000 })
        );
        assert_eq!(Reference::of(b"[kernel.kallsyms]_text", 0), None);
        assert_eq!(Reference::of(b"[kernel.kallsyms]", 1), None);
    }

    #[test]
    fn machines_of_one_name_are_told_apart_by_their_processors() {
        let text = |text: &str| Some(text.to_owned());
        let here = Origin {
            hostname: text("localhost"),
            release: text("6.1"),
            arch: text("x86_64"),
            ..Origin::here()
        };
        let with = |cpu: Option<String>| Origin { cpu, ..here.clone() };
        assert!(here.made(&here).is_ok() && here.made(&with(None)).is_ok());
        assert!(with(None).made(&with(text("Xeon"))).is_ok());
        let refusal = with(text("Xeon")).made(&with(text("EPYC"))).unwrap_err();
        assert!(matches!(refusal, Refusal::OtherMachine { what: "processor", .. }));
        let x86 = "processor\t: 0\nmodel\t\t: 167\nmodel name\t: Intel(R)   Xeon(R) CPU\n";
        assert_eq!(cpu_in(x86).as_deref(), Some("Intel(R) Xeon(R) CPU"));
        assert_eq!(cpu_in("processor\t: 0\nCPU part\t: 0xd0c\n"), None);
    }

    #[test]
    fn files_of_another_architecture_are_refused() {
        let on = |arch: &str, machine| {
            let arch = (!arch.is_empty()).then(|| arch.to_owned());
            Origin { arch, ..Origin::default() }.runs(machine).is_ok()
        };
        assert!(
            on("x86_64", elf::EM_X86_64) && on("x86_64", elf::EM_386) && on("armv7l", elf::EM_ARM)
        );
        assert!(
            !on("armv7l", elf::EM_X86_64)
                && !on("i686", elf::EM_X86_64)
                && !on("aarch64", elf::EM_386)
        );
        assert!(on("", elf::EM_X86_64) && on("unheard-of", elf::EM_X86_64));
    }

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
