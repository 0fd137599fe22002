//! A trace as Perfetto has it: packets of protobuf.
//!
//! ```text
//!   machine, clocks, processes, threads      sequence 1
//!   samples of event n, in order of time     sequence n + 2, with what is interned
//!   switches, wakings                        bundles of each CPU
//! ```
//!
//! Times are those of the recording's clock, which stands for the trace's own (boot time); where the
//! recording says what the wall clock was, a snapshot of clocks does. A sample's count is the sum of
//! the periods on its CPU so far.

mod interned;
mod messages;
mod schedule;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use prost::Message as _;
use rustc_hash::FxHashMap;

use self::interned::Interned;
use self::messages::{
    ClockSnapshot, ClockTime, KERNEL_MODE, PacketDefaults, PerfSample, ProcessDescriptor, RawEvent,
    SEQUENCE_BEGINS, SampleDefaults, SystemInfo, SystemNames, ThreadDescriptor, Timebase, Trace,
    TracePacket, TrackDescriptor, USER_MODE,
};
use super::export::FileExport;
use super::frames::{CodeType, Frames};
use super::losses::exporter;
use super::timed::{self, NO_CPU, TimedSample, TimedSamples};
use crate::engine::facts::RecordingFacts;
use crate::engine::schedule::RecordedClock;
use crate::pprof::EventFacts;
use crate::profile::Profile;
use crate::query::Query;

pub(super) struct Perfetto;

/// Sequence of what concerns no event.
const OF_ALL: u32 = 1;

impl FileExport for Perfetto {
    fn extension(&self) -> &'static str {
        "perfetto-trace"
    }

    fn shows_time(&self) -> bool {
        true
    }

    fn complete(&self, query: &mut Query) {
        timed::complete(query);
    }

    fn write(
        &self,
        profile: &Profile,
        query: &Query,
        facts: &RecordingFacts,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let frames = Frames::of(profile);
        let samples = TimedSamples::of(profile, query, &frames);
        let mut packets = PacketWriter { out, bytes: Vec::new() };
        packets.machine(facts)?;
        packets.tracks(facts, &samples)?;
        for event in 0..facts.facts.events.len() {
            packets.samples(profile, facts, event, &frames, &samples)?;
        }
        schedule::for_each_bundle(&facts.schedule, |bundle| {
            packets.write(TracePacket {
                ftrace: Some(bundle),
                sequence: OF_ALL,
                ..TracePacket::default()
            })
        })?;
        packets.out.flush()
    }
}

/// Writes packets one by one.
struct PacketWriter<'o> {
    out: &'o mut dyn Write,
    bytes: Vec<u8>,
}

