//! The calls of a thread that have not returned, in parts that are joined.
//!
//! A return takes back the youngest call with its target as return address, and the calls behind
//! that; a target that no call has changes nothing. A part of a trace does not know the calls in
//! front of it:
//!
//! ```text
//!  part   calls a b ─ return to x: closed ─ call c ─ return to y: closed ─ calls d e: open
//!  join   base 0 ─ + a b, back to x? ─► base 1 ─ + c, back to y? ─► base 2 ─ + d e ─► next part's base 0
//! ```
//!
//! Parts are read in any order and joined one behind the other; a part that is read again takes the
//! next base whenever its calls are closed.

use rustc_hash::FxHashMap;

use super::instruction::BranchKind;
use super::step::Branch;

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Where it returns to.
    pub return_address: u64,
    /// Tracing ended with it.
    pub is_end: bool,
}

/// What a branch does to the open calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallChange {
    /// Opens a call.
    Call(OpenCall),
    /// Returns to an address.
    Return(u64),
    /// Tracing begins at an address, to which a call may have returned; calls that ended tracing
    /// are over.
    Begin(u64),
}

impl CallChange {
    /// Returns what a branch does, if anything; `is_end` if tracing ended with it.
    #[inline]
    pub fn of_branch(branch: &Branch, is_end: bool) -> Option<Self> {
        use BranchKind::{
            Asynchronous, Begin, Call, Interrupt, InterruptReturn, Return, SystemCall, SystemReturn,
        };
        let Branch { from, to, kind, len } = *branch;
        if to == 0 {
            return None;
        }
        match kind {
            Call | SystemCall | Interrupt | Asynchronous => {
                let return_address = from.wrapping_add(len.into());
                // Calls of the next instruction only ask for an address.
                (return_address != to).then_some(Self::Call(OpenCall { return_address, is_end }))
            }
            Begin => Some(Self::Begin(to)),
            Return | SystemReturn | InterruptReturn => Some(Self::Return(to)),
            _ => None,
        }
    }
}

/// Calls since the begin of a part, or since they were last closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenCalls(Vec<OpenCall>);

/// A change of calls that depends on those of the parts before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Where control returns to.
    returns_to: Option<u64>,
    /// The youngest calls, as far as they ended tracing, are over.
    drops_ended: bool,
}

impl OpenCalls {
    /// Applies a change. If that depends on the calls of the parts before, the calls are as they
    /// were, and have to be closed.
    #[inline]
    pub fn apply(&mut self, change: CallChange) -> Option<Closing> {
        match change {
            CallChange::Call(call) => {
                self.0.push(call);
                None
            }
            CallChange::Return(to) => (!self.return_to(to))
                .then_some(Closing { returns_to: Some(to), drops_ended: false }),
            CallChange::Begin(to) => {
                if !self.return_to(to) {
                    return Some(Closing { returns_to: Some(to), drops_ended: true });
                }
                while self.0.pop_if(|call| call.is_end).is_some() {}
                self.0.is_empty().then_some(Closing { returns_to: None, drops_ended: true })
            }
        }
    }

    fn return_to(&mut self, to: u64) -> bool {
        let found = self.0.iter().rposition(|call| call.return_address == to);
        if let Some(kept) = found {
            self.0.truncate(kept);
        }
        found.is_some()
    }

    /// Closes the calls; returns them.
    pub fn close(&mut self) -> Vec<OpenCall> {
        std::mem::take(&mut self.0)
    }

    /// Forgets the calls.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the return addresses, youngest first.
    pub fn return_addresses(&self) -> impl Iterator<Item = u64> {
        self.0.iter().rev().map(|call| call.return_address)
    }
}

/// The calls in front of a part, or of where its calls were closed: an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallBase(u32);

impl CallBase {
    /// No calls.
    pub const EMPTY: Self = Self(u32::MAX);
}

/// All bases; what they have in common is there once.
#[derive(Debug, Default)]
pub struct CallBases(Vec<(OpenCall, CallBase)>);

impl CallBases {
    fn get(&self, base: CallBase) -> Option<(OpenCall, CallBase)> {
        self.0.get(base.0 as usize).copied()
    }

    fn add(&mut self, call: OpenCall, below: CallBase) -> CallBase {
        let base = u32::try_from(self.0.len()).map_or(CallBase::EMPTY, CallBase);
        self.0.push((call, below));
        base
    }

    /// Returns the return addresses of a base, youngest first.
    pub fn return_addresses(&self, base: CallBase) -> impl Iterator<Item = u64> {
        let mut below = base;
        std::iter::from_fn(move || {
            let (call, next) = self.get(below)?;
            below = next;
            Some(call.return_address)
        })
    }
}

