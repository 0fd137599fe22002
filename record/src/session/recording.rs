//! Main loop of a recording: rounds, waiting, signals, commands and timers.
//!
//! ```text
//!  begin: create a file ─▶ synthesize ─▶ start counters, command     (a thread drains meanwhile)
//!    │ error: undo the file                │
//!    ▼                                     ▼
//!   Err       ┌─▶ drain AUX areas, then rings; or drain threads run until a wakeup
//!             │     │ the file has --max-size or --max-samples ───────────┐
//!             │   wait, unless a ring is nearly full again                │
//!             │     │ stop signal; command or attached tasks ended ───────┤
//!             │   -D: start or stop counting                              │
//!             │   --control: execute commands ── 'stop' ──────────────────┤
//!             │   SIGUSR2: snapshot                                       │
//!             │   --switch-output: switch to the next file                │
//!             └─────┘                                                     ▼
//!       stop counters ─▶ drain all ─▶ dump overwritten rings ─▶ end the file
//! ```
//!
//! An error ends the rounds, too: the file is completed with what was written. If only the output
//! failed (a full disk), the command goes on without being recorded.

use std::os::fd::AsFd;
use std::time::Duration;

use recrep_console::units;
use recrep_format::abi::AttrFlags;

use super::piece::{MappedFiles, Piece};
use super::schedule::Priority;
use super::state::{Progress, Recording, State};
use super::status::Status;
use crate::drain::threads::DrainOutput;
use crate::drain::wait::{Descriptors, Waiter, Wakeup};
use crate::drain::wakes::DroppedWakes;
use crate::drain::{self, Rounds};
use crate::kernel::Kernel;
use crate::kernel::signals::Arrived;
use crate::messages::error::{Error, Result};
use crate::output::Output;
use crate::output::keep::Kept;
use crate::plan::config::{Delay, Switch};
use crate::synthesize::Scope;
use crate::tasks::workload::Workload;
use crate::tasks::{Target, Task};

/// Longest wait where samples are counted (`--max-samples`): rings that fill slowly do not wake rec.
const ROUND: Duration = Duration::from_millis(50);

