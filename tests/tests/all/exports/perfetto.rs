//! `rep export --format perfetto`: packets, read field by field.

use std::collections::BTreeMap;
use std::fs::read;

use prost::encoding::{WireType, decode_key, decode_varint};
use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{SampleType, context};
use recrep_format::endian::Endian;
use recrep_tests::programs::rep;
use recrep_tests::run::run;

use super::jit_map;

/// A message: the values of its fields, by number.
#[derive(Default)]
struct Message<'b>(BTreeMap<u32, Vec<Value<'b>>>);

#[derive(Clone, Copy)]
enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl<'b> Message<'b> {
    fn of(mut bytes: &'b [u8]) -> Self {
        let mut fields = BTreeMap::<u32, Vec<Value<'b>>>::new();
        while !bytes.is_empty() {
            let (field, kind) = decode_key(&mut bytes).unwrap();
            let number = decode_varint(&mut bytes).unwrap();
            let value = match kind {
                WireType::Varint => Value::Number(number),
                WireType::LengthDelimited => {
                    let (value, rest) = bytes.split_at(usize::try_from(number).unwrap());
                    bytes = rest;
                    Value::Bytes(value)
                }
                other => panic!("{other:?}"),
            };
            fields.entry(field).or_default().push(value);
        }
        Self(fields)
    }

    fn messages(&self, field: u32) -> impl Iterator<Item = Message<'b>> {
        let values = self.0.get(&field).into_iter().flatten();
        values.map(|value| match value {
            Value::Bytes(bytes) => Message::of(bytes),
            Value::Number(number) => panic!("{number}"),
        })
    }

    fn message(&self, field: u32) -> Option<Message<'b>> {
        self.messages(field).next()
    }

    fn number(&self, field: u32) -> Option<u64> {
        match self.0.get(&field)?.first()? {
            Value::Number(number) => Some(*number),
            Value::Bytes(bytes) => panic!("{bytes:?}"),
        }
    }

    fn numbers(&self, field: u32) -> Vec<u64> {
        let values = self.0.get(&field).into_iter().flatten();
        let number = |value: &Value<'_>| match value {
            Value::Number(number) => *number,
            Value::Bytes(bytes) => panic!("{bytes:?}"),
        };
        values.map(number).collect()
    }

    fn text(&self, field: u32) -> String {
        match self.0.get(&field).map(Vec::as_slice) {
            Some([Value::Bytes(bytes)]) => String::from_utf8(bytes.to_vec()).unwrap(),
            None => String::new(),
            _ => panic!("field {field}"),
        }
    }
}

/// Samples of an event.
#[derive(Default)]
pub(super) struct TraceEvent {
    pub(super) name: String,
    /// Last count of each CPU.
    pub(super) counts: BTreeMap<Option<u64>, u64>,
    /// Each as `time pid/tid cpu mode: frames`, innermost first.
    pub(super) samples: Vec<String>,
    functions: BTreeMap<u64, String>,
    paths: BTreeMap<u64, String>,
    mappings: BTreeMap<u64, u64>,
    frames: BTreeMap<u64, String>,
    callstacks: BTreeMap<u64, Vec<u64>>,
}

/// What a trace says.
#[derive(Default)]
pub(super) struct Trace {
    pub(super) events: Vec<TraceEvent>,
    pub(super) processes: BTreeMap<u64, String>,
    /// By process and thread.
    pub(super) threads: BTreeMap<(u64, u64), String>,
    /// Each as `time cpu: prev(state) -> next`.
    pub(super) switches: Vec<String>,
}

impl Trace {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let (mut trace, mut sequences) = (Self::default(), BTreeMap::<u64, TraceEvent>::new());
        for packet in Message::of(bytes).messages(1) {
            let sequence = packet.number(10).unwrap();
            if let Some(track) = packet.message(60) {
                trace.add_track(&track);
            }
            if let Some(bundle) = packet.message(1) {
                trace.add_switches(&bundle);
            }
            if let Some(defaults) = packet.message(59) {
                let timebase = defaults.message(12).unwrap().message(1).unwrap();
                // The first of its sequence.
                assert_eq!(packet.number(13), Some(3));
                let event = TraceEvent { name: timebase.text(10), ..TraceEvent::default() };
                assert!(sequences.insert(sequence, event).is_none());
            }
            if let Some(interned) = packet.message(12) {
                sequences.get_mut(&sequence).unwrap().add_interned(&interned);
            }
            if let Some(sample) = packet.message(66) {
                let time = packet.number(8).unwrap();
                sequences.get_mut(&sequence).unwrap().add_sample(time, &sample);
            }
        }
        trace.events = sequences.into_values().collect();
        trace
    }

    fn add_track(&mut self, track: &Message<'_>) {
        assert!(track.number(1).unwrap() > 0);
        if let Some(process) = track.message(3) {
            self.processes.insert(process.number(1).unwrap(), process.text(6));
        }
        if let Some(thread) = track.message(4) {
            let ids = [1, 2].map(|field| thread.number(field).unwrap());
            self.threads.insert(ids.into(), thread.text(5));
        }
    }

    fn add_switches(&mut self, bundle: &Message<'_>) {
        let cpu = bundle.number(1).unwrap();
        for event in bundle.messages(2) {
            let (time, switch) = (event.number(1).unwrap(), event.message(4).unwrap());
            let [state, prev, next] = [4, 2, 6].map(|field| switch.number(field).unwrap());
            let names = [1, 5].map(|field| switch.text(field));
            self.switches.push(format!(
                "{time} {cpu}: {} {prev} ({state}) -> {} {next}",
                names[0], names[1]
            ));
        }
    }
}