/// Joins the parts of a thread, in their order.
#[derive(Debug)]
pub struct CallJoiner {
    base: CallBase,
    /// How many calls of the base have a return address.
    counts: FxHashMap<u64, u32>,
}

impl Default for CallJoiner {
    /// Returns one that knows no calls.
    fn default() -> Self {
        Self { base: CallBase::EMPTY, counts: FxHashMap::default() }
    }
}

impl CallJoiner {
    /// Returns the calls so far.
    pub fn base(&self) -> CallBase {
        self.base
    }

    /// Adds calls that stay open.
    pub fn add(&mut self, bases: &mut CallBases, calls: &[OpenCall]) {
        for call in calls {
            self.base = bases.add(*call, self.base);
            *self.counts.entry(call.return_address).or_default() += 1;
        }
    }

    /// Adds calls that were closed.
    pub fn close(&mut self, bases: &mut CallBases, calls: &[OpenCall], closing: Closing) {
        let known = closing.returns_to.filter(|to| self.counts.contains_key(to));
        match known {
            // All of these calls are younger.
            Some(to) => while self.pop(bases).is_some_and(|call| call.return_address != to) {},
            None => self.add(bases, calls),
        }
        while closing.drops_ended && bases.get(self.base).is_some_and(|(call, _)| call.is_end) {
            self.pop(bases);
        }
    }

    fn pop(&mut self, bases: &CallBases) -> Option<OpenCall> {
        let (call, below) = bases.get(self.base)?;
        self.base = below;
        if let Some(count) = self.counts.get_mut(&call.return_address) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&call.return_address);
            }
        }
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule as perf has it, on all calls at once.
    fn changed(calls: &mut Vec<OpenCall>, change: CallChange) {
        let mut return_to = |to| {
            if let Some(at) = calls.iter().rposition(|call| call.return_address == to) {
                calls.truncate(at);
            }
        };
        match change {
            CallChange::Call(call) => calls.push(call),
            CallChange::Return(to) => return_to(to),
            CallChange::Begin(to) => {
                return_to(to);
                while calls.last().is_some_and(|call| call.is_end) {
                    calls.pop();
                }
            }
        }
    }

    /// Random changes: a few addresses, so that returns are found, and many that are not.
    fn changes(count: usize) -> Vec<CallChange> {
        let mut state = 0x1234_5678_9abc_def1_u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let all = (0..count).map(|_| match random(8) {
            0..4 => CallChange::Call(OpenCall {
                return_address: 1 + random(40),
                is_end: random(4) == 0,
            }),
            4..7 => CallChange::Return(1 + random(60)),
            _ => CallChange::Begin(1 + random(60)),
        });
        all.collect()
    }

    /// Reads the parts, joins them, and reads them again; returns the stacks behind each change.
    fn joined(parts: &[&[CallChange]]) -> Vec<Vec<u64>> {
        let (mut bases, mut joiner) = (CallBases::default(), CallJoiner::default());
        let mut all = Vec::new();
        for part in parts {
            let (mut open, mut closed) = (OpenCalls::default(), Vec::new());
            for change in *part {
                if let Some(closing) = open.apply(*change) {
                    closed.push((open.close(), closing));
                }
            }
            let mut found = vec![joiner.base()];
            for (calls, closing) in closed {
                joiner.close(&mut bases, &calls, closing);
                found.push(joiner.base());
            }
            joiner.add(&mut bases, &open.close());
            all.push(found);
        }
        let mut stacks = Vec::new();
        for (part, found) in parts.iter().zip(all) {
            let (mut open, mut found) = (OpenCalls::default(), found.into_iter());
            let mut base = found.next().unwrap();
            for change in *part {
                if open.apply(*change).is_some() {
                    open.clear();
                    base = found.next().unwrap();
                }
                let below = bases.return_addresses(base);
                stacks.push(open.return_addresses().chain(below).collect());
            }
            assert_eq!(found.next(), None);
        }
        stacks
    }

    #[test]
    fn parts_have_the_calls_of_the_trace() {
        let all = changes(4_000);
        let mut calls = Vec::new();
        let mut expected: Vec<Vec<u64>> = Vec::new();
        for change in &all {
            changed(&mut calls, *change);
            expected.push(calls.iter().rev().map(|call| call.return_address).collect());
        }
        assert!(expected.iter().any(|stack| stack.len() > 5));
        for length in [1, 2, 7, 100, 4_000] {
            let parts: Vec<_> = all.chunks(length).collect();
            assert_eq!(joined(&parts), expected, "parts of {length}");
        }
    }
}
