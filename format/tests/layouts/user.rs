//! perf's own records.

use recrep_format::abi::{
    AuxtraceErrorKind, AuxtraceKind, Cpu, Pid, RecordType, StatRoundKind, Tid, misc,
};
use recrep_format::attr::Attr;
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::record::{
    Auxtrace, AuxtraceError, AuxtraceInfo, Body, BpfMetadata, Compressed, Compressed2, CpuMap,
    CpuSet, EventProperty, EventUpdate, HeaderAttr, HeaderBuildId, HeaderEventType, HeaderFeature,
    HeaderTracingData, IdIndex, Record, SchedstatCpu, SchedstatDomain, Stat, StatConfig, StatRound,
    ThreadMap, ThreadMapEntry, TimeConv, TimeConvShort,
};
use recrep_format::wire::Text;

use super::{Case, check};

fn checked(endian: Endian, fields: &[&[u8]], bits: u16, body: Body<'_>) -> RecordType {
    check(&Attr::default(), &Case { endian, fields, payload: &[], record: Record::new(bits, body) })
}

fn little(fields: &[&[u8]], body: Body<'_>) -> RecordType {
    checked(Endian::Little, fields, 0, body)
}

const RAW_ID: [u8; 24] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 20, 0, 0, 0];

fn build_id() -> Body<'static> {
    Body::HeaderBuildId(HeaderBuildId {
        pid: Pid::ANY,
        raw: RAW_ID,
        filename: Text::new(b"/bin/ls"),
    })
}

fn headers() -> Vec<RecordType> {
    let attr = Attr { size: 64, config: 1, sample_period: 2, ..Attr::default() };
    let ids = U64s::new(&[7, 0, 0, 0, 0, 0, 0, 0], Endian::Little);
    let tracing = Record {
        rest: &[0; 4],
        ..Record::new(0, Body::HeaderTracingData(HeaderTracingData { size: 8 }))
    };
    vec![
        little(
            &[
                &[64, 0, 0, 0, 0, 0, 80, 0], // ATTR, 80 bytes
                &[0, 0, 0, 0, 64, 0, 0, 0],  // type, size
                &[1, 0, 0, 0, 0, 0, 0, 0],   // config
                &[2, 0, 0, 0, 0, 0, 0, 0],   // sample_period
                &[0; 40],                    // sample_type … config1
                &[7, 0, 0, 0, 0, 0, 0, 0],   // id
            ],
            Body::HeaderAttr(HeaderAttr { attr, ids }),
        ),
        little(
            &[
                &[65, 0, 0, 0, 0, 0, 40, 0], // EVENT_TYPE, 40 bytes
                &[9, 0, 0, 0, 0, 0, 0, 0],   // event_id
                b"sched:sched_switch",       // name
                &[0; 6],
            ],
            Body::HeaderEventType(HeaderEventType {
                event_id: 9,
                name: Text::new(b"sched:sched_switch"),
            }),
        ),
        check(
            &Attr::default(),
            &Case {
                endian: Endian::Little,
                fields: &[
                    &[66, 0, 0, 0, 0, 0, 16, 0], // TRACING_DATA, 16 bytes
                    &[8, 0, 0, 0],               // size of what follows
                    &[0; 4],                     // padding
                ],
                payload: b"tracing!",
                record: tracing,
            },
        ),
        checked(
            Endian::Little,
            &[
                &[67, 0, 0, 0, 2, 0x80, 44, 0], // BUILD_ID, user and BUILD_ID_SIZE, 44 bytes
                &[255, 255, 255, 255],          // pid
                &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
                &[20, 0, 0, 0], // size, reserved
                b"/bin/ls\0",   // filename
            ],
            2 | misc::BUILD_ID_SIZE,
            build_id(),
        ),
        little(&[&[68, 0, 0, 0, 0, 0, 8, 0]], Body::FinishedRound),
        little(&[&[82, 0, 0, 0, 0, 0, 8, 0]], Body::FinishedInit),
        little(
            &[
                &[80, 0, 0, 0, 0, 0, 24, 0], // FEATURE, 24 bytes
                &[7, 0, 0, 0, 0, 0, 0, 0],   // feat_id: NRCPUS
                &[4, 0, 0, 0, 2, 0, 0, 0],   // its section
            ],
            Body::HeaderFeature(HeaderFeature { feat_id: 7, data: &[4, 0, 0, 0, 2, 0, 0, 0] }),
        ),
        little(
            &[
                &[78, 0, 0, 0, 0, 0, 32, 0], // EVENT_UPDATE, 32 bytes
                &[2, 0, 0, 0, 0, 0, 0, 0],   // type: name
                &[7, 0, 0, 0, 0, 0, 0, 0],   // id
                b"cycles\0\0",               // name
            ],
            Body::EventUpdate(EventUpdate {
                id: 7,
                property: EventProperty::Name(Text::new(b"cycles")),
            }),
        ),
    ]
}

