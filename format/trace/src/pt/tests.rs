use super::{
    CodeSize, Context, Damage, Ip, IpForm, LastIp, Outcomes, Packet, Packets, Width, find_psb,
};

const PSB: [u8; 16] = [2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82];

/// Packets, their bytes by the manual, and perf's text.
fn packets() -> Vec<(Packet, &'static [u8], &'static str)> {
    use Packet as P;
    let ip = |form, bits| Ip { form, bits };
    vec![
        (P::Pad, &[0], "PAD"),
        (P::Psb, &PSB, "PSB"),
        (P::PsbEnd, &[2, 0x23], "PSBEND"),
        (P::Tnt(Outcomes { bits: 1, len: 1 }), &[0b110], "TNT T (1)"),
        (P::Tnt(Outcomes { bits: 0, len: 1 }), &[0b100], "TNT N (1)"),
        (P::Tnt(Outcomes { bits: 0b10_1100, len: 6 }), &[0b1101_1000], "TNT TNTTNN (6)"),
        (
            P::Tnt(Outcomes { bits: 0x55, len: 7 }),
            &[2, 0xa3, 0xd5, 0, 0, 0, 0, 0],
            "TNT TNTNTNT (7)",
        ),
        (P::Tip(Ip::NONE), &[0x0d], "TIP no ip"),
        (P::Tip(ip(IpForm::Low16, 0x1234)), &[0x2d, 0x34, 0x12], "TIP 0x1234"),
        (
            P::TipPge(ip(IpForm::Low32, 0x8765_4321)),
            &[0x51, 0x21, 0x43, 0x65, 0x87],
            "TIP.PGE 0x87654321",
        ),
        (
            P::TipPgd(ip(IpForm::Signed48, 0xf234_5678_9abc)),
            &[0x61, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0xf2],
            "TIP.PGD 0xf23456789abc",
        ),
        (P::Fup(ip(IpForm::Low48, 1)), &[0x9d, 1, 0, 0, 0, 0, 0], "FUP 0x1"),
        (
            P::Fup(ip(IpForm::Full, 0x8877_6655_4433_2211)),
            &[0xdd, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88],
            "FUP 0x8877665544332211",
        ),
        (P::ModeExec(CodeSize::Bits64, false), &[0x99, 1], "MODE.Exec IF:0 64"),
        (P::ModeExec(CodeSize::Bits32, true), &[0x99, 6], "MODE.Exec IF:1 32"),
        (P::ModeExec(CodeSize::Bits16, false), &[0x99, 0], "MODE.Exec IF:0 16"),
        (P::ModeTsx { is_in: true, is_aborted: false }, &[0x99, 0x21], "MODE.TSX TXAbort:0 InTX:1"),
        (P::Tsc(0x07_0605_0403_0201), &[0x19, 1, 2, 3, 4, 5, 6, 7], "TSC 0x7060504030201"),
        (
            P::Tma { crystal: 0x1234, fast: 0x156 },
            &[2, 0x73, 0x34, 0x12, 0, 0x56, 1],
            "TMA CTC 0x1234 FC 0x156",
        ),
        (P::Mtc(0x7f), &[0x59, 0x7f], "MTC 0x7f"),
        (P::Cyc(0x1f), &[0xfb], "CYC 0x1f"),
        (P::Cyc(0x20), &[0x07, 0x02], "CYC 0x20"),
        (P::Cyc(0x1000), &[0x07, 0x01, 0x02], "CYC 0x1000"),
        (P::Cbr(0x22), &[2, 3, 0x22, 0], "CBR 0x22"),
        (P::Pip(0x5a_1234, true), &[2, 0x43, 0x69, 0x24, 0xb4, 0, 0, 0], "PIP 0x5a1234 (NR=1)"),
        (P::Vmcs(0x05_0403_0201), &[2, 0xc8, 1, 2, 3, 4, 5], "VMCS 0x504030201"),
        (
            P::Mnt(0x0807_0605_0403_0201),
            &[2, 0xc3, 0x88, 1, 2, 3, 4, 5, 6, 7, 8],
            "MNT 0x807060504030201",
        ),
        (P::Ovf, &[2, 0xf3], "OVF"),
        (P::TraceStop, &[2, 0x83], "TraceSTOP"),
        (
            P::PtWrite(0x0403_0201, Width::Four, false),
            &[2, 0x12, 1, 2, 3, 4],
            "PTWRITE 0x4030201 IP:0",
        ),
        (
            P::PtWrite(0x0807_0605_0403_0201, Width::Eight, true),
            &[2, 0xb2, 1, 2, 3, 4, 5, 6, 7, 8],
            "PTWRITE 0x807060504030201 IP:1",
        ),
        (P::ExStop(false), &[2, 0x62], "EXSTOP IP:0"),
        (P::ExStop(true), &[2, 0xe2], "EXSTOP IP:1"),
        (
            P::MWait(0x1_0000_0020),
            &[2, 0xc2, 0x20, 0, 0, 0, 1, 0, 0, 0],
            "MWAIT 0x100000020 Hints 0x20 Extensions 0x1",
        ),
        (P::Pwre(0x3280), &[2, 0x22, 0x80, 0x32], "PWRE 0x3280 HW:1 CState:3 Sub-CState:2"),
        (
            P::Pwrx(0x112),
            &[2, 0xa2, 0x12, 1, 0, 0, 0],
            "PWRX 0x112 Last CState:1 Deepest CState:2 Wake Reason 0x1",
        ),
        (P::Bbp(4, Width::Four), &[2, 0x63, 0x84], "BBP SZ 4-byte Type 0x4"),
        (P::Bbp(1, Width::Eight), &[2, 0x63, 1], "BBP SZ 8-byte Type 0x1"),
        (P::Bep(false), &[2, 0x33], "BEP IP:0"),
        (P::Bep(true), &[2, 0xb3], "BEP IP:1"),
        (P::Cfe(6, 9, true), &[2, 0x13, 0x86, 9], "CFE IP:1 Type 0x06 Vector 0x9"),
        (P::Evd(1, 2), &[2, 0x53, 1, 2, 0, 0, 0, 0, 0, 0, 0], "EVD Type 0x01 Payload 0x2"),
    ]
}

