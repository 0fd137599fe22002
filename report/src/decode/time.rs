//! Times of traces: values of the hardware's counter, and nanoseconds of the perf clock.

use recrep_format::record::{TimeConv, TimeConvShort};

/// Conversion between the hardware's counter and the perf clock, as in perf_event_open(2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeConverter {
    shift: u32,
    mult: u64,
    zero: u64,
    /// The counter's value and mask, if it is narrower than 64 bits.
    narrow: Option<(u64, u64)>,
}

impl TimeConverter {
    /// Creates the conversion of a TIME_CONV record.
    pub(crate) fn of_record(record: &TimeConv) -> Self {
        let narrow = record
            .short
            .filter(|short| short.cap_user_time_short != 0)
            .map(|TimeConvShort { time_cycles, time_mask, .. }| (time_cycles, time_mask));
        Self { narrow, ..Self::of_words(record.time_shift, record.time_mult, record.time_zero) }
    }

    /// Creates a conversion from its three numbers.
    pub(crate) fn of_words(shift: u64, mult: u64, zero: u64) -> Self {
        Self { shift: u32::try_from(shift.min(63)).unwrap_or(0), mult, zero, narrow: None }
    }

    /// Returns whether times are known.
    pub(crate) fn is_known(&self) -> bool {
        self.mult != 0
    }

    /// Returns the ticks of the counter in so many nanoseconds; 0 if times are not known.
    pub(crate) fn ticks(&self, nanoseconds: u64) -> u64 {
        let (Some(whole), Some(rest)) =
            (nanoseconds.checked_div(self.mult), nanoseconds.checked_rem(self.mult))
        else {
            return 0;
        };
        let scaled = u128::from(rest) << self.shift;
        let rest = scaled.checked_div(self.mult.into()).unwrap_or(0);
        (whole << self.shift).wrapping_add(u64::try_from(rest).unwrap_or(0))
    }

    /// Returns the time of a value of the counter.
    pub(crate) fn time(&self, ticks: u64) -> u64 {
        let ticks = match self.narrow {
            Some((cycles, mask)) => cycles.wrapping_add(ticks.wrapping_sub(cycles) & mask),
            None => ticks,
        };
        let (whole, rest) = (ticks >> self.shift, ticks & ((1 << self.shift) - 1));
        let rest = rest.wrapping_mul(self.mult) >> self.shift;
        self.zero.wrapping_add(whole.wrapping_mul(self.mult)).wrapping_add(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let clock = TimeConverter::of_words(10, 512, 1000);
        assert_eq!([clock.time(0), clock.time(2), clock.time(2049)], [1000, 1001, 2024]);
        assert_eq!([clock.ticks(2), clock.ticks(511), clock.ticks(1025)], [4, 1022, 2050]);
        assert_eq!(TimeConverter::default().ticks(1), 0);
        assert!(clock.is_known() && !TimeConverter::default().is_known());
        let huge = TimeConverter::of_words(u64::MAX, u64::MAX, u64::MAX);
        huge.time(u64::MAX);
    }

    #[test]
    fn narrow_counters_wrap() {
        let short = TimeConvShort {
            time_cycles: 0x1_00f0,
            time_mask: 0xff,
            cap_user_time_zero: 1,
            cap_user_time_short: 1,
            reserved: [0; 6],
        };
        let record = TimeConv { time_shift: 0, time_mult: 1, time_zero: 0, short: Some(short) };
        let clock = TimeConverter::of_record(&record);
        assert_eq!([clock.time(0xf5), clock.time(0x05)], [0x1_00f5, 0x1_0105]);
    }
}
