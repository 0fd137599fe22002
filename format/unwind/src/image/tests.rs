use proptest::prelude::*;
use recrep_format::endian::Endian;

use super::layout::Layout;
use super::*;

/// A kind of ELF file.
#[derive(Clone, Copy, Debug)]
struct Kind {
    is_64: bool,
    endian: Endian,
}

const KINDS: [Kind; 4] = [
    Kind { is_64: true, endian: Endian::Little },
    Kind { is_64: true, endian: Endian::Big },
    Kind { is_64: false, endian: Endian::Little },
    Kind { is_64: false, endian: Endian::Big },
];

/// Type, name and size of the sections of a test file, in the order of the file.
const SECTIONS: [(u32, &str, usize); 14] = [
    (0, "", 0),
    (NOTE, ".note.gnu.build-id", 36),
    (DYNSYM, ".dynsym", 48),
    (3, ".dynstr", 10),
    (4, ".rela.dyn", 4000),
    (4, ".rela.plt", 48),
    (1, ".text", 20_000),
    (1, ".eh_frame", 301),
    (1, ".data", 5000),
    (8, ".bss", 7000),
    (1, ".debug_info", 9000),
    (SYMTAB, ".symtab", 240),
    (3, ".strtab", 55),
    (3, ".shstrtab", 200),
];

impl Kind {
    fn put(self, bytes: &mut Vec<u8>, size: usize, number: usize) {
        match size {
            2 => bytes.extend(self.endian.bytes_u16(number.try_into().unwrap())),
            4 => bytes.extend(self.endian.bytes_u32(number.try_into().unwrap())),
            _ => bytes.extend(self.endian.bytes_u64(number as u64)),
        }
    }

    fn word(self) -> usize {
        if self.is_64 { 8 } else { 4 }
    }

