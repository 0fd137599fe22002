//! Symbols of the recorded kernel: the choice of their source.
//!
//! 1. The file given with `--vmlinux` (not for modules), else the one given with `--kallsyms`.
//!    These are not checked.
//! 2. This machine's `/proc/kallsyms`, if the running kernel is shown to be the recorded one
//!    ([`Kernel::check_running`]).
//! 3. The copies of it that are kept by build ID: by [`Kernel::kallsyms`], and by recorders.
//! 4. Files with symbols and the recorded build ID, or another proof for a module's file.
//!
//! To make the list takes the running kernel 40 ms, and to parse it 20 ms. So for the kernel itself
//! a copy, which is kept parsed, is read in the list's place: the recorded reference symbol says
//! how far each boot has moved it. A module may be elsewhere at each boot, and be reloaded:
//! addresses count only if the module is still at the recorded one.
//!
//! A kernel image (`vmlinux`) may have been relocated (KASLR) from the addresses at which it is
//! linked; again the reference symbol says how far. A module's file has no addresses. The kernel
//! lays out its code sections one after another in the order of the file, except those for
//! initialization; the first begins at the module's load address. Source: `layout_sections` in the
//! kernel's `kernel/module/main.c`.

pub(crate) mod kallsyms;
pub(crate) mod vdso;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use object::elf::SHT_SYMTAB;
use recrep_format::build_id::BuildId;
use tempfile::NamedTempFile;

use crate::query::SymbolOptions;
use crate::symbols::elf::code::MachineCode;
use crate::symbols::elf::extents::end_unsized;
use crate::symbols::elf::symbols::add_symbols;
use crate::symbols::elf::{self, ElfImage, Segment, decompress};
use crate::symbols::file::{self, Refusal};
use crate::symbols::module::origin::{Origin, Reference};
use crate::symbols::module::{Module, ModuleKind};
use crate::symbols::names::table::{SymbolTable, TableBuilder};
use crate::symbols::outcome::{Outcome, Source};
use crate::symbols::search::candidates;
use crate::symbols::search::proof::{
    self, Proof, check_unchanged, checked_image, contradiction, open_image,
};
use kallsyms::Kallsyms;

/// Bytes at the beginning of `/proc/kcore` that have its headers.
const KCORE_HEAD: usize = 1 << 16;

/// Symbol lists of the running kernel and of the file given with `--kallsyms`, each parsed once.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Directory with `proc` and `sys`: `/`, except in tests.
    root: PathBuf,
    host: Origin,
    /// Directory for copies of the running kernel's list.
    cache: Option<PathBuf>,
    build_id: OnceLock<Option<BuildId>>,
    given: OnceLock<Result<Kallsyms, Refusal>>,
    running: OnceLock<Result<Kallsyms, Refusal>>,
}

impl Kernel {
    pub(crate) fn new(root: impl Into<PathBuf>, host: Origin, cache: Option<PathBuf>) -> Self {
        let (build_id, given, running) = Default::default();
        Self { root: root.into(), host, cache, build_id, given, running }
    }

