//! Records of the kernel.

use recrep_format::abi::{
    AttrFlags, AuxFlags, BpfEventType, KSymbolFlags, KSymbolType, ReadFormat, RecordType,
    SampleType, misc,
};
use recrep_format::attr::Attr;
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::record::{
    Aux, AuxOutputHwId, Body, BpfEvent, CallchainDeferred, Cgroup, Comm, Inode, ItraceStart,
    KSymbol, Lost, LostSamples, Mmap, Mmap2, MmapBuildId, MmapIdentity, Namespaces, ReadRecord,
    ReadValues, Record, SampleId, SwitchCpuWide, Task, TextPoke, Throttle,
};
use recrep_format::wire::Text;

use super::{Case, check};

/// Process 3, thread 4, time 5, CPU 6 with a reserved word, identifier 7.
const TRAILER: &[u8] = &[
    3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0,
];
const BIG_TRAILER: &[u8] = &[
    0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7,
];

fn attr(read_format: ReadFormat) -> Attr {
    let sample_type = SampleType::TID | SampleType::TIME | SampleType::CPU | SampleType::IDENTIFIER;
    Attr { sample_type, read_format, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() }
}

fn checked(
    endian: Endian,
    read_format: ReadFormat,
    fields: &[&[u8]],
    bits: u16,
    body: Body<'_>,
) -> RecordType {
    let trailer = SampleId {
        tid: Some([3, 4]),
        time: Some(5),
        cpu: Some([6, 0]),
        identifier: Some(7),
        ..SampleId::default()
    };
    let record = Record::new(bits, body).with_trailer(trailer);
    let end = if endian == Endian::Big { BIG_TRAILER } else { TRAILER };
    let fields = [fields, &[end]].concat();
    check(&attr(read_format), &Case { endian, fields: &fields, payload: &[], record })
}

fn little(fields: &[&[u8]], bits: u16, body: Body<'_>) -> RecordType {
    checked(Endian::Little, ReadFormat::default(), fields, bits, body)
}

fn mmap2(identity: MmapIdentity) -> Body<'static> {
    let filename = Text::new(b"/bin/ls");
    let (pid, tid, addr, len, pgoff) = (1, 2, 0x40_1000, 0x2000, 0x1000);
    Body::Mmap2(Mmap2 { pid, tid, addr, len, pgoff, identity, prot: 5, flags: 2, filename })
}

const INODE: MmapIdentity =
    MmapIdentity::Inode(Inode { maj: 8, min: 1, ino: 0x1234, ino_generation: 9 });
const BUILD_ID: MmapIdentity = MmapIdentity::BuildId(MmapBuildId {
    size: 16,
    reserved: [0; 3],
    bytes: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 0, 0, 0],
});

fn mappings() -> Vec<RecordType> {
    let filename = Text::new(b"/bin/ls");
    let by_inode = |high, bits| {
        little(
            &[
                &[10, 0, 0, 0, 2, high, 112, 0], // MMAP2, misc, 112 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],       // pid, tid
                &[0, 0x10, 0x40, 0, 0, 0, 0, 0], // addr
                &[0, 0x20, 0, 0, 0, 0, 0, 0],    // len
                &[0, 0x10, 0, 0, 0, 0, 0, 0],    // pgoff
                &[8, 0, 0, 0, 1, 0, 0, 0],       // maj, min
                &[0x34, 0x12, 0, 0, 0, 0, 0, 0], // ino
                &[9, 0, 0, 0, 0, 0, 0, 0],       // ino_generation
                &[5, 0, 0, 0, 2, 0, 0, 0],       // prot, flags
                b"/bin/ls\0",                    // filename
            ],
            bits,
            mmap2(INODE),
        )
    };
    vec![
        little(
            &[
                &[1, 0, 0, 0, 2, 0, 80, 0],      // MMAP, user, 80 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],       // pid, tid
                &[0, 0x10, 0x40, 0, 0, 0, 0, 0], // addr
                &[0, 0x20, 0, 0, 0, 0, 0, 0],    // len
                &[0, 0x10, 0, 0, 0, 0, 0, 0],    // pgoff
                b"/bin/ls\0",                    // filename
            ],
            2,
            Body::Mmap(Mmap {
                pid: 1,
                tid: 2,
                addr: 0x40_1000,
                len: 0x2000,
                pgoff: 0x1000,
                filename,
            }),
        ),
        by_inode(0, 2),
        little(
            &[
                &[10, 0, 0, 0, 2, 0x40, 112, 0], // MMAP2, user and MMAP_BUILD_ID, 112 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],       // pid, tid
                &[0, 0x10, 0x40, 0, 0, 0, 0, 0], // addr
                &[0, 0x20, 0, 0, 0, 0, 0, 0],    // len
                &[0, 0x10, 0, 0, 0, 0, 0, 0],    // pgoff
                &[16, 0, 0, 0],                  // build_id_size, reserved
                &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 0, 0, 0],
                &[5, 0, 0, 0, 2, 0, 0, 0], // prot, flags
                b"/bin/ls\0",              // filename
            ],
            2 | misc::MMAP_BUILD_ID,
            mmap2(BUILD_ID),
        ),
        // The bit is another event's.
        by_inode(0x40, 2 | misc::MMAP_BUILD_ID),
    ]
}

