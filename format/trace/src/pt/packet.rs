//! Packets, from bytes and to bytes.

use super::ip::{Ip, IpForm};
use super::layout::{
    self, BBP, BEP, BIP, CBR, CFE, CYC, EVD, EXSTOP, EXTENDED, FUP, LONG_TNT, MNT, MNT_THIRD, MODE,
    MTC, MWAIT, OVF, PIP, PSB_LEN, PSB_PAIR, PSBEND, PTWRITE_4, PTWRITE_8, PWRE, PWRX, TIP,
    TIP_PGD, TIP_PGE, TMA, TRACE_STOP, TSC, VMCS, WITH_IP,
};
use super::size::CodeSize;

/// Outcomes of conditional branches, and compressed returns: 1 is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcomes {
    /// The outcomes, the oldest in the highest of `len` bits.
    pub bits: u64,
    /// Number of outcomes.
    pub len: u8,
}

/// Width of a payload that comes in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// Four bytes.
    Four,
    /// Eight bytes.
    Eight,
}

/// Meaning of bytes that depends on packets before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Context {
    /// Outside of blocks.
    #[default]
    Usual,
    /// Between BBP and BEP, with items of this width.
    Block(Width),
}

/// A packet of Intel PT; the names are Intel's, the comments say what they tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// Nothing.
    Pad,
    /// Begin of a stretch that states everything anew.
    Psb,
    /// End of that.
    PsbEnd,
    /// Outcomes in one byte (up to 6) or six (up to 47).
    Tnt(Outcomes),
    /// Target of an indirect branch, a return, or an event announced by a FUP.
    Tip(Ip),
    /// Tracing begins, at this address.
    TipPge(Ip),
    /// Tracing ends, at a branch to this address.
    TipPgd(Ip),
    /// Address of the instruction where an event happened.
    Fup(Ip),
    /// Width of the code from the next TIP on, and whether interrupts are enabled.
    ModeExec(CodeSize, bool),
    /// State of transactions.
    ModeTsx {
        /// In a transaction.
        is_in: bool,
        /// A transaction was aborted.
        is_aborted: bool,
    },
    /// Low 56 bits of the time stamp counter.
    Tsc(u64),
    /// What the crystal clock was at the TSC before it.
    Tma {
        /// Low 16 bits of the crystal clock.
        crystal: u16,
        /// TSC ticks since the last tick of the crystal clock (9 bits).
        fast: u16,
    },
    /// Eight bits of the crystal clock.
    Mtc(u8),
    /// Cycles of the core since the last CYC.
    Cyc(u64),
    /// Ratio of the core's clock to the bus.
    Cbr(u8),
    /// Address space: CR3 shifted right by 5 bits, and whether it is a guest's.
    Pip(u64, bool),
    /// Page of the VMCS of a guest.
    Vmcs(u64),
    /// Of the processor's maker.
    Mnt(u64),
    /// Packets were lost.
    Ovf,
    /// Tracing was stopped by an address filter.
    TraceStop,
    /// Operand of a `ptwrite` instruction; its address follows or not.
    PtWrite(u64, Width, bool),
    /// The core's clock stopped; the address follows or not.
    ExStop(bool),
    /// Operands of `mwait`.
    MWait(u64),
    /// Entry to a C-state.
    Pwre(u16),
    /// Exit from a C-state.
    Pwrx(u64),
    /// Begin of a block of items of this type and width.
    Bbp(u8, Width),
    /// An item: identifier and value.
    Bip(u8, u64, Width),
    /// End of a block; the address follows or not.
    Bep(bool),
    /// An event: type and vector; the address follows or not.
    Cfe(u8, u8, bool),
    /// Data of an event: type and value.
    Evd(u8, u64),
}

/// Reasons why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Damage {
    /// The trace ends inside the packet.
    Truncated,
    /// No packet begins like this, or its content is impossible.
    Unknown,
}

const fn bit(value: u64, at: u32) -> bool {
    value >> at & 1 != 0
}

/// Returns the low byte.
const fn byte(value: u64) -> u8 {
    (value & 0xff) as u8
}

