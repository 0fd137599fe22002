//! What is known although a register or a word of the stack does not say it.
//!
//! The frame pointer of a function that has set it, as of a thread whose registers cannot be read:
//!
//! ```text
//!   function   push %rbp            sp - 8       the code from its start to the call says how far
//!              mov  %rsp,%rbp                    the stack pointer has moved
//!              sub  $32,%rsp        sp - 40
//!              call …               ─▶ CFA = sp + 40 + 8
//! ```
//!
//! The return address of a function whose return is probed: the kernel puts that of a trampoline in
//! its place. If the kernel's chain does not have the true one, it is behind one of the calls of
//! the function: that of the caller whose frame begins there.

use super::chain::Cause;
use super::exits;
use super::memory::{Missing, Readable};
use super::rule::{PlainRule, Rule};
use super::walk::{Code, Current, Place, Stop, Unwinder, is_return};

/// Most calls of a function that are looked at.
const MOST_CALLS: usize = 256;

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

    /// Returns why frames are missing within the last chain ([`Frame::Missing`](super::Frame)).
    pub fn gap(&self) -> Option<Cause> {
        self.gap.map(|missing| match missing {
            Missing::Copy => Cause::Copy,
            Missing::Elsewhere => Cause::Lost,
        })
    }

    /// Returns a caller with its true address, which it has unless the return of its callee, at
    /// `place`, is probed; `None` if it cannot be told.
    pub(super) fn unprobed<C: Code>(
        &mut self,
        code: &mut C,
        place: Place,
        callee: &Current,
        caller: Current,
        memory: &Readable<'_>,
    ) -> Option<Current> {
        if !code.trampoline().contains(&caller.ip) {
            return Some(caller);
        }
        let lookup = callee.ip.wrapping_sub(u64::from(!callee.is_exact));
        let start = code.rules(place.module).ok()?.beginning(place.address)?;
        let function = lookup.wrapping_sub(place.address.wrapping_sub(start));
        let mut found: Option<(u64, Current)> = None;
        for ip in code.returns_from(function)?.into_iter().take(MOST_CALLS) {
            let candidate = Current { ip, ..caller };
            let Some(function) = self.caller_of(code, &candidate, memory) else { continue };
            if found.is_some_and(|(other, _)| other != function) {
                return None;
            }
            found = found.or(Some((function, candidate)));
        }
        found.map(|(_, caller)| caller)
    }

    /// Returns the start of a candidate's function if the stack is that of its frame: its own return
    /// address is behind a call, and not of another function.
    fn caller_of<C: Code>(
        &mut self,
        code: &mut C,
        candidate: &Current,
        memory: &Readable<'_>,
    ) -> Option<u64> {
        let machine = candidate.registers.machine();
        let lookup = candidate.ip.wrapping_sub(1);
        let place = code.place(lookup)?;
        let rules = code.rules(place.module).ok()?;
        let start = rules.beginning(place.address)?;
        let function = lookup.wrapping_sub(place.address.wrapping_sub(start));
        let next = match candidate.step(self.rule(rules, place)?, rules, memory) {
            Err(Stop::Root) => return Some(function),
            next => next.ok()?,
        };
        if code.trampoline().contains(&next.ip) {
            return Some(function);
        }
        if !is_return(code, machine, next.ip) {
            return None;
        }
        let target = machine.call_target(next.ip, code.code_before(next.ip)?);
        // A call of another module goes by its table of linked functions.
        let is_own = target.is_none_or(|target| {
            target == function || code.place(target).is_some_and(|to| to.module != place.module)
        });
        is_own.then_some(function)
    }
}

fn plain(rule: &Rule) -> Option<&PlainRule> {
    match rule {
        Rule::Plain(plain) => Some(plain),
        Rule::Full(_) => None,
    }
}
