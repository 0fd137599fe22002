//! What was mapped: a module's identity (perf calls it a DSO).
//!
//! Two mappings are of the same module when path, build ID and kind are equal. [`Module::of_user_mapping`] holds the
//! rules by which the text in an `MMAP` record becomes a kind: most are paths, some are the kernel's own names in
//! brackets, and code in anonymous memory belongs to whatever `/tmp/perf-PID.map` says about it.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use recrep_format::build_id::BuildId;

use super::origin::{FileId, Origin};

/// The identity of something that was mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Module {
    /// The path as recorded: bytes, since a file name need not be UTF-8. For what is no file, the kernel's name for it.
    pub path: Arc<[u8]>,
    /// The build ID as recorded, if it was. A file with another one is not this module.
    pub build_id: Option<BuildId>,
    /// What it is, and so where its symbols come from.
    pub kind: ModuleKind,
    /// The mount namespace (its inode) in which the path means something, if the recording tells.
    pub mounts: Option<u64>,
    /// The file's device and inode as recorded; `None` where the record has a build ID in their place, or neither.
    pub file: Option<FileId>,
    /// The machine that it was mapped on.
    pub origin: Arc<Origin>,
}

/// What a module is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleKind {
    /// A file that was mapped by a process.
    File,
    /// The kernel's own library, mapped into every process.
    Vdso,
    /// The kernel image; [`Origin::reference`] tells by how much it has moved since it was recorded.
    Kernel,
    /// A loadable kernel module; `path` is its file's path or its name in brackets.
    KernelModule {
        /// Where it was loaded.
        start: u64,
    },
    /// Code in anonymous memory of this process: a JIT's.
    PerfMap {
        /// The process, in the recorder's pid namespace.
        pid: i32,
        /// The `jit-PID.dump` that it mapped, if it did.
        dump: Option<JitDump>,
    },
    /// Code that the kernel made, named by the record that says so (BPF programs, trampolines); `path` is its name.
    KernelSymbol {
        /// Where it begins.
        start: u64,
        /// One past its last byte.
        end: u64,
    },
    /// Memory that holds no symbols: heap, stack, shared memory.
    Opaque,
}

/// A file in which a JIT leaves its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JitDump {
    /// Its path as recorded.
    pub path: Arc<[u8]>,
    /// Its device and inode as recorded.
    pub file: Option<FileId>,
}

/// The space in which a module's symbols are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addressing {
    /// `ip - map.start + map.pgoff`.
    FileOffset,
    /// `ip - map.start`: the module is one image, whatever page offset its record has.
    ImageOffset,
    /// `ip`.
    Absolute,
}

impl Module {
    fn new(path: &[u8], build_id: Option<BuildId>, kind: ModuleKind) -> Self {
        Self { path: path.into(), build_id, kind, mounts: None, file: None, origin: Arc::default() }
    }

    /// A mapped file.
    #[must_use]
    pub fn file(path: &[u8], build_id: Option<BuildId>) -> Self {
        Self::new(path, build_id, ModuleKind::File)
    }

    /// The kernel image, by the name that its `MMAP` record or its entry among the build IDs has.
    #[must_use]
    pub fn kernel(path: &[u8], build_id: Option<BuildId>) -> Self {
        Self::new(path, build_id, ModuleKind::Kernel)
    }

    /// A kernel module that was loaded at `start`; `path` is its file, or its name in brackets.
    #[must_use]
    pub fn kernel_module(path: &[u8], start: u64, build_id: Option<BuildId>) -> Self {
        Self::new(path, build_id, ModuleKind::KernelModule { start })
    }

    /// Code of the kernel with a name of its own, at `start..end`.
    #[must_use]
    pub fn kernel_symbol(name: &[u8], start: u64, end: u64) -> Self {
        Self::new(name, None, ModuleKind::KernelSymbol { start, end })
    }

    /// The same, mapped on this machine.
    #[must_use]
    pub fn on(self, origin: &Arc<Origin>) -> Self {
        Self { origin: origin.clone(), ..self }
    }

