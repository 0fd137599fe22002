//! What the profiles of two sides have in common though it is not called the same: modules at other
//! paths, and the program itself, which was renamed.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::profile::Profile;
use crate::query::{Query, SortKey};

/// The program that most samples of a profile are of: a command, and the module that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) command: String,
    /// Path of the module.
    pub(super) module: String,
    /// All commands of the profile.
    pub(super) commands: BTreeSet<String>,
}

/// Length of a comm at most (`TASK_COMM_LEN` without the end).
const COMM: usize = 15;

impl Program {
    /// Returns the program of a profile; `None` if no module is called like its command.
    pub(super) fn of(profile: &Profile, query: &Query) -> Option<Self> {
        let place = query.columns.iter().position(|column| column.key == SortKey::Comm)?;
        let mut samples = BTreeMap::<Cow<'_, str>, u64>::new();
        for (words, metrics) in profile.rows.iter() {
            let command = profile.names.label_text(*words.get(place + 1)?);
            *samples.entry(command).or_default() += metrics.count.samples;
        }
        let (command, _) = samples.iter().max_by_key(|(name, count)| (**count, Reverse(*name)))?;
        let is_called_so = |name: &&str| {
            let last = name.rsplit('/').next().unwrap_or(name);
            last.bytes().take(COMM).eq(command.bytes())
        };
        let mut modules = modules(profile).into_iter().filter(is_called_so);
        Some(Self {
            command: command.clone().into_owned(),
            module: modules.next().filter(|_| modules.next().is_none())?.to_owned(),
            commands: samples.into_keys().map(Cow::into_owned).collect(),
        })
    }

    /// Returns whether it is this program under another name: neither side has both.
    pub(super) fn is_renamed(&self, other: &Self) -> bool {
        !self.commands.contains(&other.command) && !other.commands.contains(&self.command)
    }
}

/// Returns the paths of the modules that have frames.
pub(super) fn modules(profile: &Profile) -> BTreeSet<&str> {
    let names = &profile.names;
    let frames = profile.calls.names.iter().filter_map(|frame| names.frame(*frame));
    let modules = frames.filter_map(|frame| names.module(frame.module?));
    modules.map(|module| &module.long_name[..]).collect()
}