fn tables() -> Vec<RecordType> {
    let words = [
        7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0,
        0, 0,
    ];
    let time = TimeConvShort {
        time_cycles: 4,
        time_mask: 5,
        cap_user_time_zero: 1,
        cap_user_time_short: 0,
        reserved: [0; 6],
    };
    let cpus = CpuMap::new(CpuSet::Cpus(vec![1, 5]));
    vec![
        little(
            &[
                &[69, 0, 0, 0, 0, 0, 48, 0], // ID_INDEX, 48 bytes
                &[1, 0, 0, 0, 0, 0, 0, 0],   // nr
                &[7, 0, 0, 0, 0, 0, 0, 0],   // id
                &[1, 0, 0, 0, 0, 0, 0, 0],   // idx
                &[2, 0, 0, 0, 0, 0, 0, 0],   // cpu
                &[3, 0, 0, 0, 0, 0, 0, 0],   // tid
            ],
            Body::IdIndex(IdIndex { nr: 1, words: U64s::new(&words, Endian::Little) }),
        ),
        little(
            &[
                &[73, 0, 0, 0, 0, 0, 40, 0],    // THREAD_MAP, 40 bytes
                &[1, 0, 0, 0, 0, 0, 0, 0],      // nr
                &[9, 0, 0, 0, 0, 0, 0, 0],      // pid
                b"sleep\0\0\0\0\0\0\0\0\0\0\0", // comm
            ],
            Body::ThreadMap(ThreadMap::new(vec![ThreadMapEntry::new(9, b"sleep")])),
        ),
        little(
            &[
                &[74, 0, 0, 0, 0, 0, 16, 0], // CPU_MAP, 16 bytes
                &[0, 0, 2, 0],               // type: list, nr
                &[1, 0, 5, 0],               // CPUs
            ],
            Body::CpuMap(cpus),
        ),
        little(
            &[
                &[79, 0, 0, 0, 0, 0, 56, 0], // TIME_CONV, 56 bytes
                &[1, 0, 0, 0, 0, 0, 0, 0],   // time_shift
                &[2, 0, 0, 0, 0, 0, 0, 0],   // time_mult
                &[3, 0, 0, 0, 0, 0, 0, 0],   // time_zero
                &[4, 0, 0, 0, 0, 0, 0, 0],   // time_cycles
                &[5, 0, 0, 0, 0, 0, 0, 0],   // time_mask
                &[1, 0, 0, 0, 0, 0, 0, 0],   // cap_user_time_zero, cap_user_time_short, reserved
            ],
            Body::TimeConv(TimeConv {
                time_shift: 1,
                time_mult: 2,
                time_zero: 3,
                short: Some(time),
            }),
        ),
    ]
}

