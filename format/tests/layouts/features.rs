//! The sections of features.

use std::fmt::Debug;

use recrep_format::abi::CpuMode;
use recrep_format::attr::Attr;
use recrep_format::build_id::BuildId;
use recrep_format::bytes::{Cursor, Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::feature::tracing::{Part, System, Tracing};
use recrep_format::feature::{
    Arch, AuxtraceIndex, BodyCompression, BpfBtf, BpfBtfEntry, BpfProgInfo, BpfProgInfoEntry,
    BranchStackMark, BuildIdEvent, BuildIds, Bundle, CacheLevel, CacheLineSize, Caches, ChainCause,
    ClockData, ClockId, Cmdline, Compression, CpuDesc, CpuDomainInfo, CpuDomains, CpuId,
    CpuPmuCaps, CpuTopology, CpuTopologyTail, CutChains, DescribedEvent, DirFormat, EMachine,
    EventDesc, Feature, FeatureId, GoBuildIds, GroupDesc, GroupDescEntry, HeaderString, Hostname,
    HybridCores, HybridTopology, Ids, MemNode, MemTopology, NrCpus, NumaNode, NumaTopology,
    OsRelease, PmuCap, PmuCaps, PmuCapsEntry, PmuMapping, PmuMappings, SampleTime, SchedDomain,
    SimpleperfDebugUnwind, SimpleperfDebugUnwindFiles, SimpleperfEtmBranchList, SimpleperfFile,
    SimpleperfFileKind, SimpleperfFiles, SimpleperfFiles2, SimpleperfInitMap, SimpleperfMetaInfo,
    SimpleperfSymbol, StatMark, TotalMem, TracingData, UnwoundChains, Version,
};
use recrep_format::wire::{List, Wire};

/// Checks that the bytes are read as the feature and the feature is written as the bytes; its
/// number.
fn check<'a, F: Feature<'a> + PartialEq + Debug>(
    endian: Endian,
    bytes: &'a [u8],
    feature: &F,
) -> FeatureId {
    let mut c = Cursor::new(bytes, 0, endian);
    assert_eq!(&F::decode(&mut c, "feature").unwrap(), feature, "{endian:?}");
    assert!(c.is_empty(), "{}", F::ID);
    let mut e = Encoder::new(endian);
    feature.encode(&mut e).unwrap();
    assert_eq!(e.as_bytes(), bytes, "{endian:?} {feature:?}");
    F::ID
}

fn little<'a, F: Feature<'a> + PartialEq + Debug>(bytes: &'a [u8], feature: &F) -> FeatureId {
    check(Endian::Little, bytes, feature)
}

/// A `perf_header_string` by hand: its length of 64, the text, a NUL and padding.
fn text(text: &str) -> Vec<u8> {
    let mut bytes = vec![64, 0, 0, 0];
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(4 + 64, 0);
    bytes
}

fn string(text: &str) -> HeaderString<'_> {
    HeaderString::new(text)
}

fn strings() -> Vec<FeatureId> {
    let one = text("one");
    let cmdline = [&[2, 0, 0, 0][..], &text("rec"), &text("-g")].concat();
    vec![
        little(&one, &Hostname::new("one")),
        little(&one, &OsRelease::new("one")),
        little(&one, &Version::new("one")),
        little(&one, &Arch::new("one")),
        little(&one, &CpuDesc::new("one")),
        little(&one, &CpuId::new("one")),
        little(&cmdline, &Cmdline { args: List(vec![string("rec"), string("-g")]) }),
    ]
}

fn numbers() -> Vec<FeatureId> {
    let sample_time = [[1, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0]].concat();
    let clock = [
        [1, 0, 0, 0, 4, 0, 0, 0], // version, clockid
        [2, 0, 0, 0, 0, 0, 0, 0], // wall clock
        [3, 0, 0, 0, 0, 0, 0, 0], // clock
    ]
    .concat();
    let packed = [
        [1, 0, 0, 0], // version
        [1, 0, 0, 0], // type: zstd
        [3, 0, 0, 0], // level
        [5, 0, 0, 0], // ratio
        [0, 0, 8, 0], // mmap_len
    ]
    .concat();
    let index =
        [[1, 0, 0, 0, 0, 0, 0, 0], [104, 0, 0, 0, 0, 0, 0, 0], [48, 0, 0, 0, 0, 0, 0, 0]].concat();
    let words = U64s::new(&index[8..], Endian::Little);
    vec![
        little(&[4, 0, 0, 0, 2, 0, 0, 0], &NrCpus { available: 4, online: 2 }),
        little(&[0, 4, 0, 0, 0, 0, 0, 0], &TotalMem { kib: 1024 }),
        little(&sample_time, &SampleTime { first: 1, last: 2 }),
        little(&[1, 0, 0, 0, 0, 0, 0, 0], &ClockId { resolution: 1 }),
        little(&clock, &ClockData { version: 1, clockid: 4, wall_clock: 2, clock: 3 }),
        little(&[1, 0, 0, 0, 0, 0, 0, 0], &DirFormat { version: 1 }),
        little(
            &packed,
            &Compression { version: 1, kind: 1, level: 3, ratio: 5, mmap_len: 0x8_0000 },
        ),
        little(&[], &BranchStackMark { data: &[] }),
        little(&[], &StatMark { data: &[] }),
        little(&index, &AuxtraceIndex { total: 1, words }),
    ]
}

