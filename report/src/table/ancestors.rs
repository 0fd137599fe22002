//! Options that depend on the callers of a row: grouping by `parent`, and `--ignore-callees`.

use rayon::prelude::*;

use super::labeller::Labeller;
use super::side::{LoadedSymbols, named};
use crate::callchain::{ChainRef, Frame, Node, Stacks};
use crate::count::Rows;
use crate::query::key::{Field, Key};
use crate::query::pattern::Pattern;

impl Labeller<'_> {
    /// Sets the parents of rows (and drops rows without one if the query says so), then replaces callees of
    /// `--ignore-callees` functions by these functions.
    #[must_use]
    pub fn by_ancestors(&self, mut rows: Rows, stacks: &mut Stacks, symbols: &LoadedSymbols) -> Rows {
        let chains = &self.query.chains;
        if let Some(pattern) = &chains.parent {
            let parents = Parents::new(self.matches(pattern, stacks, symbols), stacks, chains.from_caller());
            rows = rows.changed(|row| {
                *Field::Parent.of_mut(row) = parents.of(row, stacks);
                !chains.only_parents || Field::Parent.of(row) > 0
            });
        }
        if let Some(pattern) = &chains.ignored_callees {
            let matches = self.matches(pattern, stacks, symbols);
            // The outermost frame that matches, and its callers.
            let is_match = |node: &Node| matches.get(node.frame as usize) == Some(&true);
            let roots = stacks.chains.from_callers(None, |node, outer| outer.or(Some(node).filter(is_match)));
            // Without branch information the frame may be one that no chain has: give it a number.
            let found = roots.iter().flatten().filter_map(|root| stacks.frames.get(root.frame as usize).copied());
            let found: Vec<Frame> = found.map(|frame| Frame { branch: 0, is_return: false, ..frame }).collect();
            for frame in found {
                stacks.number(frame);
            }
            rows = rows.changed(|row| {
                let chained = ChainRef::unpack(Field::Chain.of(row));
                let root = roots.get(chained.callers as usize).copied().flatten();
                let root = root.and_then(|Node { callers, frame }| Some((stacks.frames.get(frame as usize)?, callers)));
                if let Some((frame, callers)) = root {
                    frame.put(row);
                    *Field::Chain.of_mut(row) = ChainRef { callers, own: true }.pack();
                }
                true
            });
        }
        rows
    }

    /// Returns, for each frame, whether its function's name matches.
    fn matches(&self, pattern: &Pattern, stacks: &Stacks, symbols: &LoadedSymbols) -> Vec<bool> {
        let matches = |frame: &Frame| {
            let name = named(symbols, (u64::from(frame.module), frame.end, frame.address));
            // As in perf, inlined functions never match.
            !frame.end.is_inlined && name.is_some_and(|name| pattern.matches(&name))
        };
        stacks.frames.par_iter().map(matches).collect()
    }
}

/// Parents of all chains.
struct Parents {
    matches: Vec<bool>,
    /// [`Field::Parent`] word of each chain, by its number; 0 if it has no parent.
    of_chains: Vec<u64>,
    from_outermost: bool,
}

impl Parents {
    fn new(matches: Vec<bool>, stacks: &Stacks, from_outermost: bool) -> Self {
        let of_chain = |node: Node, of_callers: u64| {
            let is_match = matches.get(node.frame as usize) == Some(&true) && !(from_outermost && of_callers > 0);
            let frame = if is_match { stacks.frames.get(node.frame as usize) } else { None };
            frame.map_or(of_callers, parent_word)
        };
        Self { of_chains: stacks.chains.from_callers(0, of_chain), matches, from_outermost }
    }

    /// Returns the [`Field::Parent`] word of a row: the first match in the direction in which chains are walked, as in
    /// perf.
    fn of(&self, row: &Key, stacks: &Stacks) -> u64 {
        let chained = ChainRef::unpack(Field::Chain.of(row));
        let of_chain = self.of_chains.get(chained.callers as usize).copied().unwrap_or(0);
        let own = Frame::of(row);
        let is_match = |own: u32| self.matches.get(own as usize) == Some(&true);
        let of_own = if chained.own && stacks.find(&own).is_some_and(is_match) { parent_word(&own) } else { 0 };
        match (self.from_outermost, of_chain, of_own) {
            (true, 0, word) | (false, word, 0) => word,
            (true, word, _) | (false, _, word) => word,
        }
    }
}

/// Packs the module and function of a resolved frame into a [`Field::Parent`] word.
fn parent_word(frame: &Frame) -> u64 {
    u64::from(frame.module) << 32 | frame.address.wrapping_add(1) & 0xffff_ffff
}