fn auxtrace() -> Vec<RecordType> {
    let trace = Auxtrace {
        size: 8,
        offset: 0x1000,
        reference: 2,
        idx: 3,
        tid: Tid::ANY,
        cpu: Cpu(4),
        reserved: 0,
    };
    let (kind, code, cpu, pid, tid) = (AuxtraceErrorKind::ITRACE, 2, Cpu(3), Pid(4), Tid(5));
    let (message, guest) = (Text::new(b"bad"), None);
    let error =
        AuxtraceError { kind, code, cpu, pid, tid, fmt: 1, ip: 6, time: Some(7), message, guest };
    vec![
        little(
            &[
                &[70, 0, 0, 0, 0, 0, 24, 0], // AUXTRACE_INFO, 24 bytes
                &[4, 0, 0, 0, 0, 0, 0, 0],   // type: Arm SPE, reserved
                &[9, 0, 0, 0, 0, 0, 0, 0],   // priv
            ],
            Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceKind::ARM_SPE,
                reserved: 0,
                private: U64s::new(&[9, 0, 0, 0, 0, 0, 0, 0], Endian::Little),
            }),
        ),
        check(
            &Attr::default(),
            &Case {
                endian: Endian::Little,
                fields: &[
                    &[71, 0, 0, 0, 0, 0, 48, 0],       // AUXTRACE, 48 bytes
                    &[8, 0, 0, 0, 0, 0, 0, 0],         // size of what follows
                    &[0, 0x10, 0, 0, 0, 0, 0, 0],      // offset
                    &[2, 0, 0, 0, 0, 0, 0, 0],         // reference
                    &[3, 0, 0, 0, 255, 255, 255, 255], // idx, tid
                    &[4, 0, 0, 0, 0, 0, 0, 0],         // cpu, reserved
                ],
                payload: b"aux data",
                record: Record::new(0, Body::Auxtrace(trace)),
            },
        ),
        little(
            &[
                &[72, 0, 0, 0, 0, 0, 56, 0], // AUXTRACE_ERROR, 56 bytes
                &[1, 0, 0, 0, 2, 0, 0, 0],   // type, code
                &[3, 0, 0, 0, 4, 0, 0, 0],   // cpu, pid
                &[5, 0, 0, 0, 1, 0, 0, 0],   // tid, fmt
                &[6, 0, 0, 0, 0, 0, 0, 0],   // ip
                &[7, 0, 0, 0, 0, 0, 0, 0],   // time
                b"bad\0\0\0\0\0",            // msg
            ],
            Body::AuxtraceError(error),
        ),
    ]
}