impl PacketWriter<'_> {
    fn write(&mut self, packet: TracePacket) -> io::Result<()> {
        self.bytes.clear();
        Trace { packets: vec![packet] }.encode(&mut self.bytes).map_err(io::Error::other)?;
        self.out.write_all(&self.bytes)
    }

    /// Writes what is known of the machine and its clocks.
    fn machine(&mut self, recorded: &RecordingFacts) -> io::Result<()> {
        let facts = &recorded.facts;
        let names = SystemNames {
            system: "Linux".into(),
            release: facts.kernel.clone(),
            machine: facts.arch.clone(),
        };
        let system = SystemInfo {
            names: Some(names),
            writer: exporter(facts, "weights of samples are sums of each CPU"),
            cpus: facts.cpus.map(|[_, online]| online),
        };
        let packet = TracePacket { sequence: OF_ALL, ..TracePacket::default() };
        self.write(TracePacket { system: Some(system), ..packet.clone() })?;
        let Some(clock) = recorded.schedule.clock else { return Ok(()) };
        let timestamp = Some(clock.time);
        self.write(TracePacket { clocks: Some(snapshot(clock)), timestamp, ..packet })
    }

    /// Writes the processes and threads that were sampled or switched.
    fn tracks(&mut self, facts: &RecordingFacts, samples: &TimedSamples<'_>) -> io::Result<()> {
        let lives = &facts.schedule.lives;
        let switches = facts.schedule.switches.iter().map(|switch| switch.tid);
        let switched = switches.chain(facts.schedule.wakings.iter().map(|waking| waking.tid));
        let (mut processes, mut threads) = (BTreeMap::new(), BTreeMap::new());
        for tid in switched.collect::<BTreeSet<i32>>() {
            let Some(life) = lives.get(&tid).filter(|life| life.pid >= 0) else { continue };
            let process = lives.get(&life.pid).map_or("", |process| process.name.as_str());
            processes.insert(life.pid, process);
            threads.insert((life.pid, tid), life.name.as_str());
        }
        for thread in samples.threads.iter().filter(|thread| thread.pid >= 0 && thread.tid >= 0) {
            processes.insert(thread.pid, &thread.process);
            threads.insert((thread.pid, thread.tid), &thread.name);
        }
        let mut uuid = 0;
        let mut track = |descriptor: TrackDescriptor| {
            uuid += 1;
            let track = Some(TrackDescriptor { uuid, ..descriptor });
            TracePacket { track, sequence: OF_ALL, ..TracePacket::default() }
        };
        for (pid, name) in processes {
            let began = lives.get(&pid).and_then(|life| i64::try_from(life.began?).ok());
            let name = name.to_owned();
            let process = Some(ProcessDescriptor { pid: Some(pid), name, began });
            self.write(track(TrackDescriptor { process, ..TrackDescriptor::default() }))?;
        }
        for ((pid, tid), name) in threads {
            let (pid, tid, name) = (Some(pid), Some(tid.into()), name.to_owned());
            let thread = Some(ThreadDescriptor { pid, tid, name });
            self.write(track(TrackDescriptor { thread, ..TrackDescriptor::default() }))?;
        }
        Ok(())
    }

    /// Writes the samples of an event.
    fn samples(
        &mut self,
        profile: &Profile,
        facts: &RecordingFacts,
        event: usize,
        frames: &Frames<'_>,
        samples: &TimedSamples<'_>,
    ) -> io::Result<()> {
        let sequence = u32::try_from(event).unwrap_or(u32::MAX - 2) + OF_ALL + 1;
        let mut interned = Interned::new(frames, &profile.calls.chains);
        let (mut counts, mut is_first) = (FxHashMap::<u32, u64>::default(), true);
        for timed in samples.all.iter().filter(|timed| timed.event as usize == event) {
            if std::mem::take(&mut is_first) {
                let defaults = facts.facts.events.get(event).map(defaults);
                let sequence_flags = SEQUENCE_BEGINS;
                let packet = TracePacket { defaults, sequence_flags, ..TracePacket::default() };
                self.write(interned.complete(packet, sequence))?;
            }
            let sample = samples.sample(timed);
            let count = counts.entry(timed.cpu).or_default();
            *count = count.saturating_add(sample.count.period);
            let innermost = sample.frames(&profile.calls.chains).next();
            let kind = innermost.and_then(|number| frames.kind(frames.get(number)?));
            let is_kernel = kind == Some(CodeType::Kernel);
            let callstack = interned.callstack(&sample);
            let cpu_mode = if is_kernel { KERNEL_MODE } else { USER_MODE };
            let sample = perf_sample(timed, samples, callstack, cpu_mode, *count);
            let (sample, timestamp) = (Some(sample), Some(timed.time));
            let packet = TracePacket { sample, timestamp, ..TracePacket::default() };
            self.write(interned.complete(packet, sequence))?;
        }
        Ok(())
    }
}

fn perf_sample(
    timed: &TimedSample,
    samples: &TimedSamples<'_>,
    callstack: Option<u64>,
    cpu_mode: i32,
    count: u64,
) -> PerfSample {
    let thread = samples.threads.get(timed.thread as usize);
    let id = |of: Option<i32>| of.and_then(|id| u32::try_from(id).ok());
    PerfSample {
        cpu: Some(timed.cpu).filter(|cpu| *cpu != NO_CPU),
        pid: id(thread.map(|thread| thread.pid)),
        tid: id(thread.map(|thread| thread.tid)),
        callstack,
        cpu_mode,
        count,
    }
}

fn defaults(event: &EventFacts) -> PacketDefaults {
    let timebase = Timebase {
        period: Some(event.period).filter(|_| event.frequency.is_none()),
        frequency: event.frequency,
        event: Some(RawEvent { kind: event.kind, config: event.config }),
        name: event.name.clone(),
    };
    PacketDefaults { samples: Some(SampleDefaults { timebase: Some(timebase) }) }
}

/// Returns the times of the recording's clock and the wall clock. The trace's own clock is set to that
/// of the recording.
fn snapshot(clock: RecordedClock) -> ClockSnapshot {
    const REALTIME: u32 = 1;
    const BOOTTIME: u32 = 6;
    // Numbers of clocks of clock_gettime(2) that Perfetto has, too.
    let own = match clock.id {
        1 => Some(3),
        4 => Some(5),
        _ => None,
    };
    let times = [(Some(BOOTTIME), clock.time), (Some(REALTIME), clock.wall), (own, clock.time)];
    let clocks =
        times.into_iter().filter_map(|(clock, time)| Some(ClockTime { clock: clock?, time }));
    ClockSnapshot { clocks: clocks.collect() }
}
