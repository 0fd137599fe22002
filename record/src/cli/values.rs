//! Values that flags of several parts or commands have: numbers, sizes, times, tasks.
//!
//! A parser returns what is wrong with a value; the name of the flag is put before it by
//! [`words::name_flag`](super::words::name_flag).

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::messages::Verbosity;
use crate::plan::config::{Delay, Only};
use crate::tasks::{self, Target};

/// Value of `-C`. clap would take an option of a `Vec` for a flag that is given several times.
pub(super) type CpuList = Vec<u32>;

/// Parses a number from 1 on that fits into a signed field of the kernel.
pub(super) fn positive(text: &str) -> Option<u64> {
    number_in(text, 1..=(1 << 63) - 1)
}

pub(super) fn number_in<T: FromStr + PartialOrd>(
    text: &str,
    range: RangeInclusive<T>,
) -> Option<T> {
    text.parse().ok().filter(|number| range.contains(number))
}

pub(super) fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number"))
}

/// Parses a number with B, K, M or G.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let shift = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'B' => 0,
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    number.checked_mul(1 << shift).filter(|n| *n > 0)
}

/// Parses bytes; the unit is needed, as with perf record.
pub(super) fn size(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| format!("'{text}' is not a number of bytes with B, K, M or G"))
}

pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    duration(text).ok_or_else(|| format!("'{text}' is not a number of milliseconds"))
}

fn duration(text: &str) -> Option<Duration> {
    text.parse::<u32>().ok().map(|ms| Duration::from_millis(ms.into()))
}

/// Parses milliseconds, `-1`, or ranges of milliseconds.
pub(super) fn delay(text: &str) -> Result<Delay, String> {
    match (text, duration(text)) {
        ("-1", _) => Ok(Delay::Off),
        (_, Some(Duration::ZERO)) => Ok(Delay::None),
        (_, Some(time)) => Ok(Delay::After(time)),
        _ => ranges(text).map(Delay::Ranges).ok_or_else(|| {
            format!(
                "'{text}' is neither a number of milliseconds, nor -1, nor ascending ranges of \
                 them (10-20,30-40)"
            )
        }),
    }
}

fn ranges(text: &str) -> Option<Vec<(Duration, Duration)>> {
    let mut ranges: Vec<(Duration, Duration)> = Vec::new();
    for range in text.split(',') {
        let (from, to) = range.split_once('-')?;
        let (from, to) = (duration(from.trim())?, duration(to.trim())?);
        if from >= to || ranges.last().is_some_and(|(_, before)| from <= *before) {
            return None;
        }
        ranges.push((from, to));
    }
    Some(ranges)
}

/// Parses the value of `-p`.
pub(super) fn processes(list: &str) -> Result<Target, String> {
    tasks::parse_pids(list).map(Target::Processes)
}

/// Parses the value of `-t`.
pub(super) fn threads(list: &str) -> Result<Target, String> {
    tasks::parse_ids(list).map(Target::Threads)
}

/// Parses the value of `-u`.
pub(super) fn user(text: &str) -> Result<Target, String> {
    tasks::parse_user(text).map(Target::User)
}

/// Returns the target of a command line without `-p`, `-t` and `-u`.
pub(super) fn target_without_tasks(is_on_cpus: bool) -> Target {
    if is_on_cpus { Target::System } else { Target::Command }
}

/// Returns the meaning of two flags that exclude each other.
pub(super) fn restriction(kernel: bool, user: bool) -> Option<Only> {
    match (kernel, user) {
        (true, _) => Some(Only::Kernel),
        (false, true) => Some(Only::User),
        (false, false) => None,
    }
}

/// Returns the meaning of `-q` and `-v`.
pub(super) fn verbosity(is_quiet: bool, verbose: u8) -> Verbosity {
    match (is_quiet, verbose) {
        (true, _) => Verbosity::Quiet,
        (false, 0) => Verbosity::Normal,
        (false, _) => Verbosity::Verbose,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn sizes() {
        assert_eq!(size("10K"), Ok(10240));
        assert!(size("10").is_err());
    }

    #[test]
    fn delays() {
        assert_eq!(delay("0"), Ok(Delay::None));
        assert_eq!(delay("-1"), Ok(Delay::Off));
        assert_eq!(delay("500"), Ok(Delay::After(ms(500))));
        assert_eq!(
            delay("10-20,30-40"),
            Ok(Delay::Ranges(vec![(ms(10), ms(20)), (ms(30), ms(40))]))
        );
        for wrong in ["", "-2", "x", "20-10", "10-20,15-30", "10-20,20-30", "10-20,"] {
            assert!(delay(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times() {
        assert_eq!((milliseconds("0"), milliseconds("500")), (Ok(ms(0)), Ok(ms(500))));
        for wrong in ["", "-1", "1s"] {
            assert!(milliseconds(wrong).is_err(), "{wrong}");
        }
    }
}
