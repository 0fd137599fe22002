//! Which machine a recording was made on, and whether that is this one.
//!
//! A name is shown only where something proves that it comes from the recorded file. In this order:
//!
//! 1. The recorded build ID is that of the file ([`super::search`]) or of the running kernel ([`super::kernel`]).
//! 2. The recording was made on this machine ([`Host::made`]), and the file at the recorded path has the recorded device and
//!    inode ([`FileId`]) and did not change since.
//! 3. The running kernel has the recorded release, and either the recording was made on this machine or the kernel's reference symbol
//!    is exactly where it was; a recording that does not tell its release needs the latter.
//!
//! Where there is no proof there is no name: `rep modules` says which one was missing.

use std::time::SystemTime;

use object::elf;
use recrep_format::build_id::BuildId;
use recrep_format::feature::{Arch, Hostname, OsRelease};
use recrep_format::read::File;
use recrep_format::record::Inode;

use super::outcome::Refusal;

/// The machine of a recording, as far as the recording describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Its host name (`HOSTNAME`).
    pub hostname: Option<String>,
    /// Its kernel's release (`OSRELEASE`).
    pub release: Option<String>,
    /// Its architecture as `uname -m` prints it (`ARCH`).
    pub arch: Option<String>,
    /// Its kernel's build ID.
    pub kernel: Option<BuildId>,
    /// A symbol of its kernel and that symbol's address.
    pub reference: Option<Reference>,
    /// Time at which the recording's file was last written; `None` for a stream.
    pub written: Option<SystemTime>,
}

/// A symbol of the kernel and the address it had when the file was recorded: `_text` or `_stext`, from the name and
/// the page offset of the kernel's `MMAP` record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    /// The symbol's name.
    pub symbol: String,
    /// Its address in the recorded kernel.
    pub address: u64,
}

impl Reference {
    /// The reference symbol in the name of the kernel's `MMAP` record (`[kernel.kallsyms]_text`) and its address, that record's
    /// page offset; `None` where the recorder could not read it.
    #[must_use]
    pub fn of(name: &[u8], pgoff: u64) -> Option<Self> {
        let end = name.iter().position(|&byte| byte == b']')? + 1;
        let symbol = name.get(end..).filter(|symbol| !symbol.is_empty() && pgoff != 0)?;
        Some(Self { symbol: String::from_utf8_lossy(symbol).into_owned(), address: pgoff })
    }
}

impl Origin {
    /// The machine that the features of `file` describe.
    #[must_use]
    pub fn of(file: &File<'_>) -> Self {
        Self {
            hostname: file.feature::<Hostname<'_>>().and_then(Result::ok).map(|it| it.0.to_text().into_owned()),
            release: file.feature::<OsRelease<'_>>().and_then(Result::ok).map(|it| it.0.to_text().into_owned()),
            arch: file.feature::<Arch<'_>>().and_then(Result::ok).map(|it| it.0.to_text().into_owned()),
            ..Self::default()
        }
    }

    /// Checks that a file of this ELF machine can run on the recorded architecture.
    pub(super) fn runs(&self, machine: elf::Machine) -> Result<(), Refusal> {
        let Some(arch) = self.arch.as_deref() else { return Ok(()) };
        match machines_of(arch) {
            Some(machines) if !machines.contains(&machine) => Err(Refusal::OtherArchitecture { recorded: arch.into() }),
            _ => Ok(()),
        }
    }
}

/// The ELF machines whose programs run on an architecture; `None` for one that is not known.
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

/// A file by device and inode, as an `MMAP2` record and `stat(2)` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Major number of the device.
    pub major: u32,
    /// Minor number of the device.
    pub minor: u32,
    /// Inode.
    pub inode: u64,
}

impl FileId {
    /// The file that a record names; `None` if it names none.
    #[must_use]
    pub fn of(inode: &Inode) -> Option<Self> {
        (inode.ino != 0).then_some(Self { major: inode.maj, minor: inode.min, inode: inode.ino })
    }
}

/// This machine.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) hostname: String,
    pub(super) release: String,
    pub(super) arch: String,
}

impl Host {
    /// What `uname(2)` says.
    pub(super) fn this() -> Self {
        let name = rustix::system::uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        Self { hostname: text(name.nodename()), release: text(name.release()), arch: text(name.machine()) }
    }

    /// Checks that the recording was made on this machine under this release of the kernel.
    pub(super) fn made(&self, origin: &Origin) -> Result<(), Refusal> {
        self.is_like(origin)?;
        match &origin.hostname {
            Some(recorded) if *recorded != self.hostname => Err(Refusal::OtherMachine {
                what: "host name",
                recorded: recorded.clone(),
                found: self.hostname.clone(),
            }),
            Some(_) if origin.release.is_some() && origin.arch.is_some() => Ok(()),
            _ => Err(Refusal::UnknownMachine),
        }
    }

    /// Checks that release and architecture are not known to differ.
    pub(super) fn is_like(&self, origin: &Origin) -> Result<(), Refusal> {
        let both = [("kernel release", &origin.release, &self.release), ("architecture", &origin.arch, &self.arch)];
        for (what, recorded, found) in both {
            if let Some(recorded) = recorded.as_ref().filter(|recorded| *recorded != found) {
                return Err(Refusal::OtherMachine { what, recorded: recorded.clone(), found: found.clone() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host { hostname: "desk".into(), release: "6.1.0".into(), arch: "x86_64".into() }
    }

    fn origin(hostname: &str, release: &str, arch: &str) -> Origin {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Origin { hostname: text(hostname), release: text(release), arch: text(arch), ..Origin::default() }
    }

    #[test]
    fn the_kernel_has_a_reference_symbol() {
        let reference = Reference::of(b"[kernel.kallsyms]_text", 0xffff_ffff_8100_0000);
        assert_eq!(reference, Some(Reference { symbol: "_text".into(), address: 0xffff_ffff_8100_0000 }));
        assert_eq!(Reference::of(b"[kernel.kallsyms]_text", 0), None);
        assert_eq!(Reference::of(b"[kernel.kallsyms]", 1), None);
    }

    #[test]
    fn all_three_names_make_the_machine() {
        let host = host();
        assert!(host.made(&origin("desk", "6.1.0", "x86_64")).is_ok());
        for (other, what) in [
            (origin("shelf", "6.1.0", "x86_64"), "host name"),
            (origin("desk", "6.1.1", "x86_64"), "kernel release"),
            (origin("desk", "6.1.0", "aarch64"), "architecture"),
        ] {
            assert!(matches!(host.made(&other), Err(Refusal::OtherMachine { what: found, .. }) if found == what));
        }
        for unknown in [Origin::default(), origin("desk", "", "x86_64"), origin("", "6.1.0", "x86_64")] {
            assert!(matches!(host.made(&unknown), Err(Refusal::UnknownMachine)), "{unknown:?}");
        }
    }

    #[test]
    fn files_of_another_architecture_are_refused() {
        let on = |arch: &str, machine| origin("", "", arch).runs(machine).is_ok();
        assert!(on("x86_64", elf::EM_X86_64) && on("x86_64", elf::EM_386) && on("armv7l", elf::EM_ARM));
        assert!(!on("armv7l", elf::EM_X86_64) && !on("i686", elf::EM_X86_64) && !on("aarch64", elf::EM_386));
        assert!(on("", elf::EM_X86_64) && on("unheard-of", elf::EM_X86_64));
    }
}