fn events() -> Vec<FeatureId> {
    let attr = [
        &[0u8, 0, 0, 0, 64, 0, 0, 0][..], // type, size
        &[3, 0, 0, 0, 0, 0, 0, 0],        // config
        &[0; 48],                         // sample_period … config1
    ]
    .concat();
    let desc = [
        &[1, 0, 0, 0][..], // nr
        &[64, 0, 0, 0],    // attr_size
        &attr,
        &[1, 0, 0, 0], // nr_ids
        &text("cycles"),
        &[7, 0, 0, 0, 0, 0, 0, 0], // id
    ]
    .concat();
    let event = DescribedEvent {
        attr: Attr { size: 64, config: 3, ..Attr::default() },
        name: string("cycles"),
        ids: Ids::Found(U64s::new(&[7, 0, 0, 0, 0, 0, 0, 0], Endian::Little)),
    };
    let group = [
        &[1, 0, 0, 0][..], // nr_groups
        &text("{group}"),
        &[2, 0, 0, 0], // leader_idx
        &[3, 0, 0, 0], // nr_members
    ]
    .concat();
    let group_entry = GroupDescEntry { name: string("{group}"), leader: 2, members: 3 };
    let pmus = [&[1, 0, 0, 0][..], &[8, 0, 0, 0], &text("intel_pt")].concat();
    let caps = [&[1, 0, 0, 0][..], &text("branches"), &text("32")].concat();
    let cap = PmuCap { name: string("branches"), value: string("32") };
    let all_caps = [
        &[1, 0, 0, 0][..], // nr_pmu
        &caps,             // nr_caps, names and values
        &text("cpu"),
    ]
    .concat();
    let pmu = PmuCapsEntry { caps: List(vec![cap]), pmu: string("cpu") };
    vec![
        little(&desc, &EventDesc { attr_size: 64, events: vec![event] }),
        little(&group, &GroupDesc { groups: List(vec![group_entry]) }),
        little(
            &pmus,
            &PmuMappings { pmus: List(vec![PmuMapping { kind: 8, name: string("intel_pt") }]) },
        ),
        little(&caps, &CpuPmuCaps { caps: List(vec![cap]) }),
        little(&all_caps, &PmuCaps { pmus: List(vec![pmu]) }),
    ]
}

/// What perf 7.0 added.
fn scheduling() -> Vec<FeatureId> {
    let domain = |name: Option<&'static str>| SchedDomain {
        domain: 0,
        name: name.map(string),
        cpumask: string("3"),
        cpulist: string("0-1"),
    };
    let info = |version, name| CpuDomainInfo {
        version,
        max_domains: 1,
        cpus: vec![CpuDomains { cpu: 1, domains: vec![domain(name)] }],
    };
    let named = [
        &[17, 0, 0, 0, 1, 0, 0, 0][..], // schedstat version, most domains
        &[1, 0, 0, 0, 1, 0, 0, 0],      // cpu, nr_domains
        &[0, 0, 0, 0],                  // domain
        &text("MC"),
        &text("3"),
        &text("0-1"),
    ]
    .concat();
    let unnamed = [
        &[15, 0, 0, 0, 1, 0, 0, 0][..],
        &[1, 0, 0, 0, 1, 0, 0, 0],
        &[0, 0, 0, 0],
        &text("3"),
        &text("0-1"),
    ]
    .concat();
    little(&unnamed, &info(15, None));
    assert!(info(17, None).to_bytes(Endian::Little).is_err());
    vec![
        little(&named, &info(17, Some("MC"))),
        little(&[62, 0, 0, 0, 1, 0, 0, 0], &EMachine { e_machine: 62, e_flags: 1 }),
        little(&[64, 0, 0, 0], &CacheLineSize { cln_size: 64 }),
    ]
}

