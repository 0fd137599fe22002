//! What was asked of AUX areas, as sizes and attrs. Pure.
//!
//! Sizes are perf's: 4 MiB an area for those who may lock so much, else 128 KiB; at least two pages, one where it is
//! overwritten. A snapshot is the whole area unless `-S` says less; an area is as large as the snapshot unless `-m ,SIZE` says
//! more.

use recrep_format::abi::{AttrFlags, SampleType};
use recrep_format::attr::Attr;

use super::kind::Kind;
use crate::config::{Config, RingSize};
use crate::error::{Error, Result};
use crate::machine::Machine;

/// How areas are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All trace goes into the file.
    Full,
    /// Areas are overwritten, and their last bytes written at a signal (`-S`).
    Snapshot {
        /// So many bytes of each area at most.
        size: usize,
        /// Also at the end (`-Se`).
        at_end: bool,
    },
    /// Areas are overwritten, and samples carry pieces of them (`--aux-sample`).
    Sample,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How areas are used.
    pub mode: Mode,
    /// The size of each area in pages: a power of two.
    pub pages: usize,
}

const UNPRIVILEGED: u64 = 128 << 10;
const MOST: u64 = 1 << 40;

impl Settings {
    /// For events of these PMUs that have AUX areas, of which some member of a group may ask for samples of them
    /// (`aux-sample-size=`). `None` where there is no such event.
    ///
    /// # Errors
    /// Two PMUs; what is asked of AUX areas where there are none; sizes that do not fit.
    pub fn of(config: &Config, machine: &Machine, pmus: &[&str], sample: Option<u32>) -> Result<Option<Self>> {
        let sample = config.aux.sample.or(sample).filter(|size| *size > 0);
        let snapshot = config.aux.snapshot.as_deref();
        let Some((pmu, others)) = pmus.split_first() else {
            return no_area(config, sample).map_or(Ok(None), |what| Err(Error::Usage(format!(
                "{what} needs an event whose PMU has an AUX area, as intel_pt// or arm_spe_0//; none of these events has one"
            ))));
        };
        if let Some(other) = others.iter().find(|other| *other != pmu) {
            return Err(Error::Usage(format!(
                "cannot record the AUX areas of {pmu} and {other} at once: a ring has one area; record one after the other"
            )));
        }
        if snapshot.is_some() && sample.is_some() {
            return Err(Error::Usage(
                "-S and --aux-sample cannot be used together: both decide what is kept".to_owned(),
            ));
        }
        let kind = Kind::of(pmu);
        let page = machine.page_size as u64;
        let wanted = snapshot.map(snapshot_size).transpose()?;
        let asked = match config.rings.aux {
            Some(RingSize::Pages(pages)) => Some(pages.saturating_mul(page)),
            Some(RingSize::Bytes(bytes)) => Some(bytes),
            None => None,
        };
        let needed = wanted.and_then(|(size, _)| size).or(sample.map(u64::from));
        let default = if may_lock(machine) { kind.map_or(4 << 20, Kind::default_size) } else { UNPRIVILEGED };
        let overwritten = snapshot.is_some() || sample.is_some();
        let least = if overwritten { page } else { 2 * page };
        let bytes =
            asked.or(needed.filter(|_| overwritten)).unwrap_or(default).max(if asked.is_none() { least } else { 0 });
        let size = bytes.checked_next_multiple_of(page).map(u64::next_power_of_two).filter(|size| *size <= MOST);
        let size = size.ok_or_else(|| Error::Usage(format!("-m ,{bytes}: an AUX area cannot be that large")))?;
        if size < least {
            return Err(Error::Usage(format!("-m ,SIZE: an AUX area of {size} bytes is too small; it needs {least}")));
        }
        if let Some(needed) = needed.filter(|needed| *needed > size) {
            return Err(Error::Usage(format!(
                "an AUX area of {size} bytes (-m ,SIZE) has no place for snapshots or samples of {needed} bytes"
            )));
        }
        let too_large = |_| Error::Usage(format!("-m ,{size}: more than this machine can address"));
        let mode = match wanted {
            Some((wanted, at_end)) => {
                Mode::Snapshot { size: usize::try_from(wanted.unwrap_or(size)).map_err(too_large)?, at_end }
            }
            None if sample.is_some() => Mode::Sample,
            None => Mode::Full,
        };
        Ok(Some(Self { mode, pages: usize::try_from(size / page).map_err(too_large)? }))
    }

