//! `--format bolt`: a pre-aggregated profile for BOLT (`perf2bolt --pa`), as in LLVM's
//! `bolt/docs/profiles.md`.
//!
//! ```text
//!   B <from> <to> <count> <mispredicted>     branches
//!   F <start> <end> <count>                  code from the target of a branch to the next branch
//!   f <start> <end> <count>                  the same, after a branch from another binary
//! ```
//!
//! The profile covers one binary, the one with the most branches. Its addresses are hexadecimal: as
//! linked if its load address is fixed (`ET_EXEC`), else relative to the first loaded segment.
//! Branches from or to other modules have `X:<offset>` there; everything outside the binary is left
//! out.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Context as _;
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf};

use crate::analyses::derived;
use crate::profile::names::FileOffset;
use crate::query::word_text::is_mispredicted;
use crate::query::{Column, Mode, Query, Warning};
use crate::table::{self, EventTable};
use crate::terminal::parts::CANNOT_WRITE;

/// Path of a module, and an offset in its file.
type Place = (String, u64);

/// Numbers of pairs of places, with a flag.
type Counts = BTreeMap<(bool, Place, Place), u64>;

pub(super) fn run(query: &Query, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let (branches, mut warnings) =
        counted(query, "mispredict", |flags| is_mispredicted(flags) == Some(true))?;
    let of_ranges = Query { mode: Mode::FallThroughs, ..query.clone() };
    let (ranges, _) = counted(&of_ranges, "external", |bit| bit != 0)?;

    let mut edges = BTreeMap::<(&Place, &Place), (u64, u64)>::new();
    let mut shares = BTreeMap::<&String, u64>::new();
    for ((is_missed, from, to), samples) in &branches {
        for (module, _) in [from, to].into_iter().filter(|(module, _)| module.starts_with('/')) {
            *shares.entry(module).or_default() += samples;
        }
        let (count, missed) = edges.entry((from, to)).or_default();
        *count += samples;
        *missed += if *is_missed { *samples } else { 0 };
    }
    let most = shares.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
    let Some((binary, _)) = most else {
        anyhow::bail!("no branch is in a file, so there is no profile for BOLT")
    };
    let segments = Segments::read(Path::new(binary)).unwrap_or_else(|why| {
        let message = format!("{binary}: {why}; file offsets are printed instead of addresses");
        warnings.push(Warning::new("no-binary", message));
        Segments::default()
    });
    let location = |(module, offset): &Place| match module == *binary {
        true => format!("{:x}", segments.address(*offset)),
        false => format!("X:{offset:x}"),
    };
    let mut lines = Vec::new();
    for ((from, to), (count, missed)) in &edges {
        if from.0 != **binary && to.0 != **binary {
            continue;
        }
        lines.push(format!("B {} {} {count} {missed}", location(from), location(to)));
    }
    // Ranges that end in another module or before their start were not recorded completely.
    for ((is_external, start, end), count) in &ranges {
        if start.0 != **binary || end.0 != **binary || start.1 > end.1 {
            continue;
        }
        let kind = if *is_external { 'f' } else { 'F' };
        lines.push(format!("{kind} {} {} {count}", location(start), location(end)));
    }
    lines.iter().try_for_each(|line| writeln!(out, "{line}")).context(CANNOT_WRITE)?;
    Ok(warnings)
}

/// Counts the pairs of places, those apart that have a `mark` in the column `key`; also returns
/// warnings.
fn counted(
    query: &Query,
    key: &str,
    mark: impl Fn(u64) -> bool,
) -> anyhow::Result<(Counts, Vec<Warning>)> {
    let columns = Column::list(&format!("place_from,place_to,{key}"), query.mode)?;
    let (profile, query, _) = derived::profile(query, columns, |_| ())?;
    let mut counts = Counts::new();
    for row in table::tables(&profile, &query).iter().flat_map(EventTable::rows) {
        let places = [0, 1].map(|column| {
            let FileOffset { module, offset } = row.file_offset(column)?;
            Some((profile.names.module(module)?.path.clone(), offset))
        });
        if let [Some(from), Some(to)] = places {
            let is_marked = row.word(2).is_some_and(&mark);
            *counts.entry((is_marked, from, to)).or_default() += row.count().samples;
        }
    }
    Ok((counts, profile.warnings))
}

/// Loaded segments of a binary, which map file offsets to addresses.
#[derive(Debug, Default)]
struct Segments {
    /// File offset, address and size of each segment.
    loaded: Vec<(u64, u64, u64)>,
    /// Address that is subtracted: of the first segment, or 0 if the load address is fixed.
    base: u64,
}

impl Segments {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path)?;
        let header = elf::FileHeader64::<Endianness>::parse(&*bytes)?;
        let endian = header.endian()?;
        let headers = header.program_headers(endian, &*bytes)?;
        let loaded: Vec<_> = headers
            .iter()
            .filter(|header| header.p_type(endian) == elf::PT_LOAD)
            .map(|header| {
                (header.p_offset(endian), header.p_vaddr(endian), header.p_filesz(endian))
            })
            .collect();
        let is_fixed = header.e_type(endian) == elf::ET_EXEC;
        let base = if is_fixed { 0 } else { loaded.first().map_or(0, |(_, address, _)| *address) };
        Ok(Self { loaded, base })
    }

    fn address(&self, offset: u64) -> u64 {
        let within =
            |&&(start, _, size): &&(u64, u64, u64)| start <= offset && offset - start < size;
        match self.loaded.iter().find(within) {
            Some((start, address, _)) => {
                (offset - start).wrapping_add(*address).wrapping_sub(self.base)
            }
            None => offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_addresses_in_their_segment() {
        let segments = Segments { loaded: vec![(0, 0, 0x1000), (0x1000, 0x3000, 0x500)], base: 0 };
        assert_eq!(
            [0x10, 0x1010, 0x9000].map(|offset| segments.address(offset)),
            [0x10, 0x3010, 0x9000]
        );
    }
}
