//! Calls of exec by another thread than the leader. They return in the place of the leader, whose
//! thread ends:
//!
//! ```text
//!   leader, tid 7    futex ─ ─ ─ ─ ┤ ended     execve ──▶ the new program
//!   other, tid 9         execve ─ ─ ─ ─ ─ ─ ─ ─ ┘
//! ```

use super::key::CallsKey;
use super::names::CallNumber;
use super::pair::{CallResult, Untimed};

/// An exec whose exit is in another thread than its entry, or is missing.
#[derive(Debug)]
pub(super) struct EnteredExec {
    pub(super) pid: i32,
    pub(super) key: CallsKey,
    pub(super) number: CallNumber,
    pub(super) time: u64,
    /// Time at which its thread or the recording ended.
    pub(super) end: u64,
}

/// An exec whose entry is in another thread than its exit, or is missing.
#[derive(Debug)]
pub(super) struct ReturnedExec {
    pub(super) pid: i32,
    pub(super) key: CallsKey,
    pub(super) number: CallNumber,
    pub(super) result: CallResult,
    pub(super) time: u64,
    pub(super) why: Untimed,
}

/// Returns the pairs of entries and exits, and leaves what has no counterpart: an exit belongs to the
/// last entry before it in its process.
pub(super) fn paired(
    entered: &mut Vec<EnteredExec>,
    returned: &mut Vec<ReturnedExec>,
) -> Vec<(EnteredExec, ReturnedExec)> {
    returned.sort_by_key(|exit| exit.time);
    let (mut pairs, mut left) = (Vec::new(), Vec::new());
    for exit in returned.drain(..) {
        let before = entered.iter().enumerate();
        let before = before.filter(|(_, entry)| entry.pid == exit.pid && entry.time <= exit.time);
        match before.max_by_key(|(_, entry)| entry.time).map(|(at, _)| at) {
            Some(at) => pairs.push((entered.swap_remove(at), exit)),
            None => left.push(exit),
        }
    }
    *returned = left;
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_belongs_to_the_last_entry_of_its_process() {
        let (key, number) = (CallsKey::default(), CallNumber::native(59));
        let enter = |pid, time| EnteredExec { pid, key: key.clone(), number, time, end: 100 };
        let exit = |pid, time| {
            let (result, why) = (CallResult::of(0), Untimed::LostEntry);
            ReturnedExec { pid, key: key.clone(), number, result, time, why }
        };
        let mut entered = vec![enter(7, 10), enter(8, 15), enter(7, 30), enter(7, 60)];
        let mut returned = vec![exit(7, 40), exit(7, 20), exit(9, 50)];
        let pairs = paired(&mut entered, &mut returned);
        let times: Vec<_> = pairs.iter().map(|(entry, exit)| (entry.time, exit.time)).collect();
        assert_eq!(times, [(10, 20), (30, 40)]);
        assert_eq!(entered.iter().map(|entry| entry.time).collect::<Vec<_>>(), [60, 15]);
        assert_eq!(returned.iter().map(|exit| exit.time).collect::<Vec<_>>(), [50]);
    }
}
