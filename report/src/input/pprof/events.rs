//! Events: the types of a profile's values.
//!
//! ```text
//!   rep's   samples/count, cpu-clock/nanoseconds      one event, cpu-clock: numbers of samples, and periods
//!   others  samples/count, cpu/nanoseconds            two events; the samples of cpu are those of the type before it
//! ```

use recrep_format::abi::{AttrFlags, BranchSampleType, EventType, SampleType, SwEvent};
use recrep_format::attr::{Attr, AttrEntry};

use super::decoded::Decoded;
use super::decoded::ProfileError;
use crate::pprof::{EventFacts, PprofSample};

/// Largest sum of the numbers of samples: several files are added up.
const MOST: u64 = 1 << 53;

/// Events of a profile.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) all: Vec<ProfileEvent>,
    /// Fields of the records of samples.
    pub(super) fields: SampleType,
}

/// An event.
#[derive(Debug)]
pub(super) struct ProfileEvent {
    pub(super) entry: AttrEntry,
    /// Place of its values among those of a sample, and how many units one is.
    value: usize,
    unit: u64,
    /// Place of the numbers of samples; `None` if a value is of one sample.
    count: Option<usize>,
    /// `true` if samples without a period count.
    has_empty: bool,
    pub(super) lost_samples: u64,
}

/// Number of samples, and the sum of their periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) samples: u64,
    pub(super) period: u64,
}

impl Measured {
    /// Adds another count.
    pub(super) fn add(&mut self, other: Self) -> Result<(), ProfileError> {
        let samples = self.samples.checked_add(other.samples).filter(|sum| *sum <= MOST);
        let period = self.period.checked_add(other.period).filter(|sum| *sum <= u64::MAX >> 1);
        match (samples, period) {
            (Some(samples), Some(period)) => *self = Self { samples, period },
            _ => return Err(ProfileError::TooLarge),
        }
        Ok(())
    }
}

/// Returns the number of nanoseconds in a unit of time.
fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "nanoseconds" | "nanosecond" | "ns" => 1,
        "microseconds" | "microsecond" | "us" => 1000,
        "milliseconds" | "millisecond" | "ms" => 1_000_000,
        "seconds" | "second" | "s" => 1_000_000_000,
        _ => return None,
    })
}

/// Returns the events of a profile.
pub(super) fn of(decoded: &Decoded<'_>) -> Result<Events, ProfileError> {
    let all = match &decoded.facts {
        Some(facts) => (0..)
            .zip(&facts.events)
            .map(|(number, event)| ProfileEvent {
                entry: entry(number, event),
                value: 2 * number + 1,
                unit: 1,
                count: Some(2 * number),
                has_empty: true,
                lost_samples: event.lost_samples,
            })
            .collect(),
        None => others(decoded)?,
    };
    let fields = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::STREAM_ID
        | SampleType::CPU
        | SampleType::PERIOD;
    let mut events = Events { all, fields };
    for ProfileEvent { entry: AttrEntry { attr, .. }, .. } in &mut events.all {
        attr.sample_type |= fields;
        if decoded.facts.is_none() {
            attr.sample_type |= SampleType::CALLCHAIN;
        }
    }
    Ok(events)
}

/// Returns the events of a profile that rep did not write: one for each type of values.
fn others(decoded: &Decoded<'_>) -> Result<Vec<ProfileEvent>, ProfileError> {
    let mut all: Vec<ProfileEvent> = Vec::with_capacity(decoded.types.len());
    let mut before = None;
    for (value, kind) in decoded.types.iter().enumerate() {
        let (name, unit) = (decoded.name(kind.name)?, decoded.name(kind.unit)?);
        let is_count = unit == "count";
        let time = nanoseconds(&unit);
        let is_sampled = decoded.period.0 == *kind;
        let event = EventFacts {
            name: if name.is_empty() { unit } else { name },
            kind: EventType::SOFTWARE.0,
            config: if time.is_some() { SwEvent::CPU_CLOCK.0 } else { SwEvent::DUMMY.0 },
            period: decoded.period.1.saturating_mul(time.unwrap_or(1)) * u64::from(is_sampled),
            ..EventFacts::default()
        };
        all.push(ProfileEvent {
            entry: entry(value, &event),
            value,
            unit: time.unwrap_or(1),
            count: if is_count { Some(value) } else { before },
            has_empty: false,
            lost_samples: 0,
        });
        before = is_count.then_some(value);
    }
    Ok(all)
}

/// Returns the attr of an event, with its name, and an id that is its number plus one.
fn entry(number: usize, event: &EventFacts) -> AttrEntry {
    let mut attr = Attr {
        size: u32::try_from(Attr::KNOWN_SIZE).unwrap_or(0),
        kind: EventType(event.kind),
        config: event.config,
        sample_period: event.frequency.unwrap_or(event.period),
        // Addresses of callers are within their calls; there are no copied stacks or frame pointers
        // to check them by.
        branch_sample_type: BranchSampleType::CALL_STACK,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_CALLCHAIN_USER,
        ..Attr::default()
    };
    attr.flags.set(AttrFlags::FREQ, event.frequency.is_some());
    attr.sample_type.set(SampleType::CALLCHAIN, event.callchains);
    AttrEntry { attr, ids: vec![number as u64 + 1], name: Some(event.name.clone()) }
}

impl ProfileEvent {
    /// Returns what a sample counts of the event; `None` if that is nothing.
    pub(super) fn count(&self, sample: &PprofSample) -> Result<Option<Measured>, ProfileError> {
        let value = |place: usize| {
            let value = sample.value.get(place).copied().unwrap_or(0);
            u64::try_from(value).map_err(|_| ProfileError::Negative)
        };
        let period = value(self.value)?.checked_mul(self.unit).ok_or(ProfileError::TooLarge)?;
        let samples = self.count.map_or(Ok(1), value)?;
        let is_any = period > 0 || self.has_empty && samples > 0;
        Ok(is_any.then(|| Measured { samples: samples.max(1), period }))
    }
}
