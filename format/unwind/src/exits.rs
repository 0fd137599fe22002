//! Where a function without rules has its return address: the code is followed from an instruction
//! to the returns that it leads to, by what each instruction does to the stack pointer.
//!
//! ```text
//!   sampled   add $24,%rsp         sp + 24
//!             pop %rbp             sp + 32, the caller's frame pointer is at sp + 24
//!             cmp …; ja ─┐         branches are followed both ways, calls are taken to return
//!             ret        │         the return address is at sp + 32
//! ```
//!
//! This is exact where code is as compilers write it. It is not behind calls that never return, so
//! an exit behind a call has to be confirmed.

use rustc_hash::{FxBuildHasher, FxHashSet};

use super::effect::{Effect, Kept, Next, Step};
use super::machine::{Machine, Registers};
use super::memory::{Missing, Readable};
use super::{arm, x86};

/// Maximum length of an instruction.
pub(super) const INSTRUCTION: usize = 16;
/// Number of instructions that are followed.
const MOST_STEPS: usize = 600;
/// Number of exits that are looked for.
const MOST_EXITS: usize = 3;
/// Number of instructions of a function that are followed to find its end.
const MOST_OF_FUNCTION: usize = 1 << 16;
/// Number of branches that wait.
const MOST_BRANCHES: usize = 64;

/// A register at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Sp,
    Fp,
}

/// A register's value at the beginning, and what is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    base: Base,
    offset: i64,
}

impl Sum {
    fn plus(self, offset: i64) -> Self {
        Self { offset: self.offset.wrapping_add(offset), ..self }
    }
}

/// The value of a register that functions keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Sum(Sum),
    /// The word at an address.
    At(Sum),
    /// The return address that was in its register at the beginning.
    Link,
    Lost,
}

/// A return to the caller, by values at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    return_address: Value,
    /// The caller's stack pointer.
    sp: Sum,
    fp: Value,
    /// `true` if a call is on the way.
    pub(super) is_behind_call: bool,
}

/// Exits of the code from an instruction on.
pub(super) type Exits = [Option<Exit>; MOST_EXITS];

/// A caller's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) return_address: u64,
    pub(super) sp: u64,
    pub(super) fp: Option<u64>,
}

/// A path through the code.
#[derive(Clone, Copy, Debug)]
struct Path {
    at: u64,
    sp: Option<Sum>,
    fp: Value,
    link: Value,
    /// What was stored last.
    stored: [Option<(Sum, Value)>; 2],
    is_behind_call: bool,
}

/// Returns the exits of the code from an instruction on; `read` copies code at an address, and
/// returns the number of bytes that are known.
pub(super) fn exits(
    machine: Machine,
    start: u64,
    read: impl FnMut(u64, &mut [u8; INSTRUCTION]) -> usize,
) -> Vec<Exit> {
    let mut found = Vec::new();
    follow(machine, start, MOST_STEPS, read, |path, step| {
        if let Next::Return(pops) = step.next {
            found.extend(path.exit(machine, pops));
        }
        found.len() == MOST_EXITS
    });
    found
}

/// Follows code, and shows each instruction with what was before it, until `show` says that this is
/// enough.
fn follow(
    machine: Machine,
    start: u64,
    steps: usize,
    mut read: impl FnMut(u64, &mut [u8; INSTRUCTION]) -> usize,
    mut show: impl FnMut(&Path, &Step) -> bool,
) {
    let decode = match machine {
        Machine::X86_64 => x86::step,
        Machine::Aarch64 => arm::step,
        Machine::X86 => return,
    };
    let mut visited = FxHashSet::with_capacity_and_hasher(MOST_STEPS, FxBuildHasher);
    let mut paths = vec![Path::new(start)];
    while let Some(mut path) = paths.pop() {
        while visited.len() < steps && visited.insert(path.at) {
            let mut bytes = [0; INSTRUCTION];
            let length = read(path.at, &mut bytes);
            let Some(step) = bytes.get(..length).and_then(decode) else { break };
            if show(&path, &step) {
                return;
            }
            match path.take(&step) {
                Some(Some(branch)) if paths.len() < MOST_BRANCHES => paths.push(branch),
                Some(_) => {}
                None => break,
            }
        }
    }
}

/// Returns how far the stack pointer has moved from a function's first instruction to another one;
/// `None` if the code does not lead there, or it is not known.
pub(super) fn moved(
    machine: Machine,
    start: u64,
    to: u64,
    read: impl FnMut(u64, &mut [u8; INSTRUCTION]) -> usize,
) -> Option<i64> {
    let mut found = None;
    follow(machine, start, MOST_STEPS, read, |path, _| {
        if path.at == to {
            found = path.sp.filter(|sp| sp.base == Base::Sp).map(|sp| sp.offset);
        }
        path.at == to
    });
    found
}

