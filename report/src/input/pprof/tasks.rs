//! Processes and threads of a profile's samples, from their labels.
//!
//! ```text
//!   comm, pid, tid     as rep writes them; where they are missing, each comm is a thread of one process
//! ```

use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use super::decoded::Decoded;
use super::decoded::ProfileError;
use crate::pprof::PprofSample;

/// What the labels of samples say of their task; numbers of labels may be any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ProfileTask {
    /// Number of the text of the name; `None` if no label has it.
    comm: Option<i64>,
    pid: Option<u32>,
    tid: Option<u32>,
}

/// Labels that are known.
#[derive(Clone, Copy, Debug)]
enum Known {
    Comm,
    Pid,
    Tid,
    Cpu,
    Mode,
}

/// Tasks of a profile's samples.
#[derive(Debug, Default)]
pub(super) struct ProfileTasks {
    pub(super) all: IndexSet<ProfileTask>,
    /// The task of each sample, and the sample's number.
    pub(super) of_samples: Vec<(usize, usize)>,
    /// Name of tasks without one.
    program: Vec<u8>,
    known: FxHashMap<i64, Option<Known>>,
    /// Threads that have no number of their own, by process and name.
    threads: FxHashMap<(u32, Option<i64>), u32>,
}

/// The process that each thread's number stood for last: in profiles of several machines, and of
/// threads that were ending (-1), one number stands for threads of several.
#[derive(Debug, Default)]
pub(super) struct TidOwners {
    pids: FxHashMap<u32, u32>,
}

impl TidOwners {
    /// Notes a thread and the first thread of its process. Returns whether one of their numbers
    /// stood for a thread of another process.
    pub(super) fn replaces(&mut self, pid: u32, tid: u32) -> bool {
        let before = [pid, tid].map(|number| self.pids.insert(number, pid));
        before.into_iter().flatten().any(|owner| owner != pid)
    }
}

/// First number of threads that have none.
const FIRST_TID: u32 = 1;

/// Process of samples that have none.
const NO_PID: u32 = 1;

impl ProfileTasks {
    pub(super) fn of(decoded: &Decoded<'_>) -> Result<Self, ProfileError> {
        let mut tasks = Self { program: program(decoded)?, ..Self::default() };
        for (number, sample) in decoded.samples().enumerate() {
            let task = tasks.task(decoded, &sample?)?;
            let (place, _) = tasks.all.insert_full(task);
            tasks.of_samples.push((place, number));
        }
        // Samples of one task follow each other: its name is set once.
        tasks.of_samples.sort_unstable();
        Ok(tasks)
    }

    fn known(&mut self, decoded: &Decoded<'_>, key: i64) -> Result<Option<Known>, ProfileError> {
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let known = match decoded.text(key)? {
            b"comm" | b"thread_name" => Some(Known::Comm),
            b"pid" | b"process_id" => Some(Known::Pid),
            b"tid" | b"thread_id" => Some(Known::Tid),
            b"cpu" => Some(Known::Cpu),
            b"cpumode" => Some(Known::Mode),
            _ => None,
        };
        self.known.insert(key, known);
        Ok(known)
    }

    fn task(
        &mut self,
        decoded: &Decoded<'_>,
        sample: &PprofSample,
    ) -> Result<ProfileTask, ProfileError> {
        let mut task = ProfileTask::default();
        for label in &sample.label {
            // Without a task, the kernel has -1.
            let number = i32::try_from(label.number).ok().filter(|_| label.text == 0);
            let number = number.map(i32::cast_unsigned);
            match self.known(decoded, label.key)? {
                Some(Known::Comm) if label.text != 0 => {
                    decoded.text(label.text)?;
                    task.comm = Some(label.text);
                }
                Some(Known::Pid) => task.pid = number,
                Some(Known::Tid) => task.tid = number,
                _ => {}
            }
        }
        Ok(task)
    }

    /// Returns the CPU and the CPU mode that labels say.
    pub(super) fn place_of(
        &mut self,
        decoded: &Decoded<'_>,
        sample: &PprofSample,
    ) -> Result<(Option<u32>, Option<&'static str>), ProfileError> {
        let (mut cpu, mut mode) = (None, None);
        for label in &sample.label {
            match self.known(decoded, label.key)? {
                Some(Known::Cpu) => cpu = u32::try_from(label.number).ok(),
                Some(Known::Mode) => {
                    let text = decoded.text(label.text)?;
                    mode = MODES.into_iter().find(|name| name.as_bytes() == text);
                }
                _ => {}
            }
        }
        Ok((cpu, mode))
    }

    /// Returns process and thread of a task whose sample has code of the JIT of a process, or not.
    pub(super) fn numbers(&mut self, place: usize, jit: Option<u32>) -> [u32; 2] {
        let task = self.all.get_index(place).copied().unwrap_or_default();
        let pid = task.pid.or(jit).unwrap_or(NO_PID);
        let next = FIRST_TID.saturating_add(u32::try_from(self.threads.len()).unwrap_or(u32::MAX));
        let tid = task.tid.unwrap_or_else(|| *self.threads.entry((pid, task.comm)).or_insert(next));
        [pid, tid]
    }

    /// Returns the name of a task.
    pub(super) fn comm<'t>(&'t self, decoded: &Decoded<'t>, place: usize) -> &'t [u8] {
        let comm = self.all.get_index(place).and_then(|task| task.comm);
        comm.and_then(|comm| decoded.text(comm).ok()).unwrap_or(&self.program)
    }
}

/// CPU modes that do not follow from an address.
const MODES: [&str; 5] = ["user", "kernel", "hypervisor", "guest_kernel", "guest_user"];

/// Returns the name of the program: that of the first mapping.
fn program(decoded: &Decoded<'_>) -> Result<Vec<u8>, ProfileError> {
    let first =
        decoded.mappings.first().map(|mapping| decoded.text(mapping.filename)).transpose()?;
    let base = first.and_then(|path| path.rsplit(|byte| *byte == b'/').next());
    Ok(base.filter(|name| !name.is_empty()).unwrap_or(b"[unknown]").to_vec())
}
