//! Lists of items by thread, filled from pieces of a file on all cores.
//!
//! ```text
//!   a worker's pieces:   7 7 8 9 7 8 │ 8 8 7 9      items, each with its thread
//!   sorted by thread:    7 7 7 8 8 9 │ 8 8 7 9      and (7, 3) (8, 2) (9, 1) │ (8, 2) (7, 1) (9, 1)
//! ```
//!
//! There may be many millions of items, so they are stored once, in a few long vectors: only a
//! piece's are moved. The list of one thread is put together when it is needed.

use rustc_hash::FxHashMap;

/// Items of one thread in a piece.
#[derive(Clone, Copy, Debug)]
struct ItemRun {
    tid: u32,
    /// The last one that was stated.
    pid: u32,
    count: u32,
}

/// Items of pieces that follow each other.
#[derive(Debug)]
struct SortedPieces<T> {
    items: Vec<T>,
    /// In the order of the items.
    groups: Vec<ItemRun>,
}

/// Items of the piece that is being read.
#[derive(Debug)]
struct OpenPiece<T> {
    /// Number of the group, and item.
    items: Vec<(u32, T)>,
    groups: Vec<ItemRun>,
    /// Place of the last item of each group.
    last: Vec<u32>,
    numbers: FxHashMap<u32, u32>,
}

/// Items by thread.
#[derive(Debug)]
pub(super) struct ByThread<T> {
    parts: Vec<SortedPieces<T>>,
    open: OpenPiece<T>,
}

/// Items of a thread, in the order of the file.
#[derive(Clone, Debug)]
pub(super) struct ThreadItems<'b, T> {
    pub(super) tid: u32,
    pub(super) pid: u32,
    pub(super) slices: Vec<&'b [T]>,
}

impl<T> Default for ByThread<T> {
    fn default() -> Self {
        let (items, groups, last, numbers) = Default::default();
        Self { parts: Vec::new(), open: OpenPiece { items, groups, last, numbers } }
    }
}

impl<T: Copy> ByThread<T> {
    /// Appends an item of a thread.
    pub(super) fn push(&mut self, [pid, tid]: [u32; 2], item: T) {
        let OpenPiece { items, groups, last, numbers } = &mut self.open;
        let next = u32::try_from(groups.len()).unwrap_or(u32::MAX);
        let number = *numbers.entry(tid).or_insert(next);
        if number == next {
            groups.push(ItemRun { tid, pid, count: 0 });
            last.push(0);
        }
        let place = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let at = number as usize;
        if let (Some(group), Some(last)) = (groups.get_mut(at), last.get_mut(at)) {
            group.count += 1;
            (group.pid, *last) = (pid, place);
            items.push((number, item));
        }
    }

    /// Returns the last item of a thread in the piece that is being read.
    pub(super) fn last_mut(&mut self, tid: u32) -> Option<&mut T> {
        let number = *self.open.numbers.get(&tid)?;
        let place = *self.open.last.get(number as usize)?;
        self.open.items.get_mut(place as usize).map(|(_, item)| item)
    }

    /// Sorts the items of a piece by thread.
    pub(super) fn end_piece(&mut self) {
        let OpenPiece { items, groups, last, numbers } = &mut self.open;
        let Some((_, any)) = items.first().copied() else { return };
        if self.parts.is_empty() {
            self.parts.push(SortedPieces { items: Vec::new(), groups: Vec::new() });
        }
        let Some(SortedPieces { items: all, groups: all_groups }) = self.parts.last_mut() else {
            return;
        };
        let start = all.len();
        // Now the place at which each group goes on.
        let mut next = 0;
        for (place, group) in last.iter_mut().zip(&*groups) {
            *place = next;
            next += group.count;
        }
        all.resize(start + items.len(), any);
        let sorted = all.get_mut(start..).unwrap_or_default();
        for (number, item) in items.drain(..) {
            let Some(place) = last.get_mut(number as usize) else { continue };
            if let Some(slot) = sorted.get_mut(*place as usize) {
                *slot = item;
            }
            *place += 1;
        }
        all_groups.append(groups);
        last.clear();
        numbers.clear();
    }

