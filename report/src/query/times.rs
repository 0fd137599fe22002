//! Time intervals (`--time`), in the syntax of `perf report`.
//!
//! ```text
//!   12.5,13          from second 12.5 of the perf clock to second 13; either end may be left out
//!   12,13 15,16      several, separated by spaces
//!   50%              the first half of the time between the first and the last sample
//!   10%/2,10%/4      the second and the fourth tenth
//!   0%-10%,30%-40%   from one percentage to another
//! ```

use super::lists::UsageError;

/// A time interval in nanoseconds of the perf clock, including both ends.
pub(crate) type Interval = (u64, u64);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Times {
    /// Intervals of the perf clock.
    Absolute(Vec<Interval>),
    /// Parts of the time between the first and the last sample, as fractions from 0 to 1.
    Shares(Vec<(f64, f64)>),
}

impl Times {
    /// Parses the value of `--time`.
    pub(crate) fn parse(text: &str) -> Result<Self, UsageError> {
        let wrong = |part: &str| {
            let forms = "START,END in seconds, or percentages such as 10%/2 or 0%-10%,30%-40%";
            UsageError(format!("--time takes {forms}, not `{part}`"))
        };
        if text.contains('%') {
            let shares = text.split(',').map(|part| share(part).ok_or_else(|| wrong(part)));
            return shares.collect::<Result<_, _>>().map(Self::Shares);
        }
        let intervals =
            text.split_whitespace().map(|part| interval(part).ok_or_else(|| wrong(part)));
        match intervals.collect::<Result<Vec<_>, _>>()? {
            none if none.is_empty() => Err(wrong(text)),
            all => Ok(Self::Absolute(all)),
        }
    }

    /// Returns the intervals for a recording with the first sample at `first` and the last one at
    /// `last`.
    pub(crate) fn intervals(&self, first: u64, last: u64) -> Vec<Interval> {
        match self {
            Self::Absolute(intervals) => intervals.clone(),
            Self::Shares(shares) => {
                let total = last.saturating_sub(first);
                let place = |share: f64| first.saturating_add(part_of(total, share));
                // A part ends before the next one begins.
                let interval = |&(from, to): &(f64, f64)| match (place(from), place(to)) {
                    (from, to) if to > from && to != last => (from, to - 1),
                    whole => whole,
                };
                shares.iter().map(interval).collect()
            }
        }
    }
}

/// Resolution of the sort key `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeSteps {
    /// Moments of the recording's clock, in multiples of this many nanoseconds.
    Length(u64),
    /// Times since the first sample, in steps as short as the number of samples allows.
    Fitting,
}

/// Length of a long recording in nanoseconds: ten minutes.
pub(crate) const LONG: u64 = 600_000_000_000;
/// Length of a moment in it.
const MOMENT: u64 = 1 << 24;

/// Steps of one recording: a moment is shown as the time from `origin` to the start of its step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) origin: u64,
    /// Length in nanoseconds; of fitting steps a power of two.
    pub(crate) length: u64,
}

/// How far time reaches from the step in which it begins, for pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Extent {
    /// Activity of the thread ([`crate::timeline::Activity::pack`]).
    pub(crate) activity: u8,
    /// Number of steps after the first one.
    pub(crate) more: u64,
    /// Part of the first step in 256ths, less one; 0 if it ends in the first step.
    pub(crate) head: u8,
}

impl Extent {
    /// Packs it into one word, for packed keys.
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        self.more << 16 | u64::from(self.head) << 8 | u64::from(self.activity)
    }

    /// Reverses [`Extent::pack`].
    pub(crate) fn unpack(word: u64) -> Self {
        let [activity, head, ..] = word.to_le_bytes();
        Self { activity, more: word >> 16, head }
    }

    /// Returns the same in steps of twice the length, of what begins in this one of the shorter.
    pub(crate) fn in_longer_steps(self, step: u64) -> Self {
        let more = (step + self.more) / 2 - step / 2;
        let rest = if step.is_multiple_of(2) { 256 } else { 0 };
        let head = (u16::from(self.head) + 1 + rest) / 2;
        let head = u8::try_from(head.saturating_sub(1)).unwrap_or(u8::MAX);
        Self { more, head: if more == 0 { 0 } else { head }, ..self }
    }
}

