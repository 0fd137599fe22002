//! Scheduled start and stop of counting (`-D`).

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::messages::error::Result;
use crate::plan::config::Delay;
use crate::session::timer::Timer;

/// Remaining steps, each with its time since the start.
#[derive(Debug)]
pub(super) struct Delays {
    timer: Option<Timer>,
    steps: VecDeque<(Duration, bool)>,
    start: Instant,
}

impl Delays {
    /// Schedules the steps of a delay. The time begins with `start`.
    pub(super) fn new(delay: &Delay) -> Result<Self> {
        let steps: VecDeque<_> = match delay {
            Delay::None | Delay::Off => VecDeque::new(),
            Delay::After(time) => [(*time, true)].into(),
            Delay::Ranges(ranges) => {
                ranges.iter().flat_map(|(from, to)| [(*from, true), (*to, false)]).collect()
            }
        };
        let timer = if steps.is_empty() { None } else { Some(Timer::new()?) };
        Ok(Self { timer, steps, start: Instant::now() })
    }

    pub(super) fn start(&mut self) -> Result<()> {
        self.start = Instant::now();
        self.set()
    }

    /// Returns the descriptor that becomes readable when a step is due.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.timer.as_ref().map(AsFd::as_fd)
    }

    /// Takes the step that is due: `true` to start counting, `false` to stop.
    pub(super) fn step(&mut self) -> Result<Option<bool>> {
        if let Some(timer) = &self.timer {
            timer.clear();
        }
        let step = self.steps.pop_front();
        self.set()?;
        Ok(step.map(|(_, on)| on))
    }

    fn set(&self) -> Result<()> {
        match (&self.timer, self.steps.front()) {
            (Some(timer), Some((at, _))) => {
                timer.set(at.saturating_sub(self.start.elapsed()), None)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_switch_on_and_off() {
        let ms = Duration::from_millis;
        let mut delays = Delays::new(&Delay::Ranges(vec![(ms(0), ms(1)), (ms(2), ms(3))])).unwrap();
        delays.start().unwrap();
        let steps: Vec<_> = (0..5).map(|_| delays.step().unwrap()).collect();
        assert_eq!(steps, [Some(true), Some(false), Some(true), Some(false), None]);
    }

    #[test]
    fn without_a_time_there_is_no_timer() {
        assert!(Delays::new(&Delay::Off).unwrap().fd().is_none());
        assert!(Delays::new(&Delay::After(Duration::from_secs(1))).unwrap().fd().is_some());
    }
}
