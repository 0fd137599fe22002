//! Packets as perf prints them.

use std::fmt::{self, Display, Formatter};

use super::ip::{Ip, IpForm};
use super::packet::{Outcomes, Packet, Width};

impl Display for Packet {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Pad => to.write_str("PAD"),
            Self::Psb => to.write_str("PSB"),
            Self::PsbEnd => to.write_str("PSBEND"),
            Self::Tnt(outcomes) => write!(to, "TNT {outcomes}"),
            Self::Tip(ip) => write!(to, "TIP{ip}"),
            Self::TipPge(ip) => write!(to, "TIP.PGE{ip}"),
            Self::TipPgd(ip) => write!(to, "TIP.PGD{ip}"),
            Self::Fup(ip) => write!(to, "FUP{ip}"),
            Self::ModeExec(size, interrupts) => {
                write!(to, "MODE.Exec IF:{} {}", u8::from(interrupts), size.bits())
            }
            Self::ModeTsx { is_in, is_aborted } => {
                write!(to, "MODE.TSX TXAbort:{} InTX:{}", u8::from(is_aborted), u8::from(is_in))
            }
            Self::Tsc(stamp) => write!(to, "TSC {stamp:#x}"),
            Self::Tma { crystal, fast } => write!(to, "TMA CTC {crystal:#x} FC {fast:#x}"),
            Self::Mtc(crystal) => write!(to, "MTC {crystal:#x}"),
            Self::Cyc(count) => write!(to, "CYC {count:#x}"),
            Self::Cbr(ratio) => write!(to, "CBR {ratio:#x}"),
            Self::Pip(space, is_guest) => write!(to, "PIP {space:#x} (NR={})", u8::from(is_guest)),
            Self::Vmcs(page) => write!(to, "VMCS {page:#x}"),
            Self::Mnt(payload) => write!(to, "MNT {payload:#x}"),
            Self::Ovf => to.write_str("OVF"),
            Self::TraceStop => to.write_str("TraceSTOP"),
            Self::PtWrite(value, _, ip) => write!(to, "PTWRITE {value:#x} IP:{}", u8::from(ip)),
            Self::ExStop(ip) => write!(to, "EXSTOP IP:{}", u8::from(ip)),
            Self::MWait(operands) => {
                let (hints, extensions) = (operands & 0xffff_ffff, operands >> 32);
                write!(to, "MWAIT {operands:#x} Hints {hints:#x} Extensions {extensions:#x}")
            }
            Self::Pwre(states) => write!(
                to,
                "PWRE {states:#x} HW:{} CState:{} Sub-CState:{}",
                states >> 7 & 1,
                states >> 12 & 15,
                states >> 8 & 15
            ),
            Self::Pwrx(states) => write!(
                to,
                "PWRX {states:#x} Last CState:{} Deepest CState:{} Wake Reason {:#x}",
                states >> 4 & 15,
                states & 15,
                states >> 8 & 15
            ),
            Self::Bbp(kind, width) => {
                let bytes = if width == Width::Four { 4 } else { 8 };
                write!(to, "BBP SZ {bytes}-byte Type {kind:#x}")
            }
            Self::Bip(id, value, _) => write!(to, "BIP ID {id:#04x} Value {value:#x}"),
            Self::Bep(ip) => write!(to, "BEP IP:{}", u8::from(ip)),
            Self::Cfe(kind, vector, ip) => {
                write!(to, "CFE IP:{} Type {kind:#04x} Vector {vector:#x}", u8::from(ip))
            }
            Self::Evd(kind, value) => write!(to, "EVD Type {kind:#04x} Payload {value:#x}"),
        }
    }
}

impl Display for Outcomes {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        for at in (0..self.len).rev() {
            to.write_str(if self.bits >> at & 1 != 0 { "T" } else { "N" })?;
        }
        write!(to, " ({})", self.len)
    }
}

/// With the space in front.
impl Display for Ip {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self.form {
            IpForm::None => to.write_str(" no ip"),
            _ => write!(to, " {:#x}", self.bits),
        }
    }
}
