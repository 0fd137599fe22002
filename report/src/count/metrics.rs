//! Metrics of table rows, and the numbers computed from them.
//!
//! A row has a self count and a children count, which includes what it called. Only the self count
//! has parts. If children are not counted, the two counts are equal.

use recrep_format::abi::CpuMode;

use crate::count::{Count, Sum};
use crate::query::{Field, Key, Meta, Number};

/// Metrics of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Self: samples taken in the row itself.
    pub count: Count,
    /// Children: samples with the row anywhere in their callchains.
    pub all: Count,
    /// Length of the longest callchain below the row; 0 if children are not counted.
    pub depth: usize,
    /// Stored apart: a table of addresses has millions of rows.
    pub parts: Option<Box<Parts>>,
}

/// Parts of a row's self count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Periods by CPU mode: kernel, user, guest kernel, guest user.
    pub levels: [u64; 4],
    /// Sums of the three parts of the samples' weights.
    pub weights: [u64; 3],
}

impl Metrics {
    /// Creates the metrics of a count; with parts if the row's key is given, which must have the
    /// words for them.
    pub fn of(count: Count, key: Option<&Key>) -> Self {
        let parts = key.map(|key| Box::new(Parts::of(count, key)));
        Self { count, all: count, depth: 0, parts }
    }

    /// Returns a number of the row: a percentage of `total` (the event's period), a mean or a sum.
    pub fn value(&self, number: Number, total: u64) -> MetricValue {
        let Parts { levels, weights } = self.parts.as_deref().copied().unwrap_or_default();
        let [sys, us, guest_sys, guest_us] = levels;
        let [weight1, weight2, weight3] = weights;
        let percent = |part: u64| MetricValue::Percent(share(part, total));
        let mean = |sum: u64| MetricValue::Whole(sum.checked_div(self.count.samples).unwrap_or(0));
        match number {
            Number::Overhead => percent(self.count.period),
            Number::Children => percent(self.all.period),
            Number::OverheadSys => percent(sys),
            Number::OverheadUs => percent(us),
            Number::OverheadGuestSys => percent(guest_sys),
            Number::OverheadGuestUs => percent(guest_us),
            Number::Samples => MetricValue::Whole(self.count.samples),
            Number::Period => MetricValue::Whole(self.count.period),
            Number::Seconds => MetricValue::Seconds(self.count.period),
            Number::ChildrenSeconds => MetricValue::Seconds(self.all.period),
            Number::Weight1 => mean(weight1),
            Number::Weight2 => mean(weight2),
            Number::Weight3 => mean(weight3),
        }
    }
}

impl Parts {
    fn of(count: Count, key: &Key) -> Self {
        let mode = CpuMode::of(u16::from(Meta::unpack(Field::Meta.of(key)).at.cpu_mode));
        let levels = [CpuMode::Kernel, CpuMode::User, CpuMode::GuestKernel, CpuMode::GuestUser];
        let levels = levels.map(|level| if level == mode { count.period } else { 0 });
        let latency = Field::Latency.of(key);
        let each = [Field::Weight.of(key), latency & 0xffff, latency >> 16];
        Self { levels, weights: each.map(|weight| weight.wrapping_mul(count.samples)) }
    }
}

impl Sum for Metrics {
    #[inline]
    fn add(&mut self, other: &Self) {
        self.count.add(other.count);
        self.all.add(other.all);
        self.depth = self.depth.max(other.depth);
        if let Some(other) = &other.parts {
            let own = self.parts.get_or_insert_default();
            let parts = own
                .levels
                .iter_mut()
                .zip(&other.levels)
                .chain(own.weights.iter_mut().zip(&other.weights));
            parts.for_each(|(into, from)| *into = into.wrapping_add(*from));
        }
    }
}

/// Returns `part` as a percentage of `whole`; 0 if `whole` is 0.
#[allow(clippy::cast_precision_loss, reason = "two decimals are shown")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Returns a percentage rounded to two decimals, as data has it.
pub(crate) fn rounded(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}

/// Number in a table.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum MetricValue {
    Percent(f64),
    Whole(u64),
    /// Nanoseconds, shown in seconds.
    Seconds(u64),
}

impl MetricValue {
    /// Returns a percentage as it is printed.
    pub(crate) fn percent(self) -> Option<f64> {
        match self {
            Self::Percent(percent) => Some(rounded(percent)),
            Self::Whole(_) | Self::Seconds(_) => None,
        }
    }
}

impl std::fmt::Display for MetricValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent:.2}%"),
            Self::Whole(number) => number.fmt(f),
            Self::Seconds(nanoseconds) => {
                let micros = nanoseconds.saturating_add(500) / 1000;
                write!(f, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)
            }
        }
    }
}

impl serde::Serialize for MetricValue {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Percent(percent) => serializer.serialize_f64(rounded(*percent)),
            Self::Whole(number) | Self::Seconds(number) => serializer.serialize_u64(*number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_and_without_children_add_up() {
        let count = |samples| Count { samples, period: 10 * samples };
        let with_children = Metrics { count: count(2), all: count(5), depth: 3, parts: None };
        let all = [Metrics::of(count(1), None), with_children, Metrics::of(count(4), None)];
        let sum = |order: [usize; 3]| {
            let mut sum = Metrics::default();
            order.iter().for_each(|one| sum.add(&all[*one]));
            (sum.count, sum.all, sum.depth)
        };
        assert_eq!(sum([0, 1, 2]), (count(7), count(10), 3));
        assert_eq!(sum([0, 1, 2]), sum([1, 2, 0]));
    }

    #[test]
    fn weights_are_means_and_cpu_modes_are_percentages() {
        let count = Count { samples: 4, period: 50 };
        let all = Count { samples: 5, period: 100 };
        let parts = Parts { levels: [10, 40, 0, 0], weights: [10, 8, 0] };
        let metrics = Metrics { count, all, depth: 0, parts: Some(Box::new(parts)) };
        let text = |number: Number| metrics.value(number, 200).to_string();
        assert_eq!(text(Number::OverheadSys), "5.00%");
        assert_eq!([text(Number::OverheadUs), text(Number::Children)], ["20.00%", "50.00%"]);
        assert_eq!(
            [text(Number::Weight1), text(Number::Weight2), text(Number::Samples)],
            ["2", "2", "4"]
        );
    }
}
