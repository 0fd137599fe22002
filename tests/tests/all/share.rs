//! `rep bundle --share` of fixtures and of real files: what does not depend on addresses is as in
//! the recording.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_fixtures::manifest::cases;
use recrep_format::abi::{
    BranchEntry, BranchFlags, BranchSampleType, CpuMode, EventType, SampleType, context,
};
use recrep_format::attr::Attr;
use recrep_format::build_id::BuildId;
use recrep_format::endian::Endian;
use recrep_format::feature::{BuildIdEvent, BuildIds, Cmdline, HeaderString, Hostname};
use recrep_format::wire::List;
use recrep_tests::forms::forms;
use recrep_tests::needs;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::{Value, json};

use crate::private::nothing_private;

/// Samples, period and callers' sums of the rows of each event.
fn rows(file: &Path, keys: &str) -> BTreeMap<String, Value> {
    let mut rep = rep();
    let outcome = run(rep.args(["--json", "--no-check-callchains", "-s", keys]).arg(file));
    let Ok(report) = serde_json::from_slice::<Value>(&outcome.stdout) else {
        return BTreeMap::new();
    };
    let mut all = BTreeMap::new();
    for event in report["events"].as_array().unwrap() {
        for row in event["rows"].as_array().unwrap() {
            let values = json!([row["samples"], row["period"]]);
            all.insert(format!("{} {}", event["name"], row["key"]), values);
        }
    }
    all
}

/// Returns whether a file can be shared, and holds that its rows stay.
#[track_caller]
fn keeps_its_rows(file: &Path, name: &str) -> bool {
    let shared = file.with_extension("shared");
    let shared = std::env::temp_dir().join(shared.file_name().unwrap());
    let outcome = run(rep().args(["bundle", "--share", "-o"]).arg(&shared).arg(file));
    if outcome.code() != 0 {
        // Directories, profiles, and files of no event.
        assert!([1, 2].contains(&outcome.code()), "{name}: {}", outcome.stderr);
        return false;
    }
    let keys = "comm,tid,cpu,dso,cpumode,weight,time";
    assert_eq!(rows(&shared, keys), rows(file, keys), "{name}");
    fs::remove_file(&shared).unwrap();
    true
}

#[test]
fn fixtures_keep_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for case in cases() {
        let Some(form) = forms(&case, |form| !form.container.is_pipe()).pop() else { continue };
        let file = dir.path().join(format!("{}.data", case.name));
        fs::write(&file, case.bytes(form)).unwrap();
        files += usize::from(keeps_its_rows(&file, case.name));
    }
    assert!(files > 20, "{files} fixtures are recordings");
}

#[test]
fn real_recordings_keep_their_rows() {
    let Some(corpus) = needs::corpus() else { return };
    let mut files = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        // Two of a kind are enough of the long ones.
        if path.is_file() && path.metadata().unwrap().len() < 4 << 20 {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            files += usize::from(keeps_its_rows(&path, &name));
        }
    }
    assert!(files > 10, "{files} files of the corpus are recordings");
}

/// Where the kernel put itself, the program and its data at this boot.
const KERNEL: u64 = 0xffff_ffff_a520_0000;
const KERNEL_MODULE: u64 = 0xffff_ffff_c0a1_2000;
const CODE: u64 = 0x55d8_1234_5000;
const LIBRARY: u64 = 0x7f3a_4567_8000;
const MADE: u64 = 0x7f3a_9876_0000;
const DATA: u64 = 0x7ffe_1357_9bd0;

/// Texts of the recording that must not be shared.
const TEXTS: [&str; 12] = [
    "annsbox",
    "/home/ann",
    "anns-project",
    "--password=hunter2",
    "token-in-memory",
    "anns-slice",
    "anns-heap",
    "anns-probe",
    "ANNS_KEY",
    "anns-module",
    "/lib/modules",
    "anns-metadata",
];

