//! The frame pointer of a function that has set it, where its value is unknown: as of a thread whose
//! registers cannot be read.
//!
//! ```text
//!   function   push %rbp            sp - 8       the code from its start to the call says how far
//!              mov  %rsp,%rbp                    the stack pointer has moved
//!              sub  $32,%rsp        sp - 40
//!              call …               ─▶ CFA = sp + 40 + 8
//! ```

use super::exits;
use super::memory::Readable;
use super::rule::{PlainRule, Rule};
use super::walk::{Code, Current, Place, Unwinder, is_return};

impl Unwinder {
    /// Returns the frame pointer of a frame whose rule needs it and does not have it; `None` if it
    /// is not needed, or the code does not say.
    pub(super) fn recovered<C: Code>(
        &mut self,
        code: &mut C,
        place: Place,
        frame: &Current,
        memory: &Readable<'_>,
    ) -> Option<u64> {
        let machine = frame.registers.machine();
        if frame.registers.get(machine.fp()).is_some() {
            return None;
        }
        let sp = frame.registers.get(machine.sp())?;
        let rules = code.rules(place.module).ok()?;
        let PlainRule { cfa, .. } = plain(self.rule(rules, place)?)?;
        let offset = i64::from(cfa.offset);
        let start = rules.beginning(place.address).filter(|_| cfa.register == machine.fp())?;
        let PlainRule { cfa, .. } = plain(self.rule(rules, Place { address: start, ..place })?)?;
        // A part that was moved away from its function begins with the frame of that.
        if cfa.register != machine.sp() || cfa.offset > i32::from(machine.word()) {
            return None;
        }
        let entered = i64::from(cfa.offset);
        let lookup = frame.ip.wrapping_sub(u64::from(!frame.is_exact));
        let begin = lookup.wrapping_sub(place.address.wrapping_sub(start));
        let moved = exits::moved(machine, begin, frame.ip, |at, bytes| code.code_at(at, bytes))?;
        let cfa = sp.wrapping_add_signed(entered.wrapping_sub(moved));
        let fp = cfa.wrapping_add_signed(offset.wrapping_neg());
        let return_address = memory.word(fp.wrapping_add(machine.word().into())).ok()?;
        is_return(code, machine, machine.address(return_address)).then_some(fp)
    }
}

fn plain(rule: &Rule) -> Option<&PlainRule> {
    match rule {
        Rule::Plain(plain) => Some(plain),
        Rule::Full(_) => None,
    }
}