fn machine() -> Vec<FeatureId> {
    let tail = [
        &[0, 0, 0, 0, 1, 0, 0, 0][..], // core_id, socket_id
        &[1, 0, 0, 0],                 // die_sib
        &text("0"),
        &[2, 0, 0, 0], // die_id
    ]
    .concat();
    let topology = [
        &[1, 0, 0, 0][..], // core_sib: CPUs of a socket
        &text("0"),
        &[1, 0, 0, 0], // thread_sib: CPUs of a core
        &text("0"),
        &tail,
    ]
    .concat();
    let tail = CpuTopologyTail::decode(&mut Cursor::new(&tail, 0, Endian::Little), "tail").unwrap();
    assert_eq!((tail.cpus(1).unwrap(), tail.die_ids(1).unwrap()), (vec![(0, 1)], vec![2]));
    let numa = [
        &[1, 0, 0, 0][..],         // nr
        &[5, 0, 0, 0],             // node
        &[0, 4, 0, 0, 0, 0, 0, 0], // mem_total
        &[0, 2, 0, 0, 0, 0, 0, 0], // mem_free
        &text("0-3"),
    ]
    .concat();
    let node = NumaNode { node: 5, mem_total: 1024, mem_free: 512, cpus: string("0-3") };
    let hybrid = [&[1, 0, 0, 0][..], &text("cpu_core"), &text("0-3")].concat();
    let cores = HybridCores { pmu: string("cpu_core"), cpus: string("0-3") };
    let memory = [
        [1, 0, 0, 0, 0, 0, 0, 0], // version
        [0, 0, 0, 8, 0, 0, 0, 0], // block_size_bytes
        [1, 0, 0, 0, 0, 0, 0, 0], // count
        [5, 0, 0, 0, 0, 0, 0, 0], // node
        [3, 0, 0, 0, 0, 0, 0, 0], // size
        [3, 0, 0, 0, 0, 0, 0, 0], // bits of the set
        [5, 0, 0, 0, 0, 0, 0, 0], // the set: 0 and 2
    ]
    .concat();
    let set = U64s::new(&[5, 0, 0, 0, 0, 0, 0, 0], Endian::Little);
    let memory_node = MemNode { node: 5, size: 3, bits: 3, set };
    let caches = [
        &[1, 0, 0, 0][..], // version
        &[1, 0, 0, 0],     // cnt
        &[2, 0, 0, 0],     // level
        &[64, 0, 0, 0],    // line_size
        &[0, 4, 0, 0],     // sets
        &[16, 0, 0, 0],    // ways
        &text("Unified"),
        &text("1024K"),
        &text("0-1"),
    ]
    .concat();
    let cache = CacheLevel {
        level: 2,
        line_size: 64,
        sets: 1024,
        ways: 16,
        kind: string("Unified"),
        size: string("1024K"),
        map: string("0-1"),
    };
    let list = || List(vec![string("0")]);
    vec![
        little(&topology, &CpuTopology { sockets: list(), cores: list(), tail }),
        little(&numa, &NumaTopology { nodes: List(vec![node]) }),
        little(&hybrid, &HybridTopology { kinds: List(vec![cores]) }),
        little(
            &memory,
            &MemTopology { version: 1, block_size: 0x800_0000, nodes: vec![memory_node] },
        ),
        little(&caches, &Caches { version: 1, levels: List(vec![cache]) }),
    ]
}

fn code() -> Vec<FeatureId> {
    let ids = [
        &[0, 0, 0, 0, 2, 0x80, 100, 0][..], // type, misc: user and BUILD_ID_SIZE, 100 bytes
        &[255, 255, 255, 255],              // pid
        &[0xab; 16],                        // build ID
        &[0; 4],
        &[16, 0, 0, 0], // size, reserved
        b"/bin/ls",     // filename
        &[0; 57],
    ]
    .concat();
    let entry = BuildIdEvent::new(CpuMode::User, &BuildId::new(&[0xab; 16]).unwrap(), b"/bin/ls");
    let programs = [
        &[1, 0, 0, 0][..],         // count
        &[4, 0, 0, 0],             // info_len
        &[2, 0, 0, 0],             // data_len
        &[3, 0, 0, 0, 0, 0, 0, 0], // arrays
        b"info",
        b"da",
    ]
    .concat();
    let program = BpfProgInfoEntry { arrays: 3, info: b"info", data: b"da" };
    let types = [
        &[1, 0, 0, 0][..], // count
        &[9, 0, 0, 0],     // id
        &[3, 0, 0, 0],     // data_size
        b"btf",
    ]
    .concat();
    vec![
        little(&ids, &BuildIds { entries: vec![entry] }),
        little(&programs, &BpfProgInfo { programs: List(vec![program]) }),
        little(&types, &BpfBtf { objects: List(vec![BpfBtfEntry { id: 9, data: b"btf" }]) }),
        little(b"any bytes", &TracingData { data: b"any bytes" }),
    ]
}