/// Returns the end of the code that a function's first instruction leads to without a call: what
/// follows on its start, with no more between than fills a line of 16 bytes. It is the start if
/// instructions of this machine are not known. `read` copies code at an
/// address, and returns the number of bytes that are known.
pub fn end_of_code(
    machine: Machine,
    start: u64,
    read: impl FnMut(u64, &mut [u8; 16]) -> usize,
) -> u64 {
    const LINE: u64 = 16;
    let mut reached = Vec::new();
    follow(machine, start, MOST_OF_FUNCTION, read, |path, step| {
        reached.push((path.at, path.at.saturating_add(step.length as u64)));
        false
    });
    reached.sort_unstable();
    let mut end = start;
    for (from, until) in reached {
        let fills_line = from.is_multiple_of(LINE) && from - end.min(from) < LINE;
        match from {
            _ if from < start => {}
            _ if from <= end || fills_line => end = end.max(until),
            _ => break,
        }
    }
    end
}

impl Path {
    fn new(start: u64) -> Self {
        Self {
            at: start,
            sp: Some(Sum { base: Base::Sp, offset: 0 }),
            fp: Value::Sum(Sum { base: Base::Fp, offset: 0 }),
            link: Value::Link,
            stored: [None; 2],
            is_behind_call: false,
        }
    }

    /// Goes one instruction further, and returns the other way that there is; `None` if there is
    /// none, or it is not known where.
    fn take(&mut self, step: &Step) -> Option<Option<Self>> {
        for effect in step.effects {
            self.apply(effect);
        }
        let end = self.at.wrapping_add(step.length as u64);
        self.at = end;
        match step.next {
            Next::On => {}
            Next::Call => {
                self.is_behind_call = true;
                self.link = Value::Lost;
            }
            Next::Jump(distance) => self.at = end.wrapping_add_signed(distance),
            Next::Branch(distance) => {
                let other = Self { at: end.wrapping_add_signed(distance), ..*self };
                return Some(Some(other));
            }
            Next::Return(_) | Next::Elsewhere | Next::Nowhere => return None,
        }
        Some(None)
    }

    fn apply(&mut self, effect: Effect) {
        let sp = |offset| self.sp.map(|sp| sp.plus(offset));
        let fp = |offset| match self.fp {
            Value::Sum(fp) => Some(fp.plus(offset)),
            _ => None,
        };
        match effect {
            Effect::None => {}
            Effect::MoveSp(offset) => self.sp = sp(offset),
            Effect::SpFromFp(offset) => self.sp = fp(offset),
            Effect::FpFromSp(offset) => self.fp = sp(offset).map_or(Value::Lost, Value::Sum),
            Effect::MoveFp(offset) => self.fp = fp(offset).map_or(Value::Lost, Value::Sum),
            Effect::LoseSp => self.sp = None,
            Effect::Load(kept, offset) => {
                let value = sp(offset).map_or(Value::Lost, |at| self.word(at));
                *self.kept(kept) = value;
            }
            Effect::Store(kept, offset) => {
                let at = sp(offset);
                let value = *self.kept(kept);
                self.stored = [at.map(|at| (at, value)), self.stored[0]];
            }
            Effect::Lose(kept) => *self.kept(kept) = Value::Lost,
        }
    }

    fn kept(&mut self, kept: Kept) -> &mut Value {
        match kept {
            Kept::Fp => &mut self.fp,
            Kept::Link => &mut self.link,
        }
    }

    /// Returns the word at an address.
    fn word(&self, at: Sum) -> Value {
        let stored = self.stored.iter().flatten().find(|(place, _)| *place == at);
        stored.map_or(Value::At(at), |(_, value)| *value)
    }

    fn exit(&self, machine: Machine, pops: u16) -> Option<Exit> {
        let sp = self.sp?;
        let (return_address, size) = match machine {
            Machine::Aarch64 => (self.link, 0),
            Machine::X86_64 | Machine::X86 => (Value::At(sp), i64::from(machine.word())),
        };
        let sp = sp.plus(size + i64::from(pops));
        let is_known = return_address != Value::Lost;
        let is_behind_call = self.is_behind_call;
        is_known.then_some(Exit { return_address, sp, fp: self.fp, is_behind_call })
    }
}

impl Exit {
    /// Returns the caller's frame, by the registers at the beginning; `link` is the return address
    /// if it is still in its register.
    pub(super) fn take(
        &self,
        registers: &Registers,
        link: Option<u64>,
        memory: &Readable<'_>,
    ) -> Result<Left, Missing> {
        let machine = registers.machine();
        let sum = |sum: Sum| {
            let base = match sum.base {
                Base::Sp => registers.get(machine.sp()),
                Base::Fp => registers.get(machine.fp()),
            };
            base.map(|base| base.wrapping_add_signed(sum.offset)).ok_or(Missing::Elsewhere)
        };
        let value = |value| match value {
            Value::Sum(of) => sum(of),
            Value::At(at) => memory.word(sum(at)?),
            Value::Link => link.ok_or(Missing::Elsewhere),
            Value::Lost => Err(Missing::Elsewhere),
        };
        Ok(Left {
            return_address: machine.address(value(self.return_address)?),
            sp: sum(self.sp)?,
            fp: value(self.fp).ok(),
        })
    }
}
