//! How often to sample: `sample_period`, or `sample_freq` and the flag that says so.

use recrep_format::abi::AttrFlags;
use recrep_format::attr::Attr;

use super::notes::Notes;
use crate::event::sampling::Rate;
use crate::machine::Machine;
use crate::messages::error::{Error, Result};
use crate::plan::config::Config;

/// perf's default rate.
pub const DEFAULT_HZ: u64 = 4000;

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

/// The rate of all events, and what the kernel allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// What was asked for (`-F`, `-c`), or the default.
    all: Sampling,
    /// Whether it was asked for.
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

    /// The rate of an event that has a period of its own where nothing is asked for.
    pub(super) fn of(&self, default_period: Option<u64>) -> Sampling {
        match default_period {
            Some(events) if !self.asked => Sampling::Period(events),
            _ => self.all,
        }
    }

    /// A rate as attrs have it, within what the kernel allows.
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
                    "cannot sample at {hz} Hz (--strict-freq): kernel.perf_event_max_sample_rate allows {} Hz; raise it, or ask \
                     for less with -F",
                    self.most
                )));
            }
            notes.add(format!(
                "sampling at {} Hz instead of {hz} Hz, which is all that kernel.perf_event_max_sample_rate allows",
                self.most
            ));
        }
        Ok(Sampling::Frequency(hz.min(self.most)))
    }
}
