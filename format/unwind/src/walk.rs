//! From frame to frame: applies the rule of each address to the registers.

use std::ops::{Deref, Range};

use gimli::{CfaRule, Register, RegisterRule};
use rustc_hash::FxHashMap;

use super::chain::{Cause, End, Frame};
use super::exits::{Exits, Left};
use super::expression;
use super::go::Landmark;
use super::machine::{Machine, Registers};
use super::memory::{Link, Memory, Missing, Readable};
use super::rule::{FullRule, PlainRule, ReturnAddress, Rule, RuleContext, Slot};
use super::rules::{RowMemory, Rules};

/// The code of a process at the moment of a sample.
pub trait Code {
    /// Bytes of a section.
    type Bytes: Deref<Target = [u8]>;

    /// Returns the place of an address of the process; `None` if nothing is mapped there.
    fn place(&mut self, address: u64) -> Option<Place>;

    /// Returns the rules of a module; those of a module without call frame information are empty.
    ///
    /// # Errors
    ///
    /// The module's file cannot be read.
    fn rules(&mut self, module: u32) -> Result<&Rules<Self::Bytes>, Unreadable>;

    /// Returns the 8 bytes of code that end before an address of the process; `None` if they are
    /// not known.
    fn code_before(&mut self, address: u64) -> Option<[u8; 8]>;

    /// Copies the code at an address of the process, and returns the number of bytes that are
    /// known.
    fn code_at(&mut self, address: u64, bytes: &mut [u8; 16]) -> usize;

    /// Returns the code that probes of returns put in place of return addresses; empty if there is
    /// none.
    fn trampoline(&self) -> Range<u64> {
        0..0
    }

    /// Returns the addresses that direct calls of a function return to, of all calls in its module;
    /// `None` if they are not known, or if code jumps to it.
    fn returns_from(&mut self, _function: u64) -> Option<Vec<u64>> {
        None
    }

    /// Returns what tells code apart that is in the same place: of processes, of moments.
    fn version(&mut self) -> u64 {
        0
    }
}

/// The file of a module cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Place of an address: the module that is mapped there, and the linked address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Number of the module.
    pub module: u32,
    /// The linked address.
    pub address: u64,
}

/// Unwinds stacks; keeps the rules that it found.
pub struct Unwinder {
    memory: RowMemory,
    /// A direct-mapped cache.
    known: Vec<Option<Known>>,
    /// Exits of code without rules.
    pub(super) exits: FxHashMap<(u64, Place), Exits>,
    pointers: Vec<u64>,
    pub(super) gap: Option<Missing>,
}

/// A rule that was found, or that there is none.
#[derive(Debug)]
struct Known {
    place: Place,
    rule: Option<Rule>,
}

/// Log2 of the number of rules that are kept.
const KNOWN: u32 = 13;

impl Default for Unwinder {
    fn default() -> Self {
        Self {
            memory: RowMemory::new_in(),
            known: Vec::new(),
            exits: FxHashMap::default(),
            pointers: Vec::new(),
            gap: None,
        }
    }
}

impl std::fmt::Debug for Unwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinder").finish_non_exhaustive()
    }
}

/// The frame whose caller is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current {
    pub(super) registers: Registers,
    pub(super) ip: u64,
    /// `true` if the instruction at `ip` is the frame's own, `false` if `ip` is a return address.
    pub(super) is_exact: bool,
    /// `true` if it may be on another stack than what it called.
    pub(super) is_elsewhere: bool,
}

/// Reason why a step leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Root,
    Missing(Missing),
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing)
    }
}

impl Unwinder {
    /// Writes the frames of a chain into `frames`, the sampled one first, at most `most`.
    ///
    /// A number of a module stands for the same rules in all calls.
    pub fn walk<C: Code>(
        &mut self,
        code: &mut C,
        registers: &Registers,
        memory: &Memory<'_>,
        most: usize,
        frames: &mut Vec<Frame>,
    ) -> End {
        frames.clear();
        self.gap = None;
        let mut pointers = std::mem::take(&mut self.pointers);
        let readable = Readable::new(memory, registers, code.trampoline(), &mut pointers);
        let end = self.frames(code, registers, &readable, most, frames);
        self.pointers = pointers;
        end
    }

