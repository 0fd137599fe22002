//! `struct perf_event_attr`, in both byte orders.

use recrep_format::abi::{AttrFlags, BranchSampleType, EventType, ReadFormat, SampleType};
use recrep_format::attr::Attr;
use recrep_format::bytes::{Cursor, Encoder};
use recrep_format::endian::Endian;

fn attr() -> Attr {
    let flags = AttrFlags::DISABLED
        | AttrFlags::FREQ
        | AttrFlags::SAMPLE_ID_ALL
        | AttrFlags::SIGTRAP
        | AttrFlags::DEFER_OUTPUT;
    Attr {
        kind: EventType::RAW,
        size: 144,
        config: 0x1a8,
        sample_period: 4000,
        sample_type: SampleType::IP | SampleType::TIME | SampleType::IDENTIFIER,
        read_format: ReadFormat::GROUP | ReadFormat::ID,
        flags: flags.with_precise_ip(2),
        wakeup: 1,
        bp_type: 2,
        config1: 3,
        config2: 4,
        branch_sample_type: BranchSampleType::USER | BranchSampleType::ANY,
        sample_regs_user: 5,
        sample_stack_user: 6,
        clockid: -1,
        sample_regs_intr: 7,
        aux_watermark: 8,
        sample_max_stack: 127,
        reserved_2: 0,
        aux_sample_size: 9,
        aux_action: 0b011,
        sig_data: 10,
        config3: 11,
        config4: 12,
        ..Attr::default()
    }
}

fn check(endian: Endian, fields: &[&[u8]], attr: &Attr) {
    let bytes = fields.concat();
    assert_eq!(
        &Attr::decode(&mut Cursor::new(&bytes, 0, endian), bytes.len()).unwrap(),
        attr,
        "{endian:?}"
    );
    let mut e = Encoder::new(endian);
    attr.encode(&mut e, bytes.len()).unwrap();
    assert_eq!(e.as_bytes(), bytes, "{endian:?}");
}

#[test]
fn all_fields_little_endian() {
    check(
        Endian::Little,
        &[
            &[4, 0, 0, 0, 144, 0, 0, 0],     // type, size
            &[0xa8, 1, 0, 0, 0, 0, 0, 0],    // config
            &[0xa0, 0x0f, 0, 0, 0, 0, 0, 0], // sample_freq
            &[5, 0, 1, 0, 0, 0, 0, 0],       // sample_type
            &[12, 0, 0, 0, 0, 0, 0, 0],      // read_format
            // disabled (bit 0); freq (10); precise_ip (15, 16), sample_id_all (18); sigtrap (37),
            // defer_output (39)
            &[0x01, 0x04, 0x05, 0, 0xa0, 0, 0, 0],
            &[1, 0, 0, 0, 2, 0, 0, 0],         // wakeup_events, bp_type
            &[3, 0, 0, 0, 0, 0, 0, 0],         // config1
            &[4, 0, 0, 0, 0, 0, 0, 0],         // config2
            &[9, 0, 0, 0, 0, 0, 0, 0],         // branch_sample_type
            &[5, 0, 0, 0, 0, 0, 0, 0],         // sample_regs_user
            &[6, 0, 0, 0, 255, 255, 255, 255], // sample_stack_user, clockid
            &[7, 0, 0, 0, 0, 0, 0, 0],         // sample_regs_intr
            &[8, 0, 0, 0, 127, 0, 0, 0],       // aux_watermark, sample_max_stack, reserved
            &[9, 0, 0, 0, 3, 0, 0, 0],         // aux_sample_size; aux_start_paused, aux_pause
            &[10, 0, 0, 0, 0, 0, 0, 0],        // sig_data
            &[11, 0, 0, 0, 0, 0, 0, 0],        // config3
            &[12, 0, 0, 0, 0, 0, 0, 0],        // config4
        ],
        &attr(),
    );
}

#[test]
fn all_fields_big_endian() {
    check(
        Endian::Big,
        &[
            &[0, 0, 0, 4, 0, 0, 0, 144],     // type, size
            &[0, 0, 0, 0, 0, 0, 1, 0xa8],    // config
            &[0, 0, 0, 0, 0, 0, 0x0f, 0xa0], // sample_freq
            &[0, 0, 0, 0, 0, 1, 0, 5],       // sample_type
            &[0, 0, 0, 0, 0, 0, 0, 12],      // read_format
            // The same fields counted from the highest bit; the higher bit of precise_ip comes
            // first.
            &[0x80, 0x21, 0x20, 0, 0x05, 0, 0, 0],
            &[0, 0, 0, 1, 0, 0, 0, 2],         // wakeup_events, bp_type
            &[0, 0, 0, 0, 0, 0, 0, 3],         // config1
            &[0, 0, 0, 0, 0, 0, 0, 4],         // config2
            &[0, 0, 0, 0, 0, 0, 0, 9],         // branch_sample_type
            &[0, 0, 0, 0, 0, 0, 0, 5],         // sample_regs_user
            &[0, 0, 0, 6, 255, 255, 255, 255], // sample_stack_user, clockid
            &[0, 0, 0, 0, 0, 0, 0, 7],         // sample_regs_intr
            &[0, 0, 0, 8, 0, 127, 0, 0],       // aux_watermark, sample_max_stack, reserved
            &[0, 0, 0, 9, 0xc0, 0, 0, 0],      // aux_sample_size; aux_start_paused, aux_pause
            &[0, 0, 0, 0, 0, 0, 0, 10],        // sig_data
            &[0, 0, 0, 0, 0, 0, 0, 11],        // config3
            &[0, 0, 0, 0, 0, 0, 0, 12],        // config4
        ],
        &attr(),
    );
}

/// Each level of `precise_ip` alone in the flags.
#[test]
fn precise_ip_is_a_field_of_two_bits() {
    let levels: [([u8; 4], [u8; 4]); 4] = [
        ([0, 0, 0, 0], [0, 0, 0, 0]),
        ([0, 0x80, 0, 0], [0, 0, 0x80, 0]),
        ([0, 0, 0x01, 0], [0, 0x01, 0, 0]),
        ([0, 0x80, 0x01, 0], [0, 0x01, 0x80, 0]),
    ];
    for (level, (little, big)) in (0..).zip(&levels) {
        let attr = Attr { flags: AttrFlags::empty().with_precise_ip(level), ..Attr::default() };
        check(Endian::Little, &[&[0; 40], little, &[0; 20]], &attr);
        check(Endian::Big, &[&[0; 40], big, &[0; 20]], &attr);
    }
}
