//! Cycles and instructions from one sample of an event to the next that has cycles.
//!
//! A trace tells of cycles at some branches only: what is at one of them has all cycles since the last
//! sample that was at one. What a part needs of those before it is found by decoding all parts once.

use recrep_trace::pt::Clock;

use crate::decode::samples::Elapsed;

/// Events of which samples have cycles.
#[derive(Clone, Copy, Debug)]
pub(super) enum CycleEvent {
    Branches,
    Instructions,
    Cycles,
}

/// The last sample of an event that had cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CycleMark {
    /// Cycles of the ring up to it.
    cycles: u64,
    /// Instructions up to it from the begin of the part; less than 0 if it is of a part before.
    instructions: i64,
    /// It is of the part.
    is_of_part: bool,
}

/// The last samples of the events, at the end of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CycleMarks([CycleMark; 3]);

impl CycleMarks {
    /// Returns the marks at the end of this and of the part that follows.
    pub(super) fn followed_by(mut self, next: Self) -> Self {
        for (mark, next) in self.0.iter_mut().zip(next.0) {
            if next.is_of_part {
                *mark = CycleMark { is_of_part: false, ..next };
            } else {
                mark.instructions = mark.instructions.saturating_add(next.instructions);
            }
        }
        self
    }
}

/// Measures the cycles of samples of a part.
#[derive(Debug)]
pub(super) struct CycleMeter {
    marks: CycleMarks,
    /// Instructions of the part so far.
    pub instructions: i64,
    is_approximate: bool,
}

impl CycleMeter {
    /// Creates a meter for a part behind these marks.
    pub(super) fn new(marks: CycleMarks, is_approximate: bool) -> Self {
        Self { marks, instructions: 0, is_approximate }
    }

    /// Creates a meter for a part behind so many cycles, whose marks are not known.
    pub(super) fn of_part(cycles: u64, is_approximate: bool) -> Self {
        let mark = CycleMark { cycles, ..CycleMark::default() };
        Self::new(CycleMarks([mark; 3]), is_approximate)
    }

    /// Passes so many instructions.
    #[inline]
    pub(super) fn pass(&mut self, instructions: u64) {
        self.instructions = self.instructions.saturating_add_unsigned(instructions);
    }

    /// Returns what has passed up to a sample of an event, if cycles did and the trace tells of them there:
    /// at the last branch of a step, or approximately at any.
    pub(super) fn take(
        &mut self,
        event: CycleEvent,
        clock: &Clock,
        is_last: bool,
    ) -> Option<Elapsed> {
        let cycles = match self.is_approximate {
            true => clock.known_cycles(is_last),
            false => clock.exact_cycles().filter(|_| is_last)?,
        };
        let mark = self.marks.0.get_mut(event as usize)?;
        let instructions = self.instructions.saturating_sub(mark.instructions);
        let passed = cycles.checked_sub(mark.cycles).filter(|cycles| *cycles > 0)?;
        *mark = CycleMark { cycles, instructions: self.instructions, is_of_part: true };
        Some(Elapsed { cycles: passed, instructions: u64::try_from(instructions).unwrap_or(0) })
    }

    /// Returns the marks at the end of the part, with the instructions since as less than 0, or those of a part
    /// without samples.
    pub(super) fn into_marks(self) -> CycleMarks {
        let mut marks = self.marks;
        for mark in &mut marks.0 {
            mark.instructions = mark.instructions.saturating_sub(self.instructions);
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use recrep_trace::pt::{Clock, ClockRates};

    use super::*;

    fn clock(cycles: u64) -> Clock {
        Clock::from_rates(ClockRates::default(), 0, cycles)
    }

    /// Takes a sample of instructions.
    fn take(meter: &mut CycleMeter, cycles: u64) -> Option<(u64, u64)> {
        let taken = meter.take(CycleEvent::Instructions, &clock(cycles), true);
        taken.map(|Elapsed { cycles, instructions }| (cycles, instructions))
    }

    #[test]
    fn samples_have_what_passed_since_the_last_with_cycles() {
        let mut meter = CycleMeter::new(CycleMarks::default(), true);
        meter.pass(10);
        assert_eq!(take(&mut meter, 40), Some((40, 10)));
        meter.pass(1);
        assert_eq!(take(&mut meter, 40), None);
        meter.pass(2);
        assert_eq!(take(&mut meter, 41), Some((1, 3)));
        let exact = &mut CycleMeter::new(CycleMarks::default(), false);
        assert_eq!(take(exact, 40), None, "not told at a branch");
    }

    #[test]
    fn parts_go_on_where_those_before_ended() {
        let samples = [(10, 40), (2, 45), (7, 45), (3, 45), (1, 60)];
        let mut all = CycleMeter::new(CycleMarks::default(), true);
        let expected = samples.map(|(instructions, cycles)| {
            all.pass(instructions);
            take(&mut all, cycles)
        });
        for length in 1..samples.len() {
            let (mut marks, mut found, mut before) = (CycleMarks::default(), Vec::new(), 0);
            for part in samples.chunks(length) {
                let mut ahead = CycleMeter::of_part(before, true);
                let mut meter = CycleMeter::new(marks, true);
                for (instructions, cycles) in part {
                    ahead.pass(*instructions);
                    take(&mut ahead, *cycles);
                    meter.pass(*instructions);
                    found.push(take(&mut meter, *cycles));
                    before = *cycles;
                }
                marks = marks.followed_by(ahead.into_marks());
            }
            assert_eq!(found, expected, "{length}");
        }
    }
}
