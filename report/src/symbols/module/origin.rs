//! The machine and the files that a recording describes.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use object::elf;
use recrep_format::build_id::BuildId;
use recrep_format::error::Error;
use recrep_format::feature::{Arch, CpuDesc, Hostname, OsRelease};
use recrep_format::read;
use recrep_format::record::Inode;

use super::bundle::Bundle;
use crate::symbols::file::Refusal;

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
}
