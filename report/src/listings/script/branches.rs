//! Branch stacks, printed on the sample's line: by address, by function or by offset in the module.

use recrep_format::abi::BranchEntry;

use super::fields::{Fields, OutputField};
use super::frames::Finder;
use super::sample::ScriptSample;
use crate::terminal::digits;

impl Finder<'_> {
    /// Prints the branch stack of a sample, if it has one, in the form that the fields have.
    pub(super) fn branches(&mut self, s: &ScriptSample<'_>, fields: &Fields, out: &mut Vec<u8>) {
        let forms = [OutputField::BrStack, OutputField::BrStackSym, OutputField::BrStackOff];
        let form = forms.into_iter().find(|form| fields.has(*form));
        let (Some(form), Some(stack)) = (form, s.fields.branch_stack) else { return };
        for branch in stack.entries() {
            // Functions have no space before them: the flags of the branch before end with one.
            if form != OutputField::BrStackSym {
                out.push(b' ');
            }
            self.branch(&branch, form, fields, s, out);
            out.push(b' ');
        }
    }

    /// Prints a branch.
    pub(super) fn branch(
        &mut self,
        branch: &BranchEntry,
        form: OutputField,
        fields: &Fields,
        s: &ScriptSample<'_>,
        out: &mut Vec<u8>,
    ) {
        self.branch_end(branch.from, form, fields, s, out);
        out.push(b'/');
        self.branch_end(branch.to, form, fields, s, out);
        flags(branch, out);
    }

    fn branch_end(
        &mut self,
        address: u64,
        form: OutputField,
        fields: &Fields,
        s: &ScriptSample<'_>,
        out: &mut Vec<u8>,
    ) {
        let has_dso = fields.has(OutputField::Dso);
        if form == OutputField::BrStack && !has_dso {
            return hex(address, out);
        }
        let place = self.place_of_either(s, address);
        match form {
            OutputField::BrStackOff => hex(place.address, out),
            OutputField::BrStackSym => match self.symbol(place) {
                Some(function) => {
                    out.extend_from_slice(function.name.as_bytes());
                    out.push(b'+');
                    hex(function.offset(place.address), out);
                }
                None => out.extend_from_slice(b"[unknown]"),
            },
            _ => hex(address, out),
        }
        if has_dso {
            self.dso(place.module, fields.has(OutputField::DsOff).then_some(place.address), out);
        }
    }
}

fn hex(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0x");
    digits::hex(out, number, 0);
}

fn flags(branch: &BranchEntry, out: &mut Vec<u8>) {
    let flags = branch.flags;
    let predicted = match (flags.mispred(), flags.predicted()) {
        (false, false) => b'-',
        (_, true) => b'P',
        (true, false) => b'M',
    };
    let (tx, abort) =
        (if flags.in_tx() { b'X' } else { b'-' }, if flags.abort() { b'A' } else { b'-' });
    out.extend_from_slice(&[b'/', predicted, b'/', tx, b'/', abort, b'/']);
    digits::decimal(out, flags.cycles(), 0);
    for name in [flags.kind_name(), flags.spec_name()] {
        out.push(b'/');
        out.extend_from_slice(name.as_bytes());
    }
}
