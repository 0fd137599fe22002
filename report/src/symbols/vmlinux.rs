//! The kernel's symbols from files: its image with symbols (`vmlinux`), and the files of its modules.
//!
//! The kernel may have been relocated (KASLR) from the addresses at which its image is linked; the recorded reference
//! symbol shows by how much. A module's file has no addresses. The kernel lays out its code sections one after another
//! in the order of the file, except those for initialization; the first begins at the module's load address.
//!
//! Source: `layout_sections` in the kernel's `kernel/module/main.c`.

use std::path::{Path, PathBuf};

use object::elf::SHT_SYMTAB;

use super::elf::Image;
use super::elf_symbols::{Placing, add_symbols};
use super::file;
use super::module::Module;
use super::origin::{Origin, Reference};
use super::outcome::{Outcome, Refusal, Source};
use super::search::{Proof, checked_image, open_image};
use super::table::{SymbolTable, TableBuilder};
use super::{candidates, decompress};
use crate::query::SymbolOptions;

/// Reads the kernel's symbols from the file given with `--vmlinux`; it is trusted, whatever its build ID.
pub(super) fn given(path: &Path, module: &Module, outcome: &mut Outcome) -> Result<SymbolTable, Refusal> {
    let image = open_image(path, Proof::Trust, &module.origin)?;
    outcome.set_contradiction(path, module.build_id, image.build_id);
    table_of(&image, module.origin.reference.as_ref())
}

/// Searches the usual places for a kernel image with the recorded build ID and reads its symbols.
pub(super) fn found(
    module: &Module,
    root: &Path,
    options: &SymbolOptions,
    outcome: &mut Outcome,
) -> Option<SymbolTable> {
    let build_id = module.build_id.filter(|_| !options.ignore_vmlinux)?;
    places(module, root, options).into_iter().find_map(|(source, path)| {
        let image = open_image(&path, Proof::BuildId(build_id), &module.origin);
        let table = image.and_then(|image| table_of(&image, module.origin.reference.as_ref()));
        outcome.keep(source, &path, table)
    })
}

fn places(module: &Module, root: &Path, options: &SymbolOptions) -> Vec<(Source, PathBuf)> {
    let mut places: Vec<_> = candidates::by_build_id(module, options);
    let below = options.symfs.as_deref().unwrap_or(root);
    if let Ok(release) = file::read_all(&root.join("proc/sys/kernel/osrelease")) {
        let release = String::from_utf8_lossy(&release);
        let release = release.trim();
        places.extend(
            [
                format!("boot/vmlinux-{release}"),
                format!("usr/lib/debug/boot/vmlinux-{release}"),
                format!("usr/lib/debug/lib/modules/{release}/vmlinux"),
                format!("lib/modules/{release}/build/vmlinux"),
            ]
            .map(|path| (Source::Vmlinux, below.join(path))),
        );
    }
    places
}

fn table_of(image: &Image, reference: Option<&Reference>) -> Result<SymbolTable, Refusal> {
    let mut table = TableBuilder::new(false);
    add_symbols(image, Placing::Linked, SHT_SYMTAB, &mut table)?;
    if let Some(reference) = reference {
        let linked = table.named(reference.symbol.as_bytes());
        let linked = linked.ok_or(Refusal::Other("it lacks the recorded reference symbol, such as _text"))?;
        table.move_down(linked.wrapping_sub(reference.address));
    }
    Ok(table.finish())
}

/// Reads the symbols of a kernel module loaded at `start` from its file: one with the recorded build ID, or the one at
/// the recorded path if none was recorded and the recording was made on this machine, or if the user trusts it.
pub(super) fn of_module(
    module: &Module,
    start: u64,
    host: &Origin,
    options: &SymbolOptions,
    outcome: &mut Outcome,
) -> Option<SymbolTable> {
    let is_path = module.path.first() == Some(&b'/');
    let recorded =
        candidates::recorded(module, options).into_iter().filter(|_| is_path).map(|path| (Source::Path, path));
    let trusted = recorded.clone().filter(|_| options.trusts_paths()).map(|place| (place, Ok(Proof::Trust)));
    let proof = match module.build_id {
        Some(build_id) => Ok(Proof::BuildId(build_id)),
        None => host.made(&module.origin).map(|()| Proof::Trust),
    };
    let proven = recorded.chain(candidates::by_build_id(module, options)).map(|place| (place, proof.clone()));
    proven.chain(trusted).find_map(|((source, path), proof)| {
        let found = file::read_all(&path).and_then(|bytes| {
            let proof = proof?;
            let image = checked_image(decompress::decompressed(bytes)?.into(), proof, &module.origin)?;
            outcome.set_contradiction(&path, module.build_id, image.build_id);
            let mut table = TableBuilder::new(false);
            add_symbols(&image, Placing::Sections(&layout(&image, start)), SHT_SYMTAB, &mut table)?;
            Ok(table.finish())
        });
        outcome.keep(source, &path, found)
    })
}

/// Returns the address of each section; `None` for sections other than code, and for initialization code.
fn layout(image: &Image, start: u64) -> Vec<Option<u64>> {
    let mut next = start;
    let place = |section: &super::elf::Section| {
        if !section.allocated || !section.executable || section.name.starts_with(b".init") {
            return None;
        }
        let at = next.checked_next_multiple_of(section.alignment.max(1))?;
        next = at.checked_add(section.size)?;
        Some(at)
    };
    image.sections.iter().map(place).collect()
}