    fn frames<C: Code>(
        &mut self,
        code: &mut C,
        registers: &Registers,
        memory: &Readable<'_>,
        most: usize,
        frames: &mut Vec<Frame>,
    ) -> End {
        let machine = registers.machine();
        let mut frame = Current {
            registers: *registers,
            ip: registers.ip(),
            is_exact: true,
            is_elsewhere: false,
        };
        while frames.len() < most {
            let lookup = frame.ip.wrapping_sub(u64::from(!frame.is_exact));
            let Some(place) = code.place(lookup) else {
                if frames.is_empty() {
                    frames.push(Frame::Exact(frame.ip));
                }
                return End::Cut(Cause::Unmapped);
            };
            frames.push(match frame.is_exact {
                true => Frame::Exact(frame.ip),
                false => Frame::Return(frame.ip),
            });
            if let Some(fp) = self.recovered(code, place, &frame, memory) {
                frame.registers.set(machine.fp(), Some(fp));
            }
            let Ok(rules) = code.rules(place.module) else {
                return End::Cut(Cause::Unreadable(place.module));
            };
            if rules.machine() != machine {
                return End::Cut(Cause::NoRules(place.module));
            }
            let (landmark, is_go) = (rules.landmark(place.address), rules.is_go());
            let stepped = match (landmark, self.rule(rules, place)) {
                (Some(Landmark::Root), _) => return End::Whole,
                (Some(Landmark::Switch), _) => frame.switched(code, memory),
                (None, Some(rule)) => {
                    if rule.is_signal() && !frame.is_exact {
                        frames.pop();
                        frames.push(Frame::Exact(frame.ip));
                    }
                    let stepped = frame.step(rule, rules, memory);
                    let can_resume = rule.keeps(machine, machine.fp());
                    match stepped {
                        Err(Stop::Missing(missing)) if can_resume => {
                            match frame.resumed(code, memory) {
                                Some(resumed) => {
                                    // What calls has a frame in Go, though no rule says so.
                                    if frame.is_exact || !is_go {
                                        self.gap = Some(missing);
                                        frames.push(Frame::Missing);
                                    }
                                    Ok(resumed)
                                }
                                None => Err(Stop::Missing(missing)),
                            }
                        }
                        stepped => stepped,
                    }
                }
                (None, None) if rules.is_entry(place.address) => return End::Whole,
                (None, None) => {
                    if !frame.is_exact && self.is_beginning(code, frame.ip) {
                        // Entered by a jump, as the start of a coroutine or a thread.
                        frames.pop();
                        frames.push(Frame::Exact(frame.ip));
                        return End::Whole;
                    }
                    match self.without_rules(code, &frame, place, memory) {
                        Err(Stop::Missing(Missing::Elsewhere)) => {
                            return End::Cut(Cause::NoRules(place.module));
                        }
                        stepped => stepped,
                    }
                }
            };
            match stepped {
                Ok(caller) if caller.is_progress(&frame) => {
                    match self.unprobed(code, place, &frame, caller, memory) {
                        Some(caller) => frame = caller,
                        None => return End::Cut(Cause::Lost),
                    }
                }
                Ok(_) => return End::Cut(Cause::Lost),
                Err(Stop::Root) => return End::Whole,
                Err(Stop::Missing(Missing::Copy)) => return End::Cut(Cause::Copy),
                Err(Stop::Missing(Missing::Elsewhere)) => return End::Cut(Cause::Lost),
            }
            if frame.ip == 0 {
                return End::Whole;
            }
        }
        End::Limit
    }

    /// Returns the rule of a place.
    pub(super) fn rule<B: Deref<Target = [u8]>>(
        &mut self,
        rules: &Rules<B>,
        place: Place,
    ) -> Option<&Rule> {
        let Self { memory, known, .. } = self;
        if known.is_empty() {
            known.resize_with(1 << KNOWN, || None);
        }
        let hash = (place.address ^ u64::from(place.module) << 40)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> (64 - KNOWN);
        let slot = known.get_mut(usize::try_from(hash).unwrap_or(0))?;
        if slot.as_ref().is_none_or(|known| known.place != place) {
            let rule = rules.find(place.address, memory).map(|found| found.rule);
            *slot = Some(Known { place, rule });
        }
        slot.as_ref()?.rule.as_ref()
    }