    /// Changes the attr of an event with an AUX area: what it counts has no rate, and rec is woken at a quarter of the area.
    pub fn apply(&self, attr: &mut Attr, machine: &Machine) {
        attr.sample_period = 1;
        attr.flags -= AttrFlags::FREQ;
        attr.sample_type -= SampleType::PERIOD | SampleType::CALLCHAIN | SampleType::BRANCH_STACK;
        if self.mode == Mode::Full {
            let quarter = self.pages.saturating_mul(machine.page_size) / 4;
            attr.aux_watermark = u32::try_from(quarter).unwrap_or(u32::MAX);
        }
    }

    /// Whether the kernel overwrites what is oldest.
    #[must_use]
    pub fn is_overwritten(&self) -> bool {
        self.mode != Mode::Full
    }
}

/// What is asked for that only an AUX area can give.
fn no_area(config: &Config, sample: Option<u32>) -> Option<&'static str> {
    let asked = [
        (config.aux.snapshot.is_some(), "-S"),
        (sample.is_some(), "--aux-sample"),
        (config.rings.aux.is_some(), "the size after the comma of -m"),
    ];
    asked.into_iter().find_map(|(asked, what)| asked.then_some(what))
}

/// Whether the kernel's budget for locked memory binds this user.
fn may_lock(machine: &Machine) -> bool {
    machine.privileged || machine.paranoid < 0
}

/// `[e][SIZE]`: a size if one is given, and whether there is a snapshot at the end.
fn snapshot_size(text: &str) -> Result<(Option<u64>, bool)> {
    let (size, at_end) = text.strip_prefix('e').map_or((text, false), |rest| (rest, true));
    let number = match size.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => size.parse().ok(),
    };
    match (size, number) {
        ("", _) => Ok((None, at_end)),
        (_, Some(number)) => Ok((Some(number).filter(|number| *number > 0), at_end)),
        (_, None) => Err(Error::Usage(format!("-S: '{text}' is not a size in bytes, with or without an e before it"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, machine: &Machine, pmus: &[&str]) -> Result<Option<Settings>> {
        let args = ["rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
        Settings::of(&crate::args::parse(args).unwrap(), machine, pmus, None)
    }

    fn root() -> Machine {
        Machine { privileged: true, ..Machine::default() }
    }

    #[test]
    fn sizes_by_who_asks_for_what() {
        let pages = |line, machine: &Machine| of(line, machine, &["intel_pt"]).unwrap().unwrap().pages;
        assert_eq!((pages("x", &root()), pages("x", &Machine::default())), (1024, 32));
        assert_eq!((pages("-m ,64K x", &root()), pages("-m ,5 x", &root())), (16, 8));
        assert_eq!(of("x", &root(), &["hisi_ptt0_0"]).unwrap().unwrap().pages, 4096);
        let mode = |line| of(line, &root(), &["intel_pt"]).unwrap().unwrap().mode;
        assert_eq!(mode("x"), Mode::Full);
        assert_eq!(mode("-S x"), Mode::Snapshot { size: 4 << 20, at_end: false });
        assert_eq!(mode("-Se0x1000 x"), Mode::Snapshot { size: 4096, at_end: true });
        assert_eq!((pages("-Se0x1001 x", &root()), pages("-S -m ,1M x", &root())), (2, 256));
        assert_eq!(mode("--aux-sample=100 x"), Mode::Sample);
    }

    #[test]
    fn what_does_not_fit() {
        let refused = |line, pmus: &[&str]| of(line, &root(), pmus).unwrap_err().to_string();
        for line in ["-S x", "--aux-sample x", "-m ,8 x"] {
            assert!(refused(line, &[]).contains("needs an event whose PMU has an AUX area"), "{line}");
        }
        assert_eq!(of("-m 8 x", &root(), &[]).unwrap(), None);
        assert!(refused("x", &["intel_pt", "intel_bts"]).contains("intel_pt and intel_bts"));
        assert!(refused("-m ,1 x", &["intel_pt"]).contains("too small"));
        assert!(refused("-S8192 -m ,1 x", &["intel_pt"]).contains("no place"));
        assert!(of("x", &root(), &["intel_pt", "intel_pt"]).is_ok());
    }

    #[test]
    fn attrs_of_aux_events() {
        let mut attr = Attr { sample_period: 4000, flags: AttrFlags::FREQ, ..Attr::default() };
        attr.sample_type = SampleType::PERIOD | SampleType::TIME | SampleType::CALLCHAIN;
        of("-m ,64K x", &root(), &["intel_pt"]).unwrap().unwrap().apply(&mut attr, &root());
        assert_eq!((attr.sample_period, attr.frequency(), attr.aux_watermark), (1, None, 16 << 10));
        assert_eq!(attr.sample_type, SampleType::TIME);
        let mut attr = Attr::default();
        of("-S x", &root(), &["intel_pt"]).unwrap().unwrap().apply(&mut attr, &root());
        assert_eq!(attr.aux_watermark, 0);
    }
}
