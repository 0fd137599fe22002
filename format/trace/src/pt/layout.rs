//! Opcodes and lengths of packets: the one declaration that reading, measuring and writing share.

/// First byte of packets with a second opcode byte.
pub(super) const EXTENDED: u8 = 0x02;
/// First byte of a time stamp; seven bytes follow.
pub(super) const TSC: u8 = 0x19;
/// First byte of a step of the crystal clock; one byte follows.
pub(super) const MTC: u8 = 0x59;
/// First byte of a mode; one byte follows.
pub(super) const MODE: u8 = 0x99;
/// Low five bits of packets with an address.
pub(super) const TIP: u8 = 0x0d;
pub(super) const TIP_PGE: u8 = 0x11;
pub(super) const TIP_PGD: u8 = 0x01;
pub(super) const FUP: u8 = 0x1d;
/// Low two bits of a count of cycles.
pub(super) const CYC: u8 = 0b11;
/// Low three bits of an item of a block, between BBP and BEP.
pub(super) const BIP: u8 = 0b100;

/// PSB: this pair, eight times.
pub(super) const PSB_PAIR: [u8; 2] = [EXTENDED, PSB];
/// Length of a PSB.
pub(super) const PSB_LEN: usize = 16;

// Second opcode bytes.
pub(super) const PSB: u8 = 0x82;
pub(super) const PSBEND: u8 = 0x23;
pub(super) const LONG_TNT: u8 = 0xa3;
pub(super) const OVF: u8 = 0xf3;
pub(super) const TRACE_STOP: u8 = 0x83;
pub(super) const TMA: u8 = 0x73;
pub(super) const CBR: u8 = 0x03;
pub(super) const PIP: u8 = 0x43;
pub(super) const VMCS: u8 = 0xc8;
pub(super) const MNT: u8 = 0xc3;
/// Third opcode byte of MNT.
pub(super) const MNT_THIRD: u8 = 0x88;
pub(super) const PTWRITE_4: u8 = 0x12;
pub(super) const PTWRITE_8: u8 = 0x32;
pub(super) const EXSTOP: u8 = 0x62;
pub(super) const MWAIT: u8 = 0xc2;
pub(super) const PWRE: u8 = 0x22;
pub(super) const PWRX: u8 = 0xa2;
pub(super) const BBP: u8 = 0x63;
pub(super) const BEP: u8 = 0x33;
pub(super) const CFE: u8 = 0x13;
pub(super) const EVD: u8 = 0x53;
/// In the second opcode byte of PTWRITE, EXSTOP and BEP: a FUP with the address follows.
pub(super) const WITH_IP: u8 = 0x80;

/// Lengths of the payloads behind two opcode bytes.
const PAYLOADS: [(u8, u8); 24] = [
    (PSBEND, 0),
    (LONG_TNT, 6),
    (OVF, 0),
    (TRACE_STOP, 0),
    (TMA, 5),
    (CBR, 2),
    (PIP, 6),
    (VMCS, 5),
    (MNT, 9),
    (PTWRITE_4, 4),
    (PTWRITE_8, 8),
    (PTWRITE_4 | WITH_IP, 4),
    (PTWRITE_8 | WITH_IP, 8),
    (EXSTOP, 0),
    (EXSTOP | WITH_IP, 0),
    (MWAIT, 8),
    (PWRE, 2),
    (PWRX, 5),
    (BBP, 1),
    (BEP, 0),
    (BEP | WITH_IP, 0),
    (CFE, 2),
    (EVD, 9),
    // A PSB is longer, and recognized by all its bytes.
    (PSB, 14),
];

const UNKNOWN: u8 = u8::MAX;

/// By second opcode byte.
const LENGTHS: [u8; 256] = {
    let mut lengths = [UNKNOWN; 256];
    let mut rest: &[(u8, u8)] = &PAYLOADS;
    while let [(opcode, length), others @ ..] = rest {
        if let (_, [place, ..]) = lengths.split_at_mut(*opcode as usize) {
            *place = *length;
        }
        rest = others;
    }
    lengths
};

/// Returns the length of the payload behind a second opcode byte; `None` if there is no such packet.
#[inline]
pub(super) fn payload_len(second: u8) -> Option<usize> {
    let length = LENGTHS.get(usize::from(second)).copied().unwrap_or(UNKNOWN);
    (length != UNKNOWN).then_some(usize::from(length))
}
