//! When a round is over, whoever drains: see [`super`] for why this keeps the promise.

/// What is known of the time since the last mark. It is looked at and changed by whoever has the file.
#[derive(Debug)]
pub(super) struct Marks {
    /// How many marks there are by now.
    written: u64,
    /// For each thread, how many marks there were when its last whole drain began, and one more; 0: it had none.
    drained: Vec<u64>,
    /// Bytes since the last mark.
    bytes: u64,
    /// After so many bytes the threads that are missing are woken.
    enough: u64,
    woken: bool,
}

impl Marks {
    pub(super) fn new(threads: usize, enough: u64) -> Self {
        Self { written: 0, drained: vec![0; threads], bytes: 0, enough: enough.max(1), woken: false }
    }

    /// The number of marks by now, to be given to [`drained`](Self::drained) for a drain that begins after them.
    pub(super) fn number(&self) -> u64 {
        self.written
    }

    /// A thread has emptied all its rings; `begun`: how many marks there were when it began to.
    pub(super) fn drained(&mut self, thread: usize, begun: u64) {
        if let Some(drained) = self.drained.get_mut(thread) {
            *drained = begun + 1;
        }
    }

    /// Whether a mark belongs behind so many bytes more: all threads have drained since the last one, and found something.
    pub(super) fn is_due(&self, more: u64) -> bool {
        self.bytes + more > 0 && self.drained.iter().all(|drained| *drained > self.written)
    }

    /// So much was written, with a mark at the end or without. Gives the threads to wake.
    pub(super) fn wrote(&mut self, bytes: u64, mark: bool) -> Vec<usize> {
        if mark {
            (self.written, self.bytes, self.woken) = (self.written + 1, 0, false);
            return Vec::new();
        }
        self.bytes += bytes;
        if self.woken || self.bytes < self.enough {
            return Vec::new();
        }
        self.woken = true;
        let missing = self.drained.iter().enumerate().filter(|(_, drained)| **drained <= self.written);
        missing.map(|(thread, _)| thread).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: [usize; 0] = [];

    #[test]
    fn a_mark_needs_a_drain_of_each_thread_that_began_after_the_one_before() {
        let mut marks = Marks::new(2, 100);
        marks.drained(0, 0);
        assert!(!marks.is_due(8));
        marks.drained(1, 0);
        assert!(marks.is_due(8) && !marks.is_due(0));
        assert_eq!(marks.wrote(8, true), NOBODY);
        // The second began this one before the mark.
        marks.drained(0, 1);
        marks.drained(1, 0);
        assert!(!marks.is_due(8));
        marks.drained(1, 1);
        assert!(marks.is_due(8));
    }

    #[test]
    fn who_is_missing_is_woken_once() {
        let mut marks = Marks::new(3, 100);
        marks.drained(1, 0);
        assert_eq!(marks.wrote(99, false), NOBODY);
        assert_eq!(marks.wrote(1, false), [0, 2]);
        assert_eq!(marks.wrote(500, false), NOBODY);
        assert_eq!(marks.wrote(1, true), NOBODY);
        assert_eq!(marks.wrote(100, false), [0, 1, 2]);
    }
}
