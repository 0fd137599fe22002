//! Pairing of entries and exits, for one thread.
//!
//! A thread is in one system call at a time, so an exit belongs to the entry before it:
//!
//! ```text
//!   enter 0 ── exit 0     enter 35 ─ ─ ─ enter 1 ── exit 1      exit 61     enter 34 ─ ─ ─ ─ ┤ end
//!   └ a call ┘            └ its exit was lost    └ a call ┘     └ its       └ has not returned
//!                                                                 entry was lost
//! ```
//!
//! Most calls have both samples in one ring, one after the other, so they are paired while samples
//! are collected ([`push`]). That is right unless the thread was on another CPU meanwhile: then there
//! is another crossing within the call, and the call is taken apart:
//!
//! ```text
//!   CPU 0     read ────────────────────── read     looks like one call
//!   CPU 1             read   write ── write        but is the begin of one and the end of another
//! ```
//!
//! The crossings of a thread on different CPUs are merged, not sorted: only where it changed the CPU
//! is there anything to compare.
//!
//! Some exits are not what the entry announced:
//! - A new task begins its life with the exit of the call that made it. It has entered none.
//! - `rt_sigreturn` (x86) and `execve` (AArch64) leave as number -1: the registers are another
//!   context's by then. An `execve` may also leave as a call of the new program's architecture.
//! - The first exit of a thread has no entry if the recording began during the call.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::names::{CallNumber, SyscallNames};

/// An entry, an exit, or both sides of a call. There may be many millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crossing {
    pub(super) time: u64,
    /// Number of the system call.
    pub(super) number: CallNumber,
    /// Number of the caller; 0 of exits.
    pub(super) caller: u32,
    /// Nanoseconds from the entry to the exit; only of [`Side::Both`].
    pub(super) duration: u32,
    /// What the call returns; not of entries.
    pub(super) result: CallResult,
    pub(super) side: Side,
    /// `true` if the filters select it.
    pub(super) is_taken: bool,
}

const _: () = assert!(size_of::<Crossing>() <= 32);

/// Side of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Enter,
    Exit,
    /// Entry and exit, if the call was short.
    Both,
}

/// The error that a call returned, or whether it returned zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallResult(i16);

impl CallResult {
    /// Returns the result of a call that returned this value.
    pub(super) fn of(value: i64) -> Self {
        /// Largest number of an error that the kernel returns.
        const MAX_ERRNO: i64 = 4095;
        match i16::try_from(value) {
            Ok(errno) if (-MAX_ERRNO..=0).contains(&value) => Self(errno),
            _ => Self(1),
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of the error.
    pub(super) fn errno(self) -> Option<i32> {
        (self.0 < 0).then(|| -i32::from(self.0))
    }
}

/// A call, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// It returned after so many nanoseconds.
    Returned { number: CallNumber, caller: u32, result: CallResult, duration: u64 },
    /// It returned at this time, and its entry is unknown.
    Untimed { number: CallNumber, result: CallResult, why: Untimed, time: u64 },
    /// It was entered at this time, and had not returned when its thread or the recording ended.
    Unfinished { number: CallNumber, caller: u32, time: u64, end: u64 },
    /// It was entered, and the sample of its exit is missing.
    LostExit,
}

/// Reason why the duration of a call is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Untimed {
    /// It was entered before the recording of its thread began.
    EnteredBefore,
    /// The sample of its entry is missing.
    LostEntry,
}

impl Crossing {
    /// Time of the exit, or of the only side.
    fn end(&self) -> u64 {
        self.time.saturating_add(self.duration.into())
    }

    /// Returns whether it is over when another one begins.
    fn is_before(&self, next: &Self) -> bool {
        self.end() <= next.time
    }

