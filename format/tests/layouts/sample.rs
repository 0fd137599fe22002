//! Samples with every field, in both byte orders.

use recrep_format::abi::{
    BranchEntry, BranchFlags, BranchKind, BranchNewKind, BranchPrivilege, BranchSampleType,
    BranchSpec, DataSrc, ReadFormat, RegsAbi, SampleType, Weight, WeightParts,
};
use recrep_format::attr::Attr;
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::record::{Body, BranchStack, ReadValues, Record, Regs, SampleFields, StackUser};

use super::{Case, check};

fn attr(sample_type: SampleType) -> Attr {
    Attr {
        sample_type,
        read_format: ReadFormat::from_bits_retain(0x1f),
        branch_sample_type: BranchSampleType::ANY
            | BranchSampleType::HW_INDEX
            | BranchSampleType::COUNTERS,
        sample_regs_user: 0b11,
        sample_regs_intr: 0b1,
        ..Attr::default()
    }
}

/// The branch's third word in each byte order: mispred, 0x102 cycles, type 2, spec 2, new_type 5,
/// priv 5.
const FLAGS: [u8; 8] = [0x21, 0x10, 0x20, 0x56, 1, 0, 0, 0];
const BIG_FLAGS: [u8; 8] = [0x80, 0x10, 0x22, 0x96, 0x80, 0, 0, 0];

/// A load that hit L1, without a snoop, found by the first and the second TLB.
const LOAD: u64 = 0x2_6910_0142;

fn fields(endian: Endian, words: [&[u8]; 6]) -> SampleFields<'_> {
    let [read, chain, branches, counters, user, intr] = words.map(|bytes| U64s::new(bytes, endian));
    SampleFields {
        identifier: Some(1),
        ip: Some(2),
        tid: Some([3, 4]),
        time: Some(5),
        addr: Some(6),
        id: Some(7),
        stream_id: Some(8),
        cpu: Some([9, 0]),
        period: Some(10),
        read: Some(ReadValues { format: ReadFormat::from_bits_retain(0x1f), words: read }),
        callchain: Some(chain),
        raw: Some(b"tracepoint!!"),
        branch_stack: Some(BranchStack {
            hw_idx: Some(19),
            words: branches,
            counters: Some(counters),
        }),
        regs_user: Some(Regs { abi: RegsAbi::ABI_64, mask: 0b11, values: user }),
        stack_user: Some(StackUser { bytes: b"my stack", dyn_size: Some(6) }),
        weight: Some(Weight::Whole(25)),
        data_src: Some(LOAD),
        transaction: Some(26),
        regs_intr: Some(Regs { abi: RegsAbi::ABI_64, mask: 0b1, values: intr }),
        phys_addr: Some(28),
        cgroup: Some(29),
        data_page_size: Some(4096),
        code_page_size: Some(8192),
        aux: Some(b"aux data"),
    }
}

fn checked(endian: Endian, parts: &[&[u8]], words: [&[u8]; 6]) {
    let fields = fields(endian, words);
    let branch = fields.branch_stack.unwrap().entries().next().unwrap();
    assert_eq!(branch, BranchEntry { from: 20, to: 21, flags: BranchFlags(0x1_5620_1021) });
    let flags = branch.flags;
    assert_eq!(
        (flags.mispred(), flags.predicted(), flags.in_tx(), flags.abort()),
        (true, false, false, false)
    );
    assert_eq!(
        (flags.cycles(), flags.kind(), flags.new_kind()),
        (0x102, BranchKind::UNCOND, BranchNewKind::ARCH_3)
    );
    assert_eq!(
        (flags.spec(), flags.privilege()),
        (BranchSpec::NON_SPEC_CORRECT_PATH, BranchPrivilege(5))
    );
    let src = DataSrc(fields.data_src.unwrap());
    assert_eq!(
        (src.op(), src.lvl(), src.snoop(), src.lock(), src.dtlb(), src.lvl_num()),
        (2, 0xa, 2, 1, 0x1a, 1)
    );
    let record = Record::new(2, Body::Sample(Box::new(fields)));
    let attr = attr(SampleType::from_bits_retain((1 << 24) - 1));
    check(&attr, &Case { endian, fields: parts, payload: &[], record });
}

