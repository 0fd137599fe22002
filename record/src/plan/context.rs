//! Context shared by the parts of the plan, and the notes that they add.

use super::rate::Rates;
use crate::machine::Machine;
use crate::plan::config::{Config, Delay};
use crate::tasks::Target;

/// Facts that all attrs depend on.
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) machine: &'a Machine,
    pub(super) rates: Rates,
    /// `true` if counters count whole CPUs.
    pub(super) system: bool,
}

impl Context<'_> {
    /// Returns whether the command's exec starts counting.
    pub(super) fn starts_on_exec(&self) -> bool {
        self.config.target == Target::Command && self.config.delay == Delay::None
    }
}

/// Notes for the user, without duplicates.
pub(super) struct Notes(pub(super) Vec<String>);

impl Notes {
    pub(super) fn add(&mut self, note: String) {
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }
}
