//! The build ID in an ELF file's notes, in notes alone (of the kernel), and in the vDSO.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use object::elf::{FileHeader32, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind, ReadRef};
use recrep_format::build_id::BuildId;

/// Returns the build ID of the vDSO, which is the same in all processes, so ours will do.
pub(super) fn of_vdso() -> Option<BuildId> {
    in_elf(vdso()?.as_slice())
}

/// Returns the image of our vDSO.
pub(crate) fn vdso() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let range = maps.lines().find(|l| l.ends_with("[vdso]"))?.split(' ').next()?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut image = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    memory.read_exact(&mut image).ok()?;
    Some(image)
}

/// Returns the build ID in an ELF file, of which only headers and notes are read.
pub(super) fn in_elf<'data>(data: impl ReadRef<'data>) -> Option<BuildId> {
    match FileKind::parse(data).ok()? {
        FileKind::Elf32 => in_notes_of::<FileHeader32<Endianness>>(data),
        FileKind::Elf64 => in_notes_of::<FileHeader64<Endianness>>(data),
        _ => None,
    }
}

fn in_notes_of<'data, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'data>,
) -> Option<BuildId> {
    [gnu_id, go_id].into_iter().find_map(|id_in| first_id::<Elf>(data, id_in))
}

/// Returns the build ID in a note, by its name, type and description.
type IdInNote = fn(&[u8], u32, &[u8]) -> Option<BuildId>;

/// Returns the first build ID of a kind in the notes of an ELF file.
fn first_id<'data, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'data>,
    id_in: IdInNote,
) -> Option<BuildId> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let mut segments = header.program_headers(endian, data).ok()?.iter();
    let in_segments = segments.find_map(|segment| {
        let mut notes = segment.notes(endian, data).ok()??;
        std::iter::from_fn(|| notes.next().ok()?)
            .find_map(|note| id_in(note.name(), note.n_type(endian).0, note.desc()))
    });
    // Relocatable files have sections only.
    in_segments.or_else(|| {
        let sections = header.sections(endian, data).ok()?;
        sections.iter().find_map(|section| {
            let mut notes = section.notes(endian, data).ok()??;
            std::iter::from_fn(|| notes.next().ok()?)
                .find_map(|note| id_in(note.name(), note.n_type(endian).0, note.desc()))
        })
    })
}

fn go_id(name: &[u8], kind: u32, desc: &[u8]) -> Option<BuildId> {
    /// Type of the note `Go` with the build ID.
    const BUILD_ID: u32 = 4;
    (kind == BUILD_ID && name == b"Go").then(|| BuildId::of_go_note(desc)).flatten()
}

fn gnu_id(name: &[u8], kind: u32, desc: &[u8]) -> Option<BuildId> {
    (kind == NT_GNU_BUILD_ID.0 && name == b"GNU").then(|| BuildId::new(desc)).flatten()
}

/// Returns the build ID among notes in this machine's order: name size, description size, type,
/// then both, each padded to 4.
pub(super) fn in_notes(mut notes: &[u8]) -> Option<BuildId> {
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

    fn note(name: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
        let sizes = [name.len(), desc.len()].map(|n| u32::try_from(n).unwrap());
        let mut bytes: Vec<u8> =
            [sizes[0], sizes[1], kind].iter().flat_map(|n| n.to_ne_bytes()).collect();
        for part in [name, desc] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn the_build_id_among_other_notes() {
        let notes =
            [note(b"Xen\0", 3, &[1; 5]), note(b"GNU\0", 3, &[7; 20]), note(b"GNU\0", 3, &[8; 20])]
                .concat();
        assert_eq!(in_notes(&notes).unwrap().as_bytes(), [7; 20]);
        assert_eq!(in_notes(&note(b"GNU\0", 1, &[7; 20])), None);
        for cut in 0..notes.len() {
            let _ = in_notes(&notes[..cut]);
        }
    }

    #[test]
    fn go_programs_have_their_own_note() {
        let text = b"action/main/01234/0123456789abcdefghij";
        let id = go_id(b"Go", 4, text).unwrap();
        assert!(id.is_of_go() && id.as_bytes() == b"0123456789abcdefghij");
        assert_eq!([go_id(b"Go", 3, text), go_id(b"GNU", 4, text)], [None; 2]);
    }

    #[test]
    fn the_vdso_has_one_where_there_is_a_vdso() {
        let mapped = fs::read_to_string("/proc/self/maps").unwrap().contains("[vdso]");
        assert_eq!(of_vdso().is_some(), mapped);
    }
}
