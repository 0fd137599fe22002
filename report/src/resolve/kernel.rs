//! The kernel's symbols: whose list of them may speak for the recorded kernel.
//!
//! In this order: the file given with `--kallsyms`, unchecked, as the user's word; this machine's `/proc/kallsyms`, if
//! the running kernel has the recorded build ID (or none was recorded); the copy in the build ID cache; last, files with symbols
//! ([`vmlinux`]), of which `--vmlinux` names one that goes before all. A kernel module's symbols are only where they
//! were while it has not been loaded anew.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use recrep_format::build_id::BuildId;

use super::elf;
use super::file;
use super::kallsyms::Kallsyms;
use super::locate;
use super::module::{Module, ModuleKind, same_build_id};
use super::options::SymbolOptions;
use super::outcome::{Outcome, Refusal, Source};
use super::table::SymbolTable;
use super::vmlinux;

/// What is known of kernels; each list is parsed once.
#[derive(Debug)]
pub(super) struct Kernel {
    /// Where `proc` and `sys` are: `/`.
    root: PathBuf,
    build_id: OnceLock<Option<BuildId>>,
    given: OnceLock<Result<Kallsyms, Refusal>>,
    running: OnceLock<Result<Kallsyms, Refusal>>,
}

impl Kernel {
    pub(super) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), build_id: OnceLock::new(), given: OnceLock::new(), running: OnceLock::new() }
    }

    /// The symbols of the kernel or of one of its modules.
    pub(super) fn load(&self, module: &Module, options: &SymbolOptions, outcome: &mut Outcome) -> Option<SymbolTable> {
        let recorded = match &module.kind {
            ModuleKind::KernelModule { kernel, .. } => kernel.as_ref(),
            _ => module.build_id.as_ref(),
        };
        if let (Some(path), ModuleKind::Kernel { reference }) = (&options.vmlinux, &module.kind) {
            return outcome.keep(Source::Vmlinux, path, vmlinux::given(path, module, reference.as_ref()));
        }
        if let Some(path) = &options.kallsyms {
            let list = self.given.get_or_init(|| parse(path));
            return outcome.keep(Source::Kallsyms, path, pick(list, module));
        }
        let path = self.root.join("proc/kallsyms");
        let allowed = match options.symfs {
            Some(_) => Err(Refusal::Symfs),
            None => self.is_running(recorded).and_then(|()| self.is_in_place(module)),
        };
        let found = allowed.and_then(|()| pick(self.running.get_or_init(|| parse(&path)), module));
        if let Some(table) = outcome.keep(Source::Kallsyms, &path, found) {
            return Some(table);
        }
        if let Some(entry) = recorded.and_then(|id| locate::cache_entry(id, options)) {
            let path = entry.join("kallsyms");
            let found = parse(&path);
            if let Some(table) = outcome.keep(Source::BuildIdCache, &path, pick(&found, module)) {
                return Some(table);
            }
        }
        match &module.kind {
            ModuleKind::KernelModule { start, .. } => vmlinux::of_module(module, *start, options, outcome),
            ModuleKind::Kernel { reference } => {
                vmlinux::found(module, reference.as_ref(), &self.root, options, outcome)
            }
            _ => None,
        }
    }

    /// Whether the running kernel may speak for the recorded one.
    pub(super) fn is_running(&self, recorded: Option<&BuildId>) -> Result<(), Refusal> {
        let Some(&recorded) = recorded else { return Ok(()) };
        match self.running_build_id() {
            Some(found) if same_build_id(&recorded, &found) => Ok(()),
            Some(found) => Err(Refusal::OtherKernel { recorded, found }),
            None => Err(Refusal::UnknownKernel { recorded }),
        }
    }

    fn running_build_id(&self) -> Option<BuildId> {
        *self.build_id.get_or_init(|| {
            let notes = file::read_all(&self.root.join("sys/kernel/notes")).ok()?;
            elf::build_id_in_notes(&notes)
        })
    }

    /// Whether a kernel module is still the one that was recorded, as far as the running kernel tells.
    fn is_in_place(&self, module: &Module) -> Result<(), Refusal> {
        let ModuleKind::KernelModule { start, .. } = module.kind else { return Ok(()) };
        let name = module.kernel_module_name();
        let notes = self.root.join("sys/module").join(&name).join("notes/.note.gnu.build-id");
        let running = file::read_all(&notes).ok().and_then(|notes| elf::build_id_in_notes(&notes));
        if let (Some(recorded), Some(found)) = (module.build_id, running)
            && !same_build_id(&recorded, &found)
        {
            return Err(Refusal::BuildIdMismatch { recorded, found });
        }
        let Ok(loaded) = file::read_all(&self.root.join("proc/modules")) else { return Ok(()) };
        match loaded.split(|&byte| byte == b'\n').find_map(|line| address_of_module(line, name.as_bytes())) {
            // Zero where addresses are hidden: the list of symbols will say so.
            Some(address) if address != 0 && address != start => Err(Refusal::MovedKernelModule { recorded: start }),
            _ => Ok(()),
        }
    }
}