/// Features of recrep's own.
fn own() -> Vec<FeatureId> {
    let bundle = [
        &[1, 0, 0, 0][..],         // version
        &[0, 0, 0, 0],             // compression: none
        &[4, 0, 0, 0, 0, 0, 0, 0], // size
        &[0, 0, 0, 0],             // no modules
    ]
    .concat();
    let body: &[u8] = &[0, 0, 0, 0];
    let chains = [
        &[9, 0, 0, 0, 0, 0, 0, 0][..], // whole
        &[1, 0, 0, 0],                 // number of reasons
        &[1, 0, 0, 0],                 // a copy
        &text("x"),                    // module
        &[0, 32, 0, 0, 0, 0, 0, 0],    // bytes of it
        &[3, 0, 0, 0, 0, 0, 0, 0],     // callchains
    ]
    .concat();
    let cause = ChainCause::COPY;
    let cut = CutChains { cause, module: string("x"), limit: 8192, count: 3 };
    let ids = [
        &[0, 0, 0, 0, 2, 0x80, 100, 0][..], // type, misc: user and BUILD_ID_SIZE, 100 bytes
        &[255, 255, 255, 255],              // pid
        b"0123456789abcdefghij",            // build ID
        &[20, 0, 0, 0],                     // size, reserved
        b"/bin/ls",                         // filename
        &[0; 57],
    ]
    .concat();
    let id = BuildId::new(b"0123456789abcdefghij").unwrap();
    let files = BuildIds { entries: vec![BuildIdEvent::new(CpuMode::User, &id, b"/bin/ls")] };
    vec![
        little(&ids, &GoBuildIds { files }),
        little(
            &bundle,
            &Bundle { version: 1, compression: BodyCompression::STORED, size: 4, body },
        ),
        little(&chains, &UnwoundChains { whole: 9, cut: List(vec![cut]) }),
    ]
}

fn simpleperf() -> Vec<FeatureId> {
    let plain = [
        &[43, 0, 0, 0][..], // size
        b"/a\0",
        &[2, 0, 0, 0],                // kind: an ELF file
        &[0, 0x10, 0, 0, 0, 0, 0, 0], // min_vaddr
        &[1, 0, 0, 0],                // number of symbols
        &[8, 0x10, 0, 0, 0, 0, 0, 0], // start
        &[4, 0, 0, 0],                // length
        b"fun\0",
        &[0, 2, 0, 0, 0, 0, 0, 0], // offset of min_vaddr
    ]
    .concat();
    let message = [
        &[26, 0, 0, 0][..],            // size
        &[0x0a, 2, b'/', b'a'],        // 1: path
        &[0x10, 2],                    // 2: kind
        &[0x18, 0x80, 0x20],           // 3: min_vaddr
        &[0x22, 10, 0x08, 0x88, 0x20], // 4: a symbol; 1: start
        &[0x10, 4],                    //   2: length
        &[0x1a, 3, b'f', b'u', b'n'],  //   3: name
        &[0x32, 3, 0x08, 0x80, 0x04],  // 6: ELF file; 1: offset of min_vaddr
        &[25, 0, 0, 0, 0x0a, 2],       // another one
        b"/d",
        &[0x10, 3],                   // 2: kind: dex
        &[0x18, 1],                   // 3: min_vaddr
        &[0x22, 7, 0x08, 9, 0x1a, 3], // 4: a symbol without length
        b"run",
        &[0x2a, 6, 0x0a, 4],       // 5: dex file; 1: offsets in a row
        &[0x28, 0xac, 0x02, 0x01], //   40, 300, 1
    ]
    .concat();
    let symbol = SimpleperfSymbol { start: 0x1008, len: 4, name: b"fun" };
    let file = SimpleperfFile {
        path: b"/a",
        kind: SimpleperfFileKind::ELF,
        min_vaddr: 0x1000,
        symbols: vec![symbol],
        dex_file_offsets: Vec::new(),
        offset_of_min_vaddr: Some(0x200),
        rest: &[],
    };
    let dex = SimpleperfFile {
        path: b"/d",
        kind: SimpleperfFileKind::DEX,
        min_vaddr: 1,
        symbols: vec![SimpleperfSymbol { start: 9, len: 0, name: b"run" }],
        dex_file_offsets: vec![40, 300, 1],
        offset_of_min_vaddr: None,
        rest: &[],
    };
    let (message_of_file, message_of_dex) = (&message[4..30], &message[34..]);
    assert_eq!(SimpleperfFile::of_message(message_of_file).unwrap(), file);
    assert_eq!(SimpleperfFile::of_message(message_of_dex).unwrap(), dex);
    assert_eq!([file.message(), dex.message()], [message_of_file, message_of_dex]);
    let messages = vec![message_of_file.into(), message_of_dex.into()];
    let facts = b"clockid\0monotonic\0";
    vec![
        little(&plain, &SimpleperfFiles { files: vec![file] }),
        little(facts, &SimpleperfMetaInfo { facts: vec![[&b"clockid"[..], b"monotonic"]] }),
        little(&[1], &SimpleperfDebugUnwind { data: &[1] }),
        little(&[1], &SimpleperfDebugUnwindFiles { data: &[1] }),
        little(&message, &SimpleperfFiles2 { messages }),
        little(&[1], &SimpleperfEtmBranchList { data: &[1] }),
        little(&[1], &SimpleperfInitMap { records: &[1] }),
    ]
}

