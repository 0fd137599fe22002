//! How wide perf's column of comms is. A name that does not fit is cut, so that rows read as in perf.
//!
//! The column is as wide as its heading, and as the *last* name of each row's thread: that of its first sample. A thread may have given
//! a long name up for a short one; others keep it:
//!
//! ```text
//!   rows: make       threads: 7, last "make"                     at least 7 (the heading)
//!         a-long-one threads: 8, last "cc"; 9, last "a-long-one" 2 or 10: whose sample was first decides
//! ```
//!
//! So for each comm the least and the most of its threads bound the width. Only where some name is longer than the least (few
//! recordings have one) the first samples are looked for.

use rustc_hash::{FxHashMap, FxHashSet};

use super::labeller::Labeller;
use crate::aggregate::{Count, Field, Key, Meta};
use crate::query::Format;
use crate::scan::Named;
use crate::sort_key::SortKey;
use crate::timeline::{CommRef, ThreadRef};

const HEADING: usize = "Command".len();

impl Labeller<'_> {
    /// The width for each event. `firsts` finds the events and threads of the first samples of the rows of some comms.
    pub fn comm_widths(
        &self,
        rows: &[(Key, Count)],
        named: &Named,
        firsts: impl FnOnce(&FxHashSet<u64>) -> Vec<(usize, u64)>,
    ) -> Vec<usize> {
        let mut widths = vec![HEADING; self.events.len()];
        if self.query.format == Format::Folded || !self.query.has(SortKey::Comm) {
            widths.fill(usize::MAX);
            return widths;
        }
        let last = |thread| self.timeline.comm(self.timeline.thread_label(ThreadRef::unpack(thread)).1).len();
        let mut bounds = FxHashMap::<u64, (usize, usize)>::default();
        for (comm, thread) in named {
            let len = last(*thread);
            let (least, most) = bounds.entry(*comm).or_insert((len, len));
            (*least, *most) = (len.min(*least), len.max(*most));
        }
        let event = |row: &Key| usize::from(Meta::unpack(Field::Meta.of(row)).event);
        let shown: FxHashSet<(usize, u64)> = rows.iter().map(|(row, _)| (event(row), Field::Comm.of(row))).collect();
        let mut longest = vec![0; widths.len()];
        for (event, comm) in &shown {
            let (least, _) = bounds.get(comm).copied().unwrap_or_default();
            let len = self.timeline.comm(CommRef::unpack(*comm)).len();
            for (all, one) in [(&mut widths, least), (&mut longest, len)] {
                all.get_mut(*event).into_iter().for_each(|width| *width = one.max(*width));
            }
        }
        let is_in_doubt = |(event, comm): &&(usize, u64)| {
            let width = widths.get(*event).copied().unwrap_or(0);
            longest.get(*event) > Some(&width) && bounds.get(comm).is_some_and(|(_, most)| *most > width)
        };
        let in_doubt: FxHashSet<u64> = shown.iter().filter(is_in_doubt).map(|(_, comm)| *comm).collect();
        if !in_doubt.is_empty() {
            for (event, thread) in firsts(&in_doubt) {
                widths.get_mut(event).into_iter().for_each(|width| *width = last(thread).max(*width));
            }
        }
        widths
    }
}
