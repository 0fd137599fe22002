//! Options that depend on the callers of a row: grouping by `parent`, and `--ignore-callees`.

use regex_lite::Regex;

use super::labeller::Labeller;
use crate::callchain::{CallSite, ChainRef, Frame, Node, Stacks};
use crate::count::Rows;
use crate::query::Field;

impl Labeller<'_> {
    /// Sets the parents of rows (and drops rows without one if the query says so), then replaces
    /// callees of `--ignore-callees` functions by these functions.
    #[must_use]
    pub(crate) fn by_ancestors(&self, mut rows: Rows, stacks: &mut Stacks) -> Rows {
        let chains = &self.query.chains;
        if let Some(pattern) = &chains.parent {
            rows = self.with_parents(rows, stacks, &self.matches(pattern, stacks));
        }
        if let Some(pattern) = &chains.ignored_callees {
            let matches = self.matches(pattern, stacks);
            // The outermost frame that matches, and its callers.
            let is_match = |node: &Node| matches.get(node.frame as usize) == Some(&true);
            let roots = stacks
                .chains
                .fold_callers(None, |node, outer| outer.or(Some(node).filter(is_match)));
            // Without branch information the frame may be one that no chain has: give it a number.
            let found = roots.iter().flatten().filter_map(|root| stacks.frame(root.frame).copied());
            let found: Vec<Frame> =
                found.map(|frame| Frame { branch: 0, site: CallSite::At, ..frame }).collect();
            for frame in found {
                stacks.number(frame);
            }
            rows = rows.changed(|row| {
                let chained = ChainRef::unpack(Field::Chain.of(row));
                let root = roots.get(chained.callers as usize).copied().flatten();
                let root =
                    root.and_then(|Node { callers, frame }| Some((stacks.frame(frame)?, callers)));
                if let Some((frame, callers)) = root {
                    frame.put(row);
                    *Field::Chain.of_mut(row) = ChainRef { callers, own: true }.pack();
                }
                true
            });
        }
        rows
    }

    /// Sets the parents of rows: of the frames that match, the first in the direction in which
    /// chains are walked, as in perf.
    fn with_parents(&self, rows: Rows, stacks: &Stacks, matches: &[bool]) -> Rows {
        let from_outermost = self.query.chains.begin_at_caller();
        let is_match = |frame: u32| matches.get(frame as usize) == Some(&true);
        // The words of all chains, by their numbers; 0 if one has no parent.
        let of_chains = stacks.chains.fold_callers(0, |node, of_callers| {
            let is_parent = is_match(node.frame) && !(from_outermost && of_callers > 0);
            let frame = if is_parent { stacks.frame(node.frame) } else { None };
            frame.map_or(of_callers, parent_word)
        });
        rows.changed(|row| {
            let chained = ChainRef::unpack(Field::Chain.of(row));
            let of_chain = of_chains.get(chained.callers as usize).copied().unwrap_or(0);
            let own = Frame::of(row);
            let of_own = if chained.own && stacks.find(&own).is_some_and(is_match) {
                parent_word(&own)
            } else {
                0
            };
            let word = match (from_outermost, of_chain, of_own) {
                (true, 0, word) | (false, word, 0) => word,
                (true, word, _) | (false, _, word) => word,
            };
            *Field::Parent.of_mut(row) = word;
            !self.query.chains.only_parents || word > 0
        })
    }

    /// Returns, for each frame, whether its function's name matches.
    fn matches(&self, pattern: &Regex, stacks: &Stacks) -> Vec<bool> {
        let matches = |frame: &Frame| {
            // As in perf, inlined functions never match.
            !frame.end.is_inlined
                && self.function(frame).is_some_and(|name| pattern.is_match(&name))
        };
        stacks.of_frames(matches)
    }
}

/// Packs the module and function of a resolved frame into a [`Field::Parent`] word.
fn parent_word(frame: &Frame) -> u64 {
    u64::from(frame.module) << 32 | frame.address.wrapping_add(1) & 0xffff_ffff
}
