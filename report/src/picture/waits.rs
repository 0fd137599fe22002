//! Long waits in a picture: what threads waited for, and who ended it.

/// A wait of a thread, in nanoseconds of the recording's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadWait {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) from: u64,
    /// Time of the wake; that of its end if there is none.
    pub(crate) woken: u64,
    /// Time at which the thread ran again.
    pub(crate) to: u64,
    /// Kind and object.
    pub(crate) what: String,
    /// Empty if not known.
    pub(crate) woken_by: String,
    /// Offset of the sample of the wake, if a thread's callchain is in it.
    pub(crate) wake: Option<u64>,
    /// Functions of the waker's callchain, a line each, innermost first; empty if not known.
    pub(crate) waker_stack: String,
}

/// Keeps the longest waits, as many as a picture has of a side.
pub(crate) fn keep_longest(waits: &mut Vec<ThreadWait>) {
    /// About 200 kB in a page.
    const MOST: usize = 20_000;
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.to - wait.from));
    waits.truncate(MOST);
}

/// A wait of a thread, in [`super::path::PARTS`] of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PictureWait {
    pub(crate) thread: u32,
    pub(crate) from: u64,
    pub(crate) woken: u64,
    pub(crate) to: u64,
    /// Places in [`super::Picture::wait_texts`].
    pub(crate) what: u32,
    pub(crate) woken_by: u32,
    pub(crate) waker_stack: u32,
}

impl PictureWait {
    /// Returns the same in steps of so many times the length.
    pub(super) fn in_longer_steps(self, times: u64) -> Self {
        let Self { from, woken, to, .. } = self;
        let [from, woken, to] = [from, woken, to].map(|moment| moment / times.max(1));
        Self { from, woken, to, ..self }
    }
}
