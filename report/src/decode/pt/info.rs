//! What AUXTRACE_INFO says of a trace of Intel PT.

use recrep_trace::pt::ClockRates;

use crate::decode::time::TimeConverter;

/// Settings of a trace, and its clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct PtInfo {
    pub rates: ClockRates,
    /// The trace has times that can be converted.
    pub has_times: bool,
    converter: TimeConverter,
}

impl PtInfo {
    /// Takes the words of AUXTRACE_INFO, and the config of the traced event.
    pub(super) fn of_words(words: &[u64], config: u64, is_untimed: bool) -> Self {
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let low = |at: usize| u32::try_from(word(at)).unwrap_or(0);
        let [shift, mult, zero, has_zero, tsc_bit] = [1, 2, 3, 4, 5].map(word);
        let (mtc_bit, frequency) = (word(10), word(11));
        let has_steps = config & mtc_bit != 0 && frequency != 0;
        let steps = (config & frequency).checked_shr(frequency.trailing_zeros()).unwrap_or(0);
        let mtc_shift = if has_steps { u32::try_from(steps).unwrap_or(0).min(15) } else { 0 };
        let rates = ClockRates { mtc_shift, tsc: low(12), crystal: low(13), non_turbo: low(15) };
        let converter = TimeConverter::of_words(shift, mult, zero);
        let has_times =
            !is_untimed && has_zero != 0 && config & tsc_bit != 0 && converter.is_known();
        Self { rates, has_times, converter }
    }

    /// Returns the time of a time stamp; 0 without times.
    pub(super) fn time(&self, tsc: u64) -> u64 {
        if self.has_times { self.converter.time(tsc) } else { 0 }
    }
}
