//! Packets of traces, below the AUXTRACE record that they are in.
//!
//! ```text
//!   00000000  b0 10 00 40 00 00 00 00 80                       PC 0x400010 el0 ns=1
//!   00000009  71 e8 03 00 00 00 00 00 00                       TS 1000
//! ```
//!
//! Offsets are those in the record's data. A packet that goes on in the next record reads as damage
//! here, as in perf.

use std::fmt::Display;

use recrep_format::abi::AuxtraceKind;
use recrep_format::record::{Body, Record};
use recrep_trace::bts::{self, Branch};
use recrep_trace::pt;
use recrep_trace::spe::{Packet, PacketKind};

use super::record::RecordLines;
use crate::terminal::digits;

/// Most bytes of padding on a line, and bytes on a line of most packets.
const LINE: usize = 16;

/// What is shown of bytes that are no packet.
const BAD: &str = "Bad packet!";

/// Prints the packets of the data behind a record, if they are known.
pub(super) fn print(
    lines: &mut RecordLines<'_>,
    kind: AuxtraceKind,
    record: &Record<'_>,
    data: &[u8],
) {
    let Body::Auxtrace(trace) = &record.body else { return };
    match kind {
        AuxtraceKind::ARM_SPE => spe(lines, data, trace.offset),
        AuxtraceKind::INTEL_BTS => branches(lines, data),
        AuxtraceKind::INTEL_PT => pt(lines, data),
        _ => {}
    }
}

fn spe(lines: &mut RecordLines<'_>, data: &[u8], offset: u64) {
    let mut at = 0;
    while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
        let read = Packet::read(rest, offset.wrapping_add(at as u64));
        let mut len = read.map_or(1, |(_, len)| len);
        match read {
            Ok((packet, _)) => {
                if matches!(packet.kind, PacketKind::Pad | PacketKind::Alignment) {
                    len = padded(rest, len);
                }
                line(lines, at, rest.get(..len).unwrap_or(rest), packet);
            }
            Err(_) => line(lines, at, rest.get(..len).unwrap_or(rest), BAD),
        }
        at += len;
    }
}

/// Returns the length of padding with the zeros after it that are put on its line.
fn padded(bytes: &[u8], len: usize) -> usize {
    let zeros = bytes.iter().take(LINE).skip(len).take_while(|byte| **byte == 0);
    len + zeros.count()
}

fn branches(lines: &mut RecordLines<'_>, data: &[u8]) {
    let (branches, rest) = data.as_chunks::<{ bts::SIZE }>();
    for (number, branch) in branches.iter().enumerate() {
        line(lines, number * bts::SIZE, branch, Branch::read(branch));
    }
    if !rest.is_empty() {
        line(lines, branches.len() * bts::SIZE, rest, "Bad record!");
    }
}

fn pt(lines: &mut RecordLines<'_>, data: &[u8]) {
    let mut packets = pt::Packets::from_bytes(data).peekable();
    while let Some(found) = packets.next() {
        let pt::Located { offset, mut len, packet } = found;
        if packet == Ok(pt::Packet::Pad) {
            let is_pad = |next: &pt::Located| next.packet == Ok(pt::Packet::Pad);
            while len < LINE && packets.next_if(is_pad).is_some() {
                len += 1;
            }
        }
        let bytes = data.get(offset..offset + len).unwrap_or_default();
        match packet {
            Ok(packet) => line(lines, offset, bytes, packet),
            Err(_) => line(lines, offset, bytes, BAD),
        }
    }
}

/// Prints a packet with its offset and its bytes.
fn line(lines: &mut RecordLines<'_>, at: usize, bytes: &[u8], text: impl Display) {
    lines.out.extend_from_slice(b"  ");
    digits::hex_zeros(&mut lines.out, at as u64, 8);
    lines.out.push(b' ');
    for byte in bytes {
        lines.out.push(b' ');
        lines.out.extend_from_slice(&digits::hex_byte(*byte));
    }
    let missing = LINE.saturating_sub(bytes.len());
    lines.out.resize(lines.out.len() + 3 * missing, b' ');
    lines.write(format_args!("  {text}\n"));
}
