//! The mappings of one address space over time.
//!
//! ```text
//!            0x1000    0x2000    0x3000    0x4000
//!   later      │         ├── B ─────┤         │      B covers part of A from its moment on
//!   earlier    ├── A ────┼─────────┼─────────┤
//!              └ piece 0 ┴ piece 1 ┴ piece 2 ┘      pieces between all boundaries
//! ```
//!
//! A lookup (address, moment) takes the latest mapping of the address that is not later than the
//! moment. Most processes have few mappings, which are looked through from the last one on. For
//! many, the pieces are the leaves of a segment tree; each mapping is stored in at most
//! 2·log₂(pieces) of its nodes, in the order of moments, and a lookup walks from the address's leaf
//! to the root. For m mappings that takes O(m log m) memory, and O(log² m) time per lookup, however
//! the mappings overlap. A space that began as a copy of another (fork) stores only its own
//! mappings; other addresses are looked up in the other space, at the moment of the fork.

use std::ops::Range;

use super::clock::Moment;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ModuleId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SpaceId(pub u32);

/// A sample's address space and moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleContext {
    /// `None` if the thread's address space is unknown.
    pub space: Option<SpaceId>,
    pub moment: Moment,
}

/// A range of addresses and the module mapped there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Address by which `start` is looked up in the module.
    pub first: u64,
    /// Module; `None` if the range was unmapped.
    pub module: Option<ModuleId>,
    /// `true` if it is a shared mapping of a file's data.
    pub is_shared: bool,
    /// Kind of memory.
    pub memory: Memory,
}

/// Kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Code of a file, or of the kernel.
    Code,
    /// Code in anonymous memory, most likely of a JIT: its parts may be other code at other times.
    Anonymous,
    #[default]
    Data,
}

impl Mapping {
    /// Returns the address at which the module's symbols are looked up.
    #[inline]
    pub(crate) fn relative(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.first)
    }
}

/// A mapping and its moment.
pub(super) type DatedMapping = (Moment, Mapping);

/// Part of a mapping that no later mapping covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisiblePart {
    pub start: u64,
    pub end: u64,
    pub since: Moment,
    /// The whole mapping.
    pub mapping: Mapping,
}

/// An address space.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// Space of which this one began as a copy, and the moment of the fork.
    pub(super) parent: Option<(SpaceId, Moment)>,
    /// Mappings in the order of their moments.
    pub(super) mappings: Vec<DatedMapping>,
    /// Finds mappings, if there are many and all are known.
    tree: Option<MappingTree>,
    /// Code that JITs put into anonymous memory, and its index: whatever is mapped there later, it
    /// stays until other code replaces it.
    pub(super) code: Vec<DatedMapping>,
    code_tree: Option<MappingTree>,
}

/// One of the two layers of a space.
#[derive(Clone, Copy)]
struct Layer<'s> {
    mappings: &'s [DatedMapping],
    tree: Option<&'s MappingTree>,
}

/// Segment tree over the pieces of an address space.
#[derive(Debug)]
struct MappingTree {
    /// Boundaries of all mappings, ascending; piece i is from boundary i to i+1.
    bounds: Vec<u64>,
    /// The mappings of tree node n have the indices `items[firsts[n]..firsts[n + 1]]`, in the order
    /// of moments.
    firsts: Vec<u32>,
    items: Vec<u32>,
}

impl Space {
    /// Number of mappings up to which looking through them takes no longer than walking the tree.
    const FEW: usize = 16;

    /// Makes lookups fast; to be called when all mappings are known.
    pub(super) fn indexed(mut self) -> Self {
        for (tree, mappings) in
            [(&mut self.tree, &self.mappings), (&mut self.code_tree, &self.code)]
        {
            *tree = (mappings.len() > Self::FEW).then(|| MappingTree::of(mappings));
        }
        self
    }

