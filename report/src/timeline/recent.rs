//! The states of recent threads.

use super::frozen::Timeline;
use super::moment::Moment;
use super::threads::Span;

/// Number of threads whose states are kept at hand.
const RECENT: usize = 256;

/// States of recent threads, for as long as they do not change, each with a `T`; by the low bits of the tid.
#[derive(Debug)]
pub struct RecentSpans<T>(Vec<Option<(Span, T)>>);

impl<T: Copy> Default for RecentSpans<T> {
    fn default() -> Self {
        Self(vec![None; RECENT])
    }
}

impl<T: Copy> RecentSpans<T> {
    /// Returns the state of thread `tid` at this moment, and the `value` of its span.
    #[inline]
    pub fn get(
        &mut self,
        timeline: &Timeline,
        (pid, tid): (i32, i32),
        at: Moment,
        value: impl FnOnce(&Span) -> T,
    ) -> &(Span, T) {
        let slot = usize::try_from(tid.cast_unsigned()).unwrap_or(0) & (RECENT - 1);
        #[allow(clippy::indexing_slicing, reason = "a slot is below RECENT")]
        let known = &mut self.0[slot];
        if !known.as_ref().is_some_and(|(span, _)| span.covers(pid, tid, at)) {
            *known = None;
        }
        known.get_or_insert_with(|| {
            let span = timeline.span(pid, tid, at);
            (span, value(&span))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Change;

    fn at(time: u64) -> Moment {
        Moment::timed(time, 0)
    }

    fn timeline() -> Timeline {
        let comm = |time, tid: i32, comm: &str| (at(time), Change::Comm { pid: tid, tid, comm: comm.into() });
        Timeline::build(vec![comm(10, 5, "a"), comm(20, 5, "b"), comm(30, 5 + 256, "c")])
    }

    #[test]
    fn recent_states_are_those_of_the_timeline() {
        let (timeline, mut spans) = (timeline(), RecentSpans::default());
        // The two threads share a place.
        for time in (0..40).chain((0..40).rev()) {
            for tid in [5, 5 + 256, 7] {
                let (span, value) = *spans.get(&timeline, (tid, tid), at(time), |span| span.from);
                let fresh = timeline.span(tid, tid, at(time));
                assert_eq!((span.task, value), (fresh.task, fresh.from), "{tid} at {time}");
                assert_eq!(span.comm_so_far(at(time)), fresh.comm_so_far(at(time)), "{tid} at {time}");
            }
        }
    }

    #[test]
    fn a_comm_so_far_does_not_apply_to_the_time_before_it() {
        let timeline = timeline();
        let first = timeline.span(5, 5, at(3));
        let so_far = |span: Span, time| timeline.comm(span.comm_so_far(at(time))).into_owned();
        assert_eq!([so_far(first, 9), so_far(first, 10)], [":5", "a"]);
        assert_eq!(timeline.comm(first.task.comm), "a");
        assert_eq!(so_far(timeline.span(5, 5, at(20)), 20), "b");
    }
}
