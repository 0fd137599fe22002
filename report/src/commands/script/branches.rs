//! Branch stacks, printed on the sample's line: by address, by function or by offset in the module.

use std::io::{self, Write};

use recrep_format::abi::{BranchEntry, CpuMode};

use super::fields::{Field, Fields};
use super::frames::Finder;
use crate::timeline::{Moment, Task};

/// CPU mode, task and time of a sample.
pub(super) struct Spot<'a> {
    pub(super) mode: CpuMode,
    pub(super) task: &'a Task,
    pub(super) at: Moment,
}

/// Form in which the source and target of a branch are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Address,
    Function,
    Offset,
}

/// Prints the branch stack of a sample.
pub(super) fn print<'b>(
    branches: impl Iterator<Item = BranchEntry> + 'b,
    fields: &Fields,
    spot: &Spot<'_>,
    finder: &mut Finder<'_, '_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let forms =
        [(Field::BrStack, Form::Address), (Field::BrStackSym, Form::Function), (Field::BrStackOff, Form::Offset)];
    let Some((_, form)) = forms.into_iter().find(|(field, _)| fields.has(*field)) else { return Ok(()) };
    for branch in branches {
        // Functions have no space before them: the flags of the previous branch end with one.
        let space = if form == Form::Function { "" } else { " " };
        write!(out, "{space}{}", address(branch.from, form, fields, spot, finder))?;
        write!(out, "/{}", address(branch.to, form, fields, spot, finder))?;
        flags(&branch, out)?;
    }
    Ok(())
}

fn address(address: u64, form: Form, fields: &Fields, spot: &Spot<'_>, finder: &mut Finder<'_, '_>) -> String {
    let needs_place = form != Form::Address || fields.has(Field::Dso);
    if !needs_place {
        return format!("0x{address:x}");
    }
    let place = finder.place_of_either(spot.mode, spot.task, address, spot.at);
    let dso = if fields.has(Field::Dso) { finder.dso(place, fields.has(Field::DsOff)) } else { "".into() };
    match form {
        Form::Address => format!("0x{address:x}{dso}"),
        Form::Offset => format!("0x{:x}{dso}", place.address),
        Form::Function => match finder.symbol(place) {
            Some(function) => format!("{}+0x{:x}{dso}", function.name, function.offset),
            None => format!("[unknown]{dso}"),
        },
    }
}

fn flags(branch: &BranchEntry, out: &mut impl Write) -> io::Result<()> {
    let flags = branch.flags;
    let predicted = match (flags.mispred(), flags.predicted()) {
        (false, false) => '-',
        (_, true) => 'P',
        (true, false) => 'M',
    };
    let (tx, abort) = (if flags.in_tx() { 'X' } else { '-' }, if flags.abort() { 'A' } else { '-' });
    let (cycles, kind, spec) = (flags.cycles(), flags.kind_name(), flags.spec_name());
    write!(out, "/{predicted}/{tx}/{abort}/{cycles}/{kind}/{spec} ")
}