impl Default for TimeSteps {
    fn default() -> Self {
        Self::Length(1)
    }
}

impl Steps {
    /// Returns steps for samples between two moments: at most 65,536, and of more than 262,144
    /// samples fewer, but 4,096: each step has a row for each thread, CPU and stack in it. Those of
    /// a long recording are as short as a 60th of a second, if it has no more than four million
    /// samples.
    pub(crate) fn fitting(first: u64, last: u64, samples: u64) -> Self {
        const MOST: u64 = 1 << 16;
        const LEAST: u64 = 1 << 12;
        const OF_LONG: u64 = 1 << 23;
        let between = last.saturating_sub(first).saturating_add(1);
        let number = ((MOST << 18) / samples.max(1)).clamp(LEAST, MOST);
        let most = if samples > 4_000_000 { MOST } else { OF_LONG };
        let number = match between >= LONG {
            true => (between / MOMENT + 1).clamp(number, most),
            false => number,
        };
        let length = between.div_ceil(number);
        Self { origin: first, length: length.checked_next_power_of_two().unwrap_or(1 << 63) }
    }

    /// Returns the start of the step in which a moment is.
    #[inline]
    pub(crate) fn start(self, time: u64) -> u64 {
        let since = time.saturating_sub(self.origin);
        since - since % self.length.max(1)
    }

    /// Returns a moment in so many parts of a step, from `origin` on.
    pub(crate) fn part(self, time: u64, parts: u64) -> u64 {
        let parts = u128::from(time.saturating_sub(self.origin)) * u128::from(parts);
        u64::try_from(parts / u128::from(self.length.max(1))).unwrap_or(u64::MAX)
    }

    /// Returns how far time of this length reaches, from a moment on.
    pub(crate) fn extent(self, start: u64, length: u64, activity: u8) -> Extent {
        let step = self.length.max(1);
        let [first, end] =
            [start, start.saturating_add(length)].map(|moment| moment.saturating_sub(self.origin));
        let more = (end.saturating_sub(1).max(first) / step) - first / step;
        if more == 0 {
            return Extent { activity, ..Extent::default() };
        }
        let part = u128::from(step - first % step) * 256 / u128::from(step);
        let head = u8::try_from(part.saturating_sub(1)).unwrap_or(u8::MAX);
        Extent { activity, more: more.min(u64::MAX >> 16), head }
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a recording's length, rounded as in perf"
)]
fn part_of(total: u64, share: f64) -> u64 {
    (total as f64 * share).round() as u64
}

fn interval(part: &str) -> Option<Interval> {
    let (from, to) = part.split_once(',').unwrap_or((part, ""));
    let from = if from.is_empty() { 0 } else { nanoseconds(from)? };
    let to = if to.is_empty() { u64::MAX } else { nanoseconds(to)? };
    (from <= to).then_some((from, to))
}

/// Parses seconds with up to nine decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 9 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let below: u64 = format!("{decimals:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(below)
}

fn share(part: &str) -> Option<(f64, f64)> {
    let percent = |text: &str| {
        text.trim().strip_suffix('%')?.parse::<f64>().ok().map(|percent| percent / 100.0)
    };
    let share = if let Some((width, nth)) = part.split_once('/') {
        let (width, nth) =
            (percent(width).filter(|width| *width > 0.0)?, nth.trim().parse::<u16>().ok()?);
        (width * (f64::from(nth) - 1.0), width * f64::from(nth))
    } else if let Some((from, to)) = part.split_once('-') {
        (percent(from)?, percent(to)?)
    } else {
        (0.0, percent(part)?)
    };
    let in_range = |share: f64| (0.0..=1.0).contains(&share);
    (in_range(share.0) && in_range(share.1) && share.0 <= share.1).then_some(share)
}