    /// What a user mapping of process `pid` is, from the text, the protection (`PROT_EXEC`) and the `MAP_HUGETLB` flag
    /// of its record.
    #[must_use]
    pub fn of_user_mapping(path: &[u8], pid: i32, executable: bool, huge: bool, build_id: Option<BuildId>) -> Self {
        let kind = match path {
            b"[vdso]" | b"[vdso32]" | b"[vdsox32]" => ModuleKind::Vdso,
            _ if huge || is_anonymous(path) || is_no_file(path) => {
                if executable {
                    let path = format!("/tmp/perf-{pid}.map");
                    return Self::new(path.as_bytes(), None, ModuleKind::PerfMap { pid, dump: None });
                }
                ModuleKind::Opaque
            }
            _ => ModuleKind::File,
        };
        Self::new(path, build_id, kind)
    }

    /// The name that reports show: the base name of a path; what is no file has a name of its own.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match &self.kind {
            ModuleKind::PerfMap { pid, .. } => format!("[JIT] tid {pid}").into(),
            ModuleKind::KernelModule { .. } => {
                let name = self.kernel_module_name();
                if name.is_empty() { self.base_name() } else { format!("[{name}]").into() }
            }
            // As perf names a kernel whose build ID stands beside the path of its image.
            ModuleKind::Kernel if memchr::memmem::find(&self.path, b"vmlinux").is_some() => "[kernel.vmlinux]".into(),
            ModuleKind::Vdso | ModuleKind::KernelSymbol { .. } => String::from_utf8_lossy(&self.path),
            ModuleKind::Kernel | ModuleKind::File | ModuleKind::Opaque => self.base_name(),
        }
    }

    /// The name that listings of single records show: the whole path, a kernel module's name.
    #[must_use]
    pub fn long_name(&self) -> Cow<'_, str> {
        match &self.kind {
            ModuleKind::PerfMap { pid, .. } => format!("/tmp/perf-{pid}.map").into(),
            // perf knows the path of those that the table of build IDs names.
            ModuleKind::KernelModule { .. } if self.build_id.is_none() => self.name(),
            ModuleKind::KernelModule { .. }
            | ModuleKind::Kernel
            | ModuleKind::KernelSymbol { .. }
            | ModuleKind::Vdso
            | ModuleKind::File
            | ModuleKind::Opaque => String::from_utf8_lossy(&self.path),
        }
    }

    /// In which space its symbols live.
    #[must_use]
    pub fn addressing(&self) -> Addressing {
        match self.kind {
            ModuleKind::File => Addressing::FileOffset,
            ModuleKind::Vdso => Addressing::ImageOffset,
            ModuleKind::Kernel
            | ModuleKind::KernelModule { .. }
            | ModuleKind::KernelSymbol { .. }
            | ModuleKind::PerfMap { .. }
            | ModuleKind::Opaque => Addressing::Absolute,
        }
    }

    /// The address to look up for `ip` in a mapping of this module.
    #[must_use]
    pub fn lookup_address(&self, ip: u64, map_start: u64, pgoff: u64) -> u64 {
        match self.addressing() {
            Addressing::FileOffset => ip.wrapping_sub(map_start).wrapping_add(pgoff),
            Addressing::ImageOffset => ip.wrapping_sub(map_start),
            Addressing::Absolute => ip,
        }
    }

    /// The path as the file system takes it.
    pub(super) fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// A kernel module's name, as `/proc/modules` spells it: from `[name]`, or from the file's name without `.ko` and
    /// the suffix of a compression, with `-` read as `_`.
    pub(super) fn kernel_module_name(&self) -> String {
        let base = self.base_name();
        let inner = base.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&base);
        without_ko(inner).unwrap_or(inner).replace('-', "_")
    }

    fn base_name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(base_name(&self.path))
    }
}

/// The name of a kernel module by its path or its name in brackets; `None` for the kernel itself, whatever its file is called.
#[must_use]
pub fn kernel_module_name(path: &[u8]) -> Option<String> {
    let base = String::from_utf8_lossy(base_name(path));
    let is_module = if base.starts_with('[') { !base.starts_with("[kernel.") } else { without_ko(&base).is_some() };
    is_module.then(|| Module::kernel_module(path, 0, None).kernel_module_name())
}

fn base_name(path: &[u8]) -> &[u8] {
    let base = memchr::memrchr(b'/', path).and_then(|at| path.get(at + 1..)).filter(|base| !base.is_empty());
    base.unwrap_or(path)
}