    /// Returns whether a function with rules begins at an address.
    fn is_beginning<C: Code>(&mut self, code: &mut C, address: u64) -> bool {
        let Some(place) = code.place(address) else { return false };
        let Ok(rules) = code.rules(place.module) else { return false };
        self.rule(rules, place).is_some()
    }
}

impl Current {
    /// Returns the caller's frame by a rule.
    pub(super) fn step<B: Deref<Target = [u8]>>(
        &self,
        rule: &Rule,
        rules: &Rules<B>,
        memory: &Readable<'_>,
    ) -> Result<Self, Stop> {
        match rule {
            Rule::Plain(plain) => self.plain_step(plain, rules.is_go(), memory),
            Rule::Full(full) => self.full_step(full, rules, memory),
        }
    }

    fn plain_step(
        &self,
        rule: &PlainRule,
        is_go: bool,
        memory: &Readable<'_>,
    ) -> Result<Self, Stop> {
        let (old, machine) = (&self.registers, self.registers.machine());
        let base = old.get(rule.cfa.register).ok_or(Missing::Elsewhere)?;
        let cfa = base.wrapping_add_signed(rule.cfa.offset.into());
        let return_address = match rule.return_address {
            ReturnAddress::None => return Err(Stop::Root),
            ReturnAddress::Saved(slot) => {
                let offset = slot.offset().ok_or(Missing::Elsewhere)?;
                memory.word(cfa.wrapping_add_signed(offset))?
            }
            ReturnAddress::Kept => {
                // Only the innermost frame, or one that a signal interrupted, has it there yet.
                let kept = old.get(LINK_REGISTER).filter(|_| self.is_exact);
                kept.ok_or(Missing::Elsewhere)?
            }
        };
        // Registers that calls need not preserve keep their values, too: code written by hand has
        // rules with them, for calls that leave them alone.
        let mut registers = *old;
        let sp = old.get(machine.sp());
        for (number, slot) in machine.preserved().iter().zip(rule.saved) {
            if let Some(offset) = slot.offset() {
                let at = cfa.wrapping_add_signed(offset);
                // What is below the stack pointer was popped: epilogues are not described.
                if sp.is_none_or(|sp| at >= sp) {
                    registers.set(*number, memory.word(at).ok());
                }
            } else if slot == Slot::LOST {
                registers.set(*number, None);
            }
        }
        let fp = machine.fp();
        let own = cfa.wrapping_sub(2 * u64::from(machine.word()));
        if is_go && old.get(fp) == Some(own) {
            registers.set(fp, memory.word(own).ok());
        }
        registers.set(machine.sp(), Some(cfa));
        Ok(self.caller(registers, return_address, rule.is_signal))
    }

    fn full_step<B: Deref<Target = [u8]>>(
        &self,
        rule: &FullRule,
        rules: &Rules<B>,
        memory: &Readable<'_>,
    ) -> Result<Self, Stop> {
        let (old, machine) = (&self.registers, self.registers.machine());
        let RuleContext { return_address, is_signal, encoding, in_debug_frame, .. } = rule.context;
        let mut ip_known = *old;
        ip_known.set(machine.ip(), Some(self.ip));
        let evaluate = |expression, initial| {
            let expression = rules.expression(expression, in_debug_frame);
            let expression = expression.ok_or(Missing::Elsewhere)?;
            expression::value(expression, encoding, initial, &ip_known, memory)
        };
        let cfa = match &rule.cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                old.named(*register).ok_or(Missing::Elsewhere)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => evaluate(*expression, None)?,
        };
        let sp = old.get(machine.sp());
        let value = |register: Register, how: &RegisterRule<usize>| match how {
            RegisterRule::Undefined | RegisterRule::Architectural => Err(Missing::Elsewhere),
            RegisterRule::SameValue => old.named(register).ok_or(Missing::Elsewhere),
            RegisterRule::Offset(offset) => {
                let at = cfa.wrapping_add_signed(*offset);
                match sp {
                    Some(sp) if at < sp && !is_signal => {
                        old.named(register).ok_or(Missing::Elsewhere)
                    }
                    _ => memory.word(at),
                }
            }
            RegisterRule::ValOffset(offset) => Ok(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => old.named(*other).ok_or(Missing::Elsewhere),
            RegisterRule::Constant(value) => Ok(*value),
            RegisterRule::Expression(at) => memory.word(evaluate(*at, Some(cfa))?),
            RegisterRule::ValExpression(value) => evaluate(*value, Some(cfa)),
        };
        let caller = match rule.of(return_address) {
            Some(RegisterRule::Undefined) => return Err(Stop::Root),
            Some(RegisterRule::SameValue) | None if machine == Machine::Aarch64 => {
                old.get(LINK_REGISTER).filter(|_| self.is_exact).ok_or(Missing::Elsewhere)?
            }
            Some(how) => value(return_address, how)?,
            None => return Err(Missing::Elsewhere.into()),
        };
        let mut registers = *old;
        registers.set(machine.sp(), Some(cfa));
        for (register, how) in &rule.registers {
            if let Ok(number) = u8::try_from(register.0) {
                registers.set(number, value(*register, how).ok());
            }
        }
        Ok(self.caller(registers, caller, is_signal))
    }