impl TraceEvent {
    fn add_interned(&mut self, interned: &Message<'_>) {
        let id = |message: &Message<'_>| message.number(1).unwrap();
        self.functions.extend(interned.messages(5).map(|text| (id(&text), text.text(2))));
        self.paths.extend(interned.messages(17).map(|text| (id(&text), text.text(2))));
        self.mappings
            .extend(interned.messages(19).map(|mapping| (id(&mapping), mapping.numbers(7)[0])));
        for frame in interned.messages(6) {
            let function = &self.functions[&frame.number(2).unwrap()];
            let path = &self.paths[&self.mappings[&frame.number(3).unwrap()]];
            self.frames.insert(id(&frame), format!("{function} in {path}"));
        }
        for stack in interned.messages(7) {
            let frames = stack.numbers(2);
            assert!(frames.iter().all(|frame| self.frames.contains_key(frame)));
            self.callstacks.insert(id(&stack), frames);
        }
    }

    fn add_sample(&mut self, time: u64, sample: &Message<'_>) {
        let cpu = sample.number(1);
        let count = sample.number(6).unwrap_or(0);
        let before = self.counts.insert(cpu, count).unwrap_or(0);
        assert!(before <= count);
        let frames = sample.number(4).map(|stack| {
            let frames =
                self.callstacks[&stack].iter().rev().map(|frame| self.frames[frame].as_str());
            frames.collect::<Vec<_>>().join("; ")
        });
        let [pid, tid] =
            [2, 3].map(|field| sample.number(field).map(u64::cast_signed).unwrap_or(-1));
        let mode = if sample.number(5) == Some(1) { "kernel" } else { "user" };
        let cpu = cpu.map_or(-1, u64::cast_signed);
        let frames = frames.unwrap_or_default();
        self.samples.push(format!("{time} {pid}/{tid} {cpu} {mode}: {frames}"));
    }
}

const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// Two threads on one CPU, which the kernel switches.
pub(super) fn recording(pid: u32) -> Stream {
    let code = 0x10_0000;
    let chain = [context::KERNEL, KERNEL + 4, context::USER, code + 4, code + 0x48];
    let sample = |period| SampleSpec::at(KERNEL + 4).misc(1).period(period).callchain(&chain);
    Stream::new(Endian::NATIVE)
        .event(Event::new("cycles").sampling(SampleType::CALLCHAIN))
        .event(Event::new("faults").sampling(SampleType::CALLCHAIN))
        .task(1, 1)
        .kernel_map(KERNEL, 0x10_0000)
        .task(pid, pid)
        .comm("app")
        .map("//anon", code, 0x200, 0)
        .on_cpu(3)
        .at(1000)
        .fork(pid, pid + 1)
        .sample(sample(5))
        .at(2000)
        .sample(sample(7))
        .of(1)
        .sample(SampleSpec::at(0x99).period(3))
        .of(0)
        .at(3000)
        .switch_cpu_wide(true, pid, pid + 1)
        .task(pid, pid + 1)
        .at(3001)
        .switch_cpu_wide(false, pid, pid)
        .at(4000)
        .comm("worker")
        .sample(sample(9))
        .at(5000)
        .switch_cpu_wide(true, pid, pid)
        .task(pid, pid)
        .at(5001)
        .switch_cpu_wide(false, pid, pid + 1)
}

#[test]
fn a_trace_has_samples_threads_and_switches() {
    let (pid, map) = jit_map(3, b"100000 40 jitted\n100040 40 main\n");
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("perf.data"), dir.path().join("out"));
    std::fs::write(&file, recording(pid).file()).unwrap();
    let mut command = rep();
    command.args(["export", "--format", "perfetto", "--trust-paths", "-o"]).arg(&out).arg(&file);
    run(&mut command).expect(0);
    std::fs::remove_file(&map).unwrap();
    let trace = Trace::of(&read(&out).unwrap());
    let (process, worker) = (u64::from(pid), u64::from(pid) + 1);
    let names: BTreeMap<u64, &str> =
        trace.processes.iter().map(|(pid, name)| (*pid, name.as_str())).collect();
    assert_eq!(names[&process], "app");
    assert_eq!(trace.threads[&(process, process)], "app");
    assert_eq!(trace.threads[&(process, worker)], "worker");
    let [cycles, faults] = trace.events.as_slice() else { panic!("two events") };
    assert_eq!((cycles.name.as_str(), faults.name.as_str()), ("cycles", "faults"));
    let innermost = cycles.samples[0].split(": ").nth(1).unwrap().split("; ").next().unwrap();
    assert!(innermost.ends_with(" in [kernel.kallsyms]"), "{innermost}");
    let (_, module) = cycles.samples[0].rsplit_once(" in ").unwrap();
    let frames = format!("{innermost}; jitted in {module}; main in {module}");
    let line = |time: u64, tid: u64| format!("{time} {process}/{tid} 3 kernel: {frames}");
    assert_eq!(cycles.samples, [line(1000, process), line(2000, process), line(4000, worker)]);
    assert_eq!(cycles.counts, [(Some(3), 21)].into());
    assert_eq!(faults.samples, [format!("2001 {process}/{process} 3 user: 0x99 in [unknown]")]);
    assert_eq!(
        trace.switches,
        [
            format!("3000 3: app {process} (1) -> worker {worker}"),
            format!("5000 3: worker {worker} (1) -> app {process}"),
        ]
    );
}
