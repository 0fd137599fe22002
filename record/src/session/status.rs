//! The status line: what is recorded so far, on a terminal, once a second.
//!
//! A command's output would be mixed with it, as it writes to the same terminal; so it is there
//! only where something that runs already is recorded, whose end is up to the user. Drain threads
//! (`--threads`) would have to stop for the counts, and rings that are overwritten have none before
//! their dump.

use std::time::{Duration, Instant};

use recrep_console::units;

use super::timer::Timer;
use crate::messages::Messages;
use crate::messages::error::Result;
use crate::output::Output;
use crate::plan::config::Config;
use crate::tasks::Target;

/// Time before the first status line, and from each to the next.
const EVERY: Duration = Duration::from_secs(1);

/// The status line's timer, and what it said last.
#[derive(Debug)]
pub(super) struct Status {
    /// Expires when the line is to be written.
    pub(super) timer: Timer,
    /// `true` if it is to be written after the next round.
    is_due: bool,
    start: Instant,
    last: StatusReading,
}

#[derive(Clone, Copy, Debug)]
struct StatusReading {
    at: Instant,
    samples: u64,
}

impl Status {
    /// Starts the timer, if somebody sees the line.
    pub(super) fn start(config: &Config, messages: &Messages) -> Result<Option<Self>> {
        let rings = &config.rings;
        let countable = rings.threads.split.is_none() && !rings.overwrite;
        if config.target == Target::Command || !countable || !messages.shows_status() {
            return Ok(None);
        }
        let timer = Timer::new()?;
        timer.set(EVERY, Some(EVERY))?;
        let start = Instant::now();
        Ok(Some(Self {
            timer,
            is_due: false,
            start,
            last: StatusReading { at: start, samples: 0 },
        }))
    }

    /// Notes that the timer expired.
    pub(super) fn went_off(&mut self) {
        self.timer.clear();
        self.is_due = true;
    }

    /// Writes the line, if it is due.
    pub(super) fn show(&mut self, output: &Output, messages: &Messages) {
        if std::mem::take(&mut self.is_due) {
            let (counts, bytes) = (output.written().counts, output.length());
            let now = StatusReading { at: Instant::now(), samples: counts.samples };
            messages.status(&line(now.at - self.start, self.last, now, bytes, counts.lost_events));
            self.last = now;
        }
    }
}

fn line(
    elapsed: Duration,
    last: StatusReading,
    now: StatusReading,
    bytes: u64,
    lost: u64,
) -> String {
    let seconds = elapsed.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    // In another file (--switch-output) the count begins anew.
    let more = now.samples.checked_sub(last.samples).unwrap_or(now.samples);
    let millis = (now.at - last.at).as_millis().max(1);
    let rate = u128::from(more) * 1000 / millis;
    let size = units::bytes(bytes);
    format!(
        "{hours}:{minutes:02}:{seconds:02}, {} samples ({}/s), {size}, {lost} lost",
        units::grouped(now.samples),
        units::grouped(u64::try_from(rate).unwrap_or(u64::MAX)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_time_samples_rate_bytes_and_losses() {
        let at = Instant::now();
        let last = StatusReading { at, samples: 1000 };
        let now = StatusReading { at: at + Duration::from_secs(2), samples: 9000 };
        let long = Duration::from_secs(3725);
        assert_eq!(
            line(long, last, now, 3_440_000, 7),
            "1:02:05, 9,000 samples (4,000/s), 3.3 MiB, 7 lost"
        );
        let anew = StatusReading { samples: 500, ..now };
        assert!(line(long, last, anew, 999, 0).contains("500 samples (250/s), 999 bytes, 0 lost"));
    }

    #[test]
    fn a_command_shares_the_terminal_and_has_no_line() {
        for line in ["x", "-a", "-a x", "-p 1", "-a --threads", "-a --overwrite"] {
            let words = ["rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
            let config = crate::cli::parse(words).unwrap();
            let shown = |messages: &Messages| Status::start(&config, messages).unwrap().is_some();
            let messages =
                || Messages::to(crate::messages::Verbosity::Normal, Box::new(std::io::sink()));
            let wanted = ["-a", "-a x", "-p 1"].contains(&line);
            assert_eq!(shown(&messages().on_a_terminal()), wanted, "{line}");
            assert!(!shown(&messages()), "{line}: no terminal");
        }
    }
}
