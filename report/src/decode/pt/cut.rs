//! Cutting of traces at PSBs.

use std::ops::Range;

use recrep_trace::pt::{Clock, ClockRates, Damage, Packet, Packets};

use crate::decode::queues::{TraceQueue, TraceStretch};

/// Usual length of a part in bytes.
pub(super) const PART: u64 = 256 << 10;

/// Returns the length of parts, of so many bytes of trace, that are counted: what a part met is written once, so few
/// are better than many, but each core should have several.
pub(super) fn few(bytes: u64) -> u64 {
    PART.max(bytes / (4 * rayon::current_num_threads() as u64))
}

/// Number of bytes that are scanned at once.
const WINDOW: u64 = 1 << 20;

/// Time that an estimate may reach ahead, for each tick from one time stamp to the next: two cycles for each
/// instruction, of which no processor executes more than eight in a cycle.
const REACH: u64 = 16;

/// A part of a stretch, from one PSB to another.
#[derive(Debug)]
pub(super) struct Part {
    pub queue: usize,
    pub stretch: usize,
    /// Offsets in the stretch.
    pub range: Range<u64>,
    /// Time in front of the part.
    pub before: Clock,
    /// The first time stamp in it; 0 if there is none.
    pub first: u64,
    /// The PSB before it from which on an estimate of the time may reach into the part, and the time in front of that.
    pub run_up: Option<(u64, Clock)>,
}

/// Cuts the trace of a ring into parts of this length or more; also returns the number of stretches without a PSB.
pub(super) fn parts(
    queue: usize,
    ring: &TraceQueue<'_>,
    rates: ClockRates,
    length: u64,
) -> (Vec<Part>, u64) {
    let (mut parts, mut unsynchronized, mut cycles) = (Vec::new(), 0, 0);
    for (number, stretch) in ring.stretches.iter().enumerate() {
        let mut cutter = Cutter { length, ..Cutter::default() };
        cycles = scan(stretch, Clock::from_rates(rates, 0, cycles), &mut cutter).cycles();
        let begins = cutter.begins;
        unsynchronized += u64::from(begins.is_empty() && stretch.len > 0);
        let ends: Vec<u64> =
            begins.iter().map(|begin| begin.at).skip(1).chain([stretch.len]).collect();
        for (PartBegin { at, before, first, run_up }, end) in begins.into_iter().zip(ends) {
            parts.push(Part { queue, stretch: number, range: at..end, before, first, run_up });
        }
    }
    (parts, unsynchronized)
}

/// Where a part begins.
#[derive(Debug)]
struct PartBegin {
    at: u64,
    before: Clock,
    first: u64,
    run_up: Option<(u64, Clock)>,
}

/// The trace from one PSB to the next.
#[derive(Debug)]
struct Interval {
    at: u64,
    before: Clock,
    /// Tracing begins in it, at a time that is estimated.
    has_estimate: bool,
    /// Time that no estimate in it passes.
    reach: u64,
}

/// Finds where parts begin.
#[derive(Debug, Default)]
struct Cutter {
    /// Length of a part at least.
    length: u64,
    begins: Vec<PartBegin>,
    /// Intervals of the last part.
    intervals: Vec<Interval>,
    /// The interval that has the last time stamp.
    stamped: usize,
    /// The last time stamp.
    now: u64,
}

impl Cutter {
    /// Takes a PSB.
    fn psb(&mut self, at: u64, before: &Clock) {
        if self.begins.last().is_none_or(|begin| at - begin.at >= self.length) {
            let run_up = self.run_up();
            self.begins.push(PartBegin { at, before: before.clone(), first: 0, run_up });
            self.intervals.clear();
            self.stamped = 0;
        }
        let before = before.clone();
        self.intervals.push(Interval { at, before, has_estimate: false, reach: 0 });
    }

    /// Returns the first interval of the part with an estimate that may pass the time of now.
    fn run_up(&self) -> Option<(u64, Clock)> {
        let mut intervals = self.intervals.iter().enumerate();
        let found = intervals.find(|(number, interval)| {
            interval.has_estimate && (*number >= self.stamped || interval.reach > self.now)
        });
        found.map(|(_, interval)| (interval.at, interval.before.clone()))
    }

    /// Takes a packet that is none of time.
    #[inline]
    fn packet(&mut self, packet: &Packet) {
        if matches!(packet, Packet::TipPge(_) | Packet::Ovf)
            && let Some(interval) = self.intervals.last_mut()
        {
            interval.has_estimate = true;
        }
    }

    /// Takes the time behind a packet of time.
    #[inline]
    fn time(&mut self, now: u64) {
        if now == self.now {
            return;
        }
        let reach = self.now.saturating_add((now - self.now).saturating_mul(REACH));
        if self.now > 0
            && let Some(interval) = self.intervals.get_mut(self.stamped)
        {
            interval.reach = interval.reach.max(reach);
        }
        if let Some(begin) = self.begins.last_mut().filter(|begin| begin.first == 0) {
            begin.first = now;
        }
        self.now = now;
        self.stamped = self.intervals.len().saturating_sub(1);
    }
}