/// A recording with all that is private in all places that a format has for it.
fn recording() -> Stream {
    let sampled = SampleType::CALLCHAIN
        | SampleType::ADDR
        | SampleType::RAW
        | SampleType::PHYS_ADDR
        | SampleType::REGS_INTR
        | SampleType::CGROUP;
    let registers = |attr: &mut Attr| attr.sample_regs_intr = 7;
    let watched = format!("mem:{DATA:#x}/8:w");
    let is_any = BranchSampleType::USER | BranchSampleType::ANY;
    let chain = [
        context::KERNEL,
        KERNEL + 0x1234,
        KERNEL_MODULE + 0x10,
        context::USER,
        CODE + 0x20,
        LIBRARY + 0x44,
        MADE + 8,
        DATA,
    ];
    let branch = BranchEntry { from: CODE + 8, to: LIBRARY + 0x80, flags: BranchFlags(2) };
    let sample = |ip| {
        SampleSpec::at(ip)
            .callchain(&chain)
            .addr(DATA + 0x18)
            .raw(b"\0\0\0\0ANNS_KEY=token-in-memory\0\0\0\0")
            .phys_addr(0x1_2345_6780)
            .regs_intr(&[DATA + 0x20, CODE + 0x24, LIBRARY])
            .cgroup(77)
            .branches(&[branch])
    };
    let words = ["rec", "-o", "/home/ann/out.data", "--", "app", "--password=hunter2", "ANNS_KEY"];
    let id = BuildId::new(&[7; 20]).unwrap();
    let entries = vec![
        BuildIdEvent::new(CpuMode::User, &id, b"/home/ann/anns-project/app-public"),
        BuildIdEvent::new(CpuMode::User, &id, b"/home/ann/not-mapped/other"),
    ];
    Stream::new(Endian::NATIVE)
        .event(Event::new("cycles").sampling(sampled).branches(is_any).with(registers))
        .event(
            Event::new(&watched)
                .counting(EventType::BREAKPOINT, 0)
                .with(|attr| attr.config1 = DATA)
                .sampling(sampled)
                .branches(is_any)
                .with(registers),
        )
        .event(Event::new("probe_app:anns_main=/home/ann/anns-probe/app").sampling(sampled))
        .feature(&Hostname::new("annsbox.example.com"))
        .feature(&Cmdline { args: List(words.map(HeaderString::new).to_vec()) })
        .feature(&BuildIds { entries })
        .cgroup(77, "/anns-slice/app.service")
        .task(1, 1)
        .kernel_map(KERNEL, 0x100_0000)
        .task(u32::MAX, 0)
        .at(1)
        .ksymbol(KERNEL_MODULE + 0x8000, 0x100, 1, 0, "bpf_prog_public")
        .bpf_event(1, 5, *b"annsbpf!")
        .bpf_metadata("bpf_prog", &[("author", "anns-metadata")])
        .text_poke(KERNEL + 0x50, b"ANNS_KEY", b"anns-old")
        .task(70, 70)
        .comm("app-comm")
        .map("/home/ann/anns-project/app-public", CODE, 0x1000, 0)
        .map("/home/ann/lib/app-public.so", LIBRARY, 0x2000, 0x1000)
        .map("[anon:anns-heap]", MADE, 0x1000, MADE)
        .map("[stack]", DATA & !0xfff, 0x1000, DATA - 0x8_0000)
        .namespaces(&[[4, 0xf000_0001]])
        .auxtrace_info(1, &[DATA, CODE])
        .thread_map(&[(70, "app-comm")])
        .unknown(4000, b"/home/ann/of-a-newer-kernel")
        .at(1000)
        .sample(sample(CODE + 0x10))
        .at(2000)
        .sample(sample(KERNEL + 0x1230).misc(1))
        .at(3000)
        .of(1)
        .sample(sample(LIBRARY + 0x40))
        .of(0)
}

#[test]
fn nothing_of_a_recording_with_everything_is_shared() {
    let dir = tempfile::tempdir().unwrap();
    // Names of files have those of hosts.
    let file = dir.path().join("annsbox-2026.data");
    fs::write(&file, recording().file()).unwrap();
    nothing_private(&file, &TEXTS, "app-public");
}