/// The name of a kernel module's file without `.ko` and the suffix of a compression; `None` if it has none.
fn without_ko(name: &str) -> Option<&str> {
    let at = name.find(".ko")?;
    matches!(name.get(at + 3..), Some("" | ".gz" | ".xz" | ".zst")).then(|| name.get(..at))?
}

/// Whether two build IDs are the same. perf.data has room for 20 bytes and not every recorder tells how many count, so
/// zeros at the end say nothing.
pub(super) fn same_build_id(a: &BuildId, b: &BuildId) -> bool {
    a.padded() == b.padded()
}

/// Memory that no file is behind.
fn is_anonymous(path: &[u8]) -> bool {
    path.is_empty()
        || path.starts_with(b"//anon")
        || path.starts_with(b"/dev/zero")
        || path.starts_with(b"/anon_hugepage")
}

/// Memory with a name that is no path.
fn is_no_file(path: &[u8]) -> bool {
    path.starts_with(b"[stack") || path.starts_with(b"/SYSV") || path.starts_with(b"[heap]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_named_after_its_image() {
        let name = |path: &[u8]| Module::kernel(path, None).name().into_owned();
        assert_eq!(name(b"[kernel.kallsyms]"), "[kernel.kallsyms]");
        assert_eq!(name(b"/lib/modules/4.16/build/vmlinux"), "[kernel.vmlinux]");
        assert_eq!(name(b"/boot/kernel-5"), "kernel-5");
    }

    #[test]
    fn the_kernel_is_no_module_of_its_own() {
        for kernel in [&b"[kernel.kallsyms]"[..], b"/lib/modules/4.16/build/vmlinux", b"/boot/kernel-5"] {
            assert_eq!(kernel_module_name(kernel), None);
        }
        assert_eq!(kernel_module_name(b"/lib/modules/6.1/snd-pcm.ko.xz").as_deref(), Some("snd_pcm"));
        assert_eq!(kernel_module_name(b"[ext4]").as_deref(), Some("ext4"));
    }

    #[test]
    fn user_mappings_are_told_apart() {
        let of = |path: &[u8], executable| Module::of_user_mapping(path, 7, executable, false, None);
        assert_eq!(of(b"/bin/ls", true).kind, ModuleKind::File);
        assert_eq!(of(b"/bin/ls", true).name(), "ls");
        assert_eq!(of(b"[vdso]", true).kind, ModuleKind::Vdso);
        assert_eq!(of(b"//anon", true).kind, ModuleKind::PerfMap { pid: 7, dump: None });
        assert_eq!(of(b"//anon", true).name(), "[JIT] tid 7");
        assert_eq!(&*of(b"//anon", true).path, b"/tmp/perf-7.map");
        assert_eq!(of(b"//anon", false).kind, ModuleKind::Opaque);
        assert_eq!(of(b"//anon", false).name(), "anon");
        assert_eq!(of(b"[heap]", false).name(), "[heap]");
        assert_eq!(of(b"[vsyscall]", true).kind, ModuleKind::File);
        let huge = Module::of_user_mapping(b"/anon", 9, true, true, None);
        assert_eq!(huge.kind, ModuleKind::PerfMap { pid: 9, dump: None });
    }

    #[test]
    fn kernel_modules_are_named_by_their_file() {
        let name = |path: &[u8]| Module::kernel_module(path, 1, None).name().into_owned();
        assert_eq!(name(b"/lib/modules/6.1/kernel/net/nf-tables.ko.xz"), "[nf_tables]");
        assert_eq!(name(b"[ext4]"), "[ext4]");
        assert_eq!(name(b"/x/a.kot"), "[a.kot]");
    }

    #[test]
    fn addresses_follow_the_kind() {
        let at = |module: &Module| module.lookup_address(0x7f00_1234, 0x7f00_1000, 0x5000);
        assert_eq!(at(&Module::file(b"/l", None)), 0x5234);
        assert_eq!(at(&Module::of_user_mapping(b"[vdso]", 1, true, false, None)), 0x234);
        assert_eq!(at(&Module::kernel(b"[kernel.kallsyms]", None)), 0x7f00_1234);
    }
}
