//! Order of the listed tasks: each below its parent, by thread ID.

use rustc_hash::FxHashMap;

use crate::timeline::LastLife;

/// Returns indices into `lives` (sorted by thread ID) with their depths, depth first. Tasks without a parent in the
/// list have depth 0. If parents form a cycle, as reused thread IDs can, its first task by thread ID has depth 0 too.
pub(super) fn order(lives: &[LastLife]) -> Vec<(usize, usize)> {
    let places: FxHashMap<i32, usize> = lives.iter().enumerate().map(|(place, life)| (life.tid, place)).collect();
    let parent = |life: &LastLife| life.parent.and_then(|tid| places.get(&tid).copied());
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); lives.len()];
    let mut roots = Vec::new();
    for (place, life) in lives.iter().enumerate() {
        match parent(life).and_then(|parent| children.get_mut(parent)) {
            Some(siblings) => siblings.push(place),
            None => roots.push(place),
        }
    }
    let mut listed = vec![false; lives.len()];
    let mut order = Vec::with_capacity(lives.len());
    // Tasks that no root leads to are in a cycle, or below one.
    for root in roots.into_iter().chain(0..lives.len()) {
        let mut waiting = vec![(root, 0)];
        while let Some((place, depth)) = waiting.pop() {
            let Some(is_listed) = listed.get_mut(place).filter(|is_listed| !**is_listed) else { continue };
            *is_listed = true;
            order.push((place, depth));
            let below = children.get(place).map(Vec::as_slice).unwrap_or_default();
            waiting.extend(below.iter().rev().map(|child| (*child, depth + 1)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::CommRef;

    fn lives(list: &[(i32, Option<i32>)]) -> Vec<LastLife> {
        let one = |&(tid, parent)| LastLife { pid: tid, tid, parent, comm: CommRef::Bare(tid), space: None };
        list.iter().map(one).collect()
    }

    fn ordered(list: &[(i32, Option<i32>)]) -> Vec<(i32, usize)> {
        order(&lives(list)).into_iter().map(|(place, depth)| (list[place].0, depth)).collect()
    }

    #[test]
    fn children_follow_their_parents() {
        let list = [(0, None), (3, Some(9)), (5, None), (7, Some(5)), (8, Some(7)), (9, Some(5)), (10, Some(99))];
        assert_eq!(ordered(&list), [(0, 0), (5, 0), (7, 1), (8, 2), (9, 1), (3, 2), (10, 0)]);
    }

    #[test]
    fn a_cycle_is_listed_once() {
        let list = [(1, Some(2)), (2, Some(3)), (3, Some(1)), (4, Some(4))];
        assert_eq!(ordered(&list), [(1, 0), (3, 1), (2, 2), (4, 0)]);
    }
}