/// Reads all packets; returns the clock behind them.
fn scan(stretch: &TraceStretch<'_>, mut clock: Clock, cutter: &mut Cutter) -> Clock {
    let mut window = 0;
    let mut is_lost = true;
    while window < stretch.len {
        let end = stretch.len.min(window + WINDOW);
        let bytes = stretch.bytes(window..end);
        let mut packets = Packets::from_bytes(&bytes);
        let mut next = end;
        if is_lost {
            packets.resume();
        }
        while let Some(found) = packets.next_packet() {
            let at = window + found.offset as u64;
            match found.packet {
                Ok(packet) => {
                    is_lost = false;
                    if clock.apply(&packet) {
                        cutter.time(clock.now());
                    } else if packet == Packet::Psb {
                        cutter.psb(at, &clock);
                    } else {
                        cutter.packet(&packet);
                    }
                }
                // The packet is continued in the next window.
                Err(Damage::Truncated) if end < stretch.len && at > window => next = at,
                Err(_) => {
                    is_lost = true;
                    packets.resume();
                }
            }
        }
        // A PSB may be cut by the end of the window.
        window = if is_lost && end < stretch.len { end - 15 } else { next };
    }
    clock
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use recrep_trace::pt::{Flow, Ip, LastIp, Outcomes, Task, World};

    use super::super::estimate::RunUpSink;
    use super::*;

    /// A loop of 100 `nop` and a `jne` back to the first.
    struct Loop(Vec<u8>);

    impl Loop {
        const START: u64 = 0x1000;

        fn new() -> Self {
            let mut code = vec![0x90; 100];
            code.extend([0x75, 0x9a]);
            Self(code)
        }
    }

    impl World for Loop {
        fn task(&mut self, _: u64) -> Task {
            Task::default()
        }

        fn code(&self, _: u32, address: u64) -> Option<&[u8]> {
            self.0.get(usize::try_from(address.checked_sub(Self::START)?).ok()?..)
        }
    }

    fn start() -> Ip {
        LastIp::default().compress(Loop::START)
    }

    fn psb(tsc: u64, ip: Option<Ip>) -> Vec<Packet> {
        let mut packets = vec![Packet::Psb, Packet::Tsc(tsc)];
        packets.extend(ip.map(Packet::Fup));
        packets.push(Packet::PsbEnd);
        packets
    }

    /// Returns a PSB at this time, and six rounds of the loop between two begins of tracing.
    fn rounds(tsc: u64) -> Vec<Packet> {
        let mut packets = psb(tsc, None);
        packets.push(Packet::TipPge(start()));
        packets.push(Packet::Tnt(Outcomes { bits: 0b11_1111, len: 6 }));
        packets.push(Packet::Fup(start()));
        packets.push(Packet::TipPgd(Ip::NONE));
        packets.push(Packet::TipPge(start()));
        packets
    }

    fn stretch(packets: &[Packet]) -> TraceStretch<'static> {
        let mut bytes = Vec::new();
        for packet in packets {
            packet.write(&mut bytes);
        }
        let mut stretch = TraceStretch::default();
        stretch.push(Cow::Owned(bytes));
        stretch
    }

    fn begins(stretch: &TraceStretch<'_>, length: u64) -> Vec<PartBegin> {
        let mut cutter = Cutter { length, ..Cutter::default() };
        scan(stretch, Clock::default(), &mut cutter);
        cutter.begins
    }

    #[test]
    fn an_estimate_passes_the_first_time_of_the_next_part() {
        let stretch = stretch(&[rounds(1000), psb(1500, Some(start()))].concat());
        let begins = begins(&stretch, 1);
        let [_, second] = &begins[..] else { panic!("{begins:?}") };
        let (from, before) = second.run_up.clone().unwrap();
        assert_eq!(from, 0);
        let mut sink = RunUpSink::new(before.now());
        let end = usize::try_from(second.at).unwrap();
        Flow::new().run(&stretch.bytes(0..stretch.len), end, before, &mut Loop::new(), &mut sink);
        // Two cycles for each of the 606 instructions.
        assert_eq!(sink.last(), 1000 + 2 * 606);
    }

    #[test]
    fn estimates_out_of_reach_are_not_read_again() {
        for (later, expected) in [(1150, Some(0)), (1200, None)] {
            let begin = rounds(1000);
            let next = [psb(1010, Some(start())), vec![Packet::Tsc(later)]].concat();
            let last = psb(1300, Some(start()));
            let before = stretch(&[&begin[..], &next].concat()).len;
            let begins = begins(&stretch(&[begin, next, last].concat()), before);
            let [_, second] = &begins[..] else { panic!("{begins:?}") };
            assert_eq!(second.run_up.as_ref().map(|(at, _)| *at), expected, "{later}");
        }
    }
}
