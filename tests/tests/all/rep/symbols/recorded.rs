//! Symbols and event names that Android's simpleperf leaves in the recording.

use std::borrow::Cow;

use recrep_format::abi::{EventType, RecordType};
use recrep_format::bytes::Encoder;
use recrep_format::feature::{
    SimpleperfFile, SimpleperfFileKind, SimpleperfFiles, SimpleperfFiles2, SimpleperfInitMap,
    SimpleperfMetaInfo, SimpleperfSymbol,
};
use recrep_format::record::{Inode, Mmap, Mmap2, MmapIdentity, Record, SampleId};
use recrep_format::wire::Text;
use recrep_tests::programs;

use super::*;

const KERNEL: u64 = 0xffff_ffc0_0800_0000;
const MODULE: u64 = 0xffff_ffc0_7000_0000;
const JIT: u64 = 0x7000_0000;
const JIT_FILE: &str = "/data/data/app/TemporaryFile_jit_app_cache:100-200";
const PID: u32 = 7;

/// A file with one symbol of 64 bytes.
fn file(
    path: &'static str,
    kind: SimpleperfFileKind,
    (min_vaddr, offset_of_min_vaddr): (u64, Option<u64>),
    (start, name): (u64, &'static str),
) -> SimpleperfFile<'static> {
    let symbols = vec![SimpleperfSymbol { start, len: 64, name: name.as_bytes() }];
    let path = path.as_bytes();
    SimpleperfFile {
        path,
        kind,
        min_vaddr,
        symbols,
        dex_file_offsets: Vec::new(),
        offset_of_min_vaddr,
        rest: &[],
    }
}

/// Files of all kinds but the kernel.
fn files() -> Vec<SimpleperfFile<'static>> {
    use SimpleperfFileKind as Kind;
    vec![
        file("/vendor/wifi.ko", Kind::KERNEL_MODULE, (0x40, Some(0x1000)), (0x80, "wifi_send")),
        file(
            "/system/lib64/libc.so",
            Kind::ELF,
            (0x4_1000, Some(0x1000)),
            (0x4_1200, "_ZN3lib4copyEi"),
        ),
        file("/system/lib/old.so", Kind::ELF, (0x9000, None), (0x9300, "old_one")),
        file("/data/app/base.vdex", Kind::DEX, (0, None), (0x2400, "void app.Main.run()")),
        file(JIT_FILE, Kind::ELF, (0, Some(0)), (JIT + 0x500, "int app.Main.hash(int)")),
        file("perf-7.map", Kind::SYMBOL_MAP, (0, None), (0x9000_0600, "LazyCompile:*f")),
        file("/system/bin/early", Kind::ELF, (0, Some(0)), (0x700, "early_main")),
    ]
}

fn messages(files: &[SimpleperfFile<'_>]) -> Vec<Cow<'static, [u8]>> {
    files.iter().map(|file| file.message().into()).collect()
}

fn map(path: &str, addr: u64, prot: u32, pgoff: u64) -> Body<'_> {
    let identity = MmapIdentity::Inode(Inode { maj: 0, min: 0, ino: 0, ino_generation: 0 });
    let filename = Text::new(path.as_bytes());
    Body::Mmap2(Mmap2 {
        pid: PID,
        tid: PID,
        addr,
        len: 0x1_0000,
        pgoff,
        identity,
        prot,
        flags: 2,
        filename,
    })
}

/// A recording with a sample in each file, and one in the kernel, whose symbols `kernel` adds.
fn recording(endian: Endian, kernel: impl FnOnce(Stream) -> Stream) -> Stream {
    let in_kernel = |path: &'static str, addr| {
        let filename = Text::new(path.as_bytes());
        Body::Mmap(Mmap { pid: u32::MAX, tid: 0, addr, len: 0x10_0000, pgoff: 0, filename })
    };
    let facts = [
        ["simpleperf_version", "1"],
        ["event_type_info", "cpu-cycles,0,0\nsched:sched_switch,2,47"],
    ];
    let facts = facts.map(|fact| fact.map(str::as_bytes)).to_vec();
    let switch = Event::new("").counting(EventType::TRACEPOINT, 47).sampling(SampleType::CALLCHAIN);
    let stream = Stream::new(endian).event(switch).task(PID, PID).comm("app");
    let id = SampleId {
        tid: Some([PID; 2]),
        time: Some(0),
        cpu: Some([0; 2]),
        identifier: Some(100),
        ..SampleId::default()
    };
    let mut init = Encoder::new(endian);
    let early = Record::new(2, map("/system/bin/early", 0xb000_0000, 5, 0)).with_trailer(id);
    early.encode(&mut init).unwrap();
    let stream = kernel(stream)
        .record(1, in_kernel("[kernel.kallsyms]", KERNEL))
        .record(1, in_kernel("/vendor/wifi.ko", MODULE))
        .record(2, map("/system/lib64/libc.so", 0x1000_0000, 5, 0x1000))
        .record(2, map("/system/lib/old.so", 0x2000_0000, 5, 0x3000))
        .record(2, map("/data/app/base.vdex", 0x3000_0000, 1, 0x2000))
        .record(2, map(JIT_FILE, JIT, 0x4005, 0))
        .record(2, map("//anon", 0x9000_0000, 5, 0))
        .feature(&SimpleperfMetaInfo { facts })
        .feature(&SimpleperfInitMap { records: init.as_bytes() })
        .at(1_000);
    let user = [0x1000_0205, 0x2000_0305, 0x3000_0405, JIT + 0x505, 0x9000_0605, 0xb000_0705];
    let stream = user.into_iter().fold(stream, |stream, ip| stream.sample(SampleSpec::at(ip)));
    [KERNEL + 0x105, MODULE + 0x1045]
        .into_iter()
        .fold(stream, |stream, ip| stream.sample(SampleSpec::at(ip).misc(1)))
}

