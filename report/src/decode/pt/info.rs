//! What AUXTRACE_INFO says of a trace of Intel PT.

use recrep_trace::pt::{ClockRates, CycleSource};

use crate::decode::time::TimeConverter;

/// Bit of the config: cycles.
const CYCLES: u64 = 1 << 1;
/// Bits of the config: so many cycles must pass until they are told.
const CYCLE_THRESHOLD: u64 = 0xf << 19;
/// Bit of the config: power events.
const POWER: u64 = 1 << 4;
/// Bit of the config: events of the flow of control.
const EVENT_TRACE: u64 = 1 << 31;

/// Settings of a trace, and its clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct PtInfo {
    pub rates: ClockRates,
    /// The trace has times that can be converted.
    pub has_times: bool,
    /// The trace has cycles, or times from which they can be estimated.
    pub has_cycles: bool,
    /// The trace has power events.
    pub has_power: bool,
    /// The trace has events of the flow of control.
    pub has_event_trace: bool,
    /// The processor's traces say when interrupts are enabled and disabled.
    pub has_interrupt_flag: bool,
    /// Rate of the bus clock that CBR counts in.
    pub bus_kilohertz: u32,
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
        let converter = TimeConverter::of_words(shift, mult, zero);
        let per_second = converter.ticks(1_000_000_000);
        // Of the usual bus clock, where the ratio is not known.
        let usual = u32::try_from((per_second + 50_000_000) / 100_000_000).unwrap_or(0);
        let non_turbo = if low(15) == 0 { usual } else { low(15) };
        let cycles = match (config & CYCLES != 0, config & CYCLE_THRESHOLD != 0) {
            (false, _) => CycleSource::Times,
            (true, false) => CycleSource::Each,
            (true, true) => CycleSource::Sparse,
        };
        let rates = ClockRates { mtc_shift, tsc: low(12), crystal: low(13), non_turbo, cycles };
        let bus = per_second.checked_div(non_turbo.into()).unwrap_or(0) / 1000;
        // Behind the filter's text.
        let filter = usize::try_from(word(16)).unwrap_or(0) / 8;
        let has_times =
            !is_untimed && has_zero != 0 && config & tsc_bit != 0 && converter.is_known();
        Self {
            rates,
            has_times,
            has_cycles: cycles != CycleSource::Times || has_steps && rates.crystal != 0,
            has_power: config & POWER != 0,
            has_event_trace: config & EVENT_TRACE != 0,
            has_interrupt_flag: word(filter.saturating_add(17)) != 0,
            bus_kilohertz: u32::try_from(bus).unwrap_or(0),
            converter,
        }
    }

    /// Returns the time of a time stamp; 0 without times.
    pub(super) fn time(&self, tsc: u64) -> u64 {
        if self.has_times { self.converter.time(tsc) } else { 0 }
    }
}