    fn mapped(&self) -> Layer<'_> {
        Layer { mappings: &self.mappings, tree: self.tree.as_ref() }
    }

    fn jit_code(&self) -> Layer<'_> {
        Layer { mappings: &self.code, tree: self.code_tree.as_ref() }
    }

    /// Returns the number of mappings up to `at`, the moment of the last of them, and that of the
    /// next one.
    pub(super) fn seen(&self, at: Moment) -> (u32, Moment, Moment) {
        let mut seen = (0_u32, Moment::START, Moment::END);
        for mappings in [&self.mappings, &self.code] {
            let (before, after) =
                mappings.split_at(mappings.partition_point(|(when, _)| *when <= at));
            seen.0 = seen.0.saturating_add(u32::try_from(before.len()).unwrap_or(u32::MAX));
            seen.1 = before.last().map_or(seen.1, |(when, _)| seen.1.max(*when));
            seen.2 = after.first().map_or(seen.2, |(when, _)| seen.2.min(*when));
        }
        seen
    }

    /// Returns the latest mapping of a layer at this address that is not later than `at`, without
    /// the parent's mappings, and a range around the address in which every address has the same.
    fn own_mapping(
        layer: Layer<'_>,
        address: u64,
        at: Moment,
    ) -> (Option<&DatedMapping>, Range<u64>) {
        if let Some(tree) = layer.tree {
            return tree.find(layer.mappings, address, at);
        }
        let mut range = 0..u64::MAX;
        for mapped in layer.mappings.iter().rev().filter(|(when, _)| *when <= at) {
            let (_, Mapping { start, end, .. }) = *mapped;
            if start <= address && address < end {
                return (Some(mapped), range.start.max(start)..range.end.min(end));
            }
            if end <= address {
                range.start = range.start.max(end);
            } else {
                range.end = range.end.min(start);
            }
        }
        (None, range)
    }
}

impl MappingTree {
    fn of(mappings: &[DatedMapping]) -> Self {
        let mut bounds: Vec<u64> = mappings.iter().flat_map(|(_, m)| [m.start, m.end]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let pieces = bounds.len().saturating_sub(1);
        let place = |address| bounds.binary_search(&address).unwrap_or(0) + pieces;
        let items = (0..).zip(mappings).flat_map(|(index, (_, m))| {
            cover(place(m.start), place(m.end)).map(move |node| (node, index))
        });
        let (firsts, items) = grouped(2 * pieces, items);
        Self { bounds, firsts, items }
    }

    fn find<'m>(
        &self,
        mappings: &'m [DatedMapping],
        address: u64,
        at: Moment,
    ) -> (Option<&'m DatedMapping>, Range<u64>) {
        let next = self.bounds.partition_point(|&b| b <= address);
        let (before, end) = (next.checked_sub(1), self.bounds.get(next).copied());
        let start = before.and_then(|before| self.bounds.get(before)).copied().unwrap_or(0);
        let range = start..end.unwrap_or(u64::MAX);
        let (Some(piece), Some(_)) = (before, end) else { return (None, range) };
        let (mut node, mut latest) = (piece + self.bounds.len() - 1, None);
        while node >= 1 {
            latest = latest.max(self.latest_of(node, mappings, at));
            node >>= 1;
        }
        (latest.and_then(|index| mappings.get(index as usize)), range)
    }

    #[inline]
    fn latest_of(&self, node: usize, mappings: &[DatedMapping], at: Moment) -> Option<u32> {
        let items = self
            .items
            .get(*self.firsts.get(node)? as usize..*self.firsts.get(node + 1)? as usize)?;
        let in_time = |&i: &u32| mappings.get(i as usize).is_some_and(|(m, _)| *m <= at);
        match items.last() {
            None => None,
            Some(last) if in_time(last) => Some(*last),
            Some(_) => items.get(items.partition_point(in_time).checked_sub(1)?).copied(),
        }
    }
}

/// Sorts items, given with the number of their group, into `count` groups, each in the given order.
/// Returns where each group starts and the last one ends, and the items.
pub(crate) fn grouped(
    count: usize,
    items: impl Iterator<Item = (usize, u32)> + Clone,
) -> (Vec<u32>, Vec<u32>) {
    let firsts = starts(count, items.clone().map(|(group, _)| group));
    let (mut ends, mut sorted) =
        (firsts.clone(), vec![0; firsts.last().map_or(0, |end| *end as usize)]);
    for (group, item) in items {
        if let Some(end) = ends.get_mut(group) {
            if let Some(slot) = sorted.get_mut(*end as usize) {
                *slot = item;
            }
            *end += 1;
        }
    }
    (firsts, sorted)
}

