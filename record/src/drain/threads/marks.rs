//! Decision when a round ends with several drain threads. [`super`] has the proof that rounds stay
//! correct.

/// State since the last mark (FINISHED_ROUND), protected by the lock of the file.
#[derive(Debug)]
pub(super) struct Marks {
    written: u64,
    /// Per thread: 1 + the number of marks at the start of its last complete drain; 0 if it had
    /// none.
    drained: Vec<u64>,
    /// Bytes since the last mark.
    bytes: u64,
    /// Bytes since the last mark at which the missing threads are woken.
    enough: u64,
    woken: bool,
}

impl Marks {
    pub(super) fn new(threads: usize, enough: u64) -> Self {
        Self {
            written: 0,
            drained: vec![0; threads],
            bytes: 0,
            enough: enough.max(1),
            woken: false,
        }
    }

    /// Returns the number of marks so far, to pass to [`drained`](Self::drained) for a drain that
    /// begins now.
    pub(super) fn number(&self) -> u64 {
        self.written
    }

    /// Notes that a thread has emptied all its rings; `begun` is the number of marks when its drain
    /// began.
    pub(super) fn drained(&mut self, thread: usize, begun: u64) {
        if let Some(drained) = self.drained.get_mut(thread) {
            *drained = begun + 1;
        }
    }

    /// Returns whether a mark is due after `more` bytes: all threads have drained since the last
    /// mark, and there were records.
    pub(super) fn is_due(&self, more: u64) -> bool {
        self.bytes + more > 0 && self.drained.iter().all(|drained| *drained > self.written)
    }

    /// Notes that bytes were written, with or without a mark at the end. Returns the threads to
    /// wake.
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
        let missing =
            self.drained.iter().enumerate().filter(|(_, drained)| **drained <= self.written);
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
        // The second thread's drain began before the mark.
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
