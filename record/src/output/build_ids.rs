//! Build IDs of what was mapped: read from ELF notes at the end of the recording.
//!
//! perf record marks the files that samples hit, for which it reads the whole recording back. rec writes those of all
//! files that were mapped as code while it recorded (as `perf record --buildid-all` does): which those are it has seen
//! in passing, and an entry too many costs a reader nothing.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use object::elf::{FileHeader32, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef};
use recrep_format::abi::CpuMode;
use recrep_format::build_id::BuildId;

use crate::machine::kernel_image::KernelImage;
use crate::output::tally::FileId;

/// A file and its build ID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identified {
    /// Kernel or user.
    pub mode: CpuMode,
    /// Its name in mappings.
    pub name: Vec<u8>,
    /// Its build ID.
    pub id: BuildId,
}

/// The build IDs of the kernel, its modules (where they are known), and `files` that processes mapped, by their names in mappings.
#[must_use]
pub fn collect(files: &[(&[u8], FileId)], kernel: Option<&KernelImage>) -> Vec<Identified> {
    let mut all = Vec::new();
    let mut add = |mode, name: &[u8], id: Option<BuildId>| {
        all.extend(id.map(|id| Identified { mode, name: name.to_vec(), id }));
    };
    add(CpuMode::Kernel, b"[kernel.kallsyms]", fs::read("/sys/kernel/notes").ok().and_then(|n| in_notes(&n)));
    for module in kernel.map(|k| k.modules.as_slice()).unwrap_or_default() {
        let notes = fs::read(format!("/sys/module/{}/notes/.note.gnu.build-id", module.name));
        add(CpuMode::Kernel, module.path.as_bytes(), notes.ok().and_then(|n| in_notes(&n)));
    }
    for (name, file) in files {
        add(CpuMode::User, name, of_mapped(name, *file));
    }
    all
}

/// The build ID of what is mapped under this name.
pub(crate) fn of_mapped(name: &[u8], file: FileId) -> Option<BuildId> {
    match name {
        b"[vdso]" => of_vdso(),
        [b'/', ..] if !name.starts_with(b"//") => of_file(name, file),
        _ => None,
    }
}

/// The build ID of a file, if it is still the one that was mapped.
fn of_file(path: &[u8], mapped: FileId) -> Option<BuildId> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::OsStr::from_bytes(path);
    // Devices and pipes are mapped too; opening one may have effects.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let file = File::open(path).ok()?;
    let now = file.metadata().ok()?;
    // By the inode alone: some file systems (overlayfs, btrfs) show another device in mappings than in stat. What has
    // another inode was replaced meanwhile, or is a namesake that a process in a container mapped.
    let same = mapped.ino == 0 || mapped.ino == now.ino();
    if same { in_elf(&ReadCache::new(file)) } else { None }
}

/// The build ID of the vDSO, which is the same in all processes, so ours will do.
fn of_vdso() -> Option<BuildId> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let range = maps.lines().find(|l| l.ends_with("[vdso]"))?.split(' ').next()?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut image = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    memory.read_exact(&mut image).ok()?;
    in_elf(image.as_slice())
}

/// The build ID in an ELF file, of which only headers and notes are read.
fn in_elf<'data>(data: impl ReadRef<'data>) -> Option<BuildId> {
    match FileKind::parse(data).ok()? {
        FileKind::Elf32 => in_notes_of::<FileHeader32<Endianness>>(data),
        FileKind::Elf64 => in_notes_of::<FileHeader64<Endianness>>(data),
        _ => None,
    }
}

fn in_notes_of<'data, Elf: FileHeader<Endian = Endianness>>(data: impl ReadRef<'data>) -> Option<BuildId> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let mut segments = header.program_headers(endian, data).ok()?.iter();
    let in_segments = segments.find_map(|segment| {
        let mut notes = segment.notes(endian, data).ok()??;
        std::iter::from_fn(|| notes.next().ok()?)
            .find_map(|note| gnu_id(note.name(), note.n_type(endian).0, note.desc()))
    });
    // Relocatable files have sections only.
    in_segments.or_else(|| {
        let sections = header.sections(endian, data).ok()?;
        sections.iter().find_map(|section| {
            let mut notes = section.notes(endian, data).ok()??;
            std::iter::from_fn(|| notes.next().ok()?)
                .find_map(|note| gnu_id(note.name(), note.n_type(endian).0, note.desc()))
        })
    })
}

fn gnu_id(name: &[u8], kind: u32, desc: &[u8]) -> Option<BuildId> {
    (kind == NT_GNU_BUILD_ID.0 && name == b"GNU").then(|| BuildId::new(desc)).flatten()
}

/// The build ID among notes in this machine's order: name size, description size, type, then both, each padded to 4.
fn in_notes(mut notes: &[u8]) -> Option<BuildId> {
    loop {
        let (header, rest) = notes.split_first_chunk::<12>()?;
        let word = |at: usize| Some(u32::from_ne_bytes(*header.get(at..)?.first_chunk()?));
        let (name_size, desc_size) = (word(0)? as usize, word(4)? as usize);
        let (name, rest) = rest.split_at_checked(name_size.next_multiple_of(4))?;
        let desc = rest.get(..desc_size)?;
        if let Some(id) = gnu_id(name.get(..name_size)?.strip_suffix(b"\0")?, word(8)?, desc) {
            return Some(id);
        }
        notes = rest.get(desc_size.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn note(name: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
        let sizes = [name.len(), desc.len()].map(|n| u32::try_from(n).unwrap());
        let mut bytes: Vec<u8> = [sizes[0], sizes[1], kind].iter().flat_map(|n| n.to_ne_bytes()).collect();
        for part in [name, desc] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn the_build_id_among_other_notes() {
        let notes = [note(b"Xen\0", 3, &[1; 5]), note(b"GNU\0", 3, &[7; 20]), note(b"GNU\0", 3, &[8; 20])].concat();
        assert_eq!(in_notes(&notes).unwrap().as_bytes(), [7; 20]);
        assert_eq!(in_notes(&note(b"GNU\0", 1, &[7; 20])), None);
        for cut in 0..notes.len() {
            let _ = in_notes(&notes[..cut]);
        }
    }

    #[test]
    fn a_file_that_was_replaced_is_not_identified() {
        let me = std::env::current_exe().unwrap();
        let meta = fs::metadata(&me).unwrap();
        let id = FileId { maj: rustix::fs::major(meta.dev()), min: rustix::fs::minor(meta.dev()), ino: meta.ino() };
        let path = me.as_os_str().as_bytes();
        let other = FileId { ino: id.ino + 1, ..id };
        assert_eq!(of_file(path, other), None);
        let in_a_container = FileId { min: id.min + 1, ..other };
        assert_eq!(of_file(path, in_a_container), None);
        let on_overlayfs = FileId { min: id.min + 1, ..id };
        assert_eq!(of_file(path, on_overlayfs), of_file(path, id));
        assert_eq!(of_file(path, id), in_elf(fs::read(&me).unwrap().as_slice()));
    }

    #[test]
    fn what_is_no_elf_file_has_none() {
        assert_eq!(of_file(b"/etc/passwd", FileId::default()), None);
        assert_eq!(of_file(b"/dev/zero", FileId::default()), None);
        assert_eq!(of_file(b"/no/such/file", FileId::default()), None);
    }

    #[test]
    fn the_vdso_has_one_where_there_is_a_vdso() {
        let mapped = fs::read_to_string("/proc/self/maps").unwrap().contains("[vdso]");
        assert_eq!(of_vdso().is_some(), mapped);
    }
}
