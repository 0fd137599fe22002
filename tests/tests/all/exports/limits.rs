//! Deep stacks, hostile names and many threads: files of all formats stay valid.

use std::fs::{read, write};

use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use prost::Message as _;
use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{SampleType, context};
use recrep_format::endian::Endian;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::Value;

use super::firefox::FirefoxProfile;
use super::perfetto::Trace;
use super::{export, jit_map};

const DEPTH: usize = 5000;

fn stream() -> Stream {
    Stream::new(Endian::NATIVE).event(Event::new("cycles").sampling(SampleType::CALLCHAIN)).at(10)
}

#[test]
fn stacks_keep_all_their_frames() {
    let mut chain = vec![context::USER];
    chain.extend((0..DEPTH as u64).map(|frame| 0x10_0000 + 16 * frame));
    let sample = SampleSpec::at(0x10_0000).period(1).callchain(&chain);
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("perf.data"), dir.path().join("out"));
    write(&file, stream().task(7, 7).comm("app").sample(sample).file()).unwrap();
    export(&file, "speedscope", &out).expect(0);
    let written: Value = serde_json::from_slice(&read(&out).unwrap()).unwrap();
    // The label is one more.
    assert_eq!(written["profiles"][0]["samples"][0].as_array().unwrap().len(), DEPTH + 1);
    export(&file, "otlp", &out).expect(0);
    let data = ProfilesData::decode(&*read(&out).unwrap()).unwrap();
    let stacks = data.dictionary.unwrap().stack_table;
    assert_eq!(stacks.iter().map(|stack| stack.location_indices.len()).max(), Some(DEPTH));
    export(&file, "perfetto", &out).expect(0);
    let trace = Trace::of(&read(&out).unwrap());
    assert_eq!(trace.events[0].samples[0].split("; ").count(), DEPTH);
    export(&file, "firefox", &out).expect(0);
    let profile = FirefoxProfile::read(&out);
    assert_eq!(profile.threads_of("cycles", false)[0].depths(), [DEPTH]);
    export(&file, "pprof", &out).expect(0);
    let folded = run(rep().args(["--format", "folded"]).arg(&out)).expect(0);
    assert_eq!(folded.text().split(';').count(), DEPTH + 1);
}

/// Names of functions, modules and threads with all that a format might take for its own.
#[test]
fn hostile_names_stay_names() {
    let code = 0x10_0000u64;
    let long = "x".repeat(1 << 16);
    let names = ["a\u{1b}[31m</script>\"\\", "\u{202e};\u{7f}\u{1}", long.as_str()];
    let mut lines = Vec::new();
    for (number, name) in names.iter().enumerate() {
        lines.extend(format!("{:x} 10 {name}\n", code + 16 * number as u64).bytes());
    }
    lines.extend(format!("{:x} 10 ", code + 48).bytes());
    lines.extend(b"\xff\xfe\n");
    let (pid, map) = jit_map(4, &lines);
    let chain = [context::USER, code + 4, code + 20, code + 36, code + 52];
    let sample = SampleSpec::at(code + 4).period(1).callchain(&chain);
    let recording = stream()
        .task(pid, pid)
        .comm("\"<i>\u{1}")
        .map("//anon", code, 0x200, 0)
        .map("/lib/\u{1}</script>.so", 0x70_0000, 0x1000, 0)
        .sample(sample)
        .sample(SampleSpec::at(0x70_0010).period(1));
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("perf.data"), dir.path().join("out"));
    write(&file, recording.file()).unwrap();
    let trusting = |format: &str| {
        let mut command = rep();
        command.args(["export", "--trust-paths", "--format", format, "-o"]).arg(&out).arg(&file);
        run(&mut command).expect(0);
        read(&out).unwrap()
    };
    let speedscope: Value = serde_json::from_slice(&trusting("speedscope")).unwrap();
    let of_speedscope = speedscope["shared"]["frames"].to_string();
    let otlp = ProfilesData::decode(&*trusting("otlp")).unwrap().dictionary.unwrap();
    let trace = Trace::of(&trusting("perfetto"));
    trusting("firefox");
    let profile = FirefoxProfile::read(&out);
    std::fs::remove_file(&map).unwrap();
    for name in names {
        let quoted = Value::from(name).to_string();
        assert!(of_speedscope.contains(&quoted), "{}", &quoted[..40.min(quoted.len())]);
        assert!(otlp.string_table.iter().any(|text| text == name));
        assert!(trace.events[0].samples.iter().any(|line| line.contains(name)));
        assert!(profile.threads_of("cycles", false)[0].samples().contains(name));
    }
}

#[test]
fn files_of_many_threads_are_whole() {
    // More than the threads that the Firefox Profiler is given.
    const THREADS: u32 = 3000;
    let mut recording = stream();
    for tid in 0..THREADS {
        let (pid, name) = (10_000 + tid / 4, format!("p{}", tid / 4 % 10));
        recording = recording.task(pid, 100_000 + tid).comm(&name);
        recording = recording.sample(SampleSpec::at(0x99).period(u64::from(tid) + 1));
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("perf.data"), dir.path().join("out"));
    write(&file, recording.file()).unwrap();
    export(&file, "firefox", &out).expect(0);
    let threads = FirefoxProfile::read(&out).threads_of("cycles", false);
    let samples: usize = threads.iter().map(|thread| thread.weights.len()).sum();
    assert_eq!(samples, THREADS as usize);
    assert!(threads.len() <= 1000, "{} threads", threads.len());
    export(&file, "perfetto", &out).expect(0);
    let trace = Trace::of(&read(&out).unwrap());
    assert_eq!((trace.threads.len(), trace.events[0].samples.len()), (3000, 3000));
    export(&file, "otlp", &out).expect(0);
    let data = ProfilesData::decode(&*read(&out).unwrap()).unwrap();
    assert_eq!(data.resource_profiles.len(), THREADS as usize / 4);
}