    /// Appends the items of the pieces that follow.
    pub(super) fn append(&mut self, next: Self) {
        self.parts.extend(next.parts);
    }

    /// Replaces the numbers of threads, and drops the items of those that get none. Returns the
    /// number of these.
    pub(super) fn renumber(&mut self, number: impl Fn(u32) -> Option<u32>) -> u64 {
        let mut dropped = 0;
        for SortedPieces { items, groups } in &mut self.parts {
            let mut new = Vec::with_capacity(items.len());
            let mut rest = &**items;
            groups.retain_mut(|group| {
                let (own, later) = rest.split_at_checked(group.count as usize).unwrap_or_default();
                rest = later;
                let Some(tid) = number(group.tid) else {
                    dropped += own.len() as u64;
                    return false;
                };
                group.tid = tid;
                new.extend_from_slice(own);
                true
            });
            *items = new;
        }
        dropped
    }

    /// Returns the items of each thread, sorted by its number.
    pub(super) fn threads(&self) -> Vec<ThreadItems<'_, T>> {
        let mut threads: FxHashMap<u32, ThreadItems<'_, T>> = FxHashMap::default();
        for SortedPieces { items, groups } in &self.parts {
            let mut rest = &**items;
            for &ItemRun { tid, pid, count } in groups {
                let (own, later) = rest.split_at_checked(count as usize).unwrap_or_default();
                rest = later;
                let thread = threads.entry(tid);
                let thread = thread.or_insert(ThreadItems { tid, pid, slices: Vec::new() });
                thread.pid = pid;
                thread.slices.push(own);
            }
        }
        let mut threads: Vec<ThreadItems<'_, T>> = threads.into_values().collect();
        threads.sort_unstable_by_key(|thread| thread.tid);
        threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns lists that were filled by pieces of threads and items.
    fn filled(pieces: &[&[(u32, u64)]]) -> ByThread<u64> {
        let mut all = ByThread::default();
        for piece in pieces {
            for (tid, item) in *piece {
                all.push([tid + 100, *tid], *item);
            }
            all.end_piece();
        }
        all
    }

    fn listed(all: &ByThread<u64>) -> Vec<(u32, u32, Vec<u64>)> {
        let threads = all.threads().into_iter();
        threads.map(|thread| (thread.tid, thread.pid, thread.slices.concat())).collect()
    }

    #[test]
    fn items_of_a_thread_stay_in_the_order_of_pieces() {
        let mut all = filled(&[&[(8, 1), (7, 2), (8, 3)], &[], &[(9, 4), (8, 5)]]);
        all.append(filled(&[&[(7, 6), (8, 7), (7, 8)]]));
        let wanted = [(7, 107, vec![2, 6, 8]), (8, 108, vec![1, 3, 5, 7]), (9, 109, vec![4])];
        assert_eq!(listed(&all), wanted);
        assert_eq!(listed(&ByThread::default()), []);
    }

    #[test]
    fn the_last_item_of_a_thread_is_that_of_the_piece() {
        let mut all = ByThread::default();
        all.push([1, 7], 10);
        all.push([1, 8], 20);
        all.push([2, 7], 11);
        if let Some(last) = all.last_mut(7) {
            *last = 12;
        }
        assert_eq!((all.last_mut(8).copied(), all.last_mut(9)), (Some(20), None));
        all.end_piece();
        assert_eq!(all.last_mut(7), None);
        assert_eq!(listed(&all), [(7, 2, vec![10, 12]), (8, 1, vec![20])]);
    }

    #[test]
    fn threads_get_other_numbers() {
        let mut all = filled(&[&[(7, 1), (8, 2), (9, 3), (8, 4)], &[(9, 5), (7, 6)]]);
        let numbers: FxHashMap<u32, u32> = [(7, 17), (9, 17)].into_iter().collect();
        let dropped = all.renumber(|tid| numbers.get(&tid).copied());
        assert_eq!(dropped, 2);
        assert_eq!(listed(&all), [(17, 107, vec![1, 3, 5, 6])]);
    }
}