    /// Returns the sides of the call.
    fn sides(self) -> impl Iterator<Item = Self> {
        let enter = Self { side: Side::Enter, duration: 0, result: CallResult(0), ..self };
        let exit = Self { side: Side::Exit, duration: 0, caller: 0, time: self.end(), ..self };
        let is_both = self.side == Side::Both;
        let first = if is_both { enter } else { self };
        std::iter::once(first).chain(is_both.then_some(exit))
    }
}

/// Crossings of a thread, in the order of the file: those of consecutive pieces, apart.
#[derive(Debug, Default)]
pub(super) struct Crossings {
    pub(super) pieces: Vec<Vec<Crossing>>,
}

/// Adds a crossing after those of the same thread and piece: an exit to the entry before it, if it
/// belongs there.
#[inline]
pub(super) fn push(crossings: &mut Vec<Crossing>, at: Crossing) {
    if at.side == Side::Exit
        && let Some(entry) = crossings.last_mut().filter(|last| last.side == Side::Enter)
        && let Some(number) = entry.number.joined(at.number)
        && let Some(Ok(duration)) = at.time.checked_sub(entry.time).map(u32::try_from)
    {
        (entry.side, entry.duration, entry.result) = (Side::Both, duration, at.result);
        entry.number = number;
    } else {
        crossings.push(at);
    }
}

/// What counts calls, a part of them on each core.
pub(super) trait CallCounter: Default + Send {
    fn add(&mut self, call: Call);
}

impl Crossings {
    /// Returns the counters of all calls that the filters select, one or more. The recording ends at
    /// `end`.
    pub(super) fn counted<C: CallCounter>(&self, end: u64, names: &SyscallNames) -> Vec<C> {
        // Of each ring, crossings are in order: these runs are few and long.
        let pieces = self.pieces.par_iter();
        let runs = pieces.flat_map_iter(|piece| piece.chunk_by(Crossing::is_before));
        let slices = merged(&runs.collect::<Vec<&[Crossing]>>());
        let ends = slices.iter().filter_map(|slice| Some([slice.first()?, slice.last()?]));
        if ends.is_sorted_by(|[_, a], [b, _]| a.is_before(b)) {
            return counted_slices(&slices, end, names);
        }
        let all = taken_apart(slices.concat());
        let len = all.len().div_ceil(rayon::current_num_threads()).max(1);
        counted_slices(&all.chunks(len).collect::<Vec<&[Crossing]>>(), end, names)
    }
}

/// Merges runs that are in order of time: returns slices of them, in order of time. Equal times
/// stay in the order of the runs.
fn merged<'c>(runs: &[&'c [Crossing]]) -> Vec<&'c [Crossing]> {
    let (mut left, mut slices) = (runs.to_vec(), Vec::with_capacity(runs.len()));
    let heads = runs.iter().enumerate();
    let heads = heads.filter_map(|(run, at)| Some(Reverse((at.first()?.time, run))));
    let mut heads: BinaryHeap<Reverse<(u64, usize)>> = heads.collect();
    while let Some(Reverse((_, run))) = heads.pop() {
        let Some(rest) = left.get_mut(run) else { continue };
        let len = match heads.peek() {
            Some(Reverse(other)) => rest.partition_point(|at| (at.time, run) < *other),
            None => rest.len(),
        };
        let Some((slice, after)) = rest.split_at_checked(len) else { continue };
        slices.push(slice);
        *rest = after;
        heads.extend(after.first().map(|at| Reverse((at.time, run))));
    }
    slices
}

/// Takes apart the calls within which there is another crossing: their sides belong to different
/// calls, entered and left on different CPUs. All are in order of time, before and afterwards.
fn taken_apart(mut all: Vec<Crossing>) -> Vec<Crossing> {
    loop {
        let mut sides = Vec::with_capacity(all.len());
        for (index, at) in all.iter().enumerate() {
            match all.get(index + 1) {
                Some(next) if !at.is_before(next) => sides.extend(at.sides()),
                _ => sides.push(*at),
            }
        }
        // The side of an exit may be within another call.
        if sides.len() == all.len() {
            return all;
        }
        sides.sort_by_key(|at| at.time);
        all = sides;
    }
}

