//! The kernel's symbols from files: its image with symbols (`vmlinux`), and the files of its modules.
//!
//! An image is linked at addresses that the running kernel may have moved: by how much, the recorded reference symbol
//! tells. A module's file has no addresses at all. The kernel lays out its sections of code one after another, in
//! the order of the file, those for initialization apart; the first begins where the module was loaded.
//!
//! Source: `layout_sections` in the kernel's `kernel/module/main.c`.

use std::path::{Path, PathBuf};

use object::elf::SHT_SYMTAB;

use super::elf::Image;
use super::elf_symbols::{Placing, add_symbols};
use super::file::{self, Contents};
use super::module::{Module, Reference};
use super::options::SymbolOptions;
use super::outcome::{Outcome, Refusal, Source};
use super::search::{checked_image, open_image};
use super::table::{SymbolTable, TableBuilder};
use super::{locate, unpack};

/// The kernel's symbols from the file that the user names; unchecked, as their word.
pub(super) fn given(path: &Path, module: &Module, reference: Option<&Reference>) -> Result<SymbolTable, Refusal> {
    table_of(&open_image(path, module.build_id.as_ref())?, reference)
}

/// The same from where such files are kept, if the recorded build ID vouches for one.
pub(super) fn found(
    module: &Module,
    reference: Option<&Reference>,
    root: &Path,
    options: &SymbolOptions,
    outcome: &mut Outcome,
) -> Option<SymbolTable> {
    module.build_id.filter(|_| !options.ignore_vmlinux)?;
    for (source, path) in places(module, root, options) {
        let table = open_image(&path, module.build_id.as_ref()).and_then(|image| table_of(&image, reference));
        if let Some(table) = outcome.keep(source, &path, table) {
            return Some(table);
        }
    }
    None
}

fn places(module: &Module, root: &Path, options: &SymbolOptions) -> Vec<(Source, PathBuf)> {
    let mut places: Vec<_> = locate::by_build_id(module, options);
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
    let linked = collect(image, Placing::Moved(0))?;
    let Some(reference) = reference else { return Ok(linked) };
    let name = reference.symbol.as_bytes();
    let start =
        linked.named(name).ok_or(Refusal::Other("it lacks the symbol by which the kernel's address is known"))?;
    let moved = reference.address.wrapping_sub(start);
    if moved == 0 { Ok(linked) } else { collect(image, Placing::Moved(moved)) }
}

fn collect(image: &Image, placing: Placing<'_>) -> Result<SymbolTable, Refusal> {
    let mut table = TableBuilder::new(false);
    add_symbols(image, placing, SHT_SYMTAB, &mut table)?;
    Ok(table.finish())
}

/// The symbols of a kernel module that was loaded at `start`, from its file.
pub(super) fn of_module(
    module: &Module,
    start: u64,
    options: &SymbolOptions,
    outcome: &mut Outcome,
) -> Option<SymbolTable> {
    let mut places = Vec::new();
    if module.path.first() == Some(&b'/') {
        places.extend(locate::recorded(module, options).into_iter().map(|path| (Source::Path, path)));
    }
    places.extend(locate::by_build_id(module, options));
    for (source, path) in places {
        if let Some(table) = outcome.keep(source, &path, from_file(&path, module, start)) {
            return Some(table);
        }
    }
    None
}

fn from_file(path: &Path, module: &Module, start: u64) -> Result<SymbolTable, Refusal> {
    let contents = unpack::unpacked(file::read_all(path)?)?;
    let image = checked_image(Contents::Memory(contents), module.build_id.as_ref())?;
    let sections = layout(&image, start);
    collect(&image, Placing::Sections(&sections))
}

/// Where each section of code was loaded.
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
