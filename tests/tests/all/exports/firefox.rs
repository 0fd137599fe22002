//! `rep export --format firefox`: the processed format, as the viewer reads it.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::perfetto::recording;
use super::{export, jit_map};

pub(super) struct FirefoxProfile(Value);

/// A thread of the file.
pub(super) struct FirefoxThread {
    /// `process/name pid tid`.
    pub(super) name: String,
    pub(super) weights: Vec<u64>,
    /// Each as `milliseconds: frames`, innermost first; a frame as `function (library, category)`.
    samples: Vec<String>,
    /// Each as `name start end`.
    markers: Vec<String>,
}

impl FirefoxThread {
    /// Returns the number of frames of each sample.
    pub(super) fn depths(&self) -> Vec<usize> {
        self.samples.iter().map(|line| line.split("; ").count()).collect()
    }

    /// Returns all samples as a text.
    pub(super) fn samples(&self) -> String {
        self.samples.join("\n")
    }
}

fn place(index: &Value) -> Option<usize> {
    index.as_u64().map(|index| usize::try_from(index).unwrap())
}

impl FirefoxProfile {
    pub(super) fn read(file: &Path) -> Self {
        let mut text = String::new();
        GzDecoder::new(std::fs::File::open(file).unwrap()).read_to_string(&mut text).unwrap();
        Self(serde_json::from_str(&text).unwrap())
    }

    /// Returns the threads with samples of an event.
    pub(super) fn threads_of(&self, event: &str, are_several: bool) -> Vec<FirefoxThread> {
        let threads = self.0["threads"].as_array().unwrap().iter();
        let mut threads: Vec<FirefoxThread> = threads.map(|one| self.thread(one)).collect();
        let (name, first) = (format!("({event})"), self.note_events()[0].clone());
        if are_several {
            // A main thread has the name of its process: it is of the first event.
            threads.retain(|thread| {
                let is_main = !thread.name.contains(") ") && event == first;
                thread.name.contains(&name) || is_main
            });
        }
        threads
    }

    /// Returns the period of a weight of 1; `None` if weights are numbers of samples.
    pub(super) fn unit(&self, event: &str) -> Option<u64> {
        let notes = self.notes();
        let note = notes.iter().find_map(|note| note.strip_prefix(&format!("{event}: "))).unwrap();
        if note.starts_with("weights are numbers") {
            return None;
        }
        Some(
            note.strip_prefix("a weight of 1 is a period of ")
                .map_or(1, |unit| unit.parse().unwrap()),
        )
    }

    fn note_events(&self) -> Vec<String> {
        let notes = self.notes().into_iter();
        notes.filter_map(|note| Some(note.rsplit_once(": ")?.0.to_owned())).collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for thread in self.0["threads"].as_array().unwrap() {
            for data in thread["markers"]["data"].as_array().unwrap() {
                if data["type"] == "Text" {
                    let text = match &data["text"] {
                        Value::String(text) => text.clone(),
                        index => self.string(thread, index),
                    };
                    notes.push(text);
                }
            }
        }
        notes
    }

    fn string(&self, thread: &Value, index: &Value) -> String {
        thread["stringArray"][place(index).unwrap()].as_str().unwrap().to_owned()
    }

    fn thread(&self, thread: &Value) -> FirefoxThread {
        let text = |key: &str| thread[key].as_str().unwrap();
        let samples = &thread["samples"];
        let list = |key: &str| samples[key].as_array().unwrap().iter();
        let mut time = 0.0;
        let lines = list("stack").zip(list("timeDeltas")).map(|(stack, delta)| {
            time += delta.as_f64().unwrap();
            let mut frames = Vec::new();
            let mut stack = place(stack);
            while let Some(at) = stack {
                let frame = place(&thread["stackTable"]["frame"][at]).unwrap();
                frames.push(self.frame(thread, frame));
                stack = place(&thread["stackTable"]["prefix"][at]);
            }
            format!("{time:.3}: {}", frames.join("; "))
        });
        let samples: Vec<String> = lines.collect();
        let weights = list("weight").map(|weight| weight.as_u64().unwrap()).collect();
        let markers = &thread["markers"];
        let column = |key: &str| markers[key].as_array().unwrap();
        let markers =
            (0..column("name").len()).filter(|at| column("data")[*at]["type"] == "OffCpu");
        let markers = markers.map(|at| {
            let name = self.string(thread, &column("name")[at]);
            format!("{name} {} {}", column("startTime")[at], column("endTime")[at])
        });
        FirefoxThread {
            name: format!(
                "{}/{} {} {}",
                text("processName"),
                text("name"),
                text("pid"),
                text("tid")
            ),
            markers: markers.collect(),
            weights,
            samples,
        }
    }

