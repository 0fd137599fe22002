//! The instructions of a function with what is known of them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use rustc_hash::FxBuildHasher;

use super::decode::InstructionSet;
use super::instruction::{Flow, Instruction};
use crate::count::Count;
use crate::symbols::{FunctionPlace, MachineCode, NoCode, SourceFrame};

/// The instructions of a function.
#[derive(Clone, Debug)]
pub(crate) struct CodeListing {
    /// File with the code.
    pub path: PathBuf,
    pub rows: Vec<CodeRow>,
}

/// An instruction, or an address with samples where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CodeRow {
    /// Address that other tools print: as linked.
    pub address: u64,
    /// Address in the module's own terms, by which samples are counted.
    pub at: u64,
    /// Text as `objdump -d` has it, with the names of what it refers to; empty if there is no code.
    pub text: String,
    /// Samples at its bytes.
    pub count: Count,
    pub flow: Flow,
    /// Number of the row that it jumps to.
    pub jump: Option<usize>,
    /// Source file, as debug information has it, and line.
    pub source: Option<(String, u32)>,
    /// Functions that were inlined here, innermost first.
    pub inlined: Vec<String>,
}

/// Instructions of a function that are listed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ListingExtent {
    All,
    /// Of functions with more than `most` instructions, the sampled ones, and so many `around` each.
    NearSamples {
        most: usize,
        around: usize,
    },
}

/// Lists the instructions of a function, given its counts by address in the module. What counts at
/// an address behind the code has a row without text.
///
/// # Errors
/// Returns the reason if there is no code: the wrong file is not taken for the recorded one.
pub(crate) fn listing(
    function: &FunctionPlace,
    counts: &BTreeMap<u64, Count>,
    extent: ListingExtent,
) -> Result<CodeListing, NoCode> {
    let code = function.code()?;
    let Some(set) = InstructionSet::of(&code) else {
        return Err(NoCode::Because(
            "instructions of this machine are not decoded, but those of x86, x86-64 and aarch64",
        ));
    };
    let start = function.range().start;
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    let mut rest = counts.iter().peekable();
    let lines = function.loaded().lines();
    for CodeRun { offset, len } in parts(set, &code.bytes, (start, counts), extent) {
        let mut address = code.address.wrapping_add(offset as u64);
        let bytes = code.bytes.get(offset..).unwrap_or_default();
        for instruction in set.decode_first(len, bytes, address) {
            let at = start.wrapping_add(address.wrapping_sub(code.address));
            let end = at.saturating_add(instruction.len as u64);
            let mut count = Count::default();
            while let Some((_, more)) = rest.next_if(|(sampled, _)| **sampled < end) {
                count.add(*more);
            }
            let frames = if lines.is_known() { lines.frames(at) } else { Vec::new() };
            rows.push(CodeRow {
                address,
                at,
                text: with_name(&instruction, &code, function),
                count,
                flow: instruction.flow,
                jump: None,
                source: frames.first().and_then(place),
                inlined: inlined(frames),
            });
            address = address.wrapping_add(instruction.len as u64);
            let jumps = matches!(instruction.flow, Flow::Jump | Flow::Branch);
            targets.push(instruction.target.filter(|_| jumps));
        }
    }
    let numbers: HashMap<u64, usize, FxBuildHasher> =
        rows.iter().enumerate().map(|(number, row)| (row.address, number)).collect();
    for (row, target) in rows.iter_mut().zip(targets) {
        row.jump = target.and_then(|target| numbers.get(&target).copied());
    }
    rows.extend(rest.map(|(at, count)| CodeRow {
        address: code.address.wrapping_add(at.wrapping_sub(start)),
        at: *at,
        count: *count,
        ..CodeRow::default()
    }));
    Ok(CodeListing { path: code.path, rows })
}

/// Instructions that follow one another.
#[derive(Debug, PartialEq, Eq)]
struct CodeRun {
    /// Offset of the first one in the code.
    offset: usize,
    /// Number of instructions.
    len: usize,
}

