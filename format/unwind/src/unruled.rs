//! From frame to frame where no rule says how: code of compilers at run time, and code written by
//! hand.
//!
//! ```text
//!  the code from here to its returns ──▶ where the return address is   (exits)
//!  the frame pointer ──────────────────▶ the same, or another place
//!  a call before a return address whose target leads here ─▶ which of them is right
//! ```
//!
//! Memory that was not written yet has return addresses of calls that are over. So none is believed
//! because a call is before it: something has to say that it is this function's.

use super::exits::{self, Exits, INSTRUCTION, Left};
use super::machine::Machine;
use super::memory::{Missing, Readable};
use super::walk::{Code, Current, LINK_REGISTER, Place, Stop, Unreadable, Unwinder};

/// Number of places whose exits are kept.
const MOST_KEPT: usize = 1 << 15;

impl Unwinder {
    /// Returns the caller's frame where there is no rule.
    pub(super) fn without_rules<C: Code>(
        &mut self,
        code: &mut C,
        frame: &Current,
        place: Place,
        memory: &Readable<'_>,
    ) -> Result<Current, Stop> {
        let framed = self.by_frame_pointer(code, frame, memory);
        let exits = self.exits(code, frame, place);
        let link = frame.registers.get(LINK_REGISTER).filter(|_| frame.is_exact);
        let sp = frame.registers.sp();
        let (mut found, mut missing) = (Vec::with_capacity(exits.len()), None);
        for exit in exits.iter().flatten() {
            match exit.take(&frame.registers, link, memory) {
                Ok(left) if left.sp < sp => {}
                Ok(left) if left.return_address == 0 || self.is_caller(code, &left, memory) => {
                    found.push((left, exit.is_behind_call));
                }
                Ok(_) | Err(Missing::Elsewhere) => {}
                Err(copy) => missing = Some(copy),
            }
        }
        // The frame pointer decides between exits. Behind calls, which may not return, all have to
        // agree, and it has to say nothing else.
        let framed_left = framed.as_ref().ok();
        let is_same = |(left, _): &&(Left, bool)| {
            framed_left.is_some_and(|framed| left.return_address == framed.return_address)
        };
        let direct = found.iter().find(|(_, is_behind_call)| !is_behind_call);
        let first = found.first().filter(|(first, _)| found.iter().all(|(left, _)| left == first));
        let left = match (found.iter().find(is_same).or(direct), first, framed) {
            (Some((left, _)), _, _) => *left,
            (None, Some((left, _)), Err(_)) => *left,
            (None, Some((left, _)), Ok(_)) if is_proven(code, frame, left) => *left,
            // Only of a function that has just begun can the return address be elsewhere.
            (None, _, Ok(framed)) if !frame.is_exact || is_proven(code, frame, &framed) => framed,
            (None, _, framed) => match (self.at_beginning(code, frame, memory), framed) {
                (Some(left), _) | (None, Ok(left)) => left,
                (None, Err(Stop::Missing(framed))) => return Err(missing.unwrap_or(framed).into()),
                (None, Err(root)) => return Err(root),
            },
        };
        Ok(frame.left(left))
    }

    /// Returns the exits of the code at a place.
    fn exits<C: Code>(&mut self, code: &mut C, frame: &Current, place: Place) -> Exits {
        let key = (code.version(), place);
        if let Some(known) = self.exits.get(&key) {
            return *known;
        }
        let mut found = Exits::default();
        let read = |address, bytes: &mut _| code.code_at(address, bytes);
        let all = exits::exits(frame.registers.machine(), frame.ip, read);
        for (slot, exit) in found.iter_mut().zip(all) {
            *slot = Some(exit);
        }
        if self.exits.len() >= MOST_KEPT {
            self.exits.clear();
        }
        self.exits.insert(key, found);
        found
    }

    /// Returns the caller's frame if the frame pointer is the function's own.
    fn by_frame_pointer<C: Code>(
        &mut self,
        code: &mut C,
        frame: &Current,
        memory: &Readable<'_>,
    ) -> Result<Left, Stop> {
        let (old, machine) = (&frame.registers, frame.registers.machine());
        let word = u64::from(machine.word());
        let fp = old.get(machine.fp()).ok_or(Missing::Elsewhere)?;
        // The frame pointer of whoever begins a stack (psABI of x86-64, section 3.4.1).
        if fp == 0 {
            return Err(Stop::Root);
        }
        // Stacks begin with an address that was not called from, where frame pointers end.
        if memory.is_end(fp) && !frame.is_exact {
            let before = code.code_before(frame.ip);
            if before.is_some_and(|before| !machine.is_call(before)) {
                return Err(Stop::Root);
            }
        }
        let left = Left {
            return_address: machine.address(memory.word(fp.wrapping_add(word))?),
            sp: fp.wrapping_add(2 * word),
            fp: memory.word(fp).ok(),
        };
        // Below the stack pointer is another stack, if anything.
        let is_below = old.get(machine.sp()).is_some_and(|sp| fp < sp);
        let is_believed = match left.return_address {
            0 => !is_below,
            address if is_below => {
                let follows = code.code_before(address);
                !frame.is_exact && follows.is_some_and(|code| machine.is_call(code))
            }
            _ => self.is_caller(code, &left, memory),
        };
        is_believed.then_some(left).ok_or_else(|| Missing::Elsewhere.into())
    }