/// Modules, functions and samples that are expected of [`recording`].
const EXPECTED: [&str; 8] = [
    "kernel|[kernel.kallsyms]|vfs_read",
    "kernel|[wifi]|wifi_send",
    "user|[JIT app cache]|int app.Main.hash(int)",
    "user|[JIT] tid 7|LazyCompile:*f",
    "user|base.vdex|void app.Main.run()",
    "user|early|early_main",
    "user|libc.so|_ZN3lib4copyEi|lib::copy",
    "user|old.so|old_one",
];

#[track_caller]
fn check(recording: &Stream) {
    let place = Place::new();
    let path = place.put("perf.data", recording.file());
    let answer = parsed(run(programs::rep().args(["--json", "-s", "dso,symbol"]).arg(&path)));
    assert_eq!(answer["events"][0]["name"], "sched:sched_switch");
    let mut found: Vec<_> = rows(&answer, 0).into_iter().map(|(row, ..)| row).collect();
    found.sort();
    assert_eq!(found, EXPECTED);
    assert!(codes(&answer).is_empty(), "{answer}");
}

#[test]
fn symbols_of_simpleperf_name_functions() {
    let kernel = || {
        file(
            "[kernel.kallsyms]",
            SimpleperfFileKind::KERNEL,
            (0, None),
            (KERNEL + 0x100, "vfs_read"),
        )
    };
    for endian in [Endian::Little, Endian::Big] {
        let files = || files().into_iter().chain([kernel()]).collect::<Vec<_>>();
        check(&recording(endian, |stream| stream).feature(&SimpleperfFiles { files: files() }));
        check(
            &recording(endian, |stream| stream)
                .feature(&SimpleperfFiles2 { messages: messages(&files()) }),
        );
    }
}

#[test]
fn the_list_of_the_kernels_symbols_may_be_longer_than_a_record_can_say() {
    let mut text = format!("{:x} T _text\n{:x} T vfs_read\n", KERNEL, KERNEL + 0x100);
    // More than 64 KiB of other symbols.
    (0..4000)
        .for_each(|number| text += &format!("{:x} t other_{number}\n", KERNEL + 0x1000 + number));
    for endian in [Endian::Little, Endian::Big] {
        let list = |stream: Stream| {
            let len = u32::try_from(text.len()).unwrap();
            let size = 12 + len.next_multiple_of(8);
            let mut e = Encoder::new(endian);
            e.u32(RecordType::SIMPLEPERF_KERNEL_SYMBOL.0);
            e.u16(u16::try_from(size >> 16).unwrap());
            e.u16((size & 0xffff) as u16);
            e.u32(len);
            e.padded(text.as_bytes(), len.next_multiple_of(8) as usize);
            stream.bytes(e.as_bytes())
        };
        check(&recording(endian, list).feature(&SimpleperfFiles2 { messages: messages(&files()) }));
    }
}

#[test]
fn damaged_symbols_are_a_warning_and_those_before_are_used() {
    let place = Place::new();
    let stream =
        recording(Endian::Little, |stream| stream).feature(&SimpleperfFiles { files: files() });
    let mut bytes = stream.file();
    let at = bytes.windows(10).position(|bytes| bytes == b"early_main").unwrap();
    bytes[at..at + 11].fill(b'x');
    let answer = parsed(run(programs::rep()
        .args(["--json", "-s", "symbol"])
        .arg(place.put("perf.data", bytes))));
    let warning =
        list(&answer["warnings"]).iter().find(|warning| warning["code"] == "truncated").unwrap();
    assert!(
        warning["offset"].as_u64().is_some_and(|offset| offset.abs_diff(at as u64) < 64),
        "{warning}"
    );
    let names: Vec<_> = rows(&answer, 0).into_iter().map(|(row, ..)| row).collect();
    let has = |name: &str| names.iter().any(|row| row.contains(name));
    assert!(has("old_one") && !has("early_main"), "{names:?}");
}