/// Returns the parts of code, whose first byte is at `start`, that are listed. A function of an
/// interpreter may have a hundred thousand instructions, of which ten were sampled.
fn parts(
    set: InstructionSet,
    code: &[u8],
    (start, counts): (u64, &BTreeMap<u64, Count>),
    extent: ListingExtent,
) -> Vec<CodeRun> {
    let all = CodeRun { offset: 0, len: usize::MAX };
    let ListingExtent::NearSamples { most, around } = extent else { return vec![all] };
    // No instruction is longer than 15 bytes.
    if code.len() / 15 > most || code.len() > most {
        let lengths = set.lengths(code);
        let rows = sampled_rows(&lengths, start, counts);
        if rows.len > most {
            return near(&lengths, &rows.sampled, around);
        }
    }
    vec![all]
}

/// Numbers of the rows of a listing that have samples.
struct SampledRows {
    sampled: Vec<usize>,
    /// Number of all rows.
    len: usize,
}

fn sampled_rows(lengths: &[usize], start: u64, counts: &BTreeMap<u64, Count>) -> SampledRows {
    let (mut sampled, mut end) = (Vec::new(), start);
    let mut rest = counts.keys().peekable();
    for (number, len) in lengths.iter().enumerate() {
        end = end.saturating_add(*len as u64);
        if rest.next_if(|at| **at < end).is_some() {
            sampled.push(number);
            while rest.next_if(|at| **at < end).is_some() {}
        }
    }
    // What counts behind the code has rows of its own.
    let behind = rest.count();
    let len = lengths.len() + behind;
    sampled.extend(lengths.len()..len);
    SampledRows { sampled, len }
}

/// Returns the instructions around the sampled ones.
fn near(lengths: &[usize], sampled: &[usize], around: usize) -> Vec<CodeRun> {
    let mut parts: Vec<CodeRun> = Vec::new();
    let (mut number, mut offset) = (0, 0);
    for at in sampled {
        let wanted = at.saturating_sub(around);
        while number < wanted.min(lengths.len()) {
            offset += lengths.get(number).copied().unwrap_or(0);
            number += 1;
        }
        let mut part = CodeRun { offset, len: 0 };
        while number < lengths.len().min(at.saturating_add(around + 1)) {
            offset += lengths.get(number).copied().unwrap_or(0);
            number += 1;
            part.len += 1;
        }
        parts.extend((part.len > 0).then_some(part));
    }
    parts
}

/// Returns the source file and line of a frame, if known.
fn place(frame: &SourceFrame) -> Option<(String, u32)> {
    Some((frame.file.clone()?, frame.line))
}

/// Returns the inlined functions among frames: all but the outermost.
fn inlined(mut frames: Vec<SourceFrame>) -> Vec<String> {
    frames.pop();
    frames.into_iter().filter_map(|frame| frame.function).collect()
}

/// Returns the text of an instruction with the name of what it refers to.
fn with_name(instruction: &Instruction, code: &MachineCode, function: &FunctionPlace) -> String {
    let name = || {
        let address = code.looked_up(instruction.target?)?;
        let loaded = function.loaded();
        let symbol = loaded.find(address)?;
        let name = loaded.name(symbol)?;
        let offset = address.wrapping_sub(loaded.start(symbol)?);
        Some(if offset == 0 { format!("<{name}>") } else { format!("<{name}+{offset:#x}>") })
    };
    match name() {
        Some(name) => format!("{} {name}", instruction.text),
        None => instruction.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_functions_what_is_near_samples_is_listed() {
        // Ten instructions `nop` from 100 on, and one of 5 bytes behind each.
        let code: Vec<u8> = [0x90, 0xe9, 0, 0, 0, 0].repeat(10);
        let one = Count { samples: 1, period: 1 };
        let counts = BTreeMap::from([100, 103, 131, 1000].map(|at| (at, one)));
        let parts = |most, around| {
            let extent = ListingExtent::NearSamples { most, around };
            let parts = parts(InstructionSet::X86_64, &code, (100, &counts), extent);
            parts.into_iter().map(|part| (part.offset, part.len)).collect::<Vec<_>>()
        };
        // The sampled rows: instructions 0, 1 and 11, and the one behind the code.
        assert_eq!(parts(20, 1), [(0, 2), (2 * 3, 1), (6 * 5, 3), (6 * 9 + 1, 1)]);
        assert_eq!(parts(21, 1), [(0, usize::MAX)]);
        assert_eq!(parts(20, 0), [(0, 1), (1, 1), (6 * 5 + 1, 1)]);
    }
}
