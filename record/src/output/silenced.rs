//! Programs that the kernel stops recording when they are executed.
//!
//! At the execution of a program with other rights than its user's (setuid, file capabilities), or
//! of one that the user may not read, the kernel ends the counters of the process. Its last records
//! are those of the execution and of an end, although it runs on; it never maps anything:
//!
//! ```text
//!  any other program   COMM (exec)  MMAP2 …  EXIT
//!  such a program      COMM (exec)           EXIT
//! ```
//!
//! The three may be in the rings of several CPUs, which are read one after the other, so their times
//! are compared, not their order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// Executions of processes that have not mapped anything since. Clones share them, as one thread
/// may drain a process's COMM record and another its EXIT record.
#[derive(Clone, Debug, Default)]
pub(super) struct Executions(Arc<Mutex<FxHashMap<u32, Execution>>>);

/// Last execution of a process; times are 0 if unknown.
#[derive(Debug, Default)]
struct Execution {
    name: String,
    executed: u64,
    mapped: u64,
    ended: u64,
}

impl Execution {
    fn is_silenced(&self) -> bool {
        self.executed > 0 && self.ended >= self.executed && self.mapped < self.executed
    }
}

impl Executions {
    pub(super) fn executed(&self, pid: u32, name: &[u8], time: u64) {
        let mut processes = self.lock();
        let process = processes.entry(pid).or_default();
        if time > process.executed {
            *process = Execution {
                name: String::from_utf8_lossy(name).into_owned(),
                executed: time,
                // Of its last program, if these records were read first.
                mapped: process.mapped,
                ended: process.ended,
            };
        }
    }

    pub(super) fn mapped(&self, pid: u32, time: u64) {
        let mut processes = self.lock();
        let process = processes.entry(pid).or_default();
        process.mapped = process.mapped.max(time);
    }

    /// A process ended, or the kernel ended its counters. Others are forgotten.
    pub(super) fn ended(&self, pid: u32, time: u64) {
        let mut processes = self.lock();
        if let Some(process) = processes.get_mut(&pid) {
            process.ended = time;
            if process.executed <= process.mapped {
                processes.remove(&pid);
            }
        }
    }

    /// Returns the programs that the kernel stopped recording, each once, in order.
    pub(super) fn silenced(&self) -> Vec<String> {
        let processes = self.lock();
        let silenced = processes.values().filter(|process| process.is_silenced());
        let mut names: Vec<_> = silenced.map(|process| process.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<u32, Execution>> {
        // A poisoned lock is harmless, as a panicked thread ends the recording.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_never_maps_anything_is_silenced() {
        let executions = Executions::default();
        executions.executed(1, b"sudo", 10);
        executions.ended(1, 11);
        executions.executed(2, b"ping", 20);
        executions.ended(2, 21);
        executions.executed(3, b"runs", 30);
        assert_eq!(executions.silenced(), ["ping", "sudo"]);
    }

    #[test]
    fn a_program_that_maps_its_code_is_not() {
        let executions = Executions::default();
        executions.executed(1, b"ls", 10);
        executions.mapped(1, 11);
        executions.ended(1, 12);
        // The mapping's ring is read first.
        executions.mapped(2, 21);
        executions.executed(2, b"ls", 20);
        executions.ended(2, 22);
        // It is read last.
        executions.executed(3, b"ls", 30);
        executions.ended(3, 32);
        executions.mapped(3, 31);
        assert_eq!(executions.silenced(), [""; 0]);
        assert_eq!(executions.lock().len(), 1, "those that ended are forgotten");
    }

    #[test]
    fn what_was_mapped_before_the_execution_does_not_count() {
        let executions = Executions::default();
        executions.executed(1, b"sh", 10);
        executions.mapped(1, 11);
        executions.executed(1, b"sudo", 20);
        executions.ended(1, 21);
        assert_eq!(executions.silenced(), ["sudo"]);
    }
}