    fn frame(&self, thread: &Value, frame: usize) -> String {
        let func = place(&thread["frameTable"]["func"][frame]).unwrap();
        let name = self.string(thread, &thread["funcTable"]["name"][func]);
        let library = place(&thread["funcTable"]["resource"][func]).map_or_else(
            || "none".to_owned(),
            |resource| self.string(thread, &thread["resourceTable"]["name"][resource]),
        );
        let category = place(&thread["frameTable"]["category"][frame]).unwrap();
        let category = &self.0["meta"]["categories"][category]["name"];
        format!("{name} ({library}, {})", category.as_str().unwrap())
    }
}

#[test]
fn a_profile_has_the_threads_stacks_and_waits() {
    let (pid, map) = jit_map(2, b"100000 40 jitted\n100040 40 py::work:/x.py\n");
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("perf.data"), dir.path().join("out"));
    std::fs::write(&file, recording(pid).file()).unwrap();
    let mut command = recrep_tests::programs::rep();
    command.args(["export", "--format", "firefox", "--trust-paths", "-o"]).arg(&out).arg(&file);
    recrep_tests::run::run(&mut command).expect(0);
    std::fs::remove_file(&map).unwrap();
    let profile = FirefoxProfile::read(&out);
    let threads = profile.threads_of("cycles", true);
    let names: Vec<&str> = threads.iter().map(|thread| thread.name.as_str()).collect();
    let worker = pid + 1;
    assert_eq!(
        names,
        [format!("app/app {pid} {pid}"), format!("app/worker (cycles) {pid} {worker}")]
    );
    let [main, worker] = threads.as_slice() else { panic!("{names:?}") };
    let kernel = main.samples[0].split(": ").nth(1).unwrap().split("; ").next().unwrap();
    assert!(kernel.ends_with("([kernel.kallsyms], Kernel)"), "{kernel}");
    let library = format!("[JIT] tid {pid}");
    let frames = format!("{kernel}; jitted ({library}, JIT); py::work:/x.py ({library}, Python)");
    assert_eq!(main.samples, [format!("0.000: {frames}"), format!("0.001: {frames}")]);
    assert_eq!(worker.samples, [format!("0.003: {frames}")]);
    assert_eq!((main.weights.as_slice(), worker.weights.as_slice()), (&[5, 7][..], &[9][..]));
    assert_eq!(main.markers, ["waiting 0.002 0.004001"]);
    let faults = profile.threads_of("faults", true);
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].samples, ["0.001: 0x99 (none, User)"]);
    assert_eq!((profile.unit("cycles"), profile.unit("faults")), (Some(1), None));
}

/// Formats that show samples in time have no labels.
#[test]
fn labels_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for format in ["firefox", "perfetto"] {
        let mut command = recrep_tests::programs::rep();
        command.args(["export", "--format", format, "--labels", "comm"]).arg(dir.path());
        let outcome = recrep_tests::run::run(&mut command).expect(2);
        assert!(outcome.stderr.contains("--labels"), "{outcome:?}");
    }
}

/// Nothing of a thread without samples in the file.
#[test]
fn an_empty_recording_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("perf.data"), dir.path().join("out"));
    let stream = recrep_fixtures::build::Stream::new(recrep_format::endian::Endian::NATIVE);
    let event = recrep_fixtures::build::Event::new("cycles");
    std::fs::write(&file, stream.event(event).task(7, 7).comm("app").file()).unwrap();
    for format in ["firefox", "perfetto", "otlp", "pprof", "speedscope"] {
        let outcome = export(&file, format, &out).expect(1);
        assert!(!outcome.stderr.is_empty() && !out.exists(), "{format}: {outcome:?}");
    }
}
