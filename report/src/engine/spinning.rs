//! A sign that a critical path has time of threads that spin: they run, so it looks like work.

use super::labeller::{FunctionSums, Labeller};
use crate::count::Rows;
use crate::count::metrics::share;
use crate::query::{Field, SortKey, Warning};

/// Functions that run until another thread has done something: locks of the kernel, of C libraries,
/// of Go, of OpenMP's libraries and of PostgreSQL.
const FUNCTIONS: [&str; 22] = [
    "sched_yield",
    "__sched_yield",
    "do_sched_yield",
    "__x64_sys_sched_yield",
    "__arm64_sys_sched_yield",
    "native_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    "osq_lock",
    "mutex_spin_on_owner",
    "rwsem_spin_on_owner",
    "rwsem_optimistic_spin",
    "runtime.procyield",
    "runtime.osyield",
    "gomp_barrier_wait_end",
    "gomp_team_barrier_wait_end",
    "do_spin",
    "s_lock",
    "perform_spin_delay",
    "pv_wait_node",
];

/// Parts of names that programs give to such functions.
const PARTS: [&str; 6] =
    ["spin_lock", "spinlock", "spin_wait", "spinwait", "spin_loop", "busy_wait"];

impl Labeller<'_> {
    /// Returns a hint if functions that spin have at least a fifth of a critical path.
    pub(super) fn spinning(&self, rows: &Rows) -> Option<Warning> {
        let layout = rows.layout();
        if !layout.has(Field::Address) || !self.query.has(SortKey::Symbol) {
            return None;
        }
        let FunctionSums { all, functions } = FunctionSums::of(rows, |count| count.period);
        let spins = functions.iter().filter_map(|(frame, time)| {
            // Less than a hundredth changes nothing.
            let name = self.function(frame).filter(|_| time.saturating_mul(100) >= all)?;
            is_spinning(&name).then(|| (*time, name.into_owned()))
        });
        let mut spins: Vec<(u64, String)> = spins.collect();
        spins.sort_unstable();
        let time: u64 = spins.iter().map(|(time, _)| time).sum();
        let (_, most) = spins.pop().filter(|_| time.saturating_mul(5) >= all)?;
        let message = format!(
            "{:.1}% of the critical path is in code that spins, mostly {most}: a thread that spins runs, so \
             the path does not go on with the one that it waits for, and what that does is not shown",
            share(time, all)
        );
        Some(Warning::new(Warning::SPINNING, message))
    }
}

/// Returns whether the name of a function says that it spins.
fn is_spinning(name: &str) -> bool {
    let bare = name.split(['(', '@']).next().unwrap_or_default();
    FUNCTIONS.contains(&bare) || PARTS.iter().any(|part| bare.contains(part))
}

#[cfg(test)]
mod tests {
    use super::is_spinning;

    #[test]
    fn names_of_code_that_spins() {
        for name in ["_raw_spin_lock_irqsave", "pthread_spin_lock@GLIBC_2.34", "spinwait", "s_lock"]
        {
            assert!(is_spinning(name), "{name}");
        }
        for name in ["_raw_spin_unlock_irqrestore", "spin", "locks_lock", "main"] {
            assert!(!is_spinning(name), "{name}");
        }
    }
}