/// Returns up to eight bytes at `from` as a number; `None` if there are fewer.
#[inline]
fn number(bytes: &[u8], from: usize, len: usize) -> Option<u64> {
    let rest = bytes.get(from..)?;
    if let Some(eight) = rest.first_chunk() {
        let all = u64::from_le_bytes(*eight);
        return Some(if len >= 8 { all } else { all & ((1 << (8 * len)) - 1) });
    }
    let mut eight = [0; 8];
    eight.get_mut(..len)?.copy_from_slice(rest.get(..len)?);
    Some(u64::from_le_bytes(eight))
}

impl Packet {
    /// Returns the packet at the begin of `bytes`, and its length.
    ///
    /// # Errors
    ///
    /// Returns why there is none.
    #[inline]
    pub fn from_bytes(bytes: &[u8], context: Context) -> Result<(Self, usize), Damage> {
        let Some(&first) = bytes.first() else { return Err(Damage::Truncated) };
        if let (Context::Block(width), BIP) = (context, first & 7) {
            let len = if width == Width::Four { 4 } else { 8 };
            let value = number(bytes, 1, len).ok_or(Damage::Truncated)?;
            return Ok((Self::Bip(first >> 3, value, width), 1 + len));
        }
        if first & 1 == 0 {
            return match first {
                0 => Ok((Self::Pad, 1)),
                EXTENDED => Self::extended(bytes),
                _ => Ok((Self::Tnt(Outcomes::from_payload(u64::from(first >> 1))), 1)),
            };
        }
        if first & CYC == CYC {
            return cycles(bytes);
        }
        match first & 0x1f {
            TIP | TIP_PGE | TIP_PGD | FUP => Self::with_ip(bytes, first),
            _ => {
                let (len, packet): (_, fn(u64) -> Option<Self>) = match first {
                    TSC => (7, |payload| Some(Self::Tsc(payload))),
                    MTC => (1, |payload| Some(Self::Mtc(byte(payload)))),
                    MODE => (1, Self::from_mode),
                    _ => return Err(Damage::Unknown),
                };
                let payload = number(bytes, 1, len).ok_or(Damage::Truncated)?;
                Ok((packet(payload).ok_or(Damage::Unknown)?, 1 + len))
            }
        }
    }

    fn with_ip(bytes: &[u8], first: u8) -> Result<(Self, usize), Damage> {
        let form = IpForm::from_bits(first >> 5).ok_or(Damage::Unknown)?;
        let len = form.len();
        let bits = if len == 0 { Some(0) } else { number(bytes, 1, len) };
        let ip = Ip { form, bits: bits.ok_or(Damage::Truncated)? };
        let packet = match first & 0x1f {
            TIP => Self::Tip(ip),
            TIP_PGE => Self::TipPge(ip),
            TIP_PGD => Self::TipPgd(ip),
            _ => Self::Fup(ip),
        };
        Ok((packet, 1 + len))
    }

    fn from_mode(payload: u64) -> Option<Self> {
        match payload >> 5 {
            0 => {
                let size = match payload & 3 {
                    0 => CodeSize::Bits16,
                    1 => CodeSize::Bits64,
                    2 => CodeSize::Bits32,
                    _ => return None,
                };
                Some(Self::ModeExec(size, bit(payload, 2)))
            }
            1 => Some(Self::ModeTsx { is_in: bit(payload, 0), is_aborted: bit(payload, 1) }),
            _ => None,
        }
    }

    fn extended(bytes: &[u8]) -> Result<(Self, usize), Damage> {
        let second = *bytes.get(1).ok_or(Damage::Truncated)?;
        let len = layout::payload_len(second).ok_or(Damage::Unknown)?;
        if second == layout::PSB {
            let all = bytes.get(..PSB_LEN).unwrap_or(bytes);
            let is_psb = all.chunks(2).all(|pair| PSB_PAIR.starts_with(pair));
            return match is_psb {
                true if all.len() == PSB_LEN => Ok((Self::Psb, PSB_LEN)),
                true => Err(Damage::Truncated),
                false => Err(Damage::Unknown),
            };
        }
        let end = 2 + len;
        if bytes.len() < end {
            return Err(Damage::Truncated);
        }
        // Nine bytes are one and eight.
        let (extra, from) = if len > 8 { (bytes.get(2).copied(), 3) } else { (None, 2) };
        let payload = number(bytes, from, len.min(8)).unwrap_or(0);
        let packet = Self::from_payload(second, extra.unwrap_or(0), payload);
        Ok((packet.ok_or(Damage::Unknown)?, end))
    }