/// Counts the calls of crossings that are in order of time.
fn counted_slices<C: CallCounter>(
    slices: &[&[Crossing]],
    end: u64,
    names: &SyscallNames,
) -> Vec<C> {
    let chunk = slices.len().div_ceil(rayon::current_num_threads()).max(1);
    let parts = slices.par_chunks(chunk).map(whole_calls::<C>);
    let (mut counters, others): (Vec<C>, Vec<Vec<Crossing>>) = parts.unzip();
    if let Some(first) = counters.first_mut() {
        pair(others.into_iter().flatten(), end, names, first);
    }
    counters
}

/// Counts the calls that have both sides. Returns the other crossings, with a call that is not
/// counted again wherever there were any between them.
fn whole_calls<C: CallCounter>(slices: &[&[Crossing]]) -> (C, Vec<Crossing>) {
    let (mut counter, mut others) = (C::default(), Vec::<Crossing>::new());
    for at in slices.iter().copied().flatten() {
        if at.side != Side::Both {
            others.push(*at);
            continue;
        }
        if others.last().is_none_or(|last| last.side != Side::Both) {
            others.push(Crossing { is_taken: false, ..*at });
        }
        let Crossing { number, caller, result, duration, is_taken, .. } = *at;
        if is_taken {
            counter.add(Call::Returned { number, caller, result, duration: duration.into() });
        }
    }
    (counter, others)
}

/// Pairs the crossings of a thread, in order of time.
fn pair(
    crossings: impl Iterator<Item = Crossing>,
    end: u64,
    names: &SyscallNames,
    counter: &mut impl CallCounter,
) {
    let mut open: Option<Crossing> = None;
    for (index, at) in crossings.enumerate() {
        let Crossing { number, result, time, .. } = at;
        let before = if at.side == Side::Enter { open.replace(at) } else { open.take() };
        let entry = match (at.side, before) {
            (Side::Both, _) => Some(at),
            (Side::Exit, Some(entry)) => joined(entry, number, names),
            _ => None,
        };
        // An exec ends the other threads, whose leader's number it takes.
        let ends_others = at.side == Side::Exit && result.is_zero() && names.is_exec(number);
        let is_lost = at.side != Side::Exit || entry.is_none();
        if let Some(Crossing { number, caller, time: entered, .. }) =
            before.filter(|lost| is_lost && lost.is_taken)
        {
            counter.add(match ends_others {
                true => Call::Unfinished { number, caller, time: entered, end: time },
                false => Call::LostExit,
            });
        }
        match entry {
            Some(Crossing { time, number, caller, is_taken: true, .. }) => {
                let duration = at.end().saturating_sub(time);
                counter.add(Call::Returned { number, caller, result, duration });
            }
            None if at.side == Side::Exit && at.is_taken => {
                let is_birth = index == 0 && result.is_zero() && names.is_fork(number);
                let why = if index == 0 { Untimed::EnteredBefore } else { Untimed::LostEntry };
                if !is_birth {
                    counter.add(Call::Untimed { number, result, why, time });
                }
            }
            _ => {}
        }
    }
    if let Some(Crossing { time, number, caller, is_taken: true, .. }) = open {
        counter.add(Call::Unfinished { number, caller, time, end });
    }
}