#[test]
fn all_fields_little_endian() {
    let read = [
        &[2u8, 0, 0, 0, 0, 0, 0, 0][..], // nr
        &[11, 0, 0, 0, 0, 0, 0, 0],      // time_enabled
        &[12, 0, 0, 0, 0, 0, 0, 0],      // time_running
        &[13, 0, 0, 0, 0, 0, 0, 0],      // value
        &[1, 0, 0, 0, 0, 0, 0, 0],       // id
        &[14, 0, 0, 0, 0, 0, 0, 0],      // lost
        &[15, 0, 0, 0, 0, 0, 0, 0],      // value
        &[16, 0, 0, 0, 0, 0, 0, 0],      // id
        &[17, 0, 0, 0, 0, 0, 0, 0],      // lost
    ]
    .concat();
    let chain = [&[0, 0xfe, 255, 255, 255, 255, 255, 255][..], &[2, 0, 0, 0, 0, 0, 0, 0]].concat();
    let branches = [&[20, 0, 0, 0, 0, 0, 0, 0][..], &[21, 0, 0, 0, 0, 0, 0, 0], &FLAGS].concat();
    let counters = [22, 0, 0, 0, 0, 0, 0, 0];
    let user = [[23, 0, 0, 0, 0, 0, 0, 0], [24, 0, 0, 0, 0, 0, 0, 0]].concat();
    let intr = [27, 0, 0, 0, 0, 0, 0, 0];
    let parts: &[&[u8]] = &[
        &[9, 0, 0, 0, 2, 0, 0x78, 1], // SAMPLE, user, 376 bytes
        &[1, 0, 0, 0, 0, 0, 0, 0],    // identifier
        &[2, 0, 0, 0, 0, 0, 0, 0],    // ip
        &[3, 0, 0, 0, 4, 0, 0, 0],    // pid, tid
        &[5, 0, 0, 0, 0, 0, 0, 0],    // time
        &[6, 0, 0, 0, 0, 0, 0, 0],    // addr
        &[7, 0, 0, 0, 0, 0, 0, 0],    // id
        &[8, 0, 0, 0, 0, 0, 0, 0],    // stream_id
        &[9, 0, 0, 0, 0, 0, 0, 0],    // cpu, reserved
        &[10, 0, 0, 0, 0, 0, 0, 0],   // period
        &read,
        &[2, 0, 0, 0, 0, 0, 0, 0], // callchain: nr
        &chain,                    // PERF_CONTEXT_USER, the ip
        &[12, 0, 0, 0],            // raw: size
        b"tracepoint!!",
        &[1, 0, 0, 0, 0, 0, 0, 0],  // branch stack: nr
        &[19, 0, 0, 0, 0, 0, 0, 0], // hw_idx
        &branches,                  // from, to, flags
        &counters,
        &[2, 0, 0, 0, 0, 0, 0, 0], // user registers: 64-bit
        &user,
        &[8, 0, 0, 0, 0, 0, 0, 0], // user stack: size
        b"my stack",
        &[6, 0, 0, 0, 0, 0, 0, 0],          // dyn_size
        &[25, 0, 0, 0, 0, 0, 0, 0],         // weight
        &[0x42, 1, 0x10, 0x69, 2, 0, 0, 0], // data_src
        &[26, 0, 0, 0, 0, 0, 0, 0],         // transaction
        &[2, 0, 0, 0, 0, 0, 0, 0],          // registers at the interrupt: 64-bit
        &intr,
        &[28, 0, 0, 0, 0, 0, 0, 0],   // phys_addr
        &[29, 0, 0, 0, 0, 0, 0, 0],   // cgroup
        &[0, 0x10, 0, 0, 0, 0, 0, 0], // data_page_size
        &[0, 0x20, 0, 0, 0, 0, 0, 0], // code_page_size
        &[8, 0, 0, 0, 0, 0, 0, 0],    // aux: size
        b"aux data",
    ];
    checked(Endian::Little, parts, [&read, &chain, &branches, &counters, &user, &intr]);
}

