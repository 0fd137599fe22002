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
}

/// What a module is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleKind {
    /// A file that was mapped by a process.
    File,
    /// The kernel's own library, mapped into every process.
    Vdso {
        /// The build ID of the kernel that it belongs to.
        kernel: Option<BuildId>,
    },
    /// The kernel image. `reference` tells by how much it has moved since it was recorded.
    Kernel {
        /// The symbol whose address the recorder wrote down.
        reference: Option<Reference>,
    },
    /// A loadable kernel module; `path` is its file's path or its name in brackets.
    KernelModule {
        /// Where it was loaded.
        start: u64,
        /// The build ID of the kernel that it was loaded into.
        kernel: Option<BuildId>,
    },
    /// Code in anonymous memory of this process: a JIT's.
    PerfMap {
        /// The process, in the recorder's pid namespace.
        pid: i32,
        /// The `jit-PID.dump` that it mapped, if it did.
        dump: Option<Arc<[u8]>>,
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

/// A symbol of the kernel and the address it had when the file was recorded: `_text` or `_stext`, from the name and
/// the page offset of the kernel's `MMAP` record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    /// The symbol's name.
    pub symbol: String,
    /// Its address in the recorded kernel.
    pub address: u64,
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
    /// A mapped file.
    #[must_use]
    pub fn file(path: &[u8], build_id: Option<BuildId>) -> Self {
        Self { path: path.into(), build_id, kind: ModuleKind::File, mounts: None }
    }

    /// The kernel image. `name` is what its `MMAP` record says: `[kernel.kallsyms]_text`, `pgoff` that record's page
    /// offset, which is the address of the symbol that the name ends with.
    #[must_use]
    pub fn kernel(name: &[u8], pgoff: u64, build_id: Option<BuildId>) -> Self {
        let end = name.iter().position(|&byte| byte == b']').map_or(name.len(), |at| at + 1);
        let (path, symbol) = name.split_at_checked(end).unwrap_or((name, &[]));
        let reference = (!symbol.is_empty() && pgoff != 0)
            .then(|| Reference { symbol: String::from_utf8_lossy(symbol).into_owned(), address: pgoff });
        Self { path: path.into(), build_id, kind: ModuleKind::Kernel { reference }, mounts: None }
    }

    /// A kernel module that was loaded at `start`; `path` is its file, or its name in brackets.
    #[must_use]
    pub fn kernel_module(path: &[u8], start: u64, build_id: Option<BuildId>) -> Self {
        Self { path: path.into(), build_id, kind: ModuleKind::KernelModule { start, kernel: None }, mounts: None }
    }

    /// Code of the kernel with a name of its own, at `start..end`.
    #[must_use]
    pub fn kernel_symbol(name: &[u8], start: u64, end: u64) -> Self {
        Self { path: name.into(), build_id: None, kind: ModuleKind::KernelSymbol { start, end }, mounts: None }
    }

    /// The same, in this mount namespace.
    #[must_use]
    pub fn in_mounts(self, mounts: Option<u64>) -> Self {
        Self { mounts, ..self }
    }

    /// What a user mapping of process `pid` is, from the text, the protection (`PROT_EXEC`) and the `MAP_HUGETLB` flag
    /// of its record.
    #[must_use]
    pub fn of_user_mapping(path: &[u8], pid: i32, executable: bool, huge: bool, build_id: Option<BuildId>) -> Self {
        let kind = match path {
            b"[vdso]" | b"[vdso32]" | b"[vdsox32]" => ModuleKind::Vdso { kernel: None },
            _ if huge || is_anonymous(path) || is_no_file(path) => {
                if executable {
                    let path = format!("/tmp/perf-{pid}.map").into_bytes().into();
                    let kind = ModuleKind::PerfMap { pid, dump: None };
                    return Self { path, build_id: None, kind, mounts: None };
                }
                ModuleKind::Opaque
            }
            _ => ModuleKind::File,
        };
        Self { path: path.into(), build_id, kind, mounts: None }
    }

    /// The same, of the kernel with this build ID: what tells whether the running kernel can speak for it.
    #[must_use]
    pub fn of_kernel(mut self, build_id: Option<BuildId>) -> Self {
        if let ModuleKind::Vdso { kernel } | ModuleKind::KernelModule { kernel, .. } = &mut self.kind {
            *kernel = build_id;
        }
        self
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
            ModuleKind::Kernel { .. } | ModuleKind::Vdso { .. } | ModuleKind::KernelSymbol { .. } => {
                String::from_utf8_lossy(&self.path)
            }
            ModuleKind::File | ModuleKind::Opaque => self.base_name(),
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
            | ModuleKind::Kernel { .. }
            | ModuleKind::KernelSymbol { .. }
            | ModuleKind::Vdso { .. }
            | ModuleKind::File
            | ModuleKind::Opaque => String::from_utf8_lossy(&self.path),
        }
    }

    /// In which space its symbols live.
    #[must_use]
    pub fn addressing(&self) -> Addressing {
        match self.kind {
            ModuleKind::File => Addressing::FileOffset,
            ModuleKind::Vdso { .. } => Addressing::ImageOffset,
            ModuleKind::Kernel { .. }
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
        let stem = match inner.find(".ko") {
            Some(at) if matches!(inner.get(at + 3..), Some("" | ".gz" | ".xz" | ".zst")) => inner.get(..at),
            _ => Some(inner),
        };
        stem.unwrap_or(inner).replace('-', "_")
    }

    fn base_name(&self) -> Cow<'_, str> {
        let path = &*self.path;
        let base = memchr::memrchr(b'/', path).and_then(|at| path.get(at + 1..)).filter(|base| !base.is_empty());
        String::from_utf8_lossy(base.unwrap_or(path))
    }
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
    fn the_kernel_has_a_reference_symbol() {
        let kernel = Module::kernel(b"[kernel.kallsyms]_text", 0xffff_ffff_8100_0000, None);
        assert_eq!(kernel.name(), "[kernel.kallsyms]");
        let reference = Reference { symbol: "_text".into(), address: 0xffff_ffff_8100_0000 };
        assert_eq!(kernel.kind, ModuleKind::Kernel { reference: Some(reference) });
        let plain = Module::kernel(b"[kernel.kallsyms]", 0, None);
        assert_eq!(plain.kind, ModuleKind::Kernel { reference: None });
    }

    #[test]
    fn user_mappings_are_told_apart() {
        let of = |path: &[u8], executable| Module::of_user_mapping(path, 7, executable, false, None);
        assert_eq!(of(b"/bin/ls", true).kind, ModuleKind::File);
        assert_eq!(of(b"/bin/ls", true).name(), "ls");
        assert_eq!(of(b"[vdso]", true).kind, ModuleKind::Vdso { kernel: None });
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
        assert_eq!(at(&Module::kernel(b"[kernel.kallsyms]", 0, None)), 0x7f00_1234);
    }
}
