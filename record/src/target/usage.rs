//! Which threads run most.

use std::cmp::Reverse;
use std::fs;

use super::Task;

/// The `most` threads that ran most between two looks, and before; in the order of their numbers. Those that ended are left out.
#[must_use]
pub fn busiest(tasks: &[Task], most: usize) -> Vec<Task> {
    let before: Vec<u64> = tasks.iter().map(|task| run_time(*task).unwrap_or(0)).collect();
    let now = tasks.iter().zip(before).filter_map(|(task, before)| {
        let now = run_time(*task)?;
        Some((Reverse((now.saturating_sub(before), now)), *task))
    });
    let mut ranked: Vec<_> = now.collect();
    ranked.sort_unstable();
    ranked.truncate(most);
    let mut chosen: Vec<Task> = ranked.into_iter().map(|(_, task)| task).collect();
    chosen.sort_unstable();
    chosen
}

/// How long a thread has run, in nanoseconds; `None`: it ended.
fn run_time(task: Task) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/task/{}/schedstat", task.pid, task.tid)).ok()?;
    // A kernel without it gives zeroes.
    Some(text.split_ascii_whitespace().next()?.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn who_runs_comes_before_who_sleeps() {
        let own =
            || Task { pid: std::process::id(), tid: rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned() };
        let (told, tasks) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let sleeper = told.clone();
            scope.spawn(move || {
                sleeper.send(own()).unwrap();
                let _ = stopped.recv();
            });
            let sleeps = tasks.recv().unwrap();
            scope.spawn(move || told.send(own()).unwrap());
            let ended = tasks.recv().unwrap();
            let gone = Task { tid: 0x7fff_fff0, ..ended };
            // This thread runs all the time.
            let me = own();
            assert_eq!(busiest(&[sleeps, me, gone], 1), [me]);
            assert!(busiest(&[sleeps, me, gone], 3).len() == 2);
            drop(stop);
        });
    }
}
