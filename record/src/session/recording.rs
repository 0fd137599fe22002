//! Main loop of a recording: rounds, waiting, signals, commands and timers.

use std::os::fd::AsFd;

use recrep_format::abi::AttrFlags;

use super::live::{Ledger, Live, Recording};
use super::piece::{Known, Piece};
use super::schedule::Urgent;
use super::status::Status;
use crate::drain;
use crate::drain::threads::To;
use crate::drain::wait::{Others, Waiter, Woken};
use crate::kernel::Kernel;
use crate::kernel::signals::Arrived;
use crate::messages::error::{Error, Result};
use crate::messages::units;
use crate::output::Output;
use crate::output::keep::Kept;
use crate::plan::config::{Delay, Switch};
use crate::synthesize::Scope;
use crate::tasks::workload::Workload;
use crate::tasks::{Target, Task};

impl<K: Kernel + Sync> Recording<'_, K> {
    /// Records from the start of the first file to the end of the last. Returns rec's own exit
    /// status.
    pub(super) fn run(&self, mut live: Live, mut workload: Option<&mut Workload>) -> Result<u8> {
        live.child = workload.as_deref().map(Workload::pid);
        live.areas.follow(self.config.delay == Delay::None);
        let (piece, begun) = self.begin(&mut live, workload.as_deref_mut())?;
        let mut piece = Some(piece);
        let done = begun.and_then(|()| self.rounds(&mut live, &mut piece, workload.as_deref_mut()));
        live.urgent = None;
        if self.signals.is_from_terminal() {
            // After the key that the terminal has shown.
            self.messages.text("\n");
        }
        if let Some(piece) = &mut piece {
            piece.take_modules(&mut live.drain);
        }
        live.ledger.is_last = true;
        live.ledger.silenced = live.drain.tally.silenced();
        let done = done.and_then(|()| self.name(&mut live, &mut piece)).and_then(|()| {
            let scope = self.config.rings.tail_synthesize.then(|| self.present(&live));
            piece.take().map_or(Ok(()), |piece| self.end(piece, &mut live.ledger, scope.as_ref()))
        });
        match done {
            Ok(()) => Ok(0),
            Err(Error::Unwritable(why)) => {
                self.keep();
                Ok(self.go_without(&why, piece, &live, workload))
            }
            Err(error) => {
                self.keep();
                piece.into_iter().for_each(|piece| self.salvage(piece, &live.ledger));
                Err(error)
            }
        }
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

    /// Makes the first file, writes what there is before the first record of the rings, and starts
    /// the counters and the command. Rings are drained meanwhile. Returns what came of that too:
    /// after the start, the file is to be completed and the command goes on.
    ///
    /// # Errors
    /// Returns what prevents the start. The file that was there before is restored.
    fn begin(
        &self,
        live: &mut Live,
        workload: Option<&mut Workload>,
    ) -> Result<(Piece, Result<()>)> {
        let mut piece = self.create(live)?;
        let mut is_started = false;
        let begun = self.look_around(live, &piece.output).and_then(|known| {
            piece.learn(known);
            // Small rings are full before a thread like others gets from here to its first round.
            live.urgent = Some(Urgent::apply(&self.config.rings, live.are_full_soon)?);
            self.draining(live, &piece.output, |_| {
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

    /// Writes what there is before the first record of the rings.
    fn look_around(&self, live: &mut Live, output: &Output) -> Result<Known> {
        if let (Target::Command, Some(pid)) = (&self.config.target, live.child) {
            // Nothing runs that could fill a ring.
            return self.prepare(output, &Scope::Child(pid), live.ledger.pieces);
        }
        self.draining(live, output, |ledger| {
            // What tells of tasks has to be on before they are looked at: what they map meanwhile
            // is told of twice, not never.
            if self.tracks_when_enabled() {
                self.enable()?;
            }
            // Tasks are listed again: a thread may have started after its parent's counter was
            // opened but before the tracker was.
            let is_attached = self.config.target.is_attached();
            let scope = if is_attached { Scope::These(self.all_tasks()) } else { Scope::All };
            self.prepare(output, &scope, ledger.pieces)
        })
    }

    /// Starts the counters, those aside that start by themselves, and the command.
    fn start(&self, workload: Option<&mut Workload>) -> Result<()> {
        if !self.tracks_when_enabled() {
            self.enable()?;
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

    /// Returns whether the event that tells of tasks does so only from the moment on when it is
    /// enabled.
    fn tracks_when_enabled(&self) -> bool {
        self.counters
            .tracker()
            .is_some_and(|tracker| tracker.attr.flags.contains(AttrFlags::DISABLED))
    }

    /// Returns the tasks that counters were opened for, and those that exist now.
    fn all_tasks(&self) -> Vec<Task> {
        let mut tasks = self.tasks.to_vec();
        // If all have ended, the list from before is enough.
        tasks.extend(self.config.target.tasks().unwrap_or_default());
        tasks.sort_unstable_by_key(|task| (task.pid, task.tid));
        tasks.dedup();
        tasks
    }

    /// Runs rounds until the command or all attached tasks have ended, or until a stop is
    /// requested; then a last round.
    fn rounds(
        &self,
        live: &mut Live,
        slot: &mut Option<Piece>,
        mut workload: Option<&mut Workload>,
    ) -> Result<()> {
        let ends = self.coverage.ends(&self.config.target, self.tasks)?;
        let mut status = Status::start(self.config, self.messages)?;
        let others = Others {
            status: status.as_ref().map(|status| status.timer.as_fd()),
            delay: live.delays.fd(),
            switch: live.switch.as_ref().map(AsFd::as_fd),
            control: live.channel.as_ref().map(AsFd::as_fd),
            drainers: live.threaded.then(|| live.drainers.fd()),
        };
        let waiter = Waiter::new(self.signals, self.counters, others)?.until(ends.as_deref())?;
        let mut waiter = waiter.at_most(self.modules.round());
        live.delays.start()?;
        if let (Some(timer), Some(Switch::Time(every))) = (&live.switch, self.config.output.switch)
        {
            timer.set(every, Some(every))?;
        }
        let attached = self.config.target.is_attached();
        while let Some(piece) = slot.as_mut() {
            // A round precedes each wait, as records written before the waiter existed do not wake
            // it.
            let by_threads = self.round(live, piece, &mut waiter)?;
            let length = piece.output.length();
            if let Some(status) = &mut status {
                status.show(&piece.output, self.messages);
            }
            if self.config.output.max_size.is_some_and(|most| length >= most) {
                self.messages
                    .note(format_args!("stopped at {} (--max-size)", units::bytes(length)));
                break;
            }
            let full =
                matches!(self.config.output.switch, Some(Switch::Size(most)) if length >= most);
            let woken = match by_threads {
                Some(woken) => woken,
                None => waiter
                    .wait(!full && !drain::is_pressing(&live.rings) && !live.areas.is_pressing())?,
            };
            if woken.child {
                self.signals.clear_child();
            }
            if let Some(status) = status.as_mut().filter(|_| woken.status) {
                status.went_off();
            }
            let ended = workload.as_deref_mut().is_some_and(|w| w.ended().is_some());
            if woken.stop || ended || (attached && woken.all_ended) {
                break;
            }
            if woken.delay
                && let Some(on) = live.delays.step()?
            {
                self.steer(live, None, on)?;
            }
            if woken.control
                && let Some(mut channel) = live.channel.take()
            {
                let stop = self.obey(&mut channel, live, piece, &waiter)?;
                live.channel = Some(channel);
                if stop {
                    break;
                }
            }
            if woken.switch
                && let Some(timer) = &live.switch
            {
                timer.clear();
            }
            let by_signal = woken.user && self.config.output.switch == Some(Switch::Signal);
            if woken.user {
                self.signals.clear_user();
                self.snapshot(live, piece)?;
            }
            if full || woken.switch || by_signal {
                self.switch(live, slot)?;
            }
        }
        self.counters.disable(self.kernel)?;
        live.areas.stop();
        let Some(piece) = slot.as_mut() else { return Ok(()) };
        live.areas.drain(self.kernel, self.counters, &piece.output)?;
        if live.areas.snapshots() == Some(true) {
            live.areas.snapshot(self.kernel, self.counters, &piece.output)?;
        }
        live.drain.last_round(&mut live.rings, &piece.output)?;
        live.drain.dump(self.kernel, self.counters, &mut live.rings, &piece.output)?;
        Ok(())
    }

    /// Runs a round; or lets the drain threads run until something else needs attention, and
    /// returns what that is.
    fn round(
        &self,
        live: &mut Live,
        piece: &mut Piece,
        waiter: &mut Waiter<'_>,
    ) -> Result<Option<Woken>> {
        if !live.threaded {
            live.areas.drain(self.kernel, self.counters, &piece.output)?;
            live.drain.round(&mut live.rings, &piece.output)?;
            return Ok(None);
        }
        let switch = match self.config.output.switch {
            Some(Switch::Size(most)) => Some(most),
            _ => None,
        };
        let limit = [self.config.output.max_size, switch].into_iter().flatten().min();
        let to = To { output: &piece.output, limit, rounds: true, before: None };
        let (woken, all_ended) =
            live.drainers
                .run(self.counters, &mut live.drain, &mut live.rings, to, || waiter.wait(true))?;
        Ok(Some(Woken { all_ended, ..woken }))
    }

    /// Does what takes its time, while another thread drains areas and rings into a file.
    pub(super) fn draining<T>(
        &self,
        live: &mut Live,
        output: &Output,
        act: impl FnOnce(&mut Ledger) -> Result<T>,
    ) -> Result<T> {
        let Live { rings, areas, drain, drainers, ledger, .. } = live;
        let mut areas = || {
            areas.drain(self.kernel, self.counters, output)?;
            Ok(areas.is_pressing())
        };
        let to = To { output, limit: None, rounds: false, before: Some(&mut areas) };
        drainers.run(self.counters, drain, rings, to, || act(ledger)).map(|(done, _)| done)
    }

    /// Writes the current contents of overwritten AUX areas and rings.
    pub(super) fn snapshot(&self, live: &mut Live, piece: &mut Piece) -> Result<()> {
        if live.areas.snapshots().is_some() {
            live.areas.snapshot(self.kernel, self.counters, &piece.output)?;
        }
        live.drain.dump(self.kernel, self.counters, &mut live.rings, &piece.output)?;
        Ok(())
    }

    /// Gives a file that is about to end the name that it keeps.
    fn name(&self, live: &mut Live, slot: &mut Option<Piece>) -> Result<()> {
        slot.as_mut().map_or(Ok(()), |piece| {
            live.ledger.names.settle(&mut piece.output, &self.config.output.path)
        })
    }

    /// Goes on in another file: the next one is made, and while rings are drained into it, the one
    /// before is completed and what is there by now is written.
    fn switch(&self, live: &mut Live, slot: &mut Option<Piece>) -> Result<()> {
        live.urgent = None;
        if let Some(piece) = slot.as_mut() {
            // A file has the trace that its records tell of, and no other.
            live.areas.pause(self.kernel, self.counters, &piece.output)?;
            live.drain.last_round(&mut live.rings, &piece.output)?;
            live.drain.dump(self.kernel, self.counters, &mut live.rings, &piece.output)?;
            live.areas.resume(self.kernel, self.counters)?;
            piece.take_modules(&mut live.drain);
        }
        self.name(live, slot)?;
        let scope = self.present(live);
        let next = self.create(live);
        let Some(piece) = slot.take() else { return Ok(()) };
        let end = |ledger: &mut Ledger| self.end(piece, ledger, Some(&scope));
        let next = match next {
            Ok(next) => slot.insert(next),
            Err(error) => return end(&mut live.ledger).and(Err(error)),
        };
        let known = self.draining(live, &next.output, |ledger| {
            end(ledger)?;
            self.prepare(&next.output, &scope, ledger.pieces)
        })?;
        next.learn(known);
        live.urgent = Some(Urgent::apply(&self.config.rings, live.are_full_soon)?);
        Ok(())
    }

    /// Handles a recording that failed while the command runs: lets the command continue, and waits
    /// for its end or a signal.
    fn go_without(
        &self,
        why: &str,
        piece: Option<Piece>,
        live: &Live,
        workload: Option<&mut Workload>,
    ) -> u8 {
        self.messages.error(why);
        // Counters that cannot be stopped are closed when rec exits.
        let _ = self.counters.disable(self.kernel);
        if let Some(piece) = piece {
            self.salvage(piece, &live.ledger);
        }
        if let Some(workload) = workload.filter(|_| !live.rings.is_empty()) {
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