#[test]
fn every_named_feature_is_written_by_hand() {
    let mut ids =
        [strings(), numbers(), events(), machine(), scheduling(), code(), own(), simpleperf()]
            .concat();
    ids.sort();
    assert_eq!(ids, FeatureId::NAMED);
}

#[test]
fn formats_of_tracepoints() {
    let parts: &[&[u8]] = &[
        b"\x17\x08\x44tracing",
        b"0.6\0",         // version
        &[0],             // byte order: little
        &[8],             // size of a long
        &[0, 0x10, 0, 0], // size of a page
        b"header_page\0",
        &[4, 0, 0, 0, 0, 0, 0, 0],
        b"page",
        b"header_event\0",
        &[5, 0, 0, 0, 0, 0, 0, 0],
        b"event",
        &[0, 0, 0, 0], // formats of ftrace
        &[1, 0, 0, 0], // systems
        b"sched\0",
        &[1, 0, 0, 0], // its formats
        &[13, 0, 0, 0, 0, 0, 0, 0],
        b"name: x\nID: 7",
        &[0, 0, 0, 0],             // kallsyms
        &[0, 0, 0, 0],             // printk_formats
        &[7, 0, 0, 0, 0, 0, 0, 0], // saved_cmdlines
        b"1 init\n",
    ];
    let bytes = parts.concat();
    let tracing =
        Tracing::decode(&mut Cursor::new(&bytes, 0, Endian::Little), "TRACING_DATA").unwrap();
    let part = |bytes, offset: usize| Part { offset: offset as u64, bytes };
    let at = |text: &[u8]| bytes.windows(text.len()).position(|window| window == text).unwrap();
    let expected = Tracing {
        version: b"0.6",
        endian: Endian::Little,
        order: 0,
        long_size: 8,
        page_size: 4096,
        header_page: part(b"page", at(b"page\x68")),
        header_event: part(b"event", at(b"event\0\0\0\0\x01")),
        ftrace: Vec::new(),
        systems: vec![System {
            name: b"sched",
            formats: vec![part(b"name: x\nID: 7", at(b"name: x"))],
        }],
        kallsyms: part(b"", bytes.len() - 7 - 8 - 4),
        printk_formats: part(b"", bytes.len() - 7 - 8),
        saved_cmdlines: Some(part(b"1 init\n", bytes.len() - 7)),
        rest: &[],
    };
    check(Endian::Little, &bytes, &expected);
    assert_eq!(tracing.events().next().unwrap().unwrap().id, 7);
}

#[test]
fn sections_of_big_endian_machines() {
    let ids = [
        &[0, 0, 0, 0, 0x80, 2, 0, 100][..], // type, misc: user and BUILD_ID_SIZE, 100 bytes
        &[255, 255, 255, 255],              // pid
        &[0xab; 20],                        // build ID
        &[20, 0, 0, 0],                     // size, reserved
        b"/bin/ls",                         // filename
        &[0; 57],
    ]
    .concat();
    let entry = BuildIdEvent::new(CpuMode::User, &BuildId::new(&[0xab; 20]).unwrap(), b"/bin/ls");
    check(Endian::Big, &ids, &BuildIds { entries: vec![entry] });
    let host = [&[0, 0, 0, 64][..], b"one", &[0; 61]].concat();
    check(Endian::Big, &host, &Hostname::new("one"));
}
