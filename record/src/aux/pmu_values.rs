//! Values in sysfs of a PMU with AUX areas: `/sys/bus/event_source/devices/NAME`.

use std::fs;
use std::path::{Path, PathBuf};

/// Values of the PMU that decoders need; 0 if the machine lacks one, as in perf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PmuValues {
    /// Number of the PMU (`type`).
    pub number: u32,
    /// Mask of the term `tsc` in `config`.
    pub tsc: u64,
    /// Mask of the term `noretcomp`.
    pub noretcomp: u64,
    /// Mask of the term `mtc`.
    pub mtc: u64,
    /// Mask of the term `mtc_period`.
    pub mtc_period: u64,
    /// Mask of the term `cyc`.
    pub cyc: u64,
    /// Ratio of the TSC to the crystal clock: numerator and denominator.
    pub tsc_ctc: (u32, u32),
    pub max_nonturbo_ratio: u64,
    /// `caps/event_trace`.
    pub event_trace: u64,
    /// `caps/min_interval`.
    pub min_interval: u64,
}

impl PmuValues {
    /// Reads the values; `number` is the `type` in the attrs.
    pub(crate) fn read(sysfs: &Path, pmu: &str, number: u32) -> Self {
        let dir = Dir(sysfs.join("bus/event_source/devices").join(pmu));
        let bits =
            |term: &str| dir.text(&format!("format/{term}")).map_or(0, |text| config_bits(&text));
        let flag = |term: &str| 1u64.checked_shl(bits(term).trailing_zeros()).unwrap_or(0);
        Self {
            number,
            tsc: flag("tsc"),
            noretcomp: flag("noretcomp"),
            mtc: flag("mtc"),
            mtc_period: bits("mtc_period"),
            cyc: flag("cyc"),
            tsc_ctc: dir.text("tsc_art_ratio").and_then(|text| ratio(&text)).unwrap_or_default(),
            max_nonturbo_ratio: dir.number("max_nonturbo_ratio"),
            event_trace: dir.number("caps/event_trace"),
            min_interval: dir.number("caps/min_interval"),
        }
    }
}

/// Directory with small files.
struct Dir(PathBuf);

impl Dir {
    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(name)).ok().map(|text| text.trim().to_owned())
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// Parses `config:14-17,32` as a mask; 0 for terms of another field.
fn config_bits(format: &str) -> u64 {
    let Some(ranges) = format.strip_prefix("config:") else { return 0 };
    ranges
        .split(',')
        .filter_map(|range| {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let (low, high) = (bit(low)?, bit(high)?);
            (low <= high).then(|| u64::MAX << low & u64::MAX >> (63 - high))
        })
        .fold(0, |all, bits| all | bits)
}

fn bit(text: &str) -> Option<u32> {
    text.parse::<u32>().ok().filter(|bit| *bit < 64)
}

/// Parses a ratio such as `168:2`.
fn ratio(text: &str) -> Option<(u32, u32)> {
    let (numerator, denominator) = text.split_once(':')?;
    Some((numerator.parse().ok()?, denominator.parse().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the values of an Intel PT as sysfs describes it in `a_processor_s_trace`.
    pub(in crate::aux) fn intel_pt() -> PmuValues {
        PmuValues {
            number: 8,
            tsc: 1 << 10,
            noretcomp: 1 << 11,
            mtc: 1 << 9,
            mtc_period: 0xf << 14,
            cyc: 2,
            tsc_ctc: (168, 2),
            max_nonturbo_ratio: 24,
            event_trace: 1,
            min_interval: 0,
        }
    }

    #[test]
    fn bits_of_formats() {
        assert_eq!(config_bits("config:10"), 1 << 10);
        assert_eq!(config_bits("config:14-17"), 0xf << 14);
        assert_eq!(config_bits("config:0-7,32,63"), 0xff | 1 << 32 | 1 << 63);
        assert_eq!(
            (config_bits("config1:0-3"), config_bits("config:9-3"), config_bits("config:64")),
            (0, 0, 0)
        );
        assert_eq!(config_bits("config:0-63"), u64::MAX);
    }

    #[test]
    fn a_processor_s_trace() {
        let dir = tempfile::tempdir().unwrap();
        let pmu = dir.path().join("bus/event_source/devices/intel_pt");
        for (name, text) in [
            ("format/tsc", "config:10\n"),
            ("format/noretcomp", "config:11\n"),
            ("format/mtc", "config:9\n"),
            ("format/mtc_period", "config:14-17\n"),
            ("format/cyc", "config:1\n"),
            ("tsc_art_ratio", "168:2\n"),
            ("max_nonturbo_ratio", "24\n"),
            ("caps/event_trace", "1\n"),
        ] {
            fs::create_dir_all(pmu.join(name).parent().unwrap()).unwrap();
            fs::write(pmu.join(name), text).unwrap();
        }
        assert_eq!(PmuValues::read(dir.path(), "intel_pt", 8), intel_pt());
        assert_eq!(
            PmuValues::read(dir.path(), "other", 9),
            PmuValues { number: 9, ..PmuValues::default() }
        );
    }
}