    /// Loads the symbols of the kernel or of one of its modules.
    pub(crate) fn load(
        &self,
        module: &Module,
        options: &SymbolOptions,
        outcome: &mut Outcome,
    ) -> Option<SymbolTable> {
        let origin = &*module.origin;
        if let (Some(path), ModuleKind::Kernel) = (&options.vmlinux, &module.kind) {
            // It is trusted, whatever its build ID.
            let given = open_image(path, Proof::Trust, origin).and_then(|image| {
                outcome.contradiction = contradiction(path, module.build_id, image.build_id);
                relocated(&image, origin)
            });
            return outcome.keep(Source::Vmlinux, path, given);
        }
        if let Some(path) = &options.kallsyms {
            let list = self.given.get_or_init(|| parse(path));
            outcome.contradiction = contradiction(path, origin.kernel, self.build_id_of(path));
            return outcome.keep(Source::Kallsyms, path, pick(list, module));
        }
        let own = origin.kernel.and_then(|id| self.copy_path(&id)).filter(|path| path.exists());
        let recorders =
            origin.kernel.map(|id| candidates::cache_entries(&id, options)).unwrap_or_default();
        let recorders = recorders.into_iter().map(|entry| entry.join("kallsyms"));
        let copied = |path: &PathBuf| pick(&parse(path), module);
        let allowed =
            if options.symfs.is_some() { Err(Refusal::Symfs) } else { self.check_loaded(module) };
        let allowed = allowed.and_then(|()| self.check_placed(module));
        let found = allowed.and_then(|()| {
            let moves_as_a_whole = module.kind == ModuleKind::Kernel && origin.reference.is_some();
            let copy = own.as_ref().filter(|_| moves_as_a_whole).and_then(|path| copied(path).ok());
            copy.map_or_else(|| pick(self.kallsyms(), module), Ok)
        });
        let running = outcome.keep(Source::Kallsyms, &self.kallsyms_path(), found);
        if running.is_some() {
            return running;
        }
        for path in own.iter().cloned().chain(recorders) {
            let found = copied(&path).and_then(|table| at_its_address(table, module));
            if let Some(table) = outcome.keep(Source::BuildIdCache, &path, found) {
                return Some(table);
            }
        }
        match module.kind {
            ModuleKind::Kernel => self.find_image(module, options, outcome),
            _ => self.find_module(module, options, outcome),
        }
    }

    /// Searches the usual places for a kernel image with the recorded build ID and reads its
    /// symbols.
    fn find_image(
        &self,
        module: &Module,
        options: &SymbolOptions,
        outcome: &mut Outcome,
    ) -> Option<SymbolTable> {
        module.origin.reference.as_ref()?;
        let (proof, places) = self.images(module, options)?;
        places.into_iter().find_map(|(source, path)| {
            let image = open_image(&path, proof, &module.origin);
            outcome.keep(source, &path, image.and_then(|image| relocated(&image, &module.origin)))
        })
    }

    /// Returns the places where an image of the recorded kernel may be, and what proves that it is.
    fn images(
        &self,
        module: &Module,
        options: &SymbolOptions,
    ) -> Option<(Proof, Vec<(Source, PathBuf)>)> {
        if let Some(path) = &options.vmlinux {
            return Some((Proof::Trust, vec![(Source::Vmlinux, path.clone())]));
        }
        let build_id = module.build_id.filter(|_| !options.ignore_vmlinux)?;
        let mut places = candidates::by_build_id(module, options);
        if let Ok(release) = file::read_all(&self.root.join("proc/sys/kernel/osrelease")) {
            let release = String::from_utf8_lossy(&release);
            let release = release.trim();
            let below = options.symfs.as_deref().unwrap_or(&self.root);
            let images = [
                format!("boot/vmlinux-{release}"),
                format!("usr/lib/debug/boot/vmlinux-{release}"),
                format!("usr/lib/debug/lib/modules/{release}/vmlinux"),
                format!("lib/modules/{release}/build/vmlinux"),
            ];
            places.extend(images.map(|path| (Source::Vmlinux, below.join(path))));
        }
        Some((Proof::BuildId(build_id), places))
    }

    /// Reads code of the kernel from its image; `range` has addresses of the recording.
    pub(crate) fn code_in_image(
        &self,
        module: &Module,
        options: &SymbolOptions,
        range: &Range<u64>,
        outcome: &mut Outcome,
    ) -> Option<MachineCode> {
        let (proof, places) = self.images(module, options)?;
        places.into_iter().find_map(|(source, path)| {
            let code = open_image(&path, proof, &module.origin).and_then(|image| {
                let moved = moved_by(&image, &module.origin)?;
                let start = range.start.wrapping_add(moved);
                let at = image.segment_of(start).map(|segment| segment.to_offset(start));
                let at = at.ok_or(Refusal::Other("it has no code at the function's address"))?;
                let code = MachineCode::in_image(&path, &image, at, range.end - range.start)?;
                Ok(MachineCode { segments: vec![Segment::moved(start, range.start)], ..code })
            });
            match code {
                Ok(code) => Some(code),
                Err(refusal) => {
                    outcome.add(source, path, Err(refusal));
                    None
                }
            }
        })
    }