    /// Returns the caller's frame if the return address is still on top of the stack, or in its
    /// register: the target of the call before it leads here, or the function's first instructions
    /// are at hand.
    fn at_beginning<C: Code>(
        &mut self,
        code: &mut C,
        frame: &Current,
        memory: &Readable<'_>,
    ) -> Option<Left> {
        let (old, machine) = (&frame.registers, frame.registers.machine());
        if !frame.is_exact || machine == Machine::X86 {
            return None;
        }
        let sp = old.get(machine.sp())?;
        let fp = old.get(machine.fp());
        let left = |pushed: u64| {
            let at = sp.wrapping_add(pushed);
            let (return_address, size) = match machine {
                Machine::Aarch64 => (old.get(LINK_REGISTER)?, 0),
                Machine::X86_64 | Machine::X86 => (memory.word(at).ok()?, 8),
            };
            let return_address = machine.address(return_address);
            Some(Left { return_address, sp: at.wrapping_add(size), fp })
        };
        let mut left = left(0)?;
        if machine == Machine::X86_64
            && let Some(pushed) = pushed_at_beginning(code, frame.ip)
        {
            left.sp = sp.wrapping_add(pushed + 8);
            left.return_address = memory.word(sp.wrapping_add(pushed)).ok()?;
            return self.is_caller(code, &left, memory).then_some(left);
        }
        (is_proven(code, frame, &left) && self.is_caller(code, &left, memory)).then_some(left)
    }

    /// Returns whether a frame can be a caller's.
    fn is_caller<C: Code>(&mut self, code: &mut C, left: &Left, memory: &Readable<'_>) -> bool {
        let Some(place) = code.place(left.return_address.wrapping_sub(1)) else { return false };
        match code.code_before(left.return_address) {
            Some(before) if memory.machine().is_call(before) => true,
            // Interpreters push where they are to go on, and jump: frame pointers have to confirm
            // it.
            Some(_) => self.has_no_rule(code, place) && self.goes_on(code, left, memory),
            // Bytes of code that has no file may be unknown, but such code has no rules either.
            None => self.has_no_rule(code, place),
        }
    }

    fn has_no_rule<C: Code>(&mut self, code: &mut C, place: Place) -> bool {
        match code.rules(place.module) {
            Ok(rules) => self.rule(rules, place).is_none(),
            Err(Unreadable) => true,
        }
    }

    /// Returns whether the frame pointer of a frame leads to a return address, or is that of the
    /// outermost one.
    fn goes_on<C: Code>(&mut self, code: &mut C, left: &Left, memory: &Readable<'_>) -> bool {
        let machine = memory.machine();
        let next = match left.fp {
            Some(0) => return true,
            Some(fp) if memory.is_end(fp) => return true,
            Some(fp) if fp >= left.sp => memory.word(fp.wrapping_add(machine.word().into())),
            _ => return false,
        };
        let Ok(next) = next.map(|next| machine.address(next)) else { return false };
        match code.place(next.wrapping_sub(1)) {
            _ if next == 0 => true,
            Some(place) => {
                let before = code.code_before(next);
                before.is_some_and(|before| machine.is_call(before))
                    || self.has_no_rule(code, place)
            }
            None => false,
        }
    }
}

/// Returns whether the code from the target of the call before a return address on leads to a frame,
/// and has that much on the stack there.
fn is_proven<C: Code>(code: &mut C, frame: &Current, left: &Left) -> bool {
    let machine = frame.registers.machine();
    let before = code.code_before(left.return_address);
    let target = before.and_then(|before| machine.call_target(left.return_address, before));
    let Some(target) = target else { return false };
    let read = |address, bytes: &mut _| code.code_at(address, bytes);
    let pushed = if machine == Machine::Aarch64 { 0 } else { u64::from(machine.word()) };
    exits::moved(machine, target, frame.ip, read).is_some_and(|moved| {
        frame.registers.sp().wrapping_add_signed(-moved) == left.sp.wrapping_sub(pushed)
    })
}

/// Returns the number of bytes that a function of x86-64 has pushed, if it is about to make its
/// frame: `push %rbp`, `mov %rsp, %rbp`.
fn pushed_at_beginning<C: Code>(code: &mut C, ip: u64) -> Option<u64> {
    let mut bytes = [0; INSTRUCTION];
    let length = code.code_at(ip, &mut bytes);
    let ahead = bytes.get(..length)?;
    let ahead = ahead.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(ahead);
    match ahead {
        [0x55, 0x48, 0x89, 0xe5, ..] | [0x55, 0x48, 0x8b, 0xec, ..] => Some(0),
        [0x48, 0x89, 0xe5, ..] | [0x48, 0x8b, 0xec, ..] => {
            code.code_before(ip).filter(|[.., last]| *last == 0x55).map(|_| 8)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