    /// The inverse of [`Self::payload`].
    fn from_payload(second: u8, extra: u8, payload: u64) -> Option<Self> {
        let (low, high) = (byte(payload), byte(payload >> 8));
        let has_ip = second & WITH_IP != 0;
        let low16 = (payload & 0xffff) as u16;
        Some(match second {
            PSBEND => Self::PsbEnd,
            LONG_TNT if payload > 1 => Self::Tnt(Outcomes::from_payload(payload)),
            OVF => Self::Ovf,
            TRACE_STOP => Self::TraceStop,
            TMA => Self::Tma { crystal: low16, fast: (payload >> 24 & 0x1ff) as u16 },
            CBR => Self::Cbr(low),
            PIP => Self::Pip(payload >> 1, bit(payload, 0)),
            VMCS => Self::Vmcs(payload),
            MNT if extra == MNT_THIRD => Self::Mnt(payload),
            _ if second & !WITH_IP == PTWRITE_4 => Self::PtWrite(payload, Width::Four, has_ip),
            _ if second & !WITH_IP == PTWRITE_8 => Self::PtWrite(payload, Width::Eight, has_ip),
            _ if second & !WITH_IP == EXSTOP => Self::ExStop(has_ip),
            MWAIT => Self::MWait(payload),
            PWRE => Self::Pwre(low16),
            PWRX => Self::Pwrx(payload),
            BBP => Self::Bbp(low & 0x1f, if bit(payload, 7) { Width::Four } else { Width::Eight }),
            _ if second & !WITH_IP == BEP => Self::Bep(has_ip),
            CFE => Self::Cfe(low & 0x1f, high, bit(payload, 7)),
            EVD => Self::Evd(extra & 0x3f, payload),
            _ => return None,
        })
    }

    /// Returns the second opcode byte, the byte in front of eight of payload (MNT, EVD), and the
    /// payload of a packet that has a second opcode byte.
    fn payload(&self) -> Option<(u8, u8, u64)> {
        let with_ip = |opcode: u8, has_ip: bool| if has_ip { opcode | WITH_IP } else { opcode };
        let (second, payload) = match *self {
            Self::PsbEnd => (PSBEND, 0),
            Self::Tnt(outcomes) => (LONG_TNT, outcomes.payload()),
            Self::Ovf => (OVF, 0),
            Self::TraceStop => (TRACE_STOP, 0),
            Self::Tma { crystal, fast } => (TMA, u64::from(crystal) | u64::from(fast) << 24),
            Self::Cbr(ratio) => (CBR, u64::from(ratio)),
            Self::Pip(space, is_guest) => (PIP, space << 1 | u64::from(is_guest)),
            Self::Vmcs(page) => (VMCS, page),
            Self::Mnt(payload) => return Some((MNT, MNT_THIRD, payload)),
            Self::PtWrite(value, Width::Four, has_ip) => (with_ip(PTWRITE_4, has_ip), value),
            Self::PtWrite(value, Width::Eight, has_ip) => (with_ip(PTWRITE_8, has_ip), value),
            Self::ExStop(has_ip) => (with_ip(EXSTOP, has_ip), 0),
            Self::MWait(operands) => (MWAIT, operands),
            Self::Pwre(states) => (PWRE, u64::from(states)),
            Self::Pwrx(states) => (PWRX, states),
            Self::Bbp(kind, width) => (BBP, u64::from(kind) | u64::from(width == Width::Four) << 7),
            Self::Bep(has_ip) => (with_ip(BEP, has_ip), 0),
            Self::Cfe(kind, vector, has_ip) => {
                (CFE, u64::from(kind) | u64::from(has_ip) << 7 | u64::from(vector) << 8)
            }
            Self::Evd(kind, value) => return Some((EVD, kind, value)),
            _ => return None,
        };
        Some((second, 0, payload))
    }

