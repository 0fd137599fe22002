//! The threads that run most.

use std::cmp::Reverse;
use std::fs;

use super::Task;

/// Returns the `most` threads that ran most between two looks, and before; in the order of their
/// numbers. Those that ended are left out.
pub(crate) fn busiest(tasks: &[Task], most: usize) -> Vec<Task> {
    let before: Vec<u64> = tasks.iter().map(|task| run_time(*task).unwrap_or(0)).collect();
    let looks = tasks
        .iter()
        .zip(before)
        .filter_map(|(task, before)| Some((*task, before, run_time(*task)?)));
    rank(looks.collect(), most)
}

/// Returns the threads that ran most between two readings of how long each had run.
fn rank(mut looks: Vec<(Task, u64, u64)>, most: usize) -> Vec<Task> {
    looks.sort_unstable_by_key(|(task, before, now)| {
        (Reverse((now.saturating_sub(*before), *now)), *task)
    });
    looks.truncate(most);
    let mut chosen: Vec<Task> = looks.into_iter().map(|(task, ..)| task).collect();
    chosen.sort_unstable();
    chosen
}

/// Returns the nanoseconds that a thread has run; `None`: it ended.
fn run_time(task: Task) -> Option<u64> {
    let text =
        fs::read_to_string(format!("/proc/{}/task/{}/schedstat", task.pid, task.tid)).ok()?;
    // A kernel without it gives zeroes.
    Some(text.split_ascii_whitespace().next()?.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_now_comes_before_who_ran() {
        let look = |tid, before, now| (Task { pid: 1, tid }, before, now);
        let looks = vec![look(1, 900, 900), look(2, 5, 10), look(3, 0, 0), look(4, 0, 8)];
        let first =
            |most| rank(looks.clone(), most).iter().map(|task| task.tid).collect::<Vec<_>>();
        assert_eq!(
            [first(0), first(1), first(2), first(3), first(9)],
            [vec![], vec![4], vec![2, 4], vec![1, 2, 4], vec![1, 2, 3, 4]]
        );
    }

    #[test]
    fn who_ended_is_left_out() {
        let me = std::process::id();
        let task = |pid| Task { pid, tid: pid };
        assert!(run_time(task(me)).unwrap() > 0);
        assert_eq!(busiest(&[task(me), task(0x7fff_fff0)], 2), [task(me)]);
    }
}
