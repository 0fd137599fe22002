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

/// A part of a stretch, from one PSB to another.
#[derive(Debug)]
pub(super) struct Part {
    pub queue: usize,
    pub stretch: usize,
    /// Offsets in the stretch.
    pub range: Range<u64>,
    /// Time in front of the part.
    pub before: Clock,
}

/// Cuts the trace of a ring into parts of this length or more; also returns the number of stretches without a PSB.
pub(super) fn parts(
    queue: usize,
    ring: &TraceQueue<'_>,
    rates: ClockRates,
    length: u64,
) -> (Vec<Part>, u64) {
    let (mut parts, mut unsynchronized) = (Vec::new(), 0);
    for (number, stretch) in ring.stretches.iter().enumerate() {
        let mut begins: Vec<(u64, Clock)> = Vec::new();
        scan(stretch, Clock::from_rates(rates, 0), |at, clock| {
            if begins.last().is_none_or(|(begin, _)| at - begin >= length) {
                begins.push((at, clock.clone()));
            }
        });
        unsynchronized += u64::from(begins.is_empty() && stretch.len > 0);
        let ends: Vec<u64> =
            begins.iter().map(|(at, _)| *at).skip(1).chain([stretch.len]).collect();
        for ((start, before), end) in begins.into_iter().zip(ends) {
            parts.push(Part { queue, stretch: number, range: start..end, before });
        }
    }
    (parts, unsynchronized)
}

/// Reads all packets, and calls `psb` with the offset of each PSB and the time in front of it.
fn scan(stretch: &TraceStretch<'_>, mut clock: Clock, mut psb: impl FnMut(u64, &Clock)) {
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
                    if !clock.apply(&packet) && packet == Packet::Psb {
                        psb(at, &clock);
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
}
