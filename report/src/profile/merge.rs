//! Merges the profiles of several files.
//!
//! ```text
//!   append ─► waiting: each file's rows and callchains ── many ─► table: equal rows are one
//!                                                                   │ settle
//!                                                                   ▼
//!                                                                  rows
//! ```
//!
//! Rows of one file are distinct already, and stay where they are.

use std::sync::atomic::Ordering;

use super::stacks::CallTrees;
use super::{Event, Profile};
use crate::count::metrics::Metrics;
use crate::count::{Partition, add_all, joined};
use crate::query::FilterValues;

/// Number of waiting rows and samples at which they are merged. The more wait, the more often a
/// part of the table in a core's cache is used.
const MAX_WAITING: usize = 1 << 19;

impl Profile {
    /// Adds the profile of another file, with the answer to the same query and the same labels.
    /// Equal rows and lines wait for [`Self::settle`].
    pub fn append(&mut self, mut other: Self) {
        let places = self.places(&other.events);
        let are_same = places.iter().copied().eq(0..places.len());
        if !other.table.is_empty() {
            other.settle_rows();
        }
        for (mut rows, calls) in other.waiting.into_iter().chain([(other.rows, other.calls)]) {
            if !are_same {
                rows.set_first(|event| {
                    let event = usize::try_from(event).ok();
                    event.and_then(|event| places.get(event)).map_or(0, |place| *place as u64)
                });
            }
            self.wait(rows, calls);
        }
        for mut thread in other.thread_counts {
            for (event, _) in &mut thread.values {
                *event = places.get(*event).copied().unwrap_or(*event);
            }
            self.thread_counts.push(thread);
        }
        self.inputs.append(&mut other.inputs);
        self.paths.append(&mut other.paths);
        self.warnings.append(&mut other.warnings);
        self.hints.append(&mut other.hints);
        FilterValues::merge(&mut self.filter_values, other.filter_values);
        self.module_uses.append(other.module_uses);
        self.user_stacks.add(other.user_stacks);
        self.program_stacks.append(other.program_stacks);
        self.chain_ends.add(other.chain_ends);
        self.children |= other.children;
        self.add_traced(&other.traced);
    }

    /// Lets the rows and callchains of another file wait, after its own ones.
    fn wait(&mut self, rows: Partition<Metrics>, calls: CallTrees) {
        if !self.rows.is_empty() {
            self.waiting.push((std::mem::take(&mut self.rows), std::mem::take(&mut self.calls)));
        }
        if !rows.is_empty() {
            self.waiting.push((rows, calls));
        }
        if self.waiting.iter().map(|(rows, calls)| rows.len() + calls.samples.len()).sum::<usize>()
            >= MAX_WAITING
        {
            self.settle_waiting();
        }
    }

    /// Adds the waiting rows to the table, and the callchains to those of the table's rows.
    fn settle_waiting(&mut self) {
        let (waiting, calls): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().unzip();
        let places = add_all(&mut self.table, &waiting);
        for ((rows, places), calls) in waiting.iter().zip(&places).zip(calls) {
            self.calls.add(calls, |row| {
                let place = places.get(row).map_or(0, |place| place.load(Ordering::Relaxed));
                (place, rows.key(row))
            });
        }
    }

    fn settle_rows(&mut self) {
        self.settle_waiting();
        if !self.table.is_empty() {
            let (rows, index) = joined(std::mem::take(&mut self.table));
            self.rows = rows;
            self.calls.rows.iter_mut().for_each(|(_, row)| *row = index(*row));
        }
    }

    /// Merges equal rows.
    pub fn settle(&mut self) {
        self.settle_rows();
    }

