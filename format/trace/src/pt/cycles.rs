//! Cycles of the core while it is traced: those of CYC packets, or about as many as pass from one step of the
//! crystal clock to the next.

/// What tells of cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CycleSource {
    /// Nothing: they are not counted.
    #[default]
    None,
    /// Times, and the ratio of the clocks.
    Times,
    /// A CYC in front of each packet that tells of the flow, unless no cycle passed.
    Each,
    /// A CYC in front of some of those packets: where enough cycles passed.
    Sparse,
}

/// A ratio of the core's clock to the TSC.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoreRatio {
    pub(super) core: u64,
    pub(super) tsc: u64,
}

/// Counts cycles.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CycleCounter {
    source: CycleSource,
    total: u64,
    /// A time stamp, and the cycles up to it.
    base: (u64, u64),
    is_traced: bool,
    /// A PSB+ is open.
    is_header: bool,
    /// The FUP behind an overflow is awaited.
    is_overflow: bool,
    /// Cycles were told of since the last branch with a time.
    is_new: bool,
    /// The packet before was a CYC, or the FUP of an event.
    is_next: bool,
    /// Cycles up to the branches in front of the last one, and up to that.
    known: [u64; 2],
    is_exact: bool,
}

impl CycleCounter {
    pub(super) fn new(source: CycleSource, total: u64) -> Self {
        Self { source, total, known: [total; 2], ..Self::default() }
    }

    /// Returns all cycles so far.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the cycles up to the last branch of a step, or up to the branches in front of it.
    #[inline]
    pub(super) fn known(&self, is_last: bool) -> u64 {
        let [before, now] = self.known;
        if is_last { now } else { before }
    }

    /// Returns the cycles up to the last branch of a step if they are exact.
    #[inline]
    pub(super) fn exact(&self) -> Option<u64> {
        self.is_exact.then_some(self.known[1])
    }

    /// Commits the cycles so far to the branch that comes.
    #[inline]
    pub(super) fn commit(&mut self) {
        self.known = [self.known[1], self.total];
        self.is_exact = std::mem::take(&mut self.is_new);
    }

    /// Passes a branch that has the time of the one before.
    #[inline]
    pub(super) fn hold(&mut self) {
        self.known[0] = self.known[1];
        self.is_exact = false;
    }

    /// Takes the cycles of a CYC.
    #[inline]
    pub(super) fn add(&mut self, count: u64) {
        if matches!(self.source, CycleSource::Each | CycleSource::Sparse) {
            self.is_new = true;
            self.is_next = true;
            if self.is_traced {
                self.total = self.total.saturating_add(count);
            }
        }
    }

    /// Takes a packet that is no CYC; `is_fup` is whether it is a FUP.
    #[inline]
    pub(super) fn follow(&mut self, is_fup: bool) {
        if self.source == CycleSource::Sparse {
            self.is_new &= self.is_next;
            self.is_next &= is_fup;
        }
    }

    /// Tracing begins.
    pub(super) fn begin(&mut self, now: u64) {
        (self.is_traced, self.is_overflow) = (true, false);
        self.base = (now, self.total);
    }

    /// Tracing ends, with an overflow or without.
    pub(super) fn end(&mut self, is_overflow: bool) {
        (self.is_traced, self.is_overflow) = (false, is_overflow);
    }

    /// A PSB+ begins or ends.
    pub(super) fn set_header(&mut self, is_header: bool) {
        self.is_header = is_header;
    }

    /// Takes a FUP: in a PSB+ and behind an overflow it says that the processor is traced.
    pub(super) fn fup(&mut self) {
        self.is_traced |= self.is_header || self.is_overflow;
        self.is_overflow &= self.is_header;
    }

    /// Takes a new ratio, or, outside of a PSB+, a tie of the clocks.
    pub(super) fn restart(&mut self, now: u64) {
        if self.is_traced {
            self.base = (now, self.total);
        }
    }

    /// Ties the clocks at this time.
    pub(super) fn tie(&mut self, now: u64, ratio: CoreRatio) {
        if self.is_traced && !self.is_header {
            self.restart(now);
        } else {
            self.step(now, ratio);
        }
    }

    /// Takes a step of the crystal clock.
    pub(super) fn step(&mut self, now: u64, ratio: CoreRatio) {
        if self.source != CycleSource::Times {
            return;
        }
        self.is_new = true;
        let (since, before) = self.base;
        if self.is_traced && now > since {
            let ticks = u128::from(now - since);
            let cycles = (ticks * u128::from(ratio.core)).checked_div(ratio.tsc.into());
            let cycles = cycles.and_then(|cycles| u64::try_from(cycles).ok()).unwrap_or(0);
            self.total = self.total.max(before.saturating_add(cycles));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATIO: CoreRatio = CoreRatio { core: 3, tsc: 2 };

    #[test]
    fn cycles_count_while_tracing_is_on() {
        let mut cycles = CycleCounter::new(CycleSource::Each, 7);
        cycles.add(5);
        cycles.begin(0);
        assert_eq!(cycles.total(), 7);
        cycles.add(5);
        cycles.end(false);
        cycles.add(9);
        cycles.commit();
        assert_eq!((cycles.known(false), cycles.known(true), cycles.exact()), (7, 12, Some(12)));
        // Nothing is known of what has no packet of its own.
        cycles.commit();
        assert_eq!((cycles.known(false), cycles.exact()), (12, None));
    }

    #[test]
    fn a_cyc_is_of_the_packet_behind_it_if_not_all_have_one() {
        for (source, expected) in [(CycleSource::Each, Some(5)), (CycleSource::Sparse, None)] {
            let mut cycles = CycleCounter::new(source, 0);
            cycles.begin(0);
            cycles.add(5);
            cycles.follow(false);
            cycles.follow(false);
            cycles.commit();
            assert_eq!(cycles.exact(), expected, "{source:?}");
            cycles.add(0);
            cycles.follow(true);
            cycles.follow(false);
            cycles.commit();
            assert_eq!(cycles.exact(), Some(5), "{source:?}");
        }
    }

    #[test]
    fn without_packets_cycles_are_times_at_the_ratio() {
        let mut cycles = CycleCounter::new(CycleSource::Times, 0);
        cycles.begin(1000);
        cycles.add(99);
        cycles.step(1100, RATIO);
        assert_eq!(cycles.total(), 150);
        cycles.restart(1200);
        cycles.step(1300, RATIO);
        assert_eq!(cycles.total(), 300, "where the ratio changes, they count anew");
        cycles.end(false);
        cycles.step(1400, RATIO);
        assert_eq!(cycles.total(), 300);
    }
}
