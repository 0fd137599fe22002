//! The command: forked first, held at a gate until the counters are open, then executed.
//!
//! ```text
//!  rec                         spawner thread              child
//!  at_gate ──────────────────▶ Command::spawn ── fork ───▶ pid → ready pipe
//!     ◀── pid ─────────────────────────────────────────────┘   │ reads the gate pipe: waits
//!  open counters for pid                                       │
//!  release: one byte ──────────────────────────────────────────▶ exec (counters: enable_on_exec)
//!     ◀── Ok, or error of exec ──── spawn returns ◀── (close-on-exec) ──┘
//! ```
//!
//! The standard library performs the fork, the search in PATH, the exec, and the report of its
//! failure. If rec ends before the gate opens, the child reads end-of-file and exits without
//! executing anything.

#![allow(unsafe_code)] // There is no safe interface for code between fork and exec.

mod inherited;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::messages::error::{Error, Result, why_words};
pub(crate) use inherited::Inherited;

/// A command that waits at the gate, is running, or has ended.
#[derive(Debug)]
pub(crate) struct Workload {
    name: String,
    pid: u32,
    stage: Stage,
    /// Keeps the thread that started it: its end is a parent's end to a command that asked for a
    /// signal then (PR_SET_PDEATHSIG).
    _parent: Sender<()>,
}

#[derive(Debug)]
enum Stage {
    AtGate {
        gate: OwnedFd,
        spawned: Receiver<io::Result<Child>>,
    },
    Running(Child),
    Ended(ExitStatus),
    /// Transition between two stages, or a command that was never executed.
    Nothing,
}

impl Workload {
    /// Forks the command and holds it at the gate. It has signals and descriptors as they were
    /// `before` rec changed them. `aside` sends its standard output to rec's standard error,
    /// because rec writes the recording to standard output.
    pub(crate) fn at_gate(
        command: &[OsString],
        aside: bool,
        before: Inherited,
    ) -> Result<Option<Self>> {
        let Some((program, arguments)) = command.split_first() else { return Ok(None) };
        let name = program.to_string_lossy().into_owned();
        let pipe = || {
            pipe_with(PipeFlags::CLOEXEC)
                .map_err(|e| Error::io("cannot create a pipe to the command", e))
        };
        let (gate_read, gate) = pipe()?;
        let (ready, ready_write) = pipe()?;
        let mut command = Command::new(program);
        command.args(arguments);
        if aside {
            let stderr = io::stderr().as_fd().try_clone_to_owned();
            command.stdout(
                stderr.map_err(|e| {
                    Error::io("cannot send the command's output to standard error", e)
                })?,
            );
        }
        let before = if aside { before.with_output() } else { before };
        wait_at_gate(&mut command, gate_read, ready_write, gate.as_raw_fd(), before);
        // `spawn` returns only after the exec, which waits for this thread, so another thread must
        // call it.
        let ((answer, spawned), (parent, end)) = (channel(), channel());
        std::thread::spawn(move || {
            let child = command.spawn();
            // Its ends of the pipes.
            drop(command);
            let _ = answer.send(child);
            // An error is the end of what is waited for.
            let _: std::result::Result<(), _> = end.recv();
        });
        let mut pid = [0; 4];
        let read = rustix::io::retry_on_intr(|| rustix::io::read(ready.as_fd(), &mut pid));
        if read != Ok(pid.len()) {
            let why = match spawned.recv() {
                Ok(Err(why)) => {
                    return Err(Error::io(
                        format_args!("cannot start a process for '{name}'"),
                        why,
                    ));
                }
                _ => "it ended immediately",
            };
            return Err(Error::Failed(format!("cannot start a process for '{name}': {why}")));
        }
        Ok(Some(Self {
            name,
            pid: u32::from_ne_bytes(pid),
            stage: Stage::AtGate { gate, spawned },
            _parent: parent,
        }))
    }

    /// Returns the pid, which the command keeps after its exec.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Opens the gate, and waits until the command is executed.
    pub(crate) fn release(&mut self) -> Result<()> {
        let Stage::AtGate { gate, spawned } = std::mem::replace(&mut self.stage, Stage::Nothing)
        else {
            return Ok(());
        };
        // If the child has ended, this fails, and `spawn` returns the error.
        let _ = rustix::io::write(&gate, &[1]);
        drop(gate);
        let spawned = spawned
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that started it ended")));
        self.stage = Stage::Running(spawned.map_err(|why| cannot_execute(&self.name, &why))?);
        Ok(())
    }

    /// Returns the exit status, if the command has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if let Stage::Running(child) = &mut self.stage
            && let Ok(Some(status)) = child.try_wait()
        {
            self.stage = Stage::Ended(status);
        }
        match self.stage {
            Stage::Ended(status) => Some(status),
            _ => None,
        }
    }

    /// Sends SIGTERM if the command is running, waits for its end, and returns its exit status like
    /// a shell: its own, or 128 + N if signal N killed it.
    pub(crate) fn finish(mut self) -> u8 {
        self.ask_to_end();
        if let Stage::Running(child) = &mut self.stage
            && let Ok(status) = child.wait()
        {
            self.stage = Stage::Ended(status);
        }
        self.ended().map_or(125, exit_status)
    }

    fn ask_to_end(&mut self) {
        let runs = self.ended().is_none() && matches!(self.stage, Stage::Running(_));
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid.cast_signed()).filter(|_| runs) {
            // This fails if the command has just ended by itself.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // After a failed recording, nothing else waits for the command.
        self.ask_to_end();
        // Without a byte from the gate, the child exits, and the spawner thread reaps it.
        if let Stage::AtGate { gate, spawned } = std::mem::replace(&mut self.stage, Stage::Nothing)
        {
            drop(gate);
            let _ = spawned.recv();
        }
    }
}

