//! The code that a process has mapped, at any recent moment.

use std::ops::Range;
use std::sync::Arc;

use super::modules::Mapping;

/// The mappings of a process since its start, its last exec, or the last look at `/proc`.
///
/// A sample sees those that were made before it: the newest one at an address counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    /// Time from which on it is known.
    pub(super) since: u64,
    /// `true` if all mappings are known, not only those that were made while it was recorded.
    pub(super) is_whole: bool,
    /// Time up to which no record of the process can have been lost.
    pub(super) checked: u64,
    /// In the order of their times.
    mappings: Vec<(u64, Mapping)>,
    /// The current mappings: disjoint ranges in order, each with its index in `mappings`.
    now: Vec<(Range<u64>, usize)>,
    /// The trampoline of probes of returns, if the kernel has mapped it.
    trampoline: Range<u64>,
    /// The mapped page of the file to which a JIT writes its code.
    jit_dump: Option<Mapping>,
    /// The space before the last exec.
    before: Option<Arc<Self>>,
}

/// Name of the trampoline of probes of returns.
const TRAMPOLINE: &[u8] = b"[uprobes]";
/// Number of ranges that a process may have; more than that are taken for an attack.
const MOST: usize = 1 << 15;
/// Number of mappings that a child gets copies of.
const MOST_COPIED: usize = 256;
/// Number of mappings, which others have covered, that are kept for samples that came before those.
const COVERED: usize = 64;

impl Space {
    /// Returns the space of a process that was executed at this time.
    pub(super) fn executed(time: u64, before: Option<Arc<Self>>) -> Self {
        let before = before.map(|before| Arc::new(Self { before: None, ..(*before).clone() }));
        Self { since: time, checked: time, is_whole: true, before, ..Self::default() }
    }

    /// Returns the space of a process that nothing is known of from this time on.
    pub(super) fn unknown(time: u64) -> Self {
        Self { since: time, checked: time, is_whole: true, ..Self::default() }
    }

    /// Returns the space of a child that was forked at this time. Large ones are shared until the
    /// child maps something.
    pub(super) fn forked(self: &Arc<Self>, time: u64) -> Arc<Self> {
        if self.mappings.len() > MOST_COPIED {
            return Arc::clone(self);
        }
        Arc::new(Self { since: time, before: None, ..(**self).clone() })
    }

    /// Adds a mapping that was made at this time.
    pub(super) fn add(&mut self, time: u64, mapping: Mapping) {
        if time < self.since || mapping.range.is_empty() {
            return;
        }
        if mapping.source.key.path == TRAMPOLINE {
            self.trampoline = mapping.range.clone();
        }
        if mapping.source.is_jit_dump() {
            self.jit_dump = Some(mapping.clone());
        }
        let is_newest = self.mappings.last().is_none_or(|(last, _)| *last <= time);
        if is_newest {
            if self.is_there(&mapping) {
                return;
            }
            self.cover(mapping.range.clone(), self.mappings.len());
            self.mappings.push((time, mapping));
        } else {
            let place = self.mappings.partition_point(|(other, _)| *other <= time);
            self.mappings.insert(place, (time, mapping));
            self.cover_again();
        }
        if self.mappings.len() > 2 * self.now.len() + COVERED {
            self.forget_covered();
        }
        if self.now.len() > MOST {
            *self = Self::unknown(u64::MAX);
        }
    }

    /// Returns the addresses of the trampoline of probes of returns.
    pub(super) fn trampoline(&self) -> Range<u64> {
        self.trampoline.clone()
    }

    /// Returns the mapped page of the file to which a JIT writes its code.
    pub(super) fn jit_dump(&self) -> Option<&Mapping> {
        self.jit_dump.as_ref()
    }

    /// Returns what was mapped at an address at this time.
    pub(super) fn find(&self, address: u64, time: u64) -> Option<&Mapping> {
        if time < self.since {
            return self.before.as_ref()?.find(address, time);
        }
        if self.mappings.last().is_some_and(|(newest, _)| *newest > time) {
            let older = self.mappings.iter().rev().skip_while(|(made, _)| *made > time);
            let mut there = older.filter(|(_, mapping)| mapping.range.contains(&address));
            return there.next().map(|(_, mapping)| mapping);
        }
        let next = self.now.partition_point(|(range, _)| range.start <= address);
        let (range, place) = self.now.get(next.checked_sub(1)?)?;
        let (_, mapping) = self.mappings.get(*place).filter(|_| range.contains(&address))?;
        Some(mapping)
    }

    /// Returns whether the very same is mapped already, as by a second look at `/proc`.
    fn is_there(&self, mapping: &Mapping) -> bool {
        let next = self.now.partition_point(|(range, _)| range.start <= mapping.range.start);
        let there = next.checked_sub(1).and_then(|place| self.now.get(place));
        there.is_some_and(|(range, place)| {
            *range == mapping.range
                && self.mappings.get(*place).is_some_and(|(_, there)| there == mapping)
        })
    }