/// Returns an entry with the number of the call that leaves with this one; `None` if that is another
/// call.
fn joined(entry: Crossing, number: CallNumber, names: &SyscallNames) -> Option<Crossing> {
    let of_exec = names.is_exec(entry.number).then_some(entry.number);
    let number = of_exec.or_else(|| entry.number.joined(number))?;
    Some(Crossing { number, ..entry })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: i32 = 0;
    const WRITE: i32 = 1;
    const SIGRETURN: i32 = 15;
    const CLONE: i32 = 56;
    const EXECVE: i32 = 59;
    const EXECVE_OF_X86: i32 = 11;

    fn enter(time: u64, number: i32, caller: u32) -> Crossing {
        let (duration, result, side, is_taken) = (0, CallResult(0), Side::Enter, true);
        let number = CallNumber::native(number);
        Crossing { time, number, caller, duration, result, side, is_taken }
    }

    fn exit(time: u64, number: i32, value: i64) -> Crossing {
        let (side, result) = (Side::Exit, CallResult::of(value));
        Crossing { side, result, ..enter(time, number, 0) }
    }

    impl CallCounter for Vec<Call> {
        fn add(&mut self, call: Call) {
            self.push(call);
        }
    }

    /// Calls of crossings in pieces.
    fn of(pieces: &[&[Crossing]]) -> Vec<Call> {
        let mut crossings = Crossings::default();
        for piece in pieces {
            let mut own = Vec::new();
            piece.iter().for_each(|at| push(&mut own, *at));
            crossings.pieces.push(own);
        }
        let names = SyscallNames::of("x86_64", Default::default());
        let mut found: Vec<Call> = crossings.counted::<Vec<Call>>(1000, &names).concat();
        // In whatever order they were found.
        found.sort_by_key(|call| match call {
            Call::Untimed { .. } => 2,
            Call::Unfinished { .. } => 3,
            Call::LostExit => 0,
            Call::Returned { .. } => 1,
        });
        found
    }

    fn returned(number: i32, value: i64) -> Call {
        let number = CallNumber::native(number);
        Call::Returned { number, caller: 7, result: CallResult::of(value), duration: 10 }
    }

    fn untimed(number: i32, why: Untimed, time: u64) -> Call {
        Call::Untimed { number: CallNumber::native(number), result: CallResult(1), why, time }
    }

    fn unfinished(number: i32, caller: u32, time: u64, end: u64) -> Call {
        Call::Unfinished { number: CallNumber::native(number), caller, time, end }
    }

    #[test]
    fn an_exec_in_the_place_of_the_leader_ends_its_call() {
        let leader = of(&[&[enter(10, READ, 7), exit(50, EXECVE, 0)]]);
        let why = Untimed::LostEntry;
        let (number, result) = (CallNumber::native(EXECVE), CallResult(0));
        let exec = Call::Untimed { number, result, why, time: 50 };
        assert_eq!(leader, [exec, unfinished(READ, 7, 10, 50)]);
    }

    #[test]
    fn the_exit_shows_the_table() {
        let proven = |at: Crossing, is_compat| {
            let number = CallNumber::of(at.number.value(), Some(is_compat), !is_compat);
            Crossing { number, ..at }
        };
        let found = of(&[&[enter(10, READ, 7), proven(exit(20, READ, 1), true)]]);
        let Call::Returned { number, .. } = found[0] else { panic!("{found:?}") };
        assert!(number.is_compat());
        // Of an exec, that is another program's.
        let found = of(&[&[enter(10, EXECVE, 7), proven(exit(20, EXECVE_OF_X86, 0), true)]]);
        assert_eq!(found, [returned(EXECVE, 0)]);
    }

    #[test]
    fn an_exit_belongs_to_the_entry_before_it() {
        let calls =
            [enter(10, READ, 7), exit(20, READ, 3), enter(30, WRITE, 7), exit(40, WRITE, -4)];
        let expected = [returned(READ, 3), returned(WRITE, -4)];
        assert_eq!(of(&[&calls]), expected);
        // Also if the sides are in two pieces, in whatever order.
        assert_eq!(of(&[&calls[..1], &calls[1..]]), expected);
        assert_eq!(of(&[&calls[1..], &calls[..1]]), expected);
        assert_eq!(of(&[&calls[2..], &calls[..2]]), expected);
        let open = of(&[&[enter(10, READ, 7), exit(20, READ, 3), enter(30, WRITE, 8)]]);
        assert_eq!(open[1..], [unfinished(WRITE, 8, 30, 1000)]);
    }

    #[test]
    fn what_looks_like_a_pair_is_taken_apart_if_the_thread_was_elsewhere() {
        // It entered on one CPU, and left on the other one, where it entered again.
        let (here, there) =
            ([enter(10, READ, 7), exit(40, READ, 9)], [exit(20, READ, 1), enter(30, READ, 7)]);
        let expected = [returned(READ, 1), returned(READ, 9)];
        assert_eq!(of(&[&here, &there]), expected);
        assert_eq!(of(&[&there, &here]), expected);
    }

    #[test]
    fn long_calls_keep_their_length() {
        let time = 20_000_000_000;
        let long = of(&[&[enter(10, READ, 7), exit(time, READ, 1)]]);
        let result = CallResult(1);
        let number = CallNumber::native(READ);
        assert_eq!(long, [Call::Returned { number, caller: 7, result, duration: time - 10 }]);
    }

    #[test]
    fn what_is_lost_is_told_apart() {
        // The exit, the entry, both: of two calls, one side each.
        let found = of(&[&[enter(10, READ, 7), enter(20, WRITE, 7), exit(30, WRITE, 1)]]);
        assert_eq!(found, [Call::LostExit, returned(WRITE, 1)]);
        let found = of(&[&[enter(10, READ, 7), exit(20, READ, 1), exit(30, WRITE, 1)]]);
        assert_eq!(found, [returned(READ, 1), untimed(WRITE, Untimed::LostEntry, 30)]);
        let found = of(&[&[enter(10, READ, 7), exit(20, WRITE, 1)]]);
        assert_eq!(found, [Call::LostExit, untimed(WRITE, Untimed::LostEntry, 20)]);
        let found = of(&[&[exit(10, WRITE, 1), enter(20, READ, 7), exit(30, READ, 1)]]);
        assert_eq!(found, [returned(READ, 1), untimed(WRITE, Untimed::EnteredBefore, 10)]);
    }

    #[test]
    fn a_new_task_returns_from_the_call_that_made_it() {
        let child = [exit(10, CLONE, 0), enter(20, READ, 7), exit(30, READ, 1)];
        assert_eq!(of(&[&child]), [returned(READ, 1)]);
        // A parent in whose call the recording began.
        let parent = of(&[&[exit(10, CLONE, 4711)]]);
        assert_eq!(parent, [untimed(CLONE, Untimed::EnteredBefore, 10)]);
    }

    #[test]
    fn calls_that_replace_registers_leave_under_other_numbers() {
        let signal = of(&[&[enter(10, SIGRETURN, 7), exit(20, -1, -4)]]);
        assert_eq!(signal, [returned(SIGRETURN, -4)]);
        let exec = of(&[&[enter(10, EXECVE, 7), exit(20, EXECVE_OF_X86, 0)]]);
        assert_eq!(exec, [returned(EXECVE, 0)]);
    }

    #[test]
    fn filters_choose_by_the_entry() {
        let not = |at: Crossing| Crossing { is_taken: false, ..at };
        let (entry, end) = (enter(10, READ, 7), exit(20, READ, 0));
        assert_eq!(of(&[&[entry, not(end)]]), [returned(READ, 0)]);
        assert_eq!(of(&[&[not(entry), end]]), []);
        assert_eq!(of(&[&[not(entry), not(enter(20, READ, 7))]]), []);
        assert_eq!(of(&[&[not(end)]]), []);
    }

    #[test]
    fn errors_are_small_negative_values() {
        let errno = |value| CallResult::of(value).errno();
        assert_eq!([errno(-1), errno(-514), errno(-4095)], [Some(1), Some(514), Some(4095)]);
        for value in [0, 1, -4096, i64::MIN, i64::MAX] {
            assert_eq!(errno(value), None, "{value}");
        }
    }
}