fn tasks() -> Vec<RecordType> {
    let task = Task { pid: 1, ppid: 2, tid: 3, ptid: 4, time: 5 };
    let throttle = Throttle { time: 1, id: 2, stream_id: 3 };
    vec![
        little(
            &[
                &[3, 0, 0, 0, 0, 0x20, 56, 0], // COMM, COMM_EXEC, 56 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],     // pid, tid
                b"sleep\0\0\0",                // comm
            ],
            misc::COMM_EXEC,
            Body::Comm(Comm { pid: 1, tid: 2, comm: Text::new(b"sleep") }),
        ),
        little(
            &[
                &[4, 0, 0, 0, 0, 0, 64, 0], // EXIT, 64 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],  // pid, ppid
                &[3, 0, 0, 0, 4, 0, 0, 0],  // tid, ptid
                &[5, 0, 0, 0, 0, 0, 0, 0],  // time
            ],
            0,
            Body::Exit(task),
        ),
        little(
            &[
                &[7, 0, 0, 0, 0, 0, 64, 0], // FORK, 64 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],  // pid, ppid
                &[3, 0, 0, 0, 4, 0, 0, 0],  // tid, ptid
                &[5, 0, 0, 0, 0, 0, 0, 0],  // time
            ],
            0,
            Body::Fork(task),
        ),
        little(
            &[
                &[5, 0, 0, 0, 0, 0, 64, 0], // THROTTLE, 64 bytes
                &[1, 0, 0, 0, 0, 0, 0, 0],  // time
                &[2, 0, 0, 0, 0, 0, 0, 0],  // id
                &[3, 0, 0, 0, 0, 0, 0, 0],  // stream_id
            ],
            0,
            Body::Throttle(throttle),
        ),
        little(
            &[
                &[6, 0, 0, 0, 0, 0, 64, 0], // UNTHROTTLE, 64 bytes
                &[1, 0, 0, 0, 0, 0, 0, 0],  // time
                &[2, 0, 0, 0, 0, 0, 0, 0],  // id
                &[3, 0, 0, 0, 0, 0, 0, 0],  // stream_id
            ],
            0,
            Body::Unthrottle(throttle),
        ),
    ]
}