#[test]
fn packets_are_read_written_and_printed() {
    for (packet, bytes, text) in packets() {
        let read = Packet::from_bytes(bytes, Context::Usual);
        assert_eq!(read, Ok((packet, bytes.len())), "{bytes:02x?}");
        let mut longer = bytes.to_vec();
        longer.extend([0xff; 9]);
        assert_eq!(Packet::from_bytes(&longer, Context::Usual), Ok((packet, bytes.len())));
        let mut written = Vec::new();
        packet.write(&mut written);
        assert_eq!(written, bytes, "{packet:?}");
        assert_eq!(packet.to_string(), text);
        for len in 0..bytes.len() {
            let read = Packet::from_bytes(&bytes[..len], Context::Usual);
            assert_eq!(read, Err(Damage::Truncated), "{packet:?} of {len} bytes");
        }
    }
}

#[test]
fn items_of_a_block_look_like_outcomes() {
    let trace = [2, 0x63, 0x84, 0x0c, 1, 2, 3, 4, 2, 0x33, 0x0c];
    let read: Vec<_> = Packets::from_bytes(&trace).map(|found| found.packet.unwrap()).collect();
    let expected = [
        Packet::Bbp(4, Width::Four),
        Packet::Bip(1, 0x0403_0201, Width::Four),
        Packet::Bep(false),
        Packet::Tnt(Outcomes { bits: 0b10, len: 2 }),
    ];
    assert_eq!(read, expected);
    let mut written = Vec::new();
    for packet in expected {
        packet.write(&mut written);
    }
    assert_eq!(written, trace);
}

#[test]
fn bytes_that_begin_no_packet_are_damage() {
    let bad: [&[u8]; 8] = [
        &[2, 0xff],
        &[0x09],
        &[0xad, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x99, 3],
        &[0x99, 0xe0],
        &[2, 0x82, 2, 0x82, 2, 0x83],
        &[2, 0xa3, 0, 0, 0, 0, 0, 0],
        &[2, 0xc3, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    for bytes in bad {
        assert_eq!(Packet::from_bytes(bytes, Context::Usual), Err(Damage::Unknown), "{bytes:02x?}");
    }
    let endless = [0xff; 40];
    assert_eq!(Packet::from_bytes(&endless, Context::Usual), Err(Damage::Unknown));
}

#[test]
fn addresses_are_compressed_against_the_last() {
    let mut written = LastIp::default();
    let mut read = LastIp::default();
    let cases = [
        (0x7fff_1234_5678, IpForm::Signed48),
        (0x7fff_1234_9abc, IpForm::Low16),
        (0x7fff_4321_9abc, IpForm::Low32),
        (0xffff_8000_0000_0001, IpForm::Signed48),
        (0x1234_8000_0000_0001, IpForm::Full),
        (0x1234_7000_0000_0001, IpForm::Low48),
        (0x1234_7000_0000_0001, IpForm::Low16),
    ];
    for (address, form) in cases {
        let ip = written.compress(address);
        assert_eq!(ip.form, form, "{address:#x}");
        assert_eq!(read.update(ip), Some(address));
    }
    assert_eq!(read.update(Ip::NONE), None);
    assert_eq!(read, written);
}

#[test]
fn psbs_are_found_at_any_offset() {
    for before in 0..40 {
        for fill in [0, 2, 0x82] {
            let mut bytes = vec![fill; before];
            bytes.extend(PSB);
            bytes.extend([fill; 20]);
            let slow = bytes.windows(16).position(|window| window == PSB);
            assert_eq!(find_psb(&bytes), slow, "{before} bytes {fill:#x}");
        }
    }
    assert_eq!(find_psb(&PSB[..15]), None);
    assert_eq!(find_psb(&[]), None);
}
