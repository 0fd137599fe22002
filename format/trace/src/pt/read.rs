//! The packets of a trace, in order.

use super::layout::{PSB_LEN, PSB_PAIR};
use super::packet::{Context, Damage, Packet};

/// A packet and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// Offset of its first byte.
    pub offset: usize,
    /// Number of its bytes.
    pub len: usize,
    /// The packet, or why the bytes are none. A reader goes on at the next PSB, [`Packets::resume`].
    pub packet: Result<Packet, Damage>,
}

/// Reads the packets of a trace.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    bytes: &'a [u8],
    offset: usize,
    context: Context,
}

impl<'a> Packets<'a> {
    /// Returns a reader of `bytes`, which begin with a packet.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0, context: Context::Usual }
    }

    /// Returns the offset of the next packet.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Goes to the next PSB behind damage; returns the number of bytes that are passed over.
    pub fn resume(&mut self) -> usize {
        let from = self.offset;
        let rest = self.bytes.get(from..).unwrap_or_default();
        self.offset = find_psb(rest).map_or(self.bytes.len(), |at| from + at);
        self.context = Context::Usual;
        self.offset - from
    }

    /// Returns the next packet; `None` at the end. Damage is passed over byte by byte.
    #[inline]
    pub fn next_packet(&mut self) -> Option<Located> {
        let offset = self.offset;
        let rest = self.bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        let (packet, len) = match Packet::from_bytes(rest, self.context) {
            Ok((packet, len)) => {
                self.context = packet.context(self.context);
                (Ok(packet), len)
            }
            Err(Damage::Truncated) => (Err(Damage::Truncated), rest.len()),
            Err(Damage::Unknown) => (Err(Damage::Unknown), 1),
        };
        self.offset = offset + len;
        Some(Located { offset, len, packet })
    }
}

impl Iterator for Packets<'_> {
    type Item = Located;

    #[inline]
    fn next(&mut self) -> Option<Located> {
        self.next_packet()
    }
}

/// Returns the offset of the first PSB.
pub fn find_psb(bytes: &[u8]) -> Option<usize> {
    let is_psb = |at: usize| {
        let found = bytes.get(at..at + PSB_LEN);
        found.is_some_and(|found| found.chunks(2).all(|pair| pair == PSB_PAIR))
    };
    // A PSB holds a pair at each even distance: looking at one byte of 14 does not miss any.
    let mut at = PSB_LEN - 2;
    while let Some(&byte) = bytes.get(at) {
        if PSB_PAIR.contains(&byte) {
            let first = at.saturating_sub(PSB_LEN - 1);
            if let Some(found) = (first..=at).find(|at| is_psb(*at)) {
                return Some(found);
            }
        }
        at += PSB_LEN - 2;
    }
    None
}