    /// Returns a file with these sections, a loadable segment, and one of notes; each byte of a
    /// section is its number.
    fn file(self, sections: &[(u32, &str, usize)]) -> Vec<u8> {
        let (head, segment_size, section_size) =
            if self.is_64 { (64, 56, 64) } else { (52, 32, 40) };
        let mut contents = vec![0; head + 2 * segment_size];
        let (mut headers, mut names, mut notes) = (Vec::new(), Vec::new(), 0);
        for (index, &(kind, name, size)) in sections.iter().enumerate() {
            let at = contents.len().next_multiple_of(8);
            contents.resize(at, 0);
            notes = if kind == NOTE { at } else { notes };
            let named = names.len();
            names.extend(name.bytes().chain([0]));
            let link = if matches!(kind, SYMTAB | DYNSYM) { index + 1 } else { 0 };
            [named, kind as usize].iter().for_each(|number| self.put(&mut headers, 4, *number));
            for number in [0, 0x1000 + at, at, size] {
                self.put(&mut headers, self.word(), number);
            }
            [link, 0].iter().for_each(|number| self.put(&mut headers, 4, *number));
            [1, 0].iter().for_each(|number| self.put(&mut headers, self.word(), *number));
            if name == ".shstrtab" {
                contents.extend(&names);
                contents.resize(at + size, 0);
            } else if kind != 8 {
                contents.resize(at + size, u8::try_from(index).unwrap());
            }
        }
        let mut front = b"\x7fELF".to_vec();
        let order = if self.endian == Endian::Little { 1 } else { 2 };
        front.extend([if self.is_64 { 2 } else { 1 }, order, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        [3, 62].iter().for_each(|number| self.put(&mut front, 2, *number));
        self.put(&mut front, 4, 1);
        let section_table = contents.len();
        [0, head, section_table]
            .iter()
            .for_each(|number| self.put(&mut front, self.word(), *number));
        self.put(&mut front, 4, 0);
        for number in [head, segment_size, 2, section_size, sections.len(), sections.len() - 1] {
            self.put(&mut front, 2, number);
        }
        for (kind, at, size) in [(1, 0, section_table), (4, notes, 36)] {
            self.put(&mut front, 4, kind);
            let flags_first = [self.is_64, !self.is_64];
            let rest = [at, 0x1000 + at, 0x1000 + at, size, size];
            if flags_first[0] {
                self.put(&mut front, 4, 5);
            }
            rest.iter().for_each(|number| self.put(&mut front, self.word(), *number));
            if flags_first[1] {
                self.put(&mut front, 4, 5);
            }
            self.put(&mut front, self.word(), 4);
        }
        contents[..front.len()].copy_from_slice(&front);
        contents.extend(headers);
        contents
    }
}

fn layout(file: &[u8]) -> Layout {
    Layout::read(&mut Cursor::new(file)).unwrap()
}

/// Returns the contents of each section, by name.
fn contents(file: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let part = |section: &ElfSection| {
        let range = usize::try_from(section.range.start).unwrap()
            ..usize::try_from(section.range.end).unwrap();
        section.has_contents.then(|| file[range].to_vec())
    };
    let named =
        |section: &ElfSection| (String::from_utf8(section.name.clone()).unwrap(), part(section));
    layout(file).sections.iter().map(named).collect()
}

#[test]
fn names_and_call_frames_are_kept() {
    for kind in KINDS {
        let whole = kind.file(&SECTIONS);
        let reduced = reduce(&whole, Contents::Names).unwrap();
        assert!(reduced.len() < 4000, "{kind:?}: {}", reduced.len());
        let dropped = ["", ".rela.dyn", ".text", ".data", ".bss", ".debug_info"];
        for ((name, before), (same, after)) in contents(&whole).into_iter().zip(contents(&reduced))
        {
            assert_eq!(name, same);
            if dropped.contains(&&*name) {
                assert_eq!(after, None, "{kind:?} {name}");
            } else {
                assert_eq!(after, before, "{kind:?} {name}");
            }
        }
    }
}

#[test]
fn lines_are_kept_if_asked_for() {
    for kind in KINDS {
        let whole = kind.file(&SECTIONS);
        let reduced = contents(&reduce(&whole, Contents::Lines).unwrap());
        assert!(reduced.contains(&(".debug_info".to_owned(), Some(vec![10; 9000]))), "{kind:?}");
        assert!(reduced.contains(&(".text".to_owned(), None)), "{kind:?}");
    }
}

#[test]
fn sections_without_contents_keep_their_offsets_and_segments_of_notes_move() {
    for kind in KINDS {
        let whole = kind.file(&SECTIONS);
        let reduced = reduce(&whole, Contents::Names).unwrap();
        let (before, after) = (layout(&whole), layout(&reduced));
        for (before, after) in before.sections.iter().zip(&after.sections) {
            assert!(after.has_contents || after.range == before.range, "{kind:?} {before:?}");
        }
        let notes = after.moved_segments().next().unwrap().range.clone();
        let place = after.sections.iter().find(|section| section.kind == NOTE).unwrap();
        assert_eq!(notes, place.range);
        assert_eq!(before.moved_segments().count(), 1);
    }
}

#[test]
fn relocations_are_kept_where_stubs_need_them() {
    let mut sections = SECTIONS.to_vec();
    sections.insert(6, (1, ".plt.got", 16));
    for kind in KINDS {
        let reduced = contents(&reduce(&kind.file(&sections), Contents::Names).unwrap());
        assert!(reduced.contains(&(".rela.dyn".to_owned(), Some(vec![4; 4000]))), "{kind:?}");
        assert!(reduced.contains(&(".plt.got".to_owned(), Some(vec![6; 16]))), "{kind:?}");
    }
}

#[test]
fn parts_keep_their_alignment_and_never_move_up() {
    for kind in KINDS {
        let mut file = Cursor::new(kind.file(&SECTIONS));
        let reduction = Reduction::new(&mut file, Contents::Names).unwrap();
        assert!(
            reduction.parts.iter().all(|part| part.placed % ALIGNMENT == part.start % ALIGNMENT)
        );
        assert!(
            reduction
                .parts
                .is_sorted_by(|a, b| a.end < b.start && a.placed + (a.end - a.start) <= b.placed)
        );
        let reduced = reduce(file.get_ref(), Contents::Names).unwrap();
        assert_eq!(reduction.size(), reduced.len() as u64);
    }
}

#[test]
fn what_cannot_be_reduced_is_refused() {
    let said = |file: &[u8]| reduce(file, Contents::Names).unwrap_err().to_string();
    assert!(
        said(b"#!/bin/sh\nexit 0\n")
            .starts_with("ELF file: it does not begin with the magic number")
    );
    assert!(
        said(b"\x7fELF")
            .starts_with("the identification of an ELF file needs 16 bytes, and 4 are left")
    );
    let whole = KINDS[0].file(&SECTIONS);
    assert!(
        said(&whole[..whole.len() - 1])
            .starts_with("section headers needs 896 bytes, and 895 are left")
    );
    let reduced = reduce(&whole, Contents::Names).unwrap();
    assert!(
        said(&reduced).starts_with("ELF file: it has nothing to leave out"),
        "{}",
        said(&reduced)
    );
}

#[test]
fn a_file_that_became_shorter_is_an_error() {
    let mut file = Cursor::new(KINDS[0].file(&SECTIONS));
    let reduction = Reduction::new(&mut file, Contents::Names).unwrap();
    file.get_mut().truncate(30_000);
    assert!(
        reduction
            .write(&mut file, &mut Vec::new())
            .unwrap_err()
            .to_string()
            .contains("a section needs")
    );
}

proptest! {
    #[test]
    fn damaged_files_neither_panic_nor_grow(
        kind in 0..KINDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 0..12),
        length in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut file = KINDS[kind].file(&SECTIONS);
        let headers = SECTIONS.len() * 64;
        for (at, value, in_sections) in changes {
            let at = if in_sections { file.len() - 1 - at.index(headers) } else { at.index(180) };
            file[at] = value;
        }
        if is_cut {
            file.truncate(length.index(file.len()));
        }
        for contents in [Contents::Names, Contents::Lines] {
            if let Ok(reduced) = reduce(&file, contents) {
                prop_assert!(reduced.len() < file.len());
            }
        }
    }
}