#[test]
fn all_fields_big_endian() {
    let read = [
        &[0u8, 0, 0, 0, 0, 0, 0, 2][..], // nr
        &[0, 0, 0, 0, 0, 0, 0, 11],      // time_enabled
        &[0, 0, 0, 0, 0, 0, 0, 12],      // time_running
        &[0, 0, 0, 0, 0, 0, 0, 13],      // value
        &[0, 0, 0, 0, 0, 0, 0, 1],       // id
        &[0, 0, 0, 0, 0, 0, 0, 14],      // lost
        &[0, 0, 0, 0, 0, 0, 0, 15],      // value
        &[0, 0, 0, 0, 0, 0, 0, 16],      // id
        &[0, 0, 0, 0, 0, 0, 0, 17],      // lost
    ]
    .concat();
    let chain = [&[255, 255, 255, 255, 255, 255, 0xfe, 0][..], &[0, 0, 0, 0, 0, 0, 0, 2]].concat();
    let branches =
        [&[0, 0, 0, 0, 0, 0, 0, 20][..], &[0, 0, 0, 0, 0, 0, 0, 21], &BIG_FLAGS].concat();
    let counters = [0, 0, 0, 0, 0, 0, 0, 22];
    let user = [[0, 0, 0, 0, 0, 0, 0, 23], [0, 0, 0, 0, 0, 0, 0, 24]].concat();
    let intr = [0, 0, 0, 0, 0, 0, 0, 27];
    let parts: &[&[u8]] = &[
        &[0, 0, 0, 9, 0, 2, 1, 0x78], // SAMPLE, user, 376 bytes
        &[0, 0, 0, 0, 0, 0, 0, 1],    // identifier
        &[0, 0, 0, 0, 0, 0, 0, 2],    // ip
        &[0, 0, 0, 3, 0, 0, 0, 4],    // pid, tid
        &[0, 0, 0, 0, 0, 0, 0, 5],    // time
        &[0, 0, 0, 0, 0, 0, 0, 6],    // addr
        &[0, 0, 0, 0, 0, 0, 0, 7],    // id
        &[0, 0, 0, 0, 0, 0, 0, 8],    // stream_id
        &[0, 0, 0, 9, 0, 0, 0, 0],    // cpu, reserved
        &[0, 0, 0, 0, 0, 0, 0, 10],   // period
        &read,
        &[0, 0, 0, 0, 0, 0, 0, 2], // callchain: nr
        &chain,                    // PERF_CONTEXT_USER, the ip
        &[0, 0, 0, 12],            // raw: size
        b"tracepoint!!",
        &[0, 0, 0, 0, 0, 0, 0, 1],  // branch stack: nr
        &[0, 0, 0, 0, 0, 0, 0, 19], // hw_idx
        &branches,                  // from, to, flags
        &counters,
        &[0, 0, 0, 0, 0, 0, 0, 2], // user registers: 64-bit
        &user,
        &[0, 0, 0, 0, 0, 0, 0, 8], // user stack: size
        b"my stack",
        &[0, 0, 0, 0, 0, 0, 0, 6],          // dyn_size
        &[0, 0, 0, 0, 0, 0, 0, 25],         // weight
        &[0, 0, 0, 2, 0x69, 0x10, 1, 0x42], // data_src
        &[0, 0, 0, 0, 0, 0, 0, 26],         // transaction
        &[0, 0, 0, 0, 0, 0, 0, 2],          // registers at the interrupt: 64-bit
        &intr,
        &[0, 0, 0, 0, 0, 0, 0, 28],   // phys_addr
        &[0, 0, 0, 0, 0, 0, 0, 29],   // cgroup
        &[0, 0, 0, 0, 0, 0, 0x10, 0], // data_page_size
        &[0, 0, 0, 0, 0, 0, 0x20, 0], // code_page_size
        &[0, 0, 0, 0, 0, 0, 0, 8],    // aux: size
        b"aux data",
    ];
    checked(Endian::Big, parts, [&read, &chain, &branches, &counters, &user, &intr]);
}

/// The three parts of the weight (7, 5 and 3) are declared once for each byte order, so that the
/// word is the same.
#[test]
fn a_weight_of_three_parts() {
    let attr = attr(SampleType::WEIGHT_STRUCT);
    let parts = WeightParts { var1: 7, var2: 5, var3: 3 };
    let fields = SampleFields { weight: Some(Weight::Parts(parts)), ..SampleFields::default() };
    let record = Record::new(2, Body::Sample(Box::new(fields)));
    let little: &[&[u8]] = &[
        &[9, 0, 0, 0, 2, 0, 16, 0], // SAMPLE, user, 16 bytes
        &[7, 0, 0, 0, 5, 0, 3, 0],  // var1_dw, var2_w, var3_w
    ];
    check(
        &attr,
        &Case { endian: Endian::Little, fields: little, payload: &[], record: record.clone() },
    );
    let big: &[&[u8]] = &[
        &[0, 0, 0, 9, 0, 2, 0, 16], // SAMPLE, user, 16 bytes
        &[0, 3, 0, 5, 0, 0, 0, 7],  // var3_w, var2_w, var1_dw
    ];
    check(&attr, &Case { endian: Endian::Big, fields: big, payload: &[], record });
}