/// Returns where each of `count` groups starts among items sorted by group, and where the last one
/// ends.
pub(crate) fn starts(count: usize, groups_of_items: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut starts = vec![0; count + 1];
    for group in groups_of_items {
        if let Some(items) = starts.get_mut(group + 1) {
            *items += 1;
        }
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    starts
}

/// Iterates over the nodes of a bottom-up segment tree that together are exactly the leaves
/// `from..to`.
fn cover(mut from: usize, mut to: usize) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        while from < to {
            if from & 1 == 1 {
                from += 1;
                return Some(from - 1);
            }
            if to & 1 == 1 {
                to -= 1;
                return Some(to);
            }
            (from, to) = (from >> 1, to >> 1);
        }
        None
    })
}

/// Returns the visible parts of the mappings of space `id` at the end, sorted by address.
pub(super) fn shown(spaces: &[Space], id: SpaceId) -> Vec<VisiblePart> {
    let (mut parts, mut start) = (Vec::<VisiblePart>::new(), 0);
    while start < u64::MAX {
        let (found, Range { end, .. }) = find(spaces, id, start, Moment::END);
        if let Some(&(since, mapping)) = found {
            match parts.last_mut() {
                // Mappings that cannot be seen here divide it.
                Some(last) if (last.end, last.since, last.mapping) == (start, since, mapping) => {
                    last.end = end;
                }
                _ => parts.push(VisiblePart { start, end, since, mapping }),
            }
        }
        start = end;
    }
    parts
}

/// Returns the mapping at `address` of space `id` at this moment, with its own moment, and a range
/// around the address in which every address has the same.
pub(super) fn find(
    spaces: &[Space],
    id: SpaceId,
    address: u64,
    at: Moment,
) -> (Option<&DatedMapping>, Range<u64>) {
    let (mapped, range) = find_in(spaces, Space::mapped, id, address, at);
    if mapped.is_none_or(|(_, mapping)| mapping.memory != Memory::Anonymous) {
        return (mapped, range);
    }
    let (code, piece) = find_in(spaces, Space::jit_code, id, address, at);
    (code.or(mapped), range.start.max(piece.start)..range.end.min(piece.end))
}

