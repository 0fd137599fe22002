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

/// Lists the instructions of a function, given its counts by address in the module. What counts at
/// an address behind the code has a row without text.
///
/// # Errors
/// Returns the reason if there is no code: the wrong file is not taken for the recorded one.
pub(crate) fn listing(
    function: &FunctionPlace,
    counts: &BTreeMap<u64, Count>,
) -> Result<CodeListing, NoCode> {
    let code = function.code()?;
    let Some(set) = InstructionSet::of(&code) else {
        return Err(NoCode::Because(
            "instructions of this machine are not decoded, but those of x86, x86-64 and aarch64",
        ));
    };
    let start = function.range().start;
    let instructions = set.decode(&code.bytes, code.address);
    let mut rows = Vec::with_capacity(instructions.len());
    let (mut address, mut counts) = (code.address, counts.iter().peekable());
    let (lines, mut targets) = (function.loaded().lines(), Vec::new());
    for instruction in instructions {
        let at = start.wrapping_add(address.wrapping_sub(code.address));
        let end = at.saturating_add(instruction.len as u64);
        let mut count = Count::default();
        while let Some((_, more)) = counts.next_if(|(sampled, _)| **sampled < end) {
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
    let numbers: HashMap<u64, usize, FxBuildHasher> =
        rows.iter().enumerate().map(|(number, row)| (row.address, number)).collect();
    for (row, target) in rows.iter_mut().zip(targets) {
        row.jump = target.and_then(|target| numbers.get(&target).copied());
    }
    rows.extend(counts.map(|(at, count)| CodeRow {
        address: code.address.wrapping_add(at.wrapping_sub(start)),
        at: *at,
        count: *count,
        ..CodeRow::default()
    }));
    Ok(CodeListing { path: code.path, rows })
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
