//! The time of packets: the time stamp counter, stepped by a crystal clock, refined by cycles.

use super::cycles::{CoreRatio, CycleCounter, CycleSource};
use super::packet::Packet;

/// Bits that a TSC packet has.
const TSC_BITS: u32 = 56;
/// A TSC may be overtaken by packets that come from the crystal clock, by far less than this.
const SLIP: u64 = 0x1_0000;

/// Relations of the clocks of a processor, and settings of its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockRates {
    /// Ticks of the crystal clock from one MTC to the next, as a power of two.
    pub mtc_shift: u32,
    /// TSC ticks for `crystal` ticks of the crystal clock; 0 if not known.
    pub tsc: u32,
    /// Ticks of the crystal clock for `tsc` TSC ticks; 0 if not known.
    pub crystal: u32,
    /// Ratio of the TSC to the bus clock, in which CBR counts; 0 if not known.
    pub non_turbo: u32,
    /// What tells of cycles.
    pub cycles: CycleSource,
}

/// Time of the packets that were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    rates: ClockRates,
    now: u64,
    /// Time of the last TSC.
    stamp: u64,
    crystal: Option<Crystal>,
    cycles: Cycles,
    counter: CycleCounter,
}

/// The crystal clock since a TMA.
#[derive(Clone, Debug, PartialEq)]
struct Crystal {
    /// TSC at the tick of the TMA, as a multiple of the MTC's period.
    base: u64,
    /// Ticks since.
    ticks: u64,
    /// Bits of the last MTC.
    last: u32,
    /// The TMA has fewer bits than the MTCs.
    is_short: bool,
}

/// Cycles since the last known time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cycles {
    /// TSC at which `count` was 0.
    base: u64,
    count: u64,
    /// CBR.
    ratio: u8,
    /// TSC ticks and cycles between the last two MTCs.
    measured: Option<(u64, u64)>,
    /// The packet before was a CYC: it tells when this one was written.
    is_timing: bool,
}

impl Clock {
    /// Returns a clock that waits for a TSC. `near` is a time of this trace, which has the bits that packets
    /// lack; `cycles` are those in front of it.
    pub fn from_rates(rates: ClockRates, near: u64, cycles: u64) -> Self {
        let counter = CycleCounter::new(rates.cycles, cycles);
        Self { rates, now: near, counter, ..Self::default() }
    }

    /// Returns the time stamp counter.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns the ratio of the core's clock to the bus clock; 0 before the first CBR.
    #[inline]
    pub fn ratio(&self) -> u8 {
        self.cycles.ratio
    }

    /// Returns the cycles so far, in which the processor was traced.
    pub fn cycles(&self) -> u64 {
        self.counter.total()
    }

    /// Returns the cycles up to the last branch of the step that is taken, or up to the branches in front of it.
    #[inline]
    pub fn known_cycles(&self, is_last: bool) -> u64 {
        self.counter.known(is_last)
    }

    /// Returns the cycles up to the last branch of the step that is taken, if the trace says them there.
    #[inline]
    pub fn exact_cycles(&self) -> Option<u64> {
        self.counter.exact()
    }

    /// Commits the cycles so far to the branch that comes, or passes one that has the time of the one before.
    #[inline]
    pub(super) fn commit(&mut self, has_time: bool) {
        if self.rates.cycles == CycleSource::None {
            return;
        }
        match has_time {
            true => self.counter.commit(),
            false => self.counter.hold(),
        }
    }

    fn core_ratio(&self) -> CoreRatio {
        CoreRatio { core: self.cycles.ratio.into(), tsc: self.rates.non_turbo.into() }
    }

    /// Returns about how many TSC ticks so many instructions take: two cycles each, as perf has it.
    pub fn ticks_of(&self, instructions: u64) -> u64 {
        let cycles = instructions.saturating_mul(2);
        match (self.rates.non_turbo, self.cycles.ratio) {
            (0, _) | (_, 0) => cycles,
            (non_turbo, ratio) => scaled(cycles, non_turbo.into(), ratio.into()),
        }
    }

    /// Takes a packet of time; returns whether it is one.
    #[inline]
    pub fn apply(&mut self, packet: &Packet) -> bool {
        match *packet {
            Packet::Tsc(stamp) => self.stamp(stamp),
            Packet::Tma { crystal, fast } => self.tie(crystal, fast),
            Packet::Mtc(crystal) => self.step(crystal),
            Packet::Cyc(count) => {
                self.pass(count);
                self.cycles.is_timing = true;
                return true;
            }
            Packet::Cbr(ratio) => self.change(ratio),
            ref other => {
                self.cycles.is_timing = false;
                self.count(other);
                return false;
            }
        }
        self.cycles.is_timing = false;
        self.counter.follow(false);
        true
    }