    /// Appends the bytes of the packet.
    pub fn write(&self, to: &mut Vec<u8>) {
        let mut one = |first: u8, payload: u64, len: usize| {
            to.push(first);
            to.extend(payload.to_le_bytes().into_iter().take(len));
        };
        match *self {
            Self::Pad => one(0, 0, 0),
            Self::Psb => to.extend(PSB_PAIR.iter().cycle().take(PSB_LEN)),
            Self::Tnt(outcomes) if outcomes.len <= Outcomes::SHORT => {
                one(byte(outcomes.payload() << 1), 0, 0);
            }
            Self::Tip(ip) => one(ip.form.bits() << 5 | TIP, ip.bits, ip.form.len()),
            Self::TipPge(ip) => one(ip.form.bits() << 5 | TIP_PGE, ip.bits, ip.form.len()),
            Self::TipPgd(ip) => one(ip.form.bits() << 5 | TIP_PGD, ip.bits, ip.form.len()),
            Self::Fup(ip) => one(ip.form.bits() << 5 | FUP, ip.bits, ip.form.len()),
            Self::ModeExec(size, interrupts) => {
                let mode = match size {
                    CodeSize::Bits16 => 0,
                    CodeSize::Bits64 => 1,
                    CodeSize::Bits32 => 2,
                };
                one(MODE, mode | u64::from(interrupts) << 2, 1);
            }
            Self::ModeTsx { is_in, is_aborted } => {
                one(MODE, 1 << 5 | u64::from(is_in) | u64::from(is_aborted) << 1, 1);
            }
            Self::Tsc(stamp) => one(TSC, stamp, 7),
            Self::Mtc(crystal) => one(MTC, u64::from(crystal), 1),
            Self::Cyc(count) => write_cycles(count, to),
            Self::Bip(id, value, Width::Four) => one(id << 3 | BIP, value, 4),
            Self::Bip(id, value, Width::Eight) => one(id << 3 | BIP, value, 8),
            _ => self.write_extended(to),
        }
    }

    fn write_extended(&self, to: &mut Vec<u8>) {
        let Some((second, extra, payload)) = self.payload() else { return };
        let Some(len) = layout::payload_len(second) else { return };
        to.extend([EXTENDED, second]);
        if len > 8 {
            to.push(extra);
        }
        to.extend(payload.to_le_bytes().into_iter().take(len));
    }

    /// Returns the context of the packet after this one.
    pub fn context(&self, before: Context) -> Context {
        match *self {
            Self::Bbp(_, width) => Context::Block(width),
            Self::Pad | Self::Bip(..) | Self::Fup(_) => before,
            Self::Tsc(_) | Self::Tma { .. } | Self::Mtc(_) | Self::Cyc(_) | Self::Cbr(_) => before,
            _ => Context::Usual,
        }
    }
}

impl Outcomes {
    /// Most outcomes of a packet of one byte.
    pub const SHORT: u8 = 6;
    /// Most outcomes of a packet of eight bytes.
    pub const LONG: u8 = 47;

    /// Returns the outcomes below the highest bit that is set.
    #[inline]
    fn from_payload(payload: u64) -> Self {
        let len = byte(u64::from(63_u32.saturating_sub(payload.leading_zeros())));
        Self { bits: payload & !(1 << len), len }
    }

    fn payload(self) -> u64 {
        1 << self.len | self.bits
    }
}

/// Reads a count of cycles: 5 bits, then 7 bits in each byte that a set bit announces.
fn cycles(bytes: &[u8]) -> Result<(Packet, usize), Damage> {
    let first = u64::from(bytes.first().copied().unwrap_or_default());
    let (mut count, mut shift, mut len, mut more) = (first >> 3, 5, 1, bit(first, 2));
    while more {
        let next = u64::from(*bytes.get(len).ok_or(Damage::Truncated)?);
        if shift > 63 {
            return Err(Damage::Unknown);
        }
        count |= next >> 1 << shift;
        more = bit(next, 0);
        shift += 7;
        len += 1;
    }
    Ok((Packet::Cyc(count), len))
}

fn write_cycles(count: u64, to: &mut Vec<u8>) {
    let mut rest = count >> 5;
    to.push(byte(count << 3 | u64::from(rest != 0) << 2) | CYC);
    while rest != 0 {
        let next = rest >> 7;
        to.push(byte(rest << 1) | u8::from(next != 0));
        rest = next;
    }
}