/// Makes the child send its pid, and wait for a byte before its exec; from then on, signals are the
/// command's own.
fn wait_at_gate(
    command: &mut Command,
    gate_read: OwnedFd,
    ready_write: OwnedFd,
    gate_write: i32,
    before: Inherited,
) {
    let wait = move || {
        before.restore()?;
        // SAFETY: this is the child's copy of rec's end of the gate, which nothing in the child
        // uses. It is closed so that the child reads end-of-file if rec dies.
        unsafe { libc::close(gate_write) };
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        rustix::io::write(&ready_write, &pid.to_ne_bytes())?;
        let mut byte = [0];
        match rustix::io::retry_on_intr(|| rustix::io::read(&gate_read, &mut byte))? {
            1 => Ok(()),
            _ => Err(io::Error::from(rustix::io::Errno::CANCELED)),
        }
    };
    // SAFETY: the closure runs between fork and exec; it makes system calls only (signal, sigmask,
    // close, getpid, write, read), which are async-signal-safe, and neither allocates nor takes
    // locks.
    unsafe { command.pre_exec(wait) };
}

fn cannot_execute(name: &str, why: &io::Error) -> Error {
    if why.kind() == io::ErrorKind::NotFound {
        let whence = if name.contains('/') {
            "there is no such file, or its interpreter is missing"
        } else {
            "it is not in PATH"
        };
        let is_here = !name.contains('/') && std::path::Path::new(name).is_file();
        let near = if is_here { format!("; did you mean './{name}'?") } else { String::new() };
        return Error::NotFound(format!("cannot run '{name}': {whence}{near}"));
    }
    let hint = match why.kind() {
        io::ErrorKind::PermissionDenied => " (it must be a file with the permission to execute it)",
        _ if why.raw_os_error() == Some(libc::ENOEXEC) => {
            " (a script needs a first line such as #!/bin/sh)"
        }
        _ => "",
    };
    Error::CannotExecute(format!("cannot run '{name}': {}{hint}", why_words(why)))
}

fn exit_status(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(125)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn at_gate(words: &[&str]) -> Workload {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        Workload::at_gate(&words, false, Inherited::now()).unwrap().unwrap()
    }

    fn status_of(words: &[&str]) -> u8 {
        let mut workload = at_gate(words);
        workload.release().unwrap();
        while workload.ended().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        workload.finish()
    }

    #[test]
    fn nothing_is_executed_before_the_gate_opens() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("made");
        let mut workload = at_gate(&["touch", file.to_str().unwrap()]);
        assert!(Path::new(&format!("/proc/{}", workload.pid())).exists());
        assert!(!file.exists());
        workload.release().unwrap();
        while workload.ended().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(file.exists());
    }

    #[test]
    fn the_process_is_the_one_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let mut workload = at_gate(&["sh", "-c", &format!("echo $$ > {}", file.display())]);
        workload.release().unwrap();
        while workload.ended().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(std::fs::read_to_string(file).unwrap().trim(), workload.pid().to_string());
    }

    #[test]
    fn exit_statuses_are_the_shell_s() {
        assert_eq!(status_of(&["true"]), 0);
        assert_eq!(status_of(&["sh", "-c", "exit 3"]), 3);
        assert_eq!(status_of(&["sh", "-c", "kill -9 $$"]), 137);
    }

    #[test]
    fn what_cannot_run_is_told() {
        let refusal = |words: &[&str]| at_gate(words).release().unwrap_err();
        let error = refusal(&["no-such-command-anywhere"]);
        assert_eq!(error.exit_status(), 127);
        assert_eq!(error.to_string(), "cannot run 'no-such-command-anywhere': it is not in PATH");
        assert_eq!(refusal(&["/no/such/file"]).exit_status(), 127);
        assert_eq!(refusal(&["/"]).exit_status(), 126);
    }

    #[test]
    fn a_workload_that_is_never_released_ends() {
        let workload = at_gate(&["sleep", "1000"]);
        let pid = workload.pid();
        drop(workload);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn one_that_still_runs_is_asked_to_end() {
        let mut workload = at_gate(&["sleep", "1000"]);
        workload.release().unwrap();
        assert_eq!(workload.finish(), 128 + 15);
    }

    #[test]
    fn one_that_is_not_waited_for_is_asked_to_end_too() {
        let mut workload = at_gate(&["sleep", "1000"]);
        workload.release().unwrap();
        let stat = format!("/proc/{}/stat", workload.pid());
        drop(workload);
        let zombie = || std::fs::read_to_string(&stat).is_ok_and(|s| s.contains(") Z "));
        for _ in 0..1000 {
            if zombie() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(zombie());
    }

    #[test]
    fn no_command_is_no_workload() {
        assert!(Workload::at_gate(&[], false, Inherited::now()).unwrap().is_none());
    }
}
