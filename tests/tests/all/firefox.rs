//! The example `firefox` of recrep-format: what a recording has is in the profile.

use std::fs::File;
use std::process::{Command, Stdio};

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{CpuMode, SampleType, context, misc};
use recrep_format::build_id::BuildId;
use recrep_format::endian::Endian;
use recrep_format::feature::{BuildIdEvent, BuildIds};
use recrep_format::record::{Body, Mmap, Task};
use recrep_format::wire::Text;
use recrep_tests::programs::examples;
use recrep_tests::run::run;
use serde_json::Value;

const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// A shell with a second thread, whose child becomes `ls`; before all, an idle CPU.
fn recording(endian: Endian) -> Stream {
    let bytes: Vec<u8> = (0..20).collect();
    let id = BuildId::new(&bytes).unwrap();
    let entries = vec![BuildIdEvent::new(CpuMode::User, &id, b"/usr/bin/sh")];
    let module = Text::new(b"/lib/modules/ext4.ko");
    let module = Mmap {
        pid: u32::MAX,
        tid: 0,
        addr: KERNEL + 0x1000,
        len: 0x1000,
        pgoff: 0,
        filename: module,
    };
    let known = Task { pid: 20, ppid: 10, tid: 20, ptid: 10, time: 0 };
    let chain = [
        context::KERNEL,
        KERNEL + 0x10,
        KERNEL + 0x1021,
        context::USER,
        0x40_0123,
        0x40_0501,
        0x99,
    ];
    let unfinished = [context::KERNEL, KERNEL + 0x20, context::USER_DEFERRED, 77];
    Stream::new(endian)
        .event(Event::new("cycles").sampling(SampleType::CALLCHAIN))
        .event(Event::new("faults").sampling(SampleType::CALLCHAIN))
        .feature(&BuildIds { entries })
        // Synthesized: no time yet. The image of the kernel spans its module.
        .task(10, 10)
        .kernel_map(KERNEL, 0x10_0000)
        .record(1, Body::Mmap(module))
        .comm("sh")
        .map("/usr/bin/sh", 0x40_0000, 0x1000, 0x2000)
        .record(misc::FORK_EXEC, Body::Fork(known))
        .task(0, 0)
        .on_cpu(3)
        .at(1_000_000)
        .sample(SampleSpec::at(KERNEL + 0x30).misc(1))
        // In the file before what is older: rings are drained one after another.
        .task(11, 11)
        .at(9_000_000)
        .exec("ls")
        .sample(SampleSpec::at(0x40_0100))
        .at(9_500_000)
        .exit()
        .task(10, 10)
        .at(2_000_000)
        .sample(SampleSpec::at(KERNEL + 0x10).misc(1).callchain(&chain))
        .sample(SampleSpec::at(KERNEL + 0x20).misc(1).callchain(&unfinished))
        .fork(10, 12)
        .fork(11, 11)
        .of(1)
        .sample(SampleSpec::at(0x40_0200))
        .of(0)
        .task(11, 11)
        .at(3_000_000)
        .sample(SampleSpec::at(0x40_0123))
        .task(10, 12)
        .sample(SampleSpec::at(0x40_0124))
        .comm("worker")
        .task(20, 20)
        .sample(SampleSpec::at(0x40_0125))
        .round()
}

/// The profile that the example makes of a file, or of standard input.
fn profile(file: &std::path::Path, is_piped: bool) -> Value {
    let mut command = Command::new(&examples().firefox);
    if is_piped {
        let output = command.stdin(Stdio::from(File::open(file).unwrap())).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        return serde_json::from_slice(&output.stdout).unwrap();
    }
    let json = file.with_extension("json");
    let outcome = run(command.arg("-o").arg(&json).arg(file)).expect(0);
    assert_eq!((outcome.text(), outcome.stderr.as_str()), ("", ""));
    serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap()
}

