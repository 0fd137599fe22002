//! Execution of control commands (`--control`).

use std::os::fd::AsFd;

use recrep_format::attr::Attr;

use super::piece::Piece;
use super::state::{Recording, State};
use crate::drain::wait::Waiter;
use crate::kernel::Kernel;
use crate::messages::error::Result;
use crate::plan::PlannedEvent;
use crate::session::control::{Channel, Command, Detail};
use crate::session::dry_run;

impl<K: Kernel + Sync> Recording<'_, K> {
    /// Executes the commands that have arrived. Returns whether the recording should end.
    pub(super) fn execute_commands(
        &self,
        channel: &mut Channel,
        state: &mut State,
        piece: &mut Piece,
        waiter: &Waiter<'_>,
    ) -> Result<bool> {
        let (lines, more) = channel.read()?;
        if !more {
            waiter.forget(channel.as_fd());
        }
        let mut stop = false;
        for line in lines {
            match Command::parse(&line) {
                Ok(command) => {
                    stop |= command == Command::Stop;
                    self.execute(&command, state, piece)?;
                    channel.acknowledge();
                }
                Err(why) => self.messages.warn(format_args!("--control: {why}")),
            }
        }
        Ok(stop)
    }

    fn execute(&self, command: &Command, state: &mut State, piece: &mut Piece) -> Result<()> {
        match command {
            Command::Enable(event) => self.set_named(state, event.as_deref(), true),
            Command::Disable(event) => self.set_named(state, event.as_deref(), false),
            Command::Snapshot => self.snapshot(state, piece),
            Command::Evlist(detail) => {
                for event in &self.counters.events {
                    self.list(event, *detail);
                }
                Ok(())
            }
            Command::Ping | Command::Stop => Ok(()),
        }
    }

    /// Starts or stops one event or all events, and their AUX areas. Returns the number of matching
    /// events.
    pub(super) fn set_enabled(
        &self,
        state: &mut State,
        event: Option<&str>,
        on: bool,
    ) -> Result<usize> {
        let found = self.counters.set_enabled(self.kernel, event, on)?;
        state.progress.was_enabled |= on && found > 0;
        let mut traced = self.counters.events.iter().filter(|traced| traced.has_aux);
        if traced.any(|traced| event.is_none_or(|name| traced.is_called(name))) {
            state.areas.follow(on);
        }
        Ok(found)
    }

    fn set_named(&self, state: &mut State, event: Option<&str>, on: bool) -> Result<()> {
        if self.set_enabled(state, event, on)? == 0 {
            let names: Vec<_> = self.counters.events.iter().map(PlannedEvent::full_name).collect();
            self.messages.warn(format_args!(
                "--control: no event is named '{}'; the events are {}",
                event.unwrap_or_default(),
                names.join(", ")
            ));
        }
        Ok(())
    }

    /// Prints an event to standard error, as standard output may be the recording.
    fn list(&self, event: &PlannedEvent, detail: Detail) {
        let name = event.full_name();
        let attr = &event.attr;
        self.messages.warn(match detail {
            Detail::Name => name,
            Detail::Rate => match attr.frequency() {
                Some(hz) => format!("{name}: sample_freq={hz}"),
                None => format!("{name}: sample_period={}", attr.sample_period),
            },
            Detail::Attr => format!("{name}: {}", fields(attr)),
            Detail::Group => match event.leader.and_then(|leader| self.counters.events.get(leader))
            {
                Some(leader) => format!("{name} in the group of {}", leader.full_name()),
                None => name,
            },
        });
    }
}

/// Formats the non-zero fields of an attr.
fn fields(attr: &Attr) -> String {
    let all = dry_run::attr(attr);
    let set = all.as_object().into_iter().flatten().filter(|(_, value)| value.as_u64() != Some(0));
    set.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join(", ")
}
