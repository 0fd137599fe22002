//! Reduced ELF files: what a report needs of a program or library to name its functions and unwind
//! its stacks.
//!
//! ```text
//!   whole file   header │ program headers │ .note │ .dynsym │ .text ……………… │ .eh_frame │ .data …… │ .symtab │ sections
//!   reduced      header │ program headers │ section headers │ .note │ .dynsym │ .eh_frame │ .symtab
//! ```
//!
//! A reduced file is an ELF file with the headers of the whole one, so that its segments give the
//! same addresses for the same offsets in the mapped file. Sections that are not kept become
//! `SHT_NOBITS` at their old offset, as in the debug files that distributions ship; those that are
//! kept, and the segments of notes and of the unwind table, move to where their contents are. The
//! offset that such a section had in the whole file follows from its address and the segments.
//!
//! Of a program with debug information, [`Contents::Names`] is about a tenth, and
//! [`Contents::Lines`] all but code and data.
//!
//! Source: the System V ABI, "Object Files"; `elf(5)`.

mod layout;
#[cfg(test)]
mod tests;

use std::io::{Cursor, Read, Seek, SeekFrom, Write, copy};
use std::ops::Range;

use layout::{ElfSection, Layout};
use recrep_format::error::{Error, Result};

/// Contents of a reduced file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Symbols, notes and call frame information: for functions' names and for unwinding.
    Names,
    /// Debug information too: for inlined functions and source lines.
    Lines,
}

/// Reduces an ELF file; the result is not larger than the file.
///
/// # Errors
/// Returns an error if it is not an ELF file, if its headers are damaged, or if it does not become
/// smaller.
pub fn reduce(file: &[u8], contents: Contents) -> Result<Vec<u8>> {
    let mut file = Cursor::new(file);
    let mut reduced = Vec::new();
    Reduction::new(&mut file, contents)?.write(&mut file, &mut reduced)?;
    Ok(reduced)
}

/// Reduced form of one file, of which only headers were read so far.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// All headers as they are in the reduced file.
    headers: Vec<u8>,
    /// Parts to copy, in the order of the file; none overlap.
    parts: Vec<Kept>,
    size: u64,
}

/// Kept of the file that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    start: u64,
    end: u64,
    /// Offset in the reduced file.
    placed: u64,
}

/// Alignment to which the offsets of parts keep their remainder: that of the entries of all tables
/// that are kept.
const ALIGNMENT: u64 = 16;

impl Reduction {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// Returns an error if it is not an ELF file, if its headers are damaged, or if it does not
    /// become smaller.
    pub fn new(file: &mut (impl Read + Seek), contents: Contents) -> Result<Self> {
        let mut layout = Layout::read(file)?;
        let is_kept = |section: &ElfSection| keeps(section, contents);
        let sections = layout
            .sections
            .iter()
            .filter(|section| is_kept(section))
            .map(|section| section.range.clone());
        let parts = sections.chain(layout.moved_segments().map(|segment| segment.range.clone()));
        let parts = parts.filter(|range| range.start < range.end && range.end <= layout.file_size);
        let mut parts: Vec<_> =
            parts.map(|range| Kept { start: range.start, end: range.end, placed: 0 }).collect();
        merge(&mut parts);
        let size = place(&mut parts, layout.headers_size());
        if size >= layout.file_size {
            return Err(Error::invalid(0, "ELF file", "it has nothing to leave out"));
        }
        let placed = |range: &Range<u64>| {
            let at = parts.partition_point(|part| part.start <= range.start).checked_sub(1)?;
            let part =
                parts.get(at).filter(|part| range.start < part.end && range.end <= part.end)?;
            Some(part.placed + (range.start - part.start))
        };
        layout.move_segments(placed);
        layout
            .move_sections(|section| if is_kept(section) { placed(&section.range) } else { None });
        Ok(Self { headers: layout.headers(), parts, size })
    }

    /// Returns the size of the reduced file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Writes the reduced form of `file`, the one whose headers were read.
    ///
    /// # Errors
    /// Returns I/O errors, and an error if the file became shorter.
    pub fn write(&self, file: &mut (impl Read + Seek), out: &mut impl Write) -> Result<()> {
        out.write_all(&self.headers).map_err(|error| Error::io(0, &error))?;
        let mut written = self.headers.len() as u64;
        for part in &self.parts {
            let (start, size) = (part.start, part.end - part.start);
            let mut copy_part = || {
                copy(&mut std::io::repeat(0).take(part.placed.saturating_sub(written)), out)?;
                file.seek(SeekFrom::Start(start))?;
                copy(&mut file.by_ref().take(size), out)
            };
            let copied = copy_part().map_err(|error| Error::io(start, &error))?;
            if copied < size {
                return Err(Error::truncated(start, "a section", size, copied));
            }
            written = part.placed + size;
        }
        Ok(())
    }
}

/// Sorts the parts and joins those that overlap or touch.
fn merge(parts: &mut Vec<Kept>) {
    parts.sort_unstable();
    parts.dedup_by(|part, before| {
        let joined = part.start <= before.end;
        if joined {
            before.end = before.end.max(part.end);
        }
        joined
    });
}

/// Places the parts one after the other from offset `size` on, and returns where they end.
fn place(parts: &mut [Kept], mut size: u64) -> u64 {
    for part in parts {
        let padding = (part.start % ALIGNMENT + ALIGNMENT - size % ALIGNMENT) % ALIGNMENT;
        part.placed = size + padding;
        size = part.placed + (part.end - part.start);
    }
    size
}

/// Types of sections that are kept (the System V ABI and its supplements).
const SYMTAB: u32 = 2;
const NOTE: u32 = 7;
const DYNSYM: u32 = 11;
const SYMTAB_SHNDX: u32 = 18;
/// `.ARM.exidx` on Arm, `.eh_frame` of some compilers on x86-64.
const ARM_EXIDX_OR_X86_64_UNWIND: u32 = 0x7000_0001;

/// Sections kept for their names: call frames, links to other files, Go's tables, and what names
/// the entries of the procedure linkage table.
const KEPT: [&[u8]; 18] = [
    b".eh_frame",
    b".eh_frame_hdr",
    b".debug_frame",
    b".zdebug_frame",
    b".sframe",
    b".ARM.extab",
    b".opd",
    b".gnu_debugdata",
    b".gnu_debuglink",
    b".gnu_debugaltlink",
    b".gopclntab",
    b".data.rel.ro.gopclntab",
    b".gosymtab",
    b".go.buildinfo",
    b".rela.plt",
    b".rel.plt",
    b".plt.got",
    b".rela.dyn",
];

/// Returns whether a section's contents are kept.
fn keeps(section: &ElfSection, contents: Contents) -> bool {
    let name = &*section.name;
    section.has_contents
        && match section.kind {
            SYMTAB | DYNSYM | SYMTAB_SHNDX | NOTE | ARM_EXIDX_OR_X86_64_UNWIND => true,
            _ if section.is_strings => true,
            // Named by their slots' relocations, which only these stubs need.
            _ if name == b".rela.dyn" => section.has_plt_got,
            _ if KEPT.contains(&name) => true,
            _ => contents == Contents::Lines && is_debug_info(name),
        }
}

fn is_debug_info(name: &[u8]) -> bool {
    [&b".debug_"[..], b".zdebug_", b".gdb_index"].iter().any(|prefix| name.starts_with(prefix))
}