impl<K: Kernel + Sync> Recording<'_, K> {
    /// Records from the start of the first file to the end of the last. Returns rec's own exit
    /// status.
    pub(super) fn run(&self, mut state: State, mut workload: Option<&mut Workload>) -> Result<u8> {
        state.child = workload.as_deref().map(Workload::pid);
        state.areas.follow(self.config.delay == Delay::None);
        let (piece, begun) = self.begin(&mut state, workload.as_deref_mut())?;
        let mut piece = Some(piece);
        let done =
            begun.and_then(|()| self.rounds(&mut state, &mut piece, workload.as_deref_mut()));
        state.priority = None;
        self.explain_wakes(&state);
        if self.signals.is_from_terminal() {
            // The terminal has echoed ^C: messages begin on a new line.
            self.messages.text("\n");
        }
        if let Some(piece) = &mut piece {
            piece.take_modules(&mut state.drain);
        }
        state.progress.is_last = true;
        state.progress.silenced = state.drain.tally.silenced();
        let done = done.and_then(|()| self.name(&mut state, &mut piece)).and_then(|()| {
            let scope = self.config.rings.tail_synthesize.then(|| self.present(&state));
            piece
                .take()
                .map_or(Ok(()), |piece| self.end(piece, &mut state.progress, scope.as_ref()))
        });
        match done {
            Ok(()) => Ok(0),
            Err(Error::Unwritable(why)) => {
                self.keep();
                Ok(self.continue_unrecorded(&why, piece, &state, workload))
            }
            Err(error) => {
                self.keep();
                if let Some(piece) = piece {
                    self.salvage(piece, &state.progress);
                }
                Err(error)
            }
        }
    }

    /// Tells how many wakes on whole CPUs are not in the file.
    fn explain_wakes(&self, state: &State) {
        let Some(DroppedWakes { others, doubles }) = state.drain.left_out() else { return };
        self.messages.explain(|| {
            format!(
                "left out of the wakes on whole CPUs: {others} of threads that are not recorded, \
                 {doubles} that the waker's own counter has"
            )
        });
    }

    /// Keeps the recorded programs and libraries for reports after the next build.
    pub(super) fn keep(&self) {
        let Some(kept) = self.modules.keep() else { return };
        self.messages.explain(|| {
            let Kept { files, bytes, failed, time } = kept;
            let (size, milliseconds) = (units::bytes(bytes), time.as_millis());
            format!(
                "kept {files} recorded files ({size}) in {milliseconds} ms; {failed} could \
                     not be kept"
            )
        });
    }

    /// Creates the first file, writes the records of existing tasks, and starts the counters and
    /// the command, while another thread drains the rings. Returns the file with the outcome: after
    /// the start, an error still leaves a file to complete and a command that goes on.
    ///
    /// # Errors
    /// Returns errors before the start. The file that was there before is restored.
    fn begin(
        &self,
        state: &mut State,
        workload: Option<&mut Workload>,
    ) -> Result<(Piece, Result<()>)> {
        let mut piece = self.create(state)?;
        let mut is_started = false;
        let begun = self.write_existing(state, &piece.output).and_then(|mapped| {
            piece.add_mapped(mapped);
            // Small rings are full before a thread of the usual priority gets to its first round.
            state.priority = Some(Priority::apply(&self.config.rings, state.are_full_soon)?);
            self.draining(state, &piece.output, |_| {
                self.start(workload)?;
                is_started = true;
                Ok(())
            })
        });
        match begun {
            Err(error) if !is_started => {
                piece.output.undo();
                Err(error)
            }
            begun => Ok((piece, begun)),
        }
    }

    /// Writes the records of existing tasks.
    fn write_existing(&self, state: &mut State, output: &Output) -> Result<MappedFiles> {
        if let (Target::Command, Some(pid)) = (&self.config.target, state.child) {
            // Nothing runs that could fill a ring.
            return self.prepare(output, &Scope::Child(pid), state.progress.pieces);
        }
        self.draining(state, output, |progress| {
            // Who runs from now on has records that say so.
            if let Some(waits) = self.waits(output) {
                waits.write(&self.existing())?;
            }
            // Enable tracking before reading /proc: a mapping made meanwhile is then recorded twice
            // instead of never.
            if self.tracks_when_enabled() {
                self.enable()?;
            }
            // Tasks are listed again: a thread may have started after its parent's counter was
            // opened but before the tracker was.
            self.prepare(output, &self.existing(), progress.pieces)
        })
    }

    /// Starts the counters that do not start by themselves, and the command.
    fn start(&self, workload: Option<&mut Workload>) -> Result<()> {
        if !self.tracks_when_enabled() {
            self.enable()?;
        }
        if workload.is_some() && self.config.delay == Delay::None {
            self.counters.enable_others_than_exec(self.kernel)?;
        }
        match workload {
            Some(_) if self.signals.is_stopped() => Err(too_early()),
            Some(workload) => workload.release(),
            None => Ok(()),
        }
    }

    /// Starts the counters that neither the command's exec nor a timer or a user (`-D`) starts.
    fn enable(&self) -> Result<()> {
        let by_itself = self.config.delay != Delay::None || self.config.target == Target::Command;
        if by_itself { Ok(()) } else { self.counters.enable(self.kernel) }
    }

    /// Returns whether the event that carries the side-band has to be enabled first.
    fn tracks_when_enabled(&self) -> bool {
        self.counters
            .tracker()
            .is_some_and(|tracker| tracker.attr.flags.contains(AttrFlags::DISABLED))
    }

    /// Returns the scope of the tasks that exist before the first file.
    fn existing(&self) -> Scope {
        match self.config.target.is_attached() {
            true => Scope::These(self.all_tasks()),
            false => Scope::All,
        }
    }

    /// Returns the tasks that counters were opened for, and those that exist now.
    fn all_tasks(&self) -> Vec<Task> {
        let mut tasks = self.tasks.to_vec();
        // If all have ended, the earlier list is enough.
        tasks.extend(self.config.target.tasks().unwrap_or_default());
        tasks.sort_unstable_by_key(|task| (task.pid, task.tid));
        tasks.dedup();
        tasks
    }

    /// Runs rounds until the command or all attached tasks have ended, or until a stop is
    /// requested; then a last round.
    fn rounds(
        &self,
        state: &mut State,
        slot: &mut Option<Piece>,
        mut workload: Option<&mut Workload>,
    ) -> Result<()> {
        let ends = self.coverage.ends(&self.config.target, self.tasks)?;
        let mut status = Status::start(self.config, self.messages)?;
        let descriptors = Descriptors {
            status: status.as_ref().map(|status| status.timer.as_fd()),
            delay: state.delays.fd(),
            switch: state.switch.as_ref().map(AsFd::as_fd),
            control: state.channel.as_ref().map(AsFd::as_fd),
            drainers: state.threaded.then(|| state.drainers.fd()),
        };
        let mut waiter = Waiter::new(self.signals, self.counters, descriptors)?
            .until(ends.as_deref())?
            .at_most(self.longest_wait(state));
        state.delays.start()?;
        let output = &self.config.output;
        if let (Some(timer), Some(Switch::Time(every))) = (&state.switch, output.switch) {
            timer.set(every, Some(every))?;
        }
        while let Some(piece) = slot.as_mut() {
            // A round precedes each wait, as records written before the waiter existed do not wake
            // it.
            let by_threads = self.round(state, piece, &mut waiter)?;
            let length = piece.output.length();
            if let Some(status) = &mut status {
                status.show(&piece.output, self.messages);
            }
            if self.is_at_limit(&piece.output) {
                break;
            }
            let full = matches!(output.switch, Some(Switch::Size(most)) if length >= most);
            let wakeup = match by_threads {
                Some(wakeup) => wakeup,
                None => {
                    let busy = drain::is_pressing(&state.rings) || state.areas.is_pressing();
                    waiter.wait(!full && !busy)?
                }
            };
            if wakeup.child {
                self.signals.clear_child();
            }
            if let Some(status) = status.as_mut().filter(|_| wakeup.status) {
                status.went_off();
            }
            let ended = workload.as_deref_mut().is_some_and(|w| w.ended().is_some());
            if ended || self.handle(wakeup, state, piece, &waiter)? {
                break;
            }
            let by_signal = wakeup.user && output.switch == Some(Switch::Signal);
            if full || wakeup.switch || by_signal {
                self.switch(state, slot)?;
            }
        }
        self.counters.disable(self.kernel)?;
        state.areas.stop();
        match slot {
            Some(piece) => self.last_round(state, piece),
            None => Ok(()),
        }
    }

    /// Takes what is left in rings and AUX areas, now that nothing is counted any more.
    fn last_round(&self, state: &mut State, piece: &mut Piece) -> Result<()> {
        state.areas.drain(self.kernel, self.counters, &piece.output)?;
        if state.areas.snapshots() == Some(true) {
            state.areas.snapshot(self.kernel, self.counters, &piece.output)?;
        }
        self.empty_rings(state, &piece.output)?;
        self.end_waits(state, &piece.output)
    }

    /// Writes a record of this moment, until which threads wait that have not run again.
    fn end_waits(&self, state: &State, output: &Output) -> Result<()> {
        self.waits(output).map_or(Ok(()), |waits| waits.write_end(&self.present(state)))
    }

    /// Returns whether the file has as much as was asked for at most, and says so.
    fn is_at_limit(&self, file: &Output) -> bool {
        let limits = &self.config.output;
        if limits.max_size.is_some_and(|most| file.length() >= most) {
            let length = units::bytes(file.length());
            self.messages.note(format_args!("stopped at {length} (--max-size)"));
            return true;
        }
        let samples = file.written().counts.samples;
        if let Some(most) = limits.max_samples.filter(|most| samples >= *most) {
            let most = units::grouped(most);
            self.messages.note(format_args!("stopped at {most} samples (--max-samples)"));
            return true;
        }
        false
    }

    /// Returns how long to wait for what wakes rec, at most: what is in the rings is counted then.
    fn longest_wait(&self, state: &State) -> Option<Duration> {
        let counted = self.config.output.max_samples.map(|_| ROUND);
        [state.drain.tally.round(), counted].into_iter().flatten().min()
    }

    /// Handles what ended the waiting, except the switch to another file. Returns whether the
    /// recording should end.
    fn handle(
        &self,
        wakeup: Wakeup,
        state: &mut State,
        piece: &mut Piece,
        waiter: &Waiter<'_>,
    ) -> Result<bool> {
        if wakeup.stop || (wakeup.all_ended && self.config.target.is_attached()) {
            return Ok(true);
        }
        if wakeup.delay
            && let Some(on) = state.delays.step()?
        {
            self.set_enabled(state, None, on)?;
        }
        if wakeup.control
            && let Some(mut channel) = state.channel.take()
        {
            let stop = self.execute_commands(&mut channel, state, piece, waiter)?;
            state.channel = Some(channel);
            if stop {
                return Ok(true);
            }
        }
        if wakeup.switch
            && let Some(timer) = &state.switch
        {
            timer.clear();
        }
        if wakeup.user {
            self.signals.clear_user();
            self.snapshot(state, piece)?;
        }
        Ok(false)
    }

    /// Writes all that is in the rings, including those that are overwritten.
    fn empty_rings(&self, state: &mut State, output: &Output) -> Result<()> {
        state.drain.round(&mut state.rings, &mut Rounds::next(output), true)?;
        state.drain.dump(self.kernel, self.counters, &mut state.rings, output)
    }

    /// Runs a round; or lets the drain threads run until something else needs attention, and
    /// returns what that is.
    fn round(
        &self,
        state: &mut State,
        piece: &mut Piece,
        waiter: &mut Waiter<'_>,
    ) -> Result<Option<Wakeup>> {
        if !state.threaded {
            state.areas.drain(self.kernel, self.counters, &piece.output)?;
            state.drain.round(&mut state.rings, &mut Rounds::next(&piece.output), false)?;
            return Ok(None);
        }
        let switch = match self.config.output.switch {
            Some(Switch::Size(most)) => Some(most),
            _ => None,
        };
        let limit = [self.config.output.max_size, switch].into_iter().flatten().min();
        let to = DrainOutput { output: &piece.output, limit, rounds: true, before: None };
        let (woken, all_ended) =
            state
                .drainers
                .run(self.counters, &mut state.drain, &mut state.rings, to, || waiter.wait(true))?;
        Ok(Some(Wakeup { all_ended, ..woken }))
    }

    /// Runs `act`, which takes long, while another thread drains areas and rings into a file.
    pub(super) fn draining<T>(
        &self,
        state: &mut State,
        output: &Output,
        act: impl FnOnce(&mut Progress) -> Result<T>,
    ) -> Result<T> {
        let State { rings, areas, drain, drainers, progress, .. } = state;
        let mut areas = || {
            areas.drain(self.kernel, self.counters, output)?;
            Ok(areas.is_pressing())
        };
        let to = DrainOutput { output, limit: None, rounds: false, before: Some(&mut areas) };
        drainers.run(self.counters, drain, rings, to, || act(progress)).map(|(done, _)| done)
    }

    /// Writes the current contents of overwritten AUX areas and rings.
    pub(super) fn snapshot(&self, state: &mut State, piece: &mut Piece) -> Result<()> {
        if state.areas.snapshots().is_some() {
            state.areas.snapshot(self.kernel, self.counters, &piece.output)?;
        }
        state.drain.dump(self.kernel, self.counters, &mut state.rings, &piece.output)
    }

    /// Gives a file that is about to end the name that it keeps.
    fn name(&self, state: &mut State, slot: &mut Option<Piece>) -> Result<()> {
        slot.as_mut().map_or(Ok(()), |piece| {
            state.progress.names.settle(&mut piece.output, &self.config.output.path)
        })
    }

    /// Switches to the next file: rings are drained into it while the previous one is completed and
    /// the records of existing tasks are written.
    fn switch(&self, state: &mut State, slot: &mut Option<Piece>) -> Result<()> {
        state.priority = None;
        if let Some(piece) = slot.as_mut() {
            // AUX records and the trace that they describe belong in the same file.
            state.areas.pause(self.kernel, self.counters, &piece.output)?;
            self.empty_rings(state, &piece.output)?;
            self.end_waits(state, &piece.output)?;
            state.areas.resume(self.kernel, self.counters)?;
            piece.take_modules(&mut state.drain);
        }
        self.name(state, slot)?;
        let scope = self.present(state);
        let next = self.create(state);
        let Some(piece) = slot.take() else { return Ok(()) };
        let end = |progress: &mut Progress| self.end(piece, progress, Some(&scope));
        let next = match next {
            Ok(next) => slot.insert(next),
            Err(error) => return end(&mut state.progress).and(Err(error)),
        };
        state.drain.begin_file();
        let mapped = self.draining(state, &next.output, |progress| {
            if let Some(waits) = self.waits(&next.output) {
                waits.write(&scope)?;
            }
            end(progress)?;
            self.prepare(&next.output, &scope, progress.pieces)
        })?;
        next.add_mapped(mapped);
        state.priority = Some(Priority::apply(&self.config.rings, state.are_full_soon)?);
        Ok(())
    }

    /// Handles a recording that failed while the command runs: lets the command continue, and waits
    /// for its end or a signal.
    fn continue_unrecorded(
        &self,
        why: &str,
        piece: Option<Piece>,
        state: &State,
        workload: Option<&mut Workload>,
    ) -> u8 {
        self.messages.error(why);
        // Counters that cannot be stopped are closed when rec exits.
        let _ = self.counters.disable(self.kernel);
        if let Some(piece) = piece {
            self.salvage(piece, &state.progress);
        }
        if let Some(workload) = workload.filter(|_| !state.rings.is_empty()) {
            if workload.ended().is_none() {
                self.messages.note("the command goes on, but is no longer recorded");
            }
            while workload.ended().is_none() && self.signals.wait(None) != Arrived::Stop {
                self.signals.clear_child();
            }
        }
        Error::Unwritable(String::new()).exit_status()
    }
}

fn too_early() -> Error {
    Error::Failed("interrupted before the command was started; nothing was recorded".to_owned())
}
