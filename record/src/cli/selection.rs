//! Event selection: `-e`, and the flags that apply to preceding events: `--filter`,
//! `--exclude-perf`, `-G`.
//!
//! perf's rules: a filter applies to all events of the last `-e` list before it; cgroup names go to
//! the events in order, and a single name applies to all events before it.

use std::path::Path;

use clap::ArgMatches;

use crate::event::{self, EventSpec};
use crate::machine::Machine;
use crate::machine::sources::EventSources;

/// An argument that selects or changes events. Their order on the command line matters.
enum SelectionWord {
    List(String),
    Filter(String),
    ExcludeSelf,
    Cgroups(String),
}

/// Returns the selected events, and the cgroup of each; `chosen` are lists in place of those of
/// `-e`.
pub(super) fn read(
    matches: &ArgMatches,
    chosen: Option<Vec<String>>,
    sources: &EventSources,
) -> Result<(Vec<EventSpec>, Vec<Option<String>>), String> {
    let mut selection = Selection::default();
    for word in in_order(matches, chosen) {
        match word {
            SelectionWord::List(list) => {
                event::append(&mut selection.events, &list, sources).map_err(|e| e.to_string())?;
            }
            SelectionWord::Filter(filter) => {
                event::attach_filter(&mut selection.events, &filter, sources)?;
            }
            SelectionWord::ExcludeSelf => {
                event::exclude_process(&mut selection.events, std::process::id())?;
            }
            SelectionWord::Cgroups(names) => selection.cgroups(&names)?,
        }
    }
    selection.cgroups.resize(selection.events.len(), None);
    Ok((selection.events, selection.cgroups))
}

/// Returns the sources of this machine's events; `tables`: with the names that are in perf's tables
/// there.
pub(super) fn sources(machine: &Machine, tables: Option<&Path>) -> Result<EventSources, String> {
    let sources = EventSources::new(&machine.sysfs, machine.tracefs.clone());
    match tables {
        None => Ok(sources),
        Some(dir) => sources
            .with_tables(dir, machine.cpuid.as_deref())
            .map_err(|why| format!("--event-tables: {why}")),
    }
}

fn in_order(matches: &ArgMatches, chosen: Option<Vec<String>>) -> Vec<SelectionWord> {
    let by_flag = chosen.is_none();
    let mut words: Vec<(usize, SelectionWord)> =
        chosen.into_iter().flatten().map(|list| (0, SelectionWord::List(list))).collect();
    for (id, word) in [
        ("event", SelectionWord::List as fn(String) -> SelectionWord),
        ("filter", SelectionWord::Filter),
        ("cgroup", SelectionWord::Cgroups),
        ("exclude_perf", |_| SelectionWord::ExcludeSelf),
    ] {
        if id == "event" && !by_flag {
            continue;
        }
        let places = matches.indices_of(id).into_iter().flatten();
        if id == "exclude_perf" {
            // clap reports an index for a flag that is absent, too.
            words.extend(
                places
                    .filter(|_| matches.get_count(id) > 0)
                    .map(|at| (at, SelectionWord::ExcludeSelf)),
            );
        } else {
            let texts = matches.get_many::<String>(id).into_iter().flatten();
            words.extend(places.zip(texts).map(|(at, text)| (at, word(text.clone()))));
        }
    }
    words.sort_by_key(|(at, _)| *at);
    words.into_iter().map(|(_, word)| word).collect()
}

#[derive(Default)]
struct Selection {
    events: Vec<EventSpec>,
    cgroups: Vec<Option<String>>,
    /// Number of cgroup names so far, empty ones included.
    names: usize,
}

impl Selection {
    fn cgroups(&mut self, names: &str) -> Result<(), String> {
        if self.events.is_empty() {
            return Err("-G: a cgroup applies to the events before it; put -e before -G".to_owned());
        }
        self.cgroups.resize(self.events.len(), None);
        for name in names.split(',') {
            if !name.is_empty() {
                let cgroup = self.cgroups.get_mut(self.names).ok_or_else(|| {
                    format!(
                        "-G {names}: no preceding event is left for cgroup '{name}'; add an \
                             event (-e) before it"
                    )
                })?;
                *cgroup = Some(name.to_owned());
            }
            self.names += 1;
        }
        if self.names == 1 {
            let only = self.cgroups.first().cloned().flatten();
            self.cgroups.fill(only);
        }
        Ok(())
    }
}