/// Does the same for one layer.
fn find_in(
    spaces: &[Space],
    layer: fn(&Space) -> Layer<'_>,
    id: SpaceId,
    address: u64,
    at: Moment,
) -> (Option<&DatedMapping>, Range<u64>) {
    let (mut id, mut at, mut range) = (id, at, 0..u64::MAX);
    while let Some(space) = spaces.get(id.0 as usize) {
        let (mapped, piece) = Space::own_mapping(layer(space), address, at);
        range = range.start.max(piece.start)..range.end.min(piece.end);
        if mapped.is_some() {
            return (mapped.filter(|(_, mapping)| mapping.module.is_some()), range);
        }
        // A forked process's space is newer than its parent's, so the chain of parents ends.
        let Some((parent, forked)) = space.parent else { break };
        (id, at) = (parent, at.min(forked));
    }
    (None, range)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::timeline::clock::at;

    fn mapping(start: u64, end: u64, module: u32) -> Mapping {
        Mapping {
            start,
            end,
            first: 0,
            module: Some(ModuleId(module)),
            is_shared: false,
            memory: Memory::Code,
        }
    }

    fn space(parent: Option<(SpaceId, Moment)>, mappings: Vec<DatedMapping>) -> Space {
        Space { parent, mappings, ..Space::default() }.indexed()
    }

    fn found(spaces: &[Space], id: u32, address: u64, time: u64) -> Option<u32> {
        let (mapping, range) = find(spaces, SpaceId(id), address, at(time));
        assert!(range.contains(&address), "{range:?}");
        let same = |other| find(spaces, SpaceId(id), other, at(time)).0 == mapping;
        assert!(same(range.start) && same(range.end - 1), "{range:?}");
        mapping.and_then(|(_, m)| m.module).map(|m| m.0)
    }

    #[test]
    fn a_later_mapping_covers_an_earlier_one_from_its_moment_on() {
        let mappings =
            vec![(at(1), mapping(0x1000, 0x4000, 0)), (at(5), mapping(0x2000, 0x3000, 1))];
        let spaces = [space(None, mappings)];
        assert_eq!(found(&spaces, 0, 0x2800, 4), Some(0));
        assert_eq!(found(&spaces, 0, 0x2800, 5), Some(1));
        assert_eq!(found(&spaces, 0, 0x3000, 5), Some(0));
        assert_eq!(found(&spaces, 0, 0x1000, 0), None);
        assert_eq!(found(&spaces, 0, 0x4000, 9), None);
    }

    #[test]
    fn the_lookup_address_follows_from_that_of_the_start() {
        let m = Mapping { first: 0x3000, ..mapping(0x7000, 0x8000, 0) };
        assert_eq!(m.relative(0x7123), 0x3123);
        assert_eq!(Mapping { first: m.start, ..m }.relative(0x7123), 0x7123);
    }

    #[test]
    fn lookups_work_through_ten_thousand_forks() {
        let mut spaces = vec![space(None, vec![(at(1), mapping(0, 10, 7))])];
        for i in 0..10_000u32 {
            let parent = Some((SpaceId(i), at(u64::from(i) + 2)));
            spaces.push(space(parent, Vec::new()));
        }
        assert_eq!(found(&spaces, 10_000, 5, 20_000), Some(7));
    }

    #[test]
    fn visible_parts_are_not_covered_by_later_mappings() {
        let before = vec![(at(1), mapping(0x1000, 0x5000, 0)), (at(9), mapping(0x8000, 0x9000, 4))];
        let own = vec![(at(6), mapping(0x2000, 0x3000, 1)), (at(7), mapping(0x2800, 0x3800, 2))];
        let spaces = [space(None, before), space(Some((SpaceId(0), at(5))), own)];
        let pieces = |id| -> Vec<_> {
            shown(&spaces, SpaceId(id))
                .iter()
                .map(|p| (p.start, p.end, p.mapping.module.unwrap().0))
                .collect()
        };
        assert_eq!(pieces(0), [(0x1000, 0x5000, 0), (0x8000, 0x9000, 4)]);
        assert_eq!(
            pieces(1),
            [(0x1000, 0x2000, 0), (0x2000, 0x2800, 1), (0x2800, 0x3800, 2), (0x3800, 0x5000, 0)]
        );
    }

    /// Naive reference: the list of mappings, searched from its end; a fork copies the list.
    fn naive(list: &[DatedMapping], address: u64, at: Moment) -> Option<u32> {
        let hit = |(when, m): &&DatedMapping| *when <= at && m.start <= address && address < m.end;
        list.iter().rev().find(hit).and_then(|(_, m)| m.module).map(|m| m.0)
    }

    proptest! {
        #[test]
        fn the_tree_agrees_with_the_list(
            raw in prop::collection::vec(
                (0u64..40, 1u64..20, prop::option::weighted(0.9, 0u32..9)),
                0..40,
            ),
            own in prop::collection::vec((0u64..40, 1u64..20), 0..10),
            fork in 0u64..60,
        ) {
            let make = |start, len, module: Option<u32>| Mapping {
                module: module.map(ModuleId),
                ..mapping(start, start + len, 0)
            };
            let parent: Vec<_> = (1u64..).zip(&raw)
                .map(|(t, &(s, l, m))| (at(t), make(s, l, m))).collect();
            let child: Vec<_> = (fork + 1..).zip(&own)
                .map(|(t, &(s, l))| (at(t), make(s, l, Some(99)))).collect();
            let mut copy: Vec<_> = parent.iter().filter(|(t, _)| *t <= at(fork)).copied().collect();
            copy.extend(child.iter().copied());
            let spaces = [space(None, parent.clone()), space(Some((SpaceId(0), at(fork))), child)];
            for id in [0, 1] {
                let pieces = shown(&spaces, SpaceId(id));
                for address in 0..62 {
                    let piece = pieces.iter().find(|p| p.start <= address && address < p.end);
                    let module = piece.and_then(|p| p.mapping.module).map(|m| m.0);
                    prop_assert_eq!(module, found(&spaces, id, address, u64::MAX));
                }
            }
            for address in 0..62 {
                for t in [0, 1, 5, 20, fork, fork + 3, 80] {
                    prop_assert_eq!(found(&spaces, 0, address, t), naive(&parent, address, at(t)));
                    if t > fork {
                        let expected = naive(&copy, address, at(t));
                        prop_assert_eq!(found(&spaces, 1, address, t), expected);
                    }
                }
            }
        }
    }
}