    /// Reads code of the running kernel or of a module, if it is the recorded one: from `/proc/kcore`,
    /// an ELF file of a size that means nothing. Each boot may load the kernel elsewhere.
    pub(crate) fn running_code(
        &self,
        module: &Module,
        range: &Range<u64>,
    ) -> Result<MachineCode, Refusal> {
        self.check_loaded(module)?;
        self.check_placed(module)?;
        let moved = match (&module.kind, &module.origin.reference) {
            (ModuleKind::Kernel, Some(Reference { symbol, address })) => {
                let list = self.kallsyms().as_ref().map_err(Refusal::clone)?;
                let found = list.address_of(symbol).ok_or(Refusal::NoReference)?;
                found.wrapping_sub(*address)
            }
            _ => 0,
        };
        let recorded = range.start;
        let range = range.start.wrapping_add(moved)..range.end.wrapping_add(moved);
        let path = self.root.join("proc/kcore");
        let file = file::open(&path)?;
        let mut head = vec![0; KCORE_HEAD];
        let read = read_at_most(&file, &mut head)?;
        head.truncate(read);
        let image = ElfImage::parse(head.into())?;
        let size = range.end.saturating_sub(range.start);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let segment = image.segments.iter().find(|segment| {
            let start = range.start.checked_sub(segment.address);
            start.is_some_and(|start| {
                start.saturating_add(range.end.saturating_sub(range.start)) <= segment.memory_size
            })
        });
        let segment = segment.ok_or(Refusal::Other("it has no code at the function's address"))?;
        let mut bytes = vec![0; size.min(MachineCode::MAX)];
        file.read_exact_at(&mut bytes, segment.to_offset(range.start))?;
        Ok(MachineCode {
            address: range.start,
            bytes,
            machine: image.machine,
            segments: vec![Segment::moved(range.start, recorded)],
            path,
        })
    }

    /// Reads the symbols of a kernel module from its file: one with the recorded build ID, or the
    /// one at the recorded path if none was recorded and the recording was made on this machine, or
    /// if the user trusts it.
    fn find_module(
        &self,
        module: &Module,
        options: &SymbolOptions,
        outcome: &mut Outcome,
    ) -> Option<SymbolTable> {
        let ModuleKind::KernelModule { start } = module.kind else { return None };
        let is_path = module.path.first() == Some(&b'/');
        let recorded = candidates::recorded(module, options).into_iter().filter(|_| is_path);
        let recorded = recorded.map(|path| (Source::Path, path));
        let trusted = recorded
            .clone()
            .filter(|_| options.trusts_paths())
            .map(|place| (place, Ok(Proof::Trust)));
        let proof = match module.build_id {
            Some(build_id) => Ok(Proof::BuildId(build_id)),
            None => self.host.made(&module.origin).map(|()| Proof::Trust),
        };
        let written = module.written.filter(|_| module.build_id.is_none());
        let proven = recorded
            .chain(candidates::by_build_id(module, options))
            .map(|place| (place, proof.clone()));
        proven.chain(trusted).find_map(|((source, path), proof)| {
            let found = file::read_all(&path).and_then(|bytes| {
                let proof = proof?;
                if !options.trusts_paths() {
                    check_unchanged(&fs::metadata(&path)?, written)?;
                }
                let image =
                    checked_image(decompress::decompressed(bytes)?.into(), proof, &module.origin)?;
                outcome.contradiction = contradiction(&path, module.build_id, image.build_id);
                let (loaded, mut table) = (layout(&image, start), TableBuilder::new(false));
                let place = |address: u64, section: usize, header: &elf::ElfSection| {
                    let start = loaded.get(section).copied()??;
                    Some(start.wrapping_add(address).wrapping_sub(header.address))
                };
                add_symbols(&image, SHT_SYMTAB, place, &mut table)?;
                end_unsized(&mut table, None);
                Ok(table.finish())
            });
            outcome.keep(source, &path, found)
        })
    }

