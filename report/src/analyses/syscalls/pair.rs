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
//! Some exits are not what the entry announced:
//! - A new task begins its life with the exit of the call that made it. It has entered none.
//! - `rt_sigreturn` (x86) and `execve` (AArch64) leave as number -1: the registers are another
//!   context's by then. An `execve` may also leave as a call of the new program's architecture.
//! - The first exit of a thread has no entry if the recording began during the call.

use super::names::Names;

/// What is known from a sample of an entry or exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crossing {
    pub(super) time: u64,
    /// Its place in the file, which orders equal times.
    pub(super) offset: u64,
    /// Number of the system call.
    pub(super) number: i32,
    /// `true` if the filters select it.
    pub(super) is_taken: bool,
    pub(super) side: Side,
}

const _: () = assert!(size_of::<Crossing>() <= 40);

/// Side of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Entry, with the number of its caller.
    Enter(u32),
    /// Exit, with the value that the call returns.
    Exit(i64),
}

/// A call, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// It returned this value after so many nanoseconds.
    Returned { number: i32, caller: u32, value: i64, duration: u64 },
    /// It returned this value, and its entry is unknown.
    Untimed { number: i32, value: i64, why: Untimed },
    /// It had not returned when the recording ended, so many nanoseconds after its entry.
    Unfinished { number: i32, caller: u32, since: u64 },
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

/// Number with which a call leaves whose registers are another context's.
const OTHER_CONTEXT: i32 = -1;

/// Calls `found` with each call of a thread that the filters select, given its crossings in order
/// of time. The recording ends at `end`.
pub(super) fn pair(crossings: &[Crossing], end: u64, names: &Names, mut found: impl FnMut(Call)) {
    let mut open: Option<(Crossing, u32)> = None;
    for (index, at) in crossings.iter().enumerate() {
        let number = at.number;
        match at.side {
            Side::Enter(caller) => {
                if open.replace((*at, caller)).is_some_and(|lost| is_taken(&lost)) {
                    found(Call::LostExit);
                }
            }
            Side::Exit(value) => {
                let before = open.take();
                let is_pair = |entered: i32| {
                    entered == number || number == OTHER_CONTEXT || names.is_exec(entered)
                };
                match before {
                    Some((entry, caller)) if is_pair(entry.number) => {
                        let duration = at.time.saturating_sub(entry.time);
                        if entry.is_taken {
                            let number = entry.number;
                            found(Call::Returned { number, caller, value, duration });
                        }
                    }
                    _ => {
                        if before.is_some_and(|lost| is_taken(&lost)) {
                            found(Call::LostExit);
                        }
                        let is_birth = index == 0 && value == 0 && names.is_fork(number);
                        if at.is_taken && !is_birth {
                            let why = match index {
                                0 => Untimed::EnteredBefore,
                                _ => Untimed::LostEntry,
                            };
                            found(Call::Untimed { number, value, why });
                        }
                    }
                }
            }
        }
    }
    if let Some((entry, caller)) = open.filter(is_taken) {
        let since = end.saturating_sub(entry.time);
        found(Call::Unfinished { number: entry.number, caller, since });
    }
}

fn is_taken((entry, _): &(Crossing, u32)) -> bool {
    entry.is_taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Crossings 10 ns apart, from 10 ns on.
    fn paired(sides: &[(i32, Side)]) -> Vec<Call> {
        let crossings = sides.iter().zip(1..).map(|(&(number, side), turn)| Crossing {
            time: 10 * turn,
            offset: turn,
            number,
            is_taken: true,
            side,
        });
        of(&crossings.collect::<Vec<_>>())
    }

    fn of(crossings: &[Crossing]) -> Vec<Call> {
        let mut found = Vec::new();
        pair(crossings, 1000, &Names::of("x86_64", Default::default()), |call| found.push(call));
        found
    }

    const READ: i32 = 0;
    const WRITE: i32 = 1;
    const SIGRETURN: i32 = 15;
    const CLONE: i32 = 56;
    const EXECVE: i32 = 59;
    const EXECVE_OF_X86: i32 = 11;

    const fn returned(number: i32, value: i64) -> Call {
        Call::Returned { number, caller: 7, value, duration: 10 }
    }

    #[test]
    fn an_exit_belongs_to_the_entry_before_it() {
        use Side::{Enter, Exit};
        let found =
            paired(&[(READ, Enter(7)), (READ, Exit(3)), (WRITE, Enter(7)), (WRITE, Exit(-4))]);
        assert_eq!(found, [returned(READ, 3), returned(WRITE, -4)]);
        let open = paired(&[(READ, Enter(7)), (READ, Exit(3)), (WRITE, Enter(8))]);
        assert_eq!(open[1..], [Call::Unfinished { number: WRITE, caller: 8, since: 970 }]);
    }

    #[test]
    fn what_is_lost_is_told_apart() {
        use Side::{Enter, Exit};
        let untimed = |number, why| Call::Untimed { number, value: 1, why };
        // The exit, the entry, both: of two calls, one side each.
        let found = paired(&[(READ, Enter(7)), (WRITE, Enter(7)), (WRITE, Exit(1))]);
        assert_eq!(found, [Call::LostExit, returned(WRITE, 1)]);
        let found = paired(&[(READ, Enter(7)), (READ, Exit(1)), (WRITE, Exit(1))]);
        assert_eq!(found, [returned(READ, 1), untimed(WRITE, Untimed::LostEntry)]);
        let found = paired(&[(READ, Enter(7)), (WRITE, Exit(1))]);
        assert_eq!(found, [Call::LostExit, untimed(WRITE, Untimed::LostEntry)]);
        let found = paired(&[(WRITE, Exit(1)), (READ, Enter(7)), (READ, Exit(1))]);
        assert_eq!(found, [untimed(WRITE, Untimed::EnteredBefore), returned(READ, 1)]);
    }

    #[test]
    fn a_new_task_returns_from_the_call_that_made_it() {
        use Side::{Enter, Exit};
        assert_eq!(
            paired(&[(CLONE, Exit(0)), (READ, Enter(7)), (READ, Exit(1))]),
            [returned(READ, 1)]
        );
        // A parent in whose call the recording began.
        let value = 4711;
        let why = Untimed::EnteredBefore;
        assert_eq!(paired(&[(CLONE, Exit(value))]), [Call::Untimed { number: CLONE, value, why }]);
    }

    #[test]
    fn calls_that_replace_registers_leave_under_other_numbers() {
        use Side::{Enter, Exit};
        assert_eq!(paired(&[(SIGRETURN, Enter(7)), (-1, Exit(-4))]), [returned(SIGRETURN, -4)]);
        let exec = paired(&[(EXECVE, Enter(7)), (EXECVE_OF_X86, Exit(0))]);
        assert_eq!(exec, [returned(EXECVE, 0)]);
    }

    #[test]
    fn filters_choose_by_the_entry() {
        let at =
            |time, side, is_taken| Crossing { time, offset: time, number: READ, is_taken, side };
        let (enter, exit) = (Side::Enter(7), Side::Exit(0));
        assert_eq!(of(&[at(10, enter, true), at(20, exit, false)]), [returned(READ, 0)]);
        assert_eq!(of(&[at(10, enter, false), at(20, exit, true)]), []);
        assert_eq!(of(&[at(10, enter, false), at(20, enter, false)]), []);
        assert_eq!(of(&[at(10, exit, false)]), []);
    }
}