/// The threads with samples: `process/thread pid tid`, and each sample as milliseconds and a stack
/// of `library+offset` or an address, innermost frame first.
fn threads(profile: &Value) -> Vec<(String, Vec<String>)> {
    let mut threads: Vec<_> = profile["threads"].as_array().unwrap().iter().map(thread).collect();
    threads.retain(|(_, samples)| !samples.is_empty());
    threads.sort();
    threads
}

fn thread(thread: &Value) -> (String, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let at = |table: &str, column: &str, index: &Value| {
        thread[table][column][usize::try_from(index.as_u64().unwrap()).unwrap()].clone()
    };
    let string = |index: &Value| {
        text(&thread["stringArray"][usize::try_from(index.as_u64().unwrap()).unwrap()])
    };
    let frame = |stack: &Value| {
        let frame = at("stackTable", "frame", stack);
        let func = at("frameTable", "func", &frame);
        let name = string(&at("funcTable", "name", &func));
        let resource = at("funcTable", "resource", &func);
        if resource.as_i64() == Some(-1) {
            return name;
        }
        let address = at("frameTable", "address", &frame).as_u64().unwrap();
        format!("{}+{address:#x}", string(&at("resourceTable", "name", &resource)))
    };
    let samples = &thread["samples"];
    let mut time = 0.0;
    let stacks =
        samples["stack"].as_array().unwrap().iter().zip(samples["timeDeltas"].as_array().unwrap());
    let lines = stacks.map(|(stack, delta)| {
        time += delta.as_f64().unwrap();
        let mut line = format!("{time:.3}");
        let mut stack = stack.clone();
        while !stack.is_null() {
            line += &format!(" {}", frame(&stack));
            stack = at("stackTable", "prefix", &stack);
        }
        line
    });
    let ids = format!("{} {}", text(&thread["pid"]), text(&thread["tid"]));
    (format!("{}/{} {ids}", text(&thread["processName"]), text(&thread["name"])), lines.collect())
}

#[test]
fn the_profile_has_the_threads_names_and_stacks_of_the_recording() {
    let expected: [(&str, &[&str]); 6] = [
        ("ls/ls 11.1 11.1", &["8.000 0x400100"]),
        (
            "sh/sh 10 10",
            &[
                // What the callers return to is behind the call.
                "1.000 [kernel.kallsyms]+0x10 ext4.ko+0x20 sh+0x2122 sh+0x2500 0x98",
                "1.000 [kernel.kallsyms]+0x20",
            ],
        ),
        ("sh/sh 11 11", &["2.000 sh+0x2123"]),
        // Synthesized: the name is inherited, the mappings are not.
        ("sh/sh 20 20", &["2.000 0x400125"]),
        ("sh/worker 10 12", &["2.000 sh+0x2124"]),
        ("swapper/swapper/3 0 3", &["0.000 [kernel.kallsyms]+0x30"]),
    ];
    let dir = tempfile::tempdir().unwrap();
    for endian in [Endian::Little, Endian::Big] {
        let stream = recording(endian);
        for (bytes, is_piped) in
            [(stream.file(), false), (stream.file(), true), (stream.pipe(), true)]
        {
            let file = dir.path().join("made.data");
            std::fs::write(&file, bytes).unwrap();
            let profile = profile(&file, is_piped);
            let found = threads(&profile);
            let found: Vec<_> = found
                .iter()
                .map(|(name, samples)| {
                    (name.as_str(), samples.iter().map(String::as_str).collect::<Vec<_>>())
                })
                .collect();
            let expected = expected.map(|(name, samples)| (name, samples.to_vec()));
            assert_eq!(found, expected, "{endian:?}, piped: {is_piped}");
            // 4,000 Hz.
            assert_eq!(profile["meta"]["interval"], 0.25);
            // Of a pipe, too, which has them among its records.
            let sh =
                profile["libs"].as_array().unwrap().iter().find(|lib| lib["name"] == "sh").unwrap();
            let ids = (sh["breakpadId"].as_str().unwrap(), sh["codeId"].as_str());
            let known = (
                "030201000504070608090A0B0C0D0E0F0",
                Some("000102030405060708090a0b0c0d0e0f10111213"),
            );
            assert_eq!(ids, known);
        }
    }
}