/// Parses the value of `--time-quantum`, such as `100ms`. Returns nanoseconds.
pub(crate) fn quantum(text: &str) -> Result<u64, UsageError> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits).unwrap_or((text, ""));
    let unit = match unit.trim() {
        "" | "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        _ => None,
    };
    let length =
        number.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    length.filter(|length| *length > 0).ok_or_else(|| {
        let form = "a whole number above 0 with s, ms, us or ns, such as 100ms";
        UsageError(format!("--time-quantum takes {form}, not `{text}`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_fit_the_number_of_samples() {
        let steps = |length, samples| {
            let Steps { length: step, .. } = Steps::fitting(1000, 1000 + length, samples);
            (step, length / step + 1)
        };
        assert_eq!(steps(60_000_000_000, 3_000_000), (1 << 24, 3577));
        assert_eq!(steps(60_000_000_000, 1000), (1 << 20, 57_221));
        assert_eq!(steps(0, 1), (1, 1));
        let day = 86_400_000_000_000;
        assert_eq!(steps(day, 1_000_000), (1 << 24, 5_149_842));
        assert_eq!(steps(day, 8_000_000), (1 << 31, 40_234));
        assert_eq!(Steps::fitting(0, u64::MAX, 1).length, 1 << 41);
        let steps = Steps { origin: 1000, length: 8 };
        assert_eq!([999, 1000, 1017].map(|time| steps.start(time)), [0, 0, 16]);
    }

    #[test]
    fn extents_reach_over_steps() {
        let steps = Steps { origin: 1000, length: 16 };
        let extent = |start, length| {
            let Extent { more, head, activity } = steps.extent(start, length, 2);
            assert_eq!(activity, 2);
            assert_eq!(Extent::unpack(Extent { more, head, activity }.pack()).more, more);
            (more, head)
        };
        assert_eq!(extent(1000, 16), (0, 0));
        assert_eq!(extent(1000, 17), (1, 255));
        assert_eq!(extent(1012, 4 + 32 + 1), (3, 63));
        // What began before the first sample is shown from there on.
        assert_eq!(extent(900, 100 + 20), (1, 255));
        assert_eq!(extent(1007, 0), (0, 0));
        let longer = |step, more, head| {
            let Extent { more, head, .. } =
                Extent { activity: 1, more, head }.in_longer_steps(step);
            (more, head)
        };
        assert_eq!(longer(4, 1, 63), (0, 0));
        assert_eq!(longer(5, 1, 63), (1, 31));
        assert_eq!(longer(4, 2, 63), (1, 159));
        assert_eq!(longer(4, 2, 255), (1, 255));
    }

    #[test]
    fn parses_intervals_like_perf() {
        let at = |text: &str| Times::parse(text).unwrap().intervals(1_000, 2_000);
        assert_eq!(at("1.5,2"), [(1_500_000_000, 2_000_000_000)]);
        assert_eq!(at(",2 3,"), [(0, 2_000_000_000), (3_000_000_000, u64::MAX)]);
        assert_eq!(at("10%/2,10%/10"), [(1_100, 1_199), (1_900, 2_000)]);
        assert_eq!(at("0%-10%,50%-100%"), [(1_000, 1_099), (1_500, 2_000)]);
        assert_eq!(at("50%"), [(1_000, 1_499)]);
    }

    #[test]
    fn rejects_invalid_times() {
        for text in
            ["", "x", "2,1", "1.0123456789,2", "101%", "20%-10%", "0%/1", "10%/0", "10%/11", "-5%"]
        {
            assert!(Times::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            [quantum("100ms"), quantum("2 s"), quantum("7")],
            [Ok(100_000_000), Ok(2_000_000_000), Ok(7)]
        );
        assert!(["0", "1h", "ms", ""].iter().all(|text| quantum(text).is_err()));
    }
}