fn losses_and_reads() -> Vec<RecordType> {
    let alone = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING | ReadFormat::ID;
    let group = ReadFormat::GROUP | ReadFormat::ID;
    let words = |bytes| U64s::new(bytes, Endian::Little);
    let value = words(&[
        9, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0,
        0, 0,
    ]);
    let values = words(&[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
    let read = |format, words| {
        Body::Read(ReadRecord { pid: 1, tid: 2, values: ReadValues { format, words } })
    };
    vec![
        little(
            &[
                &[2, 0, 0, 0, 0, 0, 56, 0], // LOST, 56 bytes
                &[1, 0, 0, 0, 0, 0, 0, 0],  // id
                &[2, 0, 0, 0, 0, 0, 0, 0],  // lost
            ],
            0,
            Body::Lost(Lost { id: 1, lost: 2 }),
        ),
        little(
            &[
                &[13, 0, 0, 0, 0, 0x80, 48, 0], // LOST_SAMPLES, LOST_SAMPLES_BPF, 48 bytes
                &[2, 0, 0, 0, 0, 0, 0, 0],      // lost
            ],
            misc::LOST_SAMPLES_BPF,
            Body::LostSamples(LostSamples { lost: 2 }),
        ),
        checked(
            Endian::Little,
            alone,
            &[
                &[8, 0, 0, 0, 0, 0, 80, 0], // READ, 80 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],  // pid, tid
                &[9, 0, 0, 0, 0, 0, 0, 0],  // value
                &[8, 0, 0, 0, 0, 0, 0, 0],  // time_enabled
                &[7, 0, 0, 0, 0, 0, 0, 0],  // time_running
                &[6, 0, 0, 0, 0, 0, 0, 0],  // id
            ],
            0,
            read(alone, value),
        ),
        checked(
            Endian::Little,
            group,
            &[
                &[8, 0, 0, 0, 0, 0, 72, 0], // READ, 72 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],  // pid, tid
                &[1, 0, 0, 0, 0, 0, 0, 0],  // nr
                &[9, 0, 0, 0, 0, 0, 0, 0],  // value
                &[6, 0, 0, 0, 0, 0, 0, 0],  // id
            ],
            0,
            read(group, values),
        ),
    ]
}

fn traces_and_switches() -> Vec<RecordType> {
    let links = U64s::new(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0], Endian::Little);
    let ips = U64s::new(
        &[0, 0xfe, 255, 255, 255, 255, 255, 255, 0x23, 1, 0, 0, 0, 0, 0, 0],
        Endian::Little,
    );
    vec![
        little(
            &[
                &[11, 0, 0, 0, 0, 0, 64, 0],  // AUX, 64 bytes
                &[0, 0x10, 0, 0, 0, 0, 0, 0], // aux_offset
                &[0, 2, 0, 0, 0, 0, 0, 0],    // aux_size
                &[1, 0, 0, 0, 0, 0, 0, 0],    // flags: truncated
            ],
            0,
            Body::Aux(Aux { aux_offset: 0x1000, aux_size: 0x200, flags: AuxFlags::TRUNCATED }),
        ),
        little(
            &[
                &[12, 0, 0, 0, 0, 0, 48, 0], // ITRACE_START, 48 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],   // pid, tid
            ],
            0,
            Body::ItraceStart(ItraceStart { pid: 1, tid: 2 }),
        ),
        little(
            &[&[14, 0, 0, 0, 0, 0x60, 40, 0]], // SWITCH, SWITCH_OUT and SWITCH_OUT_PREEMPT, 40 bytes
            misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT,
            Body::Switch,
        ),
        little(
            &[
                &[15, 0, 0, 0, 0, 0, 48, 0], // SWITCH_CPU_WIDE, 48 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],   // next_prev_pid, next_prev_tid
            ],
            0,
            Body::SwitchCpuWide(SwitchCpuWide { next_prev_pid: 1, next_prev_tid: 2 }),
        ),
        little(
            &[
                &[16, 0, 0, 0, 0, 0, 72, 0], // NAMESPACES, 72 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],   // pid, tid
                &[1, 0, 0, 0, 0, 0, 0, 0],   // nr_namespaces
                &[1, 0, 0, 0, 0, 0, 0, 0],   // dev
                &[2, 0, 0, 0, 0, 0, 0, 0],   // inode
            ],
            0,
            Body::Namespaces(Namespaces { pid: 1, tid: 2, nr_namespaces: 1, links }),
        ),
        little(
            &[
                &[21, 0, 0, 0, 0, 0, 48, 0], // AUX_OUTPUT_HW_ID, 48 bytes
                &[7, 0, 0, 0, 0, 0, 0, 0],   // hw_id
            ],
            0,
            Body::AuxOutputHwId(AuxOutputHwId { hw_id: 7 }),
        ),
        little(
            &[
                &[22, 0, 0, 0, 2, 0, 72, 0], // CALLCHAIN_DEFERRED, user, 72 bytes
                &[5, 0, 0, 0, 0, 0, 0, 0],   // cookie
                &[2, 0, 0, 0, 0, 0, 0, 0],   // nr
                &[0, 0xfe, 255, 255, 255, 255, 255, 255], // PERF_CONTEXT_USER
                &[0x23, 1, 0, 0, 0, 0, 0, 0], // an address
            ],
            2,
            Body::CallchainDeferred(CallchainDeferred { cookie: 5, nr: 2, ips }),
        ),
    ]
}

fn kernel_text() -> Vec<RecordType> {
    vec![
        little(
            &[
                &[17, 0, 0, 0, 0, 0, 64, 0],             // KSYMBOL, 64 bytes
                &[0, 0x10, 0, 0x81, 255, 255, 255, 255], // addr
                &[0x40, 0, 0, 0],                        // len
                &[1, 0, 2, 0],                           // ksym_type: BPF, flags
                b"bpf_pro\0",                            // name
            ],
            0,
            Body::KSymbol(KSymbol {
                addr: 0xffff_ffff_8100_1000,
                len: 0x40,
                ksym_type: KSymbolType::BPF,
                flags: KSymbolFlags::from_bits_retain(2),
                name: Text::new(b"bpf_pro"),
            }),
        ),
        little(
            &[
                &[18, 0, 0, 0, 0, 0, 56, 0], // BPF_EVENT, 56 bytes
                &[1, 0, 2, 0],               // type: loaded, flags
                &[9, 0, 0, 0],               // id
                b"tagtagta",                 // tag
            ],
            0,
            Body::BpfEvent(BpfEvent {
                event_type: BpfEventType::PROG_LOAD,
                flags: 2,
                id: 9,
                tag: *b"tagtagta",
            }),
        ),
        little(
            &[
                &[19, 0, 0, 0, 0, 0, 56, 0], // CGROUP, 56 bytes
                &[9, 0, 0, 0, 0, 0, 0, 0],   // id
                b"/a/b\0\0\0\0",             // path
            ],
            0,
            Body::Cgroup(Cgroup { id: 9, path: Text::new(b"/a/b") }),
        ),
        little(
            &[
                &[20, 0, 0, 0, 0, 0, 56, 0],             // TEXT_POKE, 56 bytes
                &[0, 0x10, 0, 0x81, 255, 255, 255, 255], // addr
                &[1, 0, 2, 0],                           // old_len, new_len
                &[0x90, 0xeb, 0xfe, 0],                  // old bytes, new bytes, padding
            ],
            0,
            Body::TextPoke(TextPoke {
                addr: 0xffff_ffff_8100_1000,
                old_len: 1,
                new_len: 2,
                bytes: &[0x90, 0xeb, 0xfe, 0],
            }),
        ),
    ]
}

/// Checks all of them, and says which types they have.
pub(super) fn all() -> Vec<RecordType> {
    [mappings(), tasks(), losses_and_reads(), traces_and_switches(), kernel_text()].concat()
}

#[test]
fn mappings_of_big_endian_machines() {
    let big = |fields: &[&[u8]], bits, body| {
        checked(Endian::Big, ReadFormat::default(), fields, bits, body)
    };
    big(
        &[
            &[0, 0, 0, 10, 0, 2, 0, 112],    // MMAP2, user, 112 bytes
            &[0, 0, 0, 1, 0, 0, 0, 2],       // pid, tid
            &[0, 0, 0, 0, 0, 0x40, 0x10, 0], // addr
            &[0, 0, 0, 0, 0, 0, 0x20, 0],    // len
            &[0, 0, 0, 0, 0, 0, 0x10, 0],    // pgoff
            &[0, 0, 0, 8, 0, 0, 0, 1],       // maj, min
            &[0, 0, 0, 0, 0, 0, 0x12, 0x34], // ino
            &[0, 0, 0, 0, 0, 0, 0, 9],       // ino_generation
            &[0, 0, 0, 5, 0, 0, 0, 2],       // prot, flags
            b"/bin/ls\0",                    // filename
        ],
        2,
        mmap2(INODE),
    );
    big(
        &[
            &[0, 0, 0, 10, 0x40, 2, 0, 112], // MMAP2, user and MMAP_BUILD_ID, 112 bytes
            &[0, 0, 0, 1, 0, 0, 0, 2],       // pid, tid
            &[0, 0, 0, 0, 0, 0x40, 0x10, 0], // addr
            &[0, 0, 0, 0, 0, 0, 0x20, 0],    // len
            &[0, 0, 0, 0, 0, 0, 0x10, 0],    // pgoff
            &[16, 0, 0, 0],                  // build_id_size, reserved
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 0, 0, 0],
            &[0, 0, 0, 5, 0, 0, 0, 2], // prot, flags
            b"/bin/ls\0",              // filename
        ],
        2 | misc::MMAP_BUILD_ID,
        mmap2(BUILD_ID),
    );
}
