//! Deep stacks, hostile names and many threads: files of all formats stay valid.

use std::collections::BTreeSet;
use std::fs::{File, read, write};
use std::path::{Path, PathBuf};

use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
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

/// Returns the rows of a table that was written with the samples of this file.
fn rows(samples: &Path, table: &str) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(samples.with_extension(table)).unwrap());
    reader.unwrap().get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

/// Returns the distinct texts of a column.
fn texts(rows: &[Row], column: &str) -> BTreeSet<String> {
    let cells = rows.iter().flat_map(|row| row.get_column_iter());
    let texts = cells.filter_map(|(name, cell)| match cell {
        Field::Str(text) if name == column => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

/// Exports a recording as tables, and returns the path of the samples.
fn tables(recording: &Path) -> PathBuf {
    let samples = recording.with_extension("parquet");
    let mut command = rep();
    command.args(["export", "--trust-paths", "--format", "parquet", "-o"]);
    run(command.arg(&samples).arg(recording)).expect(0);
    samples
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
    let stacks = rows(&tables(&file), "stacks.parquet");
    let frames = stacks[0].get_column_iter().find(|(name, _)| *name == "frames").unwrap().1;
    assert!(matches!(frames, Field::ListInternal(list) if list.len() == DEPTH), "{frames}");
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
        .comm("\"<i>\n\u{1}\u{202e}")
        .map("//anon", code, 0x200, 0)
        .map("/lib/\u{1}<\u{fffd}script>\".so", 0x70_0000, 0x1000, 0)
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
    let samples = tables(&file);
    std::fs::remove_file(&map).unwrap();
    let functions = texts(&rows(&samples, "frames.parquet"), "function");
    let samples = rows(&samples, "parquet");
    assert_eq!(texts(&samples, "comm"), ["\"<i>\n\u{1}\u{202e}".to_owned()].into());
    assert!(texts(&samples, "module").contains("\u{1}<\u{fffd}script>\".so"));
    for name in names {
        assert!(functions.contains(name), "{functions:?}");
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
    let threads = if std::env::var_os("RECREP_FULL").is_some() { 100_000 } else { 3000 };
    let mut recording = stream();
    for tid in 0..threads {
        let (pid, name) = (10_000 + tid / 4, format!("p{}", tid / 4 % 10));
        recording = recording.task(pid, 100_000 + tid).comm(&name);
        recording = recording.sample(SampleSpec::at(0x99).period(u64::from(tid) + 1));
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("perf.data"), dir.path().join("out"));
    write(&file, recording.file()).unwrap();
    export(&file, "firefox", &out).expect(0);
    let count = threads as usize;
    let lanes = FirefoxProfile::read(&out).threads_of("cycles", false);
    let samples: usize = lanes.iter().map(|thread| thread.weights.len()).sum();
    assert_eq!(samples, count);
    assert!(lanes.len() <= 1000, "{} threads", lanes.len());
    export(&file, "perfetto", &out).expect(0);
    let trace = Trace::of(&read(&out).unwrap());
    assert_eq!((trace.threads.len(), trace.events[0].samples.len()), (count, count));
    export(&file, "otlp", &out).expect(0);
    let data = ProfilesData::decode(&*read(&out).unwrap()).unwrap();
    assert_eq!(data.resource_profiles.len(), count / 4);
    assert_eq!(rows(&tables(&file), "parquet").len(), count);
}
