//! Parsers for the values of flags: numbers, sizes, times, clocks, delays. Errors are messages that
//! name the flag.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::event::sampling::Rate;
use crate::plan::config::{Control, Delay, Mask, RingSize, Split, Switch, Synth};
use crate::tasks;

/// `-F`.
pub(super) fn hertz(text: &str) -> Result<Rate, String> {
    match text {
        _ if text.eq_ignore_ascii_case("max") => Ok(Rate::Max),
        _ => positive(text)
            .map(Rate::Hz)
            .ok_or_else(|| format!("-F: '{text}' is not a number of samples per second, or 'max'")),
    }
}

/// `-c`.
pub(super) fn period(text: &str) -> Result<Rate, String> {
    positive(text)
        .map(Rate::Period)
        .ok_or_else(|| format!("-c: '{text}' is not a number of events"))
}

fn positive(text: &str) -> Option<u64> {
    within(text, 1..=(1 << 63) - 1)
}

fn within<T: FromStr + PartialOrd>(text: &str, range: RangeInclusive<T>) -> Option<T> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// `-m DATA[,AUX]`.
pub(super) fn rings(text: &str) -> Result<(Option<RingSize>, Option<RingSize>), String> {
    let wrong =
        || format!("-m: '{text}' is neither a number of pages nor a size in bytes with K, M or G");
    let (data, aux) = text.split_once(',').map_or((text, None), |(data, aux)| (data, Some(aux)));
    let size = |text: &str| ring_size(text).ok_or_else(wrong);
    let data = if data.is_empty() && aux.is_some() { None } else { Some(size(data)?) };
    Ok((data, aux.map(size).transpose()?))
}

fn ring_size(text: &str) -> Option<RingSize> {
    match bytes(text) {
        Some(bytes) => Some(RingSize::Bytes(bytes)),
        None => text.parse().ok().filter(|n| *n > 0).map(RingSize::Pages),
    }
}

