//! Weights of samples as whole numbers of limited size.

use crate::count::Count;
use crate::profile::Profile;

use super::timed::TimedSamples;

/// What one unit of the weights of an event's samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WeightUnit {
    /// A sample: all stand for the same period.
    Sample,
    /// This part of the period.
    Period(u64),
}

/// Weights of the samples of each event.
pub(super) struct EventWeights {
    /// By the number of the event; `None` if it has no samples.
    pub(super) units: Vec<Option<WeightUnit>>,
}

impl EventWeights {
    /// Returns the weights of all events: numbers of samples where all samples of an event have the
    /// same period, else periods in units that let the greatest fit in 32 bits.
    pub(super) fn of_events(profile: &Profile, samples: &TimedSamples<'_>) -> Self {
        let events = profile.events();
        let (mut periods, mut greatest) = (vec![None; events.len()], vec![0; events.len()]);
        for sample in &samples.all {
            let Count { samples, period } = samples.count(sample);
            let event = sample.event as usize;
            if let Some(slot) = greatest.get_mut(event) {
                *slot = period.max(*slot);
            }
            let Some(known) = periods.get_mut(event) else { continue };
            let each = period.checked_div(samples).filter(|each| each * samples == period);
            match known {
                None => *known = Some(each),
                Some(other) if *other != each => *known = Some(None),
                Some(_) => {}
            }
        }
        let units =
            periods.into_iter().zip(greatest).zip(events).map(|((period, greatest), event)| {
                match period {
                    None => None,
                    Some(Some(_)) => Some(WeightUnit::Sample),
                    Some(None) => {
                        // Microseconds of times.
                        let mut unit = if event.counts_time { 1000 } else { 1 };
                        while greatest / unit > i32::MAX.unsigned_abs().into() {
                            unit *= 1000;
                        }
                        Some(WeightUnit::Period(unit))
                    }
                }
            });
        Self { units: units.collect() }
    }
}

impl WeightUnit {
    /// Returns the weight of a sample; what is less than a unit is kept for the next one.
    pub(super) fn weight(self, count: Count, kept: &mut u64) -> i32 {
        let weight = match self {
            Self::Sample => count.samples,
            Self::Period(unit) => {
                let period = kept.saturating_add(count.period);
                *kept = period % unit;
                period / unit
            }
        };
        i32::try_from(weight).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_weights_is_off_by_less_than_a_unit() {
        let (unit, mut kept) = (WeightUnit::Period(1000), 0);
        let periods = [1500, 900, 100, 2499];
        let weights = periods.map(|period| unit.weight(Count { samples: 1, period }, &mut kept));
        assert_eq!((weights, kept), ([1, 1, 0, 2], 999));
        let count = Count { samples: 3, period: 7 };
        assert_eq!(WeightUnit::Sample.weight(count, &mut kept), 3);
    }
}