fn stats_and_containers() -> Vec<RecordType> {
    let words = [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
    let mut entry = [0; 320];
    entry[0] = b'k';
    entry[64] = b'v';
    vec![
        little(
            &[
                &[75, 0, 0, 0, 0, 0, 32, 0], // STAT_CONFIG, 32 bytes
                &[1, 0, 0, 0, 0, 0, 0, 0],   // nr
                &[1, 0, 0, 0, 0, 0, 0, 0],   // tag
                &[2, 0, 0, 0, 0, 0, 0, 0],   // val
            ],
            Body::StatConfig(StatConfig { nr: 1, words: U64s::new(&words, Endian::Little) }),
        ),
        little(
            &[
                &[76, 0, 0, 0, 0, 0, 48, 0], // STAT, 48 bytes
                &[1, 0, 0, 0, 0, 0, 0, 0],   // id
                &[2, 0, 0, 0, 3, 0, 0, 0],   // cpu, thread
                &[4, 0, 0, 0, 0, 0, 0, 0],   // val
                &[5, 0, 0, 0, 0, 0, 0, 0],   // ena
                &[6, 0, 0, 0, 0, 0, 0, 0],   // run
            ],
            Body::Stat(Stat { id: 1, cpu: Cpu(2), thread: 3, value: 4, enabled: 5, running: 6 }),
        ),
        little(
            &[
                &[77, 0, 0, 0, 0, 0, 24, 0], // STAT_ROUND, 24 bytes
                &[1, 0, 0, 0, 0, 0, 0, 0],   // type: final
                &[2, 0, 0, 0, 0, 0, 0, 0],   // time
            ],
            Body::StatRound(StatRound { kind: StatRoundKind::FINAL, time: 2 }),
        ),
        little(
            &[
                &[81, 0, 0, 0, 0, 0, 13, 0], // COMPRESSED, 13 bytes
                b"piece",                    // data
            ],
            Body::Compressed(Compressed { data: b"piece" }),
        ),
        little(
            &[
                &[83, 0, 0, 0, 0, 0, 24, 0], // COMPRESSED2, 24 bytes
                &[5, 0, 0, 0, 0, 0, 0, 0],   // data_size
                b"piece\0\0\0",              // data, padding
            ],
            Body::Compressed2(Compressed2 { data_size: 5, data: b"piece\0\0\0" }),
        ),
        little(
            &[
                &[85, 0, 0, 0, 0, 0, 72, 0], // SCHEDSTAT_CPU, 72 bytes
                &[5, 0, 0, 0, 0, 0, 0, 0],   // timestamp
                &[1, 0, 0, 0, 17, 0, 0, 0],  // cpu, version, padding
                &[2, 0, 0, 0, 0, 0, 0, 0],   // yld_count, array_exp
                &[3, 0, 0, 0, 4, 0, 0, 0],   // sched_count, sched_goidle
                &[6, 0, 0, 0, 7, 0, 0, 0],   // ttwu_count, ttwu_local
                &[8, 0, 0, 0, 0, 0, 0, 0],   // rq_cpu_time
                &[9, 0, 0, 0, 0, 0, 0, 0],   // run_delay
                &[10, 0, 0, 0, 0, 0, 0, 0],  // pcount
            ],
            Body::SchedstatCpu(SchedstatCpu {
                timestamp: 5,
                cpu: 1,
                version: 17,
                reserved: [0; 2],
                yld_count: 2,
                array_exp: 0,
                sched_count: 3,
                sched_goidle: 4,
                ttwu_count: 6,
                ttwu_local: 7,
                rq_cpu_time: 8,
                run_delay: 9,
                pcount: 10,
            }),
        ),
        little(
            &[
                &[86, 0, 0, 0, 0, 0, 32, 0], // SCHEDSTAT_DOMAIN, 32 bytes
                &[5, 0, 0, 0, 0, 0, 0, 0],   // timestamp
                &[1, 0, 0, 0, 17, 0, 2, 0],  // cpu, version, domain
                &[3, 0, 0, 0, 4, 0, 0, 0],   // busy_lb_count, busy_lb_balanced
            ],
            Body::SchedstatDomain(SchedstatDomain {
                timestamp: 5,
                cpu: 1,
                version: 17,
                domain: 2,
                counts: &[3, 0, 0, 0, 4, 0, 0, 0],
            }),
        ),
        little(
            &[
                &[84, 0, 0, 0, 0, 0, 0x60, 1],   // BPF_METADATA, 352 bytes
                b"prog\0\0\0\0\0\0\0\0\0\0\0\0", // prog_name
                &[1, 0, 0, 0, 0, 0, 0, 0],       // nr_entries
                b"k",                            // key
                &[0; 63],
                b"v", // value
                &[0; 255],
            ],
            Body::BpfMetadata(BpfMetadata {
                prog_name: *b"prog\0\0\0\0\0\0\0\0\0\0\0\0",
                nr_entries: 1,
                entries: &entry,
            }),
        ),
    ]
}

/// Checks all of them, and says which types they have.
pub(super) fn all() -> Vec<RecordType> {
    [headers(), tables(), auxtrace(), stats_and_containers()].concat()
}

#[test]
fn a_build_id_of_a_big_endian_machine() {
    checked(
        Endian::Big,
        &[
            &[0, 0, 0, 67, 0x80, 2, 0, 44], // BUILD_ID, user and BUILD_ID_SIZE, 44 bytes
            &[255, 255, 255, 255],          // pid
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
            &[20, 0, 0, 0], // size, reserved
            b"/bin/ls\0",   // filename
        ],
        2 | misc::BUILD_ID_SIZE,
        build_id(),
    );
}