/// Parses a number with B, K, M or G.
fn bytes(text: &str) -> Option<u64> {
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

/// `--max-size` and `--queue-size`: bytes; the unit is needed, as with perf record.
pub(super) fn size(flag: &str, text: &str) -> Result<u64, String> {
    bytes(text)
        .ok_or_else(|| format!("{flag}: '{text}' is not a number of bytes with B, K, M or G"))
}

/// `--mmap-flush`: bytes.
pub(super) fn flush(text: &str) -> Result<RingSize, String> {
    let size = bytes(text).or_else(|| text.parse().ok().filter(|n| *n > 0));
    size.map(RingSize::Bytes)
        .ok_or_else(|| format!("--mmap-flush: '{text}' is not a number of bytes"))
}

/// `--switch-output`.
pub(super) fn switch(text: &str) -> Result<Switch, String> {
    if text == "signal" {
        return Ok(Switch::Signal);
    }
    // Sizes have upper-case units: 1M is a size, 1m is a minute.
    let size = bytes(text).filter(|_| text.ends_with(|c: char| c.is_ascii_uppercase()));
    size.map(Switch::Size).or_else(|| interval(text).map(Switch::Time)).ok_or_else(|| {
        format!(
            "--switch-output: '{text}' is not 'signal', a size with B, K, M or G, or a time with \
             s, m, h or d"
        )
    })
}

/// Parses a number with s, m, h or d.
fn interval(text: &str) -> Option<Duration> {
    let unit = match text.as_bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 60 * 60,
        b'd' => 24 * 60 * 60,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    number.checked_mul(unit).filter(|n| *n > 0).map(Duration::from_secs)
}

/// `--max-samples`.
pub(super) fn max_samples(text: &str) -> Result<u64, String> {
    positive(text).ok_or_else(|| format!("--max-samples: '{text}' is not a number of samples"))
}

/// `--switch-max-files`.
pub(super) fn max_files(text: &str) -> Result<usize, String> {
    within(text, 1..=usize::MAX)
        .ok_or_else(|| format!("--switch-max-files: '{text}' is not a number of files"))
}

/// `-z`.
pub(super) fn compression(text: &str) -> Result<i32, String> {
    within(if text.is_empty() { "1" } else { text }, 1..=22)
        .ok_or_else(|| format!("-z: '{text}' is not a compression level from 1 to 22"))
}

/// `--proc-map-timeout`: milliseconds.
pub(super) fn map_timeout(text: &str) -> Result<Duration, String> {
    let ms = text
        .parse::<u32>()
        .map_err(|_| format!("--proc-map-timeout: '{text}' is not a number of milliseconds"))?;
    Ok(Duration::from_millis(ms.into()))
}

/// `--nice`.
pub(super) fn niceness(text: &str) -> Result<i32, String> {
    within(text, -20..=19).ok_or_else(|| format!("--nice: '{text}' is not a niceness, -20 to 19"))
}

/// `-r`.
pub(super) fn priority(text: &str) -> Result<u32, String> {
    within(text, 1..=99)
        .ok_or_else(|| format!("-r: '{text}' is not a SCHED_FIFO priority from 1 to 99"))
}

/// `--max-stack`.
pub(super) fn max_stack(text: &str) -> Result<u16, String> {
    within(text, 1..=u16::MAX)
        .ok_or_else(|| format!("--max-stack: '{text}' is not a number of frames"))
}

/// `--threads`: the unit that gets a thread (cpu, core, package, numa), or masks (CPUs of the
/// rings/CPUs to run on).
pub(super) fn threads(text: &str) -> Result<Split, String> {
    match text {
        "cpu" => return Ok(Split::Cpu),
        "core" => return Ok(Split::Core),
        "package" => return Ok(Split::Package),
        "numa" => return Ok(Split::Numa),
        _ => {}
    }
    let mask = |text: &str| {
        let (cpus, affinity) = text.split_once('/')?;
        Some(Mask {
            cpus: tasks::parse_cpus(cpus).ok()?,
            affinity: tasks::parse_cpus(affinity).ok()?,
        })
    };
    let masks: Option<Vec<Mask>> = text.split(':').map(mask).collect();
    let masks = masks.ok_or_else(|| {
        format!(
            "--threads: '{text}' is none of cpu, core, package and numa, nor a list of CPU \
                 masks (0,2/0:1,3/1)"
        )
    })?;
    let disjoint = |cpus: fn(&Mask) -> &Vec<u32>| {
        let mut all: Vec<u32> = masks.iter().flat_map(|mask| cpus(mask).clone()).collect();
        all.sort_unstable();
        all.windows(2).all(|pair| pair.first() != pair.last())
    };
    if disjoint(|mask| &mask.cpus) && disjoint(|mask| &mask.affinity) {
        Ok(Split::Masks(masks))
    } else {
        Err(format!(
            "--threads: '{text}' has a CPU in two masks; name each CPU's ring in one mask only"
        ))
    }
}

/// `--aux-sample`.
pub(super) fn aux_sample(text: &str) -> Result<u32, String> {
    /// A record has at most 64 KiB; this leaves room for the sample's other fields.
    const MOST: u32 = 60 << 10;
    match text {
        "" => Ok(4096),
        _ => unsigned(text)
            .and_then(|n| u32::try_from(n).ok())
            .filter(|n| (1..=MOST).contains(n))
            .ok_or_else(|| {
                format!("--aux-sample: '{text}' is not a number of bytes from 1 to {MOST}")
            }),
    }
}

/// `-S`, with perf's options: `e` for a snapshot at the end, and a size.
pub(super) fn snapshot(text: &str) -> Result<String, String> {
    let size = text.strip_prefix('e').unwrap_or(text);
    let valid = size.is_empty() || unsigned(size).is_some();
    valid.then(|| text.to_owned()).ok_or_else(|| {
        format!("-S: '{text}' is not a size in bytes, optionally after an e (snapshot at the end)")
    })
}

/// Parses a decimal number, or a hexadecimal one after `0x`.
fn unsigned(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `-k`: a clock number (clock_gettime(2)), or a clock name with or without `CLOCK_`.
pub(super) fn clock(text: &str) -> Result<i32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let upper = text.to_ascii_uppercase();
    match upper.strip_prefix("CLOCK_").unwrap_or(&upper) {
        "REALTIME" | "REAL" => Ok(0),
        "MONOTONIC" | "MONO" => Ok(1),
        "MONOTONIC_RAW" | "RAW" => Ok(4),
        "BOOTTIME" | "BOOT" => Ok(7),
        "TAI" => Ok(11),
        _ => Err(format!(
            "-k: unknown clock '{text}'; use mono, raw, real, boot, tai, or a clock number"
        )),
    }
}

/// `-D`: milliseconds, `-1`, or ranges of milliseconds.
pub(super) fn delay(text: &str) -> Result<Delay, String> {
    let wrong = || {
        format!(
            "-D: '{text}' is neither a number of milliseconds, nor -1, nor ascending ranges of \
             them (10-20,30-40)"
        )
    };
    match text {
        "-1" => return Ok(Delay::Off),
        "0" => return Ok(Delay::None),
        _ => {}
    }
    if let Ok(ms) = text.parse::<u32>() {
        return Ok(Delay::After(Duration::from_millis(ms.into())));
    }
    let mut ranges: Vec<(Duration, Duration)> = Vec::new();
    for range in text.split(',') {
        let (from, to) = range.split_once('-').ok_or_else(wrong)?;
        let ms =
            |text: &str| text.trim().parse::<u32>().ok().map(|ms| Duration::from_millis(ms.into()));
        let (from, to) = ms(from).zip(ms(to)).filter(|(from, to)| from < to).ok_or_else(wrong)?;
        if ranges.last().is_some_and(|(_, before)| from <= *before) {
            return Err(wrong());
        }
        ranges.push((from, to));
    }
    Ok(Delay::Ranges(ranges))
}

/// `--control`.
pub(super) fn control(text: &str) -> Result<Control, String> {
    let wrong = || format!("--control: '{text}' is neither fd:CTL[,ACK] nor fifo:CTL[,ACK]");
    let (kind, where_) = text.split_once(':').ok_or_else(wrong)?;
    let (commands, acks) =
        where_.split_once(',').map_or((where_, None), |(ctl, ack)| (ctl, Some(ack)));
    let acks = acks.filter(|ack| !ack.is_empty());
    match kind {
        "fd" => {
            let fd = |text: &str| text.parse().ok().filter(|fd| *fd >= 0).ok_or_else(wrong);
            Ok(Control::Fd { commands: fd(commands)?, acks: acks.map(fd).transpose()? })
        }
        "fifo" if !commands.is_empty() => {
            Ok(Control::Fifo { commands: commands.into(), acks: acks.map(PathBuf::from) })
        }
        _ => Err(wrong()),
    }
}

/// `--synth`.
pub(super) fn synth(text: &str) -> Result<Synth, String> {
    let mut all = Synth { task: false, mmap: false, cgroup: false };
    for word in text.split(',') {
        match word.to_ascii_lowercase().as_str() {
            "no" | "none" => return Ok(Synth { task: false, mmap: false, cgroup: false }),
            "all" => return Ok(Synth::default()),
            "task" => all.task = true,
            "mmap" => (all.task, all.mmap) = (true, true),
            "cgroup" => all.cgroup = true,
            _ => {
                return Err(format!("--synth: '{word}' is not one of no, all, task, mmap, cgroup"));
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn sizes() {
        assert_eq!(rings("2"), Ok((Some(RingSize::Pages(2)), None)));
        assert_eq!(rings("1M"), Ok((Some(RingSize::Bytes(1 << 20)), None)));
        assert_eq!(rings("8,16"), Ok((Some(RingSize::Pages(8)), Some(RingSize::Pages(16)))));
        assert_eq!(rings(",4M"), Ok((None, Some(RingSize::Bytes(4 << 20)))));
        for wrong in ["", "0", ",", "x", "1,x", "1T", "8,"] {
            assert!(rings(wrong).is_err(), "{wrong}");
        }
        assert_eq!(size("--max-size", "10K"), Ok(10240));
        assert!(size("--max-size", "10").is_err());
        assert_eq!(flush("10"), Ok(RingSize::Bytes(10)));
        assert_eq!(flush("4K"), Ok(RingSize::Bytes(4096)));
        assert!(flush("0").is_err());
    }

    #[test]
    fn when_to_switch() {
        assert_eq!(switch("signal"), Ok(Switch::Signal));
        assert_eq!(switch("1M"), Ok(Switch::Size(1 << 20)));
        assert_eq!(switch("1m"), Ok(Switch::Time(Duration::from_secs(60))));
        assert_eq!(switch("2d"), Ok(Switch::Time(Duration::from_secs(172_800))));
        for wrong in ["", "0s", "1", "M", "1k", "1x"] {
            assert!(switch(wrong).is_err(), "{wrong}");
        }
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
    fn who_steers() {
        assert_eq!(control("fd:3"), Ok(Control::Fd { commands: 3, acks: None }));
        assert_eq!(control("fd:3,4"), Ok(Control::Fd { commands: 3, acks: Some(4) }));
        assert_eq!(
            control("fifo:a,b"),
            Ok(Control::Fifo { commands: "a".into(), acks: Some("b".into()) })
        );
        for wrong in ["", "3", "fd:", "fd:x", "fd:-1", "fifo:", "fifo:,b", "pipe:a"] {
            assert!(control(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn clocks() {
        for (text, number) in [
            ("mono", 1),
            ("CLOCK_MONOTONIC_RAW", 4),
            ("raw", 4),
            ("real", 0),
            ("boot", 7),
            ("tai", 11),
            ("3", 3),
        ] {
            assert_eq!(clock(text), Ok(number), "{text}");
        }
        assert!(clock("wall").is_err());
    }

    #[test]
    fn what_is_synthesized() {
        let of = |task, mmap, cgroup| Ok(Synth { task, mmap, cgroup });
        assert_eq!(synth("no"), of(false, false, false));
        assert_eq!(synth("all"), of(true, true, true));
        assert_eq!(synth("task"), of(true, false, false));
        assert_eq!(synth("mmap,cgroup"), of(true, true, true));
        assert_eq!(synth("cgroup"), of(false, false, true));
        assert!(synth("tasks").is_err());
    }

    #[test]
    fn who_drains() {
        assert_eq!((threads("cpu"), threads("numa")), (Ok(Split::Cpu), Ok(Split::Numa)));
        let mask = |cpus: &[u32], affinity: &[u32]| Mask {
            cpus: cpus.to_vec(),
            affinity: affinity.to_vec(),
        };
        assert_eq!(
            threads("0,2-3/2:1/0"),
            Ok(Split::Masks(vec![mask(&[0, 2, 3], &[2]), mask(&[1], &[0])]))
        );
        for wrong in ["", "cpus", "0", "0/", "/0", "0/0:", "0/1:0/2", "0/1:2/1"] {
            assert!(threads(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn small_numbers() {
        assert_eq!((map_timeout("0"), map_timeout("500")), (Ok(ms(0)), Ok(ms(500))));
        assert!(
            map_timeout("").is_err() && map_timeout("-1").is_err() && map_timeout("1s").is_err()
        );
        assert_eq!((compression(""), compression("22")), (Ok(1), Ok(22)));
        assert!(compression("0").is_err() && compression("23").is_err());
        assert!(priority("0").is_err() && priority("99").is_ok() && priority("100").is_err());
        assert_eq!((aux_sample(""), aux_sample("0x100")), (Ok(4096), Ok(256)));
        assert!(aux_sample("0").is_err() && aux_sample("61441").is_err());
        assert!(
            snapshot("e").is_ok()
                && snapshot("e0x1000").is_ok()
                && snapshot("").is_ok()
                && snapshot("x").is_err()
        );
        assert!(max_stack("0").is_err() && max_stack("127").is_ok());
    }
}
