//! Threads of samples.

use super::filter::SampleFilter;
use crate::timeline::{Moment, RecentSpans, Span, Timeline};

/// Finds the threads of one worker's samples. Consecutive samples are mostly of the same ones.
#[derive(Debug)]
pub(crate) struct TaskFinder<'s> {
    timeline: &'s Timeline,
    /// Filter that selects threads; `None` if all are selected.
    filter: Option<&'s SampleFilter<'s>>,
    /// States of recent threads, and whether the filter selects them.
    spans: RecentSpans<bool>,
}

impl<'s> TaskFinder<'s> {
    pub(crate) fn new(timeline: &'s Timeline, filter: Option<&'s SampleFilter<'s>>) -> Self {
        Self { timeline, filter, spans: RecentSpans::default() }
    }

    /// Returns the state of a thread at a moment, and whether the filter selects the thread.
    #[inline(always)]
    pub(crate) fn span(&mut self, pid: i32, tid: i32, at: Moment) -> &(Span, bool) {
        let filter = self.filter;
        self.spans.get(self.timeline, pid, tid, at, |span| {
            filter.is_none_or(|filter| filter.takes_task(&span.task, tid))
        })
    }
}
