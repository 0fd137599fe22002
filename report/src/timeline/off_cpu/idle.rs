//! Threads of a recording of all CPUs that have nothing to do: those of the kernel, those of the
//! recorder, and those that did not run at all. Their waits are most of all waits.

use recrep_format::abi::RecordType;
use recrep_format::attr::AttrTable;
use recrep_format::record::{Body, RawRecord};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Activity, IdleThreads, OffCpuThread, SwitchCounts};

/// The thread that starts all others of the kernel.
const KTHREADD: u32 = 2;

/// What records say of the tasks of a recording.
#[derive(Debug, Default)]
pub(super) struct KnownTasks {
    /// Threads of the kernel.
    kernel: FxHashSet<u32>,
    /// Processes of the recorder.
    recorders: FxHashSet<u32>,
    /// Names that threads had at the start.
    names: FxHashMap<u32, Box<[u8]>>,
    /// `true` if the idle task of a CPU was switched.
    has_idle_tasks: bool,
}

impl KnownTasks {
    /// Takes note of a record; `recorder` is the name of the recording program.
    pub(super) fn record(&mut self, attrs: &AttrTable, raw: &RawRecord<'_>, recorder: &[u8]) {
        if !matches!(raw.header.kind, RecordType::FORK | RecordType::COMM) {
            return;
        }
        match attrs.decode(raw).map(|record| record.body) {
            Ok(Body::Fork(task)) if task.ppid == KTHREADD || task.pid == KTHREADD => {
                self.kernel.insert(task.tid);
            }
            Ok(Body::Comm(comm)) => {
                let name = comm.comm.as_bytes();
                if !recorder.is_empty() && name == recorder {
                    self.recorders.insert(comm.pid);
                }
                self.names.entry(comm.tid).or_insert_with(|| name.into());
            }
            _ => {}
        }
    }

    pub(super) fn see_idle_task(&mut self) {
        self.has_idle_tasks = true;
    }

    /// Returns whether a process is of the recorder.
    pub(super) fn is_recorder(&self, pid: u32) -> bool {
        self.recorders.contains(&pid)
    }

    /// Returns the numbers of the kernel's threads.
    pub(super) fn into_kernel(self) -> FxHashSet<u32> {
        self.kernel
    }

    /// Returns whether all that ran was recorded: then the kernel's threads are among it.
    pub(super) fn is_of_all_cpus(&self) -> bool {
        self.has_idle_tasks || self.kernel.contains(&KTHREADD)
    }

    pub(super) fn append(&mut self, other: Self) {
        self.kernel.extend(other.kernel);
        self.recorders.extend(other.recorders);
        for (tid, name) in other.names {
            self.names.entry(tid).or_insert(name);
        }
        self.has_idle_tasks |= other.has_idle_tasks;
    }

    /// Tells the waits of a thread apart if it is idle, and counts them.
    pub(super) fn tell_apart(
        &self,
        tid: u32,
        thread: &mut OffCpuThread,
        counts: SwitchCounts,
        idle: &mut IdleThreads,
    ) {
        let is_kernel = self.kernel.contains(&tid);
        let is_recorder = self.recorders.contains(&thread.pid.cast_unsigned());
        let is_idle = is_kernel || is_recorder || counts.never_ran > 0;
        if !self.is_of_all_cpus() || !is_idle {
            return;
        }
        let time = thread.set_activity(Activity::Idle);
        idle.time = idle.time.saturating_add(time);
        idle.threads += 1;
        if !is_kernel && !is_recorder {
            let name = self.names.get(&tid).map_or_else(
                || format!(":{tid}"),
                |name| String::from_utf8_lossy(name).into_owned(),
            );
            *idle.never_ran.entry(name).or_default() += 1;
        }
    }
}
