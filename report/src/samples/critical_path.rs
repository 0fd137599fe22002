//! The critical path that filters choose.

use super::filter::SampleFilter;
use super::session::Session;
use super::tasks::TaskFinder;
use crate::query::SampleFilters;
use crate::timeline::{CriticalPiece, PathSpan, WaitingThread, Waits};

/// The critical path of a file.
#[derive(Clone, Debug)]
pub(crate) struct CriticalPath<'s> {
    pub(crate) waits: &'s Waits,
    pub(crate) span: PathSpan,
    /// In order of time.
    pub(crate) pieces: Vec<CriticalPiece>,
}

impl<'s> CriticalPath<'s> {
    /// Finds the path of the recorded program. Threads that filters choose are the end of the path:
    /// the one that runs last. Of times, the pieces in them are left. `None` if the file has no such
    /// thread, or was not opened for this.
    pub(crate) fn find(session: &'s Session<'_>, filters: &SampleFilters) -> Option<Self> {
        let waits = session.waits.as_ref()?;
        let filter = SampleFilter::new(session, filters, None, None);
        let by_task = [&filters.pids, &filters.tids].iter().any(|ids| ids.is_some());
        let until = filter.times.iter().flatten().map(|(_, to)| *to).max();
        let span = match by_task || filters.comms.is_some() {
            true => {
                let is_chosen = |thread: &WaitingThread| takes(session, &filter, thread);
                waits.run_of(is_chosen, until.unwrap_or(u64::MAX))?
            }
            false => waits.run_of_program()?,
        };
        let mut pieces = waits.path(span);
        if let Some(times) = &filter.times {
            let clipped = pieces
                .iter()
                .flat_map(|piece| times.iter().filter_map(|&(from, to)| piece.clip(from, to)));
            pieces = clipped.collect();
        }
        Some(Self { waits, span, pieces })
    }
}

/// Returns whether filters choose a thread, by what it was last.
fn takes(session: &Session<'_>, filter: &SampleFilter<'_>, thread: &WaitingThread) -> bool {
    let last = thread.stretches.last().map_or(thread.known, |stretch| stretch.on);
    let at = session.clock.moment(Some(thread.exit.unwrap_or(last)), u64::MAX);
    TaskFinder::new(&session.timeline, Some(filter)).span(thread.pid, thread.tid, at).1
}
