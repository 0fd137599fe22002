//! Sampling rate: `sample_period`, or `sample_freq` with the flag `freq`.

use recrep_format::abi::AttrFlags;
use recrep_format::attr::Attr;

use super::notes::Notes;
use crate::event::sampling::Rate;
use crate::machine::Machine;
use crate::messages::error::{Error, Result};
use crate::plan::config::Config;

/// Default frequency, as in perf.
pub(crate) const DEFAULT_HZ: u64 = 4000;

/// A period in events, or a frequency in Hz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampling {
    Period(u64),
    Frequency(u64),
}

impl Sampling {
    pub(super) fn set(self, attr: &mut Attr) {
        let (number, freq) = match self {
            Self::Period(events) => (events, false),
            Self::Frequency(hz) => (hz, true),
        };
        attr.sample_period = number;
        attr.flags.set(AttrFlags::FREQ, freq);
    }
}

/// Rate of all events, and the kernel's limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Requested rate (`-F`, `-c`), or the default.
    all: Sampling,
    /// `true` if it was requested.
    asked: bool,
    most: u64,
    strict: bool,
}

impl Rates {
    pub(super) fn new(config: &Config, machine: &Machine, notes: &mut Notes) -> Result<Self> {
        let mut rates = Self {
            all: Sampling::Period(0),
            asked: config.rate != Rate::Default,
            most: machine.max_rate,
            strict: config.strict_freq,
        };
        rates.all = rates.sampling(config.rate, notes)?;
        Ok(rates)
    }

    /// Returns the rate of an event: `default_period` if it has one and no rate was requested.
    pub(super) fn of(&self, default_period: Option<u64>) -> Sampling {
        match default_period {
            Some(events) if !self.asked => Sampling::Period(events),
            _ => self.all,
        }
    }

    /// Converts a rate to the form of attrs, within the kernel's limit.
    pub(super) fn sampling(&self, rate: Rate, notes: &mut Notes) -> Result<Sampling> {
        let hz = match rate {
            Rate::Period(events) => return Ok(Sampling::Period(events)),
            Rate::Max => self.most,
            Rate::Hz(hz) => hz,
            Rate::Default => DEFAULT_HZ,
        };
        if hz > self.most {
            if self.strict && rate != Rate::Default {
                return Err(Error::Failed(format!(
                    "cannot sample at {hz} Hz (--strict-freq): kernel.perf_event_max_sample_rate \
                     allows {} Hz; raise it or lower -F",
                    self.most
                )));
            }
            notes.add(format!(
                "sampling at {} Hz instead of {hz} Hz, because of \
                 kernel.perf_event_max_sample_rate",
                self.most
            ));
        }
        Ok(Sampling::Frequency(hz.min(self.most)))
    }
}