    /// Checks that the running kernel is the recorded one: by build ID if one was recorded.
    /// Otherwise the release must be the recorded one, the architecture must not differ, and the
    /// reference symbol must be at its recorded address: most kernels choose another one at each
    /// boot, but some always have the same, so that an address alone is no proof, and a release
    /// alone is none either, since a kernel can be built again under the same one.
    pub(crate) fn check_running(&self, origin: &Origin) -> Result<(), Refusal> {
        if let Some(recorded) = origin.kernel {
            return match self.running_build_id() {
                Some(found) if recorded.is_same(&found) => Ok(()),
                Some(found) => Err(Refusal::OtherKernel { recorded, found }),
                None => Err(Refusal::UnknownKernel { recorded }),
            };
        }
        self.host.is_like(origin)?;
        if origin.release.is_none() {
            return Err(Refusal::NoRelease);
        }
        let reference = origin.reference.as_ref().ok_or(Refusal::NoReference)?;
        let list = self.kallsyms().as_ref().map_err(Refusal::clone)?;
        match list.address_of(&reference.symbol) {
            Some(found) if found == reference.address => Ok(()),
            found => Err(Refusal::MovedKernel {
                symbol: reference.symbol.clone(),
                recorded: format!("{:#x}", reference.address),
                found: found.unwrap_or(0),
            }),
        }
    }

    /// Checks that the running kernel is where the recorded one was: its reference symbol says so
    /// or, if there is none, only this boot can be the recorded one.
    fn check_placed(&self, module: &Module) -> Result<(), Refusal> {
        if module.kind != ModuleKind::Kernel || module.origin.reference.is_some() {
            return Ok(());
        }
        let is_of_this_boot = module.written.is_none_or(|written| written >= proof::booted());
        if is_of_this_boot && self.host.made(&module.origin).is_ok() {
            Ok(())
        } else {
            Err(Refusal::NoReference)
        }
    }

    fn kallsyms_path(&self) -> PathBuf {
        self.root.join("proc/kallsyms")
    }

    /// Returns the path of the copy that rep keeps.
    fn copy_path(&self, id: &BuildId) -> Option<PathBuf> {
        Some(self.cache.as_ref()?.join("kernel-symbols").join(id.to_string()))
    }

    /// Returns the running kernel's list; keeps a copy of it if the kernel has a build ID and there
    /// is none that can be read.
    fn kallsyms(&self) -> &Result<Kallsyms, Refusal> {
        self.running.get_or_init(|| {
            let list = Kallsyms::parse(file::read_all(&self.kallsyms_path())?)?;
            let path = self.running_build_id().and_then(|id| self.copy_path(&id));
            let path = path.filter(|path| !matches!(packed(path), Ok(Some(_))));
            // Only the user may read the file. Without a copy the next run takes longer.
            let _ = path.and_then(|path| {
                temporary(path.parent()?, &list.packed()).ok()?.persist(path).ok()
            });
            Ok(list)
        })
    }

    fn running_build_id(&self) -> Option<BuildId> {
        *self.build_id.get_or_init(|| {
            let notes = file::read_all(&self.root.join("sys/kernel/notes")).ok()?;
            elf::build_id_in_notes(&notes)
        })
    }

    /// Returns the build ID of a given list if it is the running kernel's own.
    fn build_id_of(&self, path: &Path) -> Option<BuildId> {
        let is_own = fs::canonicalize(path).ok()? == fs::canonicalize(self.kallsyms_path()).ok()?;
        if is_own { self.running_build_id() } else { None }
    }

    /// Checks that the running kernel or its module is the recorded one, and that a module is still
    /// at its address.
    fn check_loaded(&self, module: &Module) -> Result<(), Refusal> {
        let ModuleKind::KernelModule { start } = module.kind else {
            return self.check_running(&module.origin);
        };
        let name = module.kernel_module_name();
        let notes = self.root.join("sys/module").join(&name).join("notes/.note.gnu.build-id");
        let running = file::read_all(&notes).ok().and_then(|notes| elf::build_id_in_notes(&notes));
        match (module.build_id, running) {
            (Some(recorded), Some(found)) if recorded.is_same(&found) => {}
            (Some(recorded), Some(found)) => {
                return Err(Refusal::BuildIdMismatch { recorded, found });
            }
            _ => self.check_running(&module.origin)?,
        }
        let loaded = file::read_all(&self.root.join("proc/modules"))?;
        let mut lines = loaded.split(|&byte| byte == b'\n');
        match lines.find_map(|line| address_of_module(line, name.as_bytes())) {
            // Zero if addresses are hidden, which parsing the symbol list reports.
            Some(address) if address != 0 && address != start => {
                Err(Refusal::MovedKernelModule { recorded: start })
            }
            _ => Ok(()),
        }
    }
}