    /// Puts a range over what was mapped there.
    fn cover(&mut self, new: Range<u64>, place: usize) {
        let first = self.now.partition_point(|(range, _)| range.end <= new.start);
        let last = self.now.partition_point(|(range, _)| range.start < new.end).max(first);
        let mut parts = Vec::with_capacity(3);
        if let Some((range, old)) = self.now.get(first).filter(|(range, _)| range.start < new.start)
        {
            parts.push((range.start..new.start, *old));
        }
        parts.push((new.clone(), place));
        let end = last.checked_sub(1).and_then(|last| self.now.get(last));
        if let Some((range, old)) = end.filter(|(range, _)| range.end > new.end) {
            parts.push((new.end..range.end, *old));
        }
        self.now.splice(first..last, parts);
    }

    fn cover_again(&mut self) {
        self.now.clear();
        for place in 0..self.mappings.len() {
            if let Some((_, mapping)) = self.mappings.get(place) {
                self.cover(mapping.range.clone(), place);
            }
        }
    }

    fn forget_covered(&mut self) {
        let mut is_seen = vec![false; self.mappings.len()];
        for (_, place) in &self.now {
            if let Some(is_seen) = is_seen.get_mut(*place) {
                *is_seen = true;
            }
        }
        let mut is_seen = is_seen.into_iter();
        self.mappings.retain(|_| is_seen.next().unwrap_or_default());
        self.cover_again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::unwind::modules::Source;

    fn mapping(range: Range<u64>, name: &str) -> Mapping {
        let source = Arc::new(Source::new(name.as_bytes(), Default::default()));
        Mapping { pgoff: 0, range, source }
    }

    fn name(space: &Space, address: u64, time: u64) -> Option<String> {
        let found = space.find(address, time)?;
        Some(String::from_utf8(found.source.key.path.clone()).unwrap())
    }

    fn names(space: &Space, addresses: Range<u64>, time: u64) -> String {
        addresses
            .map(|at| name(space, at, time).map_or(" ".to_owned(), |n| n[1..].into()))
            .collect()
    }

    #[test]
    fn the_newest_mapping_before_a_sample_counts() {
        let mut space = Space::executed(10, None);
        for (time, range, name) in
            [(11, 2..8, "/a"), (20, 4..5, "/b"), (15, 1..3, "/c"), (30, 7..9, "/d")]
        {
            space.add(time, mapping(range, name));
        }
        assert_eq!(names(&space, 0..10, 9), " ".repeat(10));
        assert_eq!(names(&space, 0..10, 11), "  aaaaaa  ");
        assert_eq!(names(&space, 0..10, 19), " ccaaaaa  ");
        assert_eq!(names(&space, 0..10, 20), " ccabaaa  ");
        assert_eq!(names(&space, 0..10, 99), " ccabaadd ");
        space.add(31, mapping(0..10, "/e"));
        assert_eq!(names(&space, 0..10, 31), "eeeeeeeeee");
    }

    #[test]
    fn a_child_has_what_its_parent_had_and_an_exec_leaves_nothing() {
        let mut space = Space::executed(10, None);
        space.add(11, mapping(0..1, "/a"));
        let space = Arc::new(space);
        let mut child = (*space.forked(20)).clone();
        child.add(21, mapping(0..1, "/b"));
        assert_eq!(
            (name(&child, 0, 20), name(&child, 0, 21)),
            (Some("/a".into()), Some("/b".into()))
        );
        let mut exec = Space::executed(30, Some(Arc::new(child)));
        exec.add(31, mapping(0..1, "/c"));
        assert_eq!((name(&exec, 0, 30), name(&exec, 0, 31)), (None, Some("/c".into())));
        assert_eq!(name(&exec, 0, 29), Some("/b".into()));
        assert_eq!(name(&space, 0, 21), Some("/a".into()));
    }

    /// Against the slow rule: of all mappings by then, the last one that has the address.
    #[test]
    fn any_order_gives_what_a_search_through_all_gives() {
        let mut seed = 7u64;
        let mut random = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        let (mut space, mut all) = (Space::default(), Vec::new());
        for number in 0..60 {
            let (time, start) = (random(30), random(40));
            let new = mapping(start..start + 1 + random(8), &format!("/{number:02}"));
            all.push((time, new.clone()));
            space.add(time, new);
        }
        all.sort_by_key(|(time, _)| *time);
        for time in 0..31 {
            for address in 0..50 {
                let there = |(made, mapping): &&(u64, Mapping)| {
                    *made <= time && mapping.range.contains(&address)
                };
                let slow = all.iter().rev().find(there).map(|(_, mapping)| mapping);
                assert_eq!(space.find(address, time), slow, "{address} at {time}");
            }
        }
    }

    #[test]
    fn a_process_that_maps_for_ever_takes_bounded_memory() {
        let mut space = Space::executed(0, None);
        for time in 0..10_000 {
            space.add(time, mapping(time % 7..time % 7 + 3, "/a"));
        }
        assert!(space.mappings.len() < 200, "{}", space.mappings.len());
        let mut space = Space::executed(0, None);
        for time in 0..2 * MOST as u64 {
            space.add(time, mapping(2 * time..2 * time + 1, "/a"));
        }
        assert_eq!((space.find(0, u64::MAX), space.mappings.len()), (None, 0));
    }
}