    /// Returns the indexes of another file's events in the profile, after adding them. Events of
    /// several files with equal names are one; a file's second event of a name is the profile's
    /// second of that name.
    fn places(&mut self, events: &[Event]) -> Vec<usize> {
        let mut taken = Vec::new();
        for new in events {
            let mut named = (0..).zip(&self.events).filter(|(_, event)| event.name == new.name);
            let free = named.find(|(place, _)| !taken.contains(place)).map(|(place, _)| place);
            let place = free.unwrap_or_else(|| {
                let Event { name, counts_time, is_tracepoint, .. } = new;
                let (name, counts_time) = (name.clone(), *counts_time);
                self.events.push(Event {
                    name,
                    counts_time,
                    is_tracepoint: *is_tracepoint,
                    ..Event::default()
                });
                self.events.len() - 1
            });
            self.add_total(place, new.total, new.lost_samples, new.filtered_samples);
            self.add_count(place, new.count);
            taken.push(place);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::callchain::Sample;
    use crate::count::Count;
    use crate::profile::names::{FrameId, SharedNames};
    use crate::profile::stacks::{RowIndex, Shows, TreeNode, TreeOptions};

    #[test]
    fn events_of_several_files_are_merged_by_name() {
        let events = |list: &[&str]| {
            Profile::of_events(list.iter().map(|name| Event::named(name)).collect())
        };
        let mut profile = events(&["a", "b", "a"]);
        assert_eq!(profile.places(&events(&["b", "a", "c", "a"]).events), [1, 0, 3, 2]);
    }

    /// Returns the profile of a file with rows of one sample each.
    fn of_file(rows: &[(&str, u64)], names: &SharedNames) -> Profile {
        let mut profile = Profile::of_events(vec![Event::named("e")]);
        let words = rows.iter().flat_map(|(text, number)| [0, names.text(text), *number]);
        let words = words.collect();
        let metrics = vec![Metrics::of(Count { samples: 1, period: 1 }, None); rows.len()];
        profile.set_rows(words, metrics, false);
        profile
    }

    fn sorted(profile: &Profile) -> Vec<(Cow<'_, str>, u64, u64)> {
        let row = |(key, metrics): (&'_ [u64], &Metrics)| {
            (profile.names.label_text(key[1]), key[2], metrics.count.samples)
        };
        let mut rows: Vec<_> = profile.rows.iter().map(row).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn rows_of_several_files_are_merged_by_text() {
        let names = SharedNames::default();
        let mut all = of_file(&[("a", 7), ("b", 8)], &names);
        all.append(of_file(&[("b", 8), ("a", 9)], &names));
        all.names = names.into_names();
        all.settle();
        assert_eq!(sorted(&all), [("a".into(), 7, 1), ("a".into(), 9, 1), ("b".into(), 8, 2)]);
    }

    #[test]
    fn many_rows_are_merged_before_all_files_are_read() {
        let names = SharedNames::default();
        let of_file = |rows: &[(&str, u64)]| of_file(rows, &names);
        let many: Vec<(&str, u64)> =
            (0..MAX_WAITING as u64 / 2).map(|number| ("a", number)).collect();
        let mut group = of_file(&many);
        let mut all = of_file(&[("b", 3), ("a", 3)]);
        group.append(of_file(&many));
        assert!(group.waiting.is_empty() && !group.table.is_empty());
        all.append(group);
        all.append(of_file(&many));
        assert!(all.waiting.is_empty());
        all.append(of_file(&[("b", 3), ("c", 4)]));
        all.names = names.into_names();
        all.settle();
        let mut expected: Vec<_> = (0..MAX_WAITING as u64 / 2)
            .map(|n| ("a".into(), n, if n == 3 { 4 } else { 3 }))
            .collect();
        expected.extend([("b".into(), 3, 2), ("c".into(), 4, 1)]);
        assert_eq!(sorted(&all), expected);
    }

    #[test]
    fn call_trees_keep_their_rows() {
        let names = SharedNames::default();
        let of_file = |rows: &[(&str, u64)]| of_file(rows, &names);
        // Each row has a sample in a frame of its own.
        let with_calls = |rows: &[(&str, u64)]| {
            let mut profile = of_file(rows);
            let numbers = 0..u32::try_from(rows.len()).unwrap();
            let count = Count { samples: 1, period: 1 };
            let sample = |class| Sample {
                base: 0,
                class,
                frame: class,
                is_in_chain: true,
                callers: 0,
                count,
            };
            let shows = [(false, true), (true, false), (false, false)]
                .map(|(frame, base)| Shows { frame, base });
            profile.calls = CallTrees {
                samples: numbers.clone().map(sample).collect(),
                classes: numbers.clone().collect(),
                names: rows
                    .iter()
                    .map(|(_, number)| FrameId(u32::try_from(*number).unwrap()))
                    .collect(),
                rows: numbers.map(|class| ((0, class), class as usize)).collect(),
                shows: shows.into(),
                ..CallTrees::default()
            };
            profile
        };
        let many: Vec<(&str, u64)> = (0..MAX_WAITING as u64).map(|number| ("a", number)).collect();
        let mut all = of_file(&[("x", 1)]);
        for file in [
            of_file(&many),
            with_calls(&[("b", 3), ("a", 5)]),
            of_file(&many),
            with_calls(&[("a", 5)]),
        ] {
            all.append(file);
        }
        all.settle();
        all.names = names.into_names();
        assert_eq!(all.rows.len(), many.len() + 2);
        let text = |(_, row): &(_, RowIndex)| {
            (all.names.label_text(all.rows.key(*row)[1]), all.rows.key(*row)[2])
        };
        assert_eq!(
            all.calls.rows.iter().map(text).collect::<Vec<_>>(),
            [("b".into(), 3), ("a".into(), 5)]
        );
        let row = all.calls.rows[1].1;
        let wanted = TreeOptions {
            least: 1,
            share: 0.0,
            passed: false,
            children: false,
            from_caller: false,
        };
        let trees = all.calls.trees(&[row], &all.names, wanted);
        assert_eq!(
            trees,
            [vec![TreeNode {
                names: vec![FrameId(5)],
                own: Count { samples: 2, period: 2 },
                ..TreeNode::default()
            }]]
        );
    }
}
