//! Packets as text, as in perf's dump.

use std::fmt;

use super::packet::{Packet, PacketKind};

/// Names of events, by bit.
const EVENTS: [(u8, &str); 14] = [
    (0, "EXCEPTION-GEN"),
    (1, "RETIRED"),
    (2, "L1D-ACCESS"),
    (3, "L1D-REFILL"),
    (4, "TLB-ACCESS"),
    (5, "TLB-REFILL"),
    (6, "NOT-TAKEN"),
    (7, "MISPRED"),
    (8, "LLC-ACCESS"),
    (9, "LLC-REFILL"),
    (10, "REMOTE-ACCESS"),
    (11, "ALIGNMENT"),
    (17, "SVE-PARTIAL-PRED"),
    (18, "SVE-EMPTY-PRED"),
];

/// Kinds of loads and stores: mask and value of the payload.
const ACCESSES: [(u64, u64, &str); 7] = [
    (0xfe, 0x04, " SIMD-FP"),
    (0xfe, 0x00, " GP-REG"),
    (0xfe, 0x10, " UNSPEC-REG"),
    (0xfe, 0x30, " NV-SYSREG"),
    (0xfe, 0x14, " MTE-TAG"),
    (0xfe, 0x20, " MEMCPY"),
    (0xff, 0x25, " MEMSET"),
];

/// Bits of an address.
const ADDRESS: u64 = (1 << 56) - 1;

/// Prints the packet as perf 6.12 does.
impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = self.payload;
        match self.kind {
            PacketKind::Pad | PacketKind::Alignment => f.write_str("PAD"),
            PacketKind::End => f.write_str("END"),
            // perf prints signed numbers.
            PacketKind::Timestamp => write!(f, "TS {}", payload.cast_signed()),
            PacketKind::Source => write!(f, "DATA-SOURCE {}", payload.cast_signed()),
            PacketKind::Context => write!(f, "CONTEXT {payload:#x} el{}", self.index + 1),
            PacketKind::Counter => {
                let name = ["TOT", "ISSUE", "XLAT"].get(usize::from(self.index));
                write!(f, "LAT {payload} {}", name.unwrap_or(&""))
            }
            PacketKind::Events => {
                f.write_str("EV")?;
                flags(f, payload, EVENTS.iter().map(|(bit, name)| (1 << bit, *name)))
            }
            PacketKind::Address => self.address(f),
            PacketKind::Operation => self.operation(f),
        }
    }
}

impl Packet {
    fn address(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = self.payload;
        let (is_not_secure, level) = (payload >> 63, payload >> 61 & 3);
        let address = payload & ADDRESS;
        let code = match self.index {
            0 => "PC",
            1 => "TGT",
            2 => return write!(f, "VA {payload:#x}"),
            3 => {
                let (checked, tag) = (payload >> 62 & 1, payload >> 56 & 0xf);
                return write!(f, "PA {address:#x} ns={is_not_secure} ch={checked} pat={tag:x}");
            }
            4 => "PBT",
            index => return write!(f, "ADDR {payload:#x} ({index})"),
        };
        write!(f, "{code} {address:#x} el{level} ns={is_not_secure}")
    }

    fn operation(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = self.payload;
        match self.index {
            0 if payload & 0x89 == 0x08 => {
                write!(f, "SVE-OTHER EVLEN {}", vector_length(payload))?;
                flags(f, payload, [(1 << 1, "FP"), (1 << 2, "PRED")].into_iter())
            }
            0 if payload & 1 == 1 => f.write_str("OTHER COND-SELECT"),
            0 => f.write_str("OTHER INSN-OTHER"),
            1 => {
                f.write_str(if payload & 1 == 1 { "ST" } else { "LD" })?;
                if payload & 0xe2 == 0x02 {
                    let kinds = [(1 << 2, "AT"), (1 << 3, "EXCL"), (1 << 4, "AR")];
                    flags(f, payload, kinds.into_iter())?;
                }
                let mut accesses = ACCESSES.iter();
                if let Some((_, _, name)) =
                    accesses.find(|(mask, value, _)| payload & mask == *value)
                {
                    f.write_str(name)?;
                }
                if payload & 0x0a != 0x08 {
                    return Ok(());
                }
                write!(f, " EVLEN {}", vector_length(payload))?;
                flags(f, payload, [(1 << 2, "PRED"), (1 << 7, "SG")].into_iter())
            }
            2 => {
                f.write_str("B")?;
                let kinds = [(1 << 0, "COND"), (1 << 1, "IND"), (1 << 2, "GCS")];
                flags(f, payload, kinds.into_iter())?;
                f.write_str(match payload >> 3 & 3 {
                    1 => " CR-BL",
                    2 => " CR-RET",
                    3 => " CR-NON-BL-RET",
                    _ => "",
                })
            }
            index => write!(f, "OP-TYPE {payload:#x} ({index})"),
        }
    }
}

/// Prints the names of the bits that are set.
fn flags(
    f: &mut fmt::Formatter<'_>,
    payload: u64,
    names: impl Iterator<Item = (u64, &'static str)>,
) -> fmt::Result {
    for (_, name) in names.filter(|(bit, _)| payload & bit != 0) {
        write!(f, " {name}")?;
    }
    Ok(())
}

/// Returns the length of SVE's vectors in bits.
fn vector_length(payload: u64) -> u64 {
    32 << (payload >> 4 & 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_perf() {
        use PacketKind::*;
        for (kind, index, payload, text) in [
            (Address, 0, 1 << 63 | 1 << 61 | 0x10, "PC 0x10 el1 ns=1"),
            (Address, 2, 0xab00_0000_0000_0010, "VA 0xab00000000000010"),
            (Address, 3, 1 << 63 | 5 << 56 | 0x10, "PA 0x10 ns=1 ch=0 pat=5"),
            (Address, 9, 0x10, "ADDR 0x10 (9)"),
            (Counter, 0, 12, "LAT 12 TOT"),
            (Counter, 5, 12, "LAT 12 "),
            (Context, 1, 0x42, "CONTEXT 0x42 el2"),
            (Events, 0, 0x12, "EV RETIRED TLB-ACCESS"),
            (Source, 0, 13, "DATA-SOURCE 13"),
            (Operation, 1, 1, "ST GP-REG"),
            (Operation, 1, 0x16, "LD AT AR"),
            (Operation, 1, 0xd8, "LD EVLEN 1024 SG"),
            (Operation, 0, 0x1c, "SVE-OTHER EVLEN 64 PRED"),
            (Operation, 2, 0x13, "B COND IND CR-RET"),
            (Operation, 3, 1, "OP-TYPE 0x1 (3)"),
        ] {
            assert_eq!(Packet::new(kind, index, payload).to_string(), text);
        }
    }
}