    /// Takes a packet that is none of time, but may say whether cycles are those of the program.
    #[inline]
    fn count(&mut self, packet: &Packet) {
        if self.rates.cycles == CycleSource::None || *packet == Packet::Pad {
            return;
        }
        self.counter.follow(matches!(packet, Packet::Fup(_)));
        match packet {
            Packet::TipPge(_) => self.counter.begin(self.now),
            Packet::TipPgd(_) | Packet::TraceStop => self.counter.end(false),
            Packet::Ovf => self.counter.end(true),
            Packet::Psb => self.counter.set_header(true),
            Packet::PsbEnd => self.counter.set_header(false),
            Packet::Fup(_) => self.counter.fup(),
            _ => {}
        }
    }

    fn stamp(&mut self, low: u64) {
        self.crystal = None;
        let near = self.now;
        let mut stamp = low | near >> TSC_BITS << TSC_BITS;
        let half = 1 << (TSC_BITS - 1);
        if stamp < near && near - stamp > half {
            stamp = stamp.saturating_add(1 << TSC_BITS);
        } else if stamp > near && stamp - near > half && near >> TSC_BITS > 0 {
            stamp -= 1 << TSC_BITS;
        }
        self.stamp = stamp;
        let slipped = stamp < near && near - stamp < SLIP;
        self.now = if slipped || stamp < near { near } else { stamp };
        if self.cycles.is_timing {
            self.start_cycles();
        }
    }

    fn tie(&mut self, crystal: u16, fast: u16) {
        let ClockRates { mtc_shift, .. } = self.rates;
        let rest = u64::from(crystal) & !(u64::MAX << mtc_shift.min(63));
        let Some(since) = self.tsc_of(rest) else { return };
        self.crystal = Some(Crystal {
            base: self.stamp.wrapping_sub(u64::from(fast)).wrapping_sub(since),
            ticks: 0,
            last: u32::from(crystal).checked_shr(mtc_shift).unwrap_or(0) & 0xff,
            is_short: mtc_shift > 8,
        });
        self.counter.tie(self.now, self.core_ratio());
    }

    /// Returns the TSC ticks of ticks of the crystal clock.
    fn tsc_of(&self, ticks: u64) -> Option<u64> {
        let (tsc, crystal) = (u64::from(self.rates.tsc), u64::from(self.rates.crystal));
        if tsc == 0 {
            return None;
        }
        let whole = ticks.checked_div(crystal)?.wrapping_mul(tsc);
        Some(whole.wrapping_add((ticks % crystal) * tsc / crystal))
    }

    fn step(&mut self, crystal: u8) {
        let shift = self.rates.mtc_shift;
        let Some(known) = &mut self.crystal else { return };
        let bits = u32::from(crystal);
        if known.is_short {
            known.is_short = false;
            let missing = 1 << 16_u32.saturating_sub(shift);
            known.last |= bits & !(missing - 1);
            if known.last >= bits {
                known.last = known.last.wrapping_sub(missing) & 0xff;
            }
        }
        let steps = if bits > known.last { bits - known.last } else { bits + 256 - known.last };
        known.last = bits;
        known.ticks = known.ticks.wrapping_add(u64::from(steps).checked_shl(shift).unwrap_or(0));
        let (base, ticks) = (known.base, known.ticks);
        let time = base.wrapping_add(self.tsc_of(ticks).unwrap_or(0));
        if self.cycles.is_timing {
            let ticks = time.saturating_sub(self.cycles.base);
            let is_known = self.cycles.base != 0 && ticks > 0 && self.cycles.count > 0;
            self.cycles.measured = is_known.then_some((ticks, self.cycles.count));
        }
        self.now = self.now.max(time);
        self.counter.step(self.now, self.core_ratio());
        if self.cycles.is_timing {
            self.start_cycles();
        }
    }

    fn start_cycles(&mut self) {
        self.cycles.base = self.now;
        self.cycles.count = 0;
    }

    fn pass(&mut self, count: u64) {
        self.counter.add(count);
        self.cycles.count = self.cycles.count.saturating_add(count);
        let Cycles { base, count, ratio, measured, .. } = self.cycles;
        if base == 0 {
            return;
        }
        let ticks = match measured {
            Some((ticks, cycles)) => scaled(count, ticks, cycles),
            None if ratio != 0 => scaled(count, u64::from(self.rates.non_turbo), ratio.into()),
            None => return,
        };
        self.now = self.now.max(base.saturating_add(ticks));
    }

    fn change(&mut self, ratio: u8) {
        if self.cycles.ratio != ratio {
            self.cycles.ratio = ratio;
            self.cycles.measured = None;
            self.start_cycles();
            self.counter.restart(self.now);
        }
    }
}

/// Returns `value` × `by` ÷ `of`.
fn scaled(value: u64, by: u64, of: u64) -> u64 {
    let product = u128::from(value) * u128::from(by);
    product.checked_div(of.into()).and_then(|ticks| u64::try_from(ticks).ok()).unwrap_or(u64::MAX)
}