    /// Returns the frame of a caller.
    fn caller(&self, registers: Registers, return_address: u64, is_exact: bool) -> Self {
        let ip = registers.machine().address(return_address);
        Self { registers, ip, is_exact, is_elsewhere: false }
    }

    /// Returns a caller's frame that was found without rules.
    pub(super) fn left(&self, Left { return_address, sp, fp }: Left) -> Self {
        let machine = self.registers.machine();
        let mut registers = self.registers;
        let is_elsewhere = registers.get(machine.sp()).is_some_and(|old| sp < old);
        registers.set(machine.sp(), Some(sp));
        registers.set(machine.fp(), fp);
        Self { is_elsewhere, ..self.caller(registers, return_address, false) }
    }

    /// Returns the frame at the frame pointer, which is on another stack.
    fn switched<C: Code>(&self, code: &mut C, memory: &Readable<'_>) -> Result<Self, Stop> {
        let machine = self.registers.machine();
        let fp = self.registers.get(machine.fp()).ok_or(Missing::Elsewhere)?;
        if fp == 0 {
            return Err(Stop::Root);
        }
        let word = u64::from(machine.word());
        let return_address = machine.address(memory.word(fp.wrapping_add(word))?);
        if !is_return(code, machine, return_address) {
            return Err(Missing::Elsewhere.into());
        }
        let (sp, fp) = (fp.wrapping_add(2 * word), memory.word(fp).ok());
        Ok(Self { is_elsewhere: true, ..self.left(Left { return_address, sp, fp }) })
    }

    /// Returns the next frame that the kernel's chain knows of, if the frame pointer is one that
    /// the kernel followed.
    fn resumed<C: Code>(&self, code: &mut C, memory: &Readable<'_>) -> Option<Self> {
        let machine = self.registers.machine();
        let pointer = self.registers.get(machine.fp())?;
        let Link { return_address, caller } = memory.link(pointer)?;
        is_return(code, machine, return_address).then_some(())?;
        let mut registers = self.registers;
        registers.forget();
        registers.set(machine.sp(), Some(pointer.wrapping_add(2 * u64::from(machine.word()))));
        registers.set(machine.fp(), Some(caller));
        Some(self.caller(registers, return_address, false))
    }

    /// Returns whether the stack shrinks from `callee` to this frame, its caller, so that a chain
    /// ends.
    fn is_progress(&self, callee: &Self) -> bool {
        let sp = self.registers.machine().sp();
        match (self.registers.get(sp), callee.registers.get(sp)) {
            // Signal handlers may have a stack of their own.
            _ if self.is_exact || self.is_elsewhere => true,
            (Some(new), Some(old)) => new > old || (new == old && callee.is_exact),
            _ => false,
        }
    }
}

/// Returns whether code can return to an address: a call is before it, or a stack begins there.
pub(super) fn is_return<C: Code>(code: &mut C, machine: Machine, address: u64) -> bool {
    let Some(place) = code.place(address.wrapping_sub(1)) else { return false };
    let is_root = code
        .rules(place.module)
        .is_ok_and(|rules| rules.landmark(place.address) == Some(Landmark::Root));
    is_root || code.code_before(address).is_none_or(|code| machine.is_call(code))
}

/// Number of the register of Arm that has the return address at first.
pub(super) const LINK_REGISTER: u8 = 30;