fn parse(path: &Path) -> Result<Kallsyms, Refusal> {
    Kallsyms::parse(file::read_all(path)?)
}

fn pick(list: &Result<Kallsyms, Refusal>, module: &Module) -> Result<SymbolTable, Refusal> {
    let list = list.as_ref().map_err(Refusal::clone)?;
    match &module.kind {
        ModuleKind::Kernel { reference } => list.kernel(reference.as_ref()),
        _ => list.module(&module.kernel_module_name()),
    }
}

/// The address in a line of `/proc/modules` (`name size references users state address`) if it is `name`'s.
fn address_of_module(line: &[u8], name: &[u8]) -> Option<u64> {
    let mut fields = line.split(|&byte| byte == b' ');
    (fields.next()? == name).then_some(())?;
    let address = std::str::from_utf8(fields.nth(4)?).ok()?;
    u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine in a directory, whose kernel has the build ID `07 07 …` and one module.
    fn machine() -> (tempfile::TempDir, Kernel) {
        let root = tempfile::tempdir().unwrap();
        for directory in ["proc", "sys/kernel"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let mut notes = Vec::new();
        for word in [4_u32, 20, object::elf::NT_GNU_BUILD_ID.0] {
            notes.extend(word.to_ne_bytes());
        }
        notes.extend(b"GNU\0");
        notes.extend([7; 20]);
        fs::write(root.path().join("sys/kernel/notes"), notes).unwrap();
        let list = "ffffffff81000000 T _text\nffffffff81000010 t a\nffffffffc0000000 t b\t[snd_pcm]\n";
        fs::write(root.path().join("proc/kallsyms"), list).unwrap();
        fs::write(root.path().join("proc/modules"), "snd_pcm 16384 0 - Live 0xffffffffc0000000\n").unwrap();
        let kernel = Kernel::new(root.path());
        (root, kernel)
    }

    fn kernel_of(id: u8) -> Module {
        Module::kernel(b"[kernel.kallsyms]_text", 0xffff_ffff_8100_0000, BuildId::new(&[id; 20]))
    }

    #[test]
    fn only_the_recorded_kernel_speaks() {
        let (_root, kernel) = machine();
        let mut outcome = Outcome::default();
        let options = SymbolOptions::default();
        assert_eq!(kernel.load(&kernel_of(7), &options, &mut outcome).unwrap().len(), 2);
        assert!(kernel.load(&kernel_of(8), &options, &mut outcome).is_none());
        assert!(matches!(outcome.attempts[1].result, Err(Refusal::OtherKernel { .. })));
        let unknown = Module::kernel(b"[kernel.kallsyms]", 0, None);
        assert!(kernel.load(&unknown, &options, &mut outcome).is_some());
    }

    #[test]
    fn a_given_list_is_taken_at_its_word_and_symfs_shuts_out_this_machine() {
        let (root, kernel) = machine();
        let mut outcome = Outcome::default();
        let given = root.path().join("copy");
        fs::write(&given, "ffffffff81000000 T _text\n").unwrap();
        let options = SymbolOptions { kallsyms: Some(given), ..SymbolOptions::default() };
        assert_eq!(kernel.load(&kernel_of(8), &options, &mut outcome).unwrap().len(), 1);
        let options = SymbolOptions { symfs: Some("/elsewhere".into()), ..SymbolOptions::default() };
        assert!(kernel.load(&kernel_of(7), &options, &mut outcome).is_none());
        assert!(matches!(outcome.attempts[1].result, Err(Refusal::Symfs)));
    }

    #[test]
    fn the_cache_speaks_for_a_kernel_that_is_gone() {
        let (root, kernel) = machine();
        let entry = root.path().join("cache/.build-id/08").join("08".repeat(19));
        fs::create_dir_all(&entry).unwrap();
        fs::write(entry.join("kallsyms"), "ffffffff81000000 T _text\nffffffff81000020 t c\n").unwrap();
        let options = SymbolOptions { build_id_dir: Some(root.path().join("cache")), ..SymbolOptions::default() };
        let mut outcome = Outcome::default();
        let table = kernel.load(&kernel_of(8), &options, &mut outcome).unwrap();
        assert_eq!(table.lookup(0xffff_ffff_8100_0021).unwrap().name, b"c");
    }

    #[test]
    fn a_module_that_was_loaded_anew_is_refused() {
        let (_root, kernel) = machine();
        let load = |start| {
            let mut outcome = Outcome::default();
            let module = Module::kernel_module(b"/lib/snd-pcm.ko", start, None);
            let table = kernel.load(&module, &SymbolOptions::default(), &mut outcome);
            (table.map(|table| table.len()), outcome)
        };
        assert_eq!(load(0xffff_ffff_c000_0000).0, Some(1));
        let (table, outcome) = load(0xffff_ffff_c100_0000);
        assert_eq!(table, None);
        assert!(matches!(outcome.attempts[0].result, Err(Refusal::MovedKernelModule { .. })));
    }
}