/// Writes a temporary file in a directory, which is made if it is missing.
fn temporary(directory: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    fs::create_dir_all(directory)?;
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Reads a list, or a packed copy of it.
fn parse(path: &Path) -> Result<Kallsyms, Refusal> {
    packed(path)?.map_or_else(|| Kallsyms::parse(file::read_all(path)?), Ok)
}

/// Reads a packed copy of a list; returns `None` if the file is none.
fn packed(path: &Path) -> Result<Option<Kallsyms>, Refusal> {
    Ok(Kallsyms::unpack(&file::bytes_of(file::open(path)?)?))
}

fn pick(list: &Result<Kallsyms, Refusal>, module: &Module) -> Result<SymbolTable, Refusal> {
    let list = list.as_ref().map_err(Refusal::clone)?;
    match &module.kind {
        ModuleKind::Kernel => list.kernel(module.origin.reference.as_ref()),
        _ => list.module(&module.kernel_module_name()),
    }
}

/// Returns how far a kernel image was moved down when it was loaded: what is to be added to recorded
/// addresses.
fn moved_by(image: &ElfImage, origin: &Origin) -> Result<u64, Refusal> {
    let Some(reference) = &origin.reference else { return Ok(0) };
    let mut table = TableBuilder::new(false);
    add_symbols(image, SHT_SYMTAB, |linked, _, _| Some(linked), &mut table)?;
    Ok(linked_reference(&table, reference)?.wrapping_sub(reference.address))
}

fn linked_reference(table: &TableBuilder, reference: &Reference) -> Result<u64, Refusal> {
    let linked = table.named(reference.symbol.as_bytes());
    linked.ok_or(Refusal::Other("it lacks the recorded reference symbol, such as _text"))
}

/// Reads the beginning of a file, as much as there is.
fn read_at_most(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

/// Returns the symbols of a kernel image, moved so that the reference symbol has its recorded
/// address.
fn relocated(image: &ElfImage, origin: &Origin) -> Result<SymbolTable, Refusal> {
    let mut table = TableBuilder::new(false);
    add_symbols(image, SHT_SYMTAB, |linked, _, _| Some(linked), &mut table)?;
    if let Some(reference) = &origin.reference {
        let linked = linked_reference(&table, reference)?;
        table.move_down(linked.wrapping_sub(reference.address));
    }
    end_unsized(&mut table, None);
    Ok(table.finish())
}

/// Returns the address of each section; `None` for sections other than code, and for initialization
/// code.
fn layout(image: &ElfImage, start: u64) -> Vec<Option<u64>> {
    let mut next = start;
    let place = |section: &elf::ElfSection| {
        if !section.allocated || !section.executable || section.name.starts_with(b".init") {
            return None;
        }
        let at = next.checked_next_multiple_of(section.alignment.max(1))?;
        next = at.checked_add(section.size)?;
        Some(at)
    };
    image.sections.iter().map(place).collect()
}

/// Refuses the symbols of a kernel module that a list has at another address, and those of a kernel
/// whose address is unknown: the list may be of another boot.
fn at_its_address(table: SymbolTable, module: &Module) -> Result<SymbolTable, Refusal> {
    const PAGE: u64 = 4096;
    let start = match module.kind {
        ModuleKind::KernelModule { start } => start,
        _ if module.origin.reference.is_none() => return Err(Refusal::NoReference),
        _ => return Ok(table),
    };
    // The data of a module may lie below its code.
    let is_there =
        table.iter().any(|symbol| symbol.start.checked_sub(start).is_some_and(|past| past < PAGE));
    if is_there { Ok(table) } else { Err(Refusal::MovedKernelModule { recorded: start }) }
}

/// Returns the address in a line of `/proc/modules` (`name size references users state address`) if
/// it is for `name`.
fn address_of_module(line: &[u8], name: &[u8]) -> Option<u64> {
    let mut fields = line.split(|&byte| byte == b' ');
    (fields.next()? == name).then_some(())?;
    let address = std::str::from_utf8(fields.nth(4)?).ok()?;
    u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests;
