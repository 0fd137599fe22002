//! A profile as the Firefox Profiler has it: JSON of its processed format, packed by gzip.
//!
//! ```text
//!   samples in order of time ─► lanes: an event of a thread ─► threads with samples, by process
//!   frames ─► functions of libraries, categories              └ weights, CPU time
//!   switches ─► markers `waiting`, `preempted`
//!   counters ─► tracks of counters
//! ```
//!
//! What is lost is said by a marker at the beginning: source lines, CPUs of samples, and of more
//! threads than the viewer takes, which of the lightest ones a sample is from.

mod frames;
mod lanes;
mod markers;

use std::io::{self, Write};
use std::time::Duration;

use flate2::{Compression, GzBuilder};
use fxprof_processed_profile as fxprof;
use rustc_hash::FxHashMap;

use self::frames::FirefoxFrames;
use self::lanes::{Lane, Lanes};
use super::export::FileExport;
use super::frames::Frames;
use super::timed::{self, TimedSamples};
use super::weights::EventWeights;
use crate::callchain::{Chains, Sample};
use crate::engine::facts::RecordingFacts;
use crate::engine::schedule::ThreadLife;
use crate::profile::Profile;
use crate::profile::recording::quoted;
use crate::query::Query;

pub(super) struct Firefox;

impl FileExport for Firefox {
    fn extension(&self) -> &'static str {
        "firefox.json.gz"
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
        let built = FirefoxBuilder::new(profile, facts, &samples).build(&frames);
        let mut packed = GzBuilder::new().mtime(0).write(out, Compression::default());
        serde_json::to_writer(&mut packed, &built)?;
        packed.finish()?.flush()
    }
}

/// Stacks of a thread, by the numbers of chains.
type Stacks = FxHashMap<u32, Option<fxprof::StackHandle>>;

/// A profile that is being built.
struct FirefoxBuilder<'p> {
    profile: &'p Profile,
    facts: &'p RecordingFacts,
    samples: &'p TimedSamples<'p>,
    /// Time that is 0 in the file.
    origin: u64,
    built: fxprof::Profile,
    processes: FxHashMap<(i32, &'p str), fxprof::ProcessHandle>,
}

impl<'p> FirefoxBuilder<'p> {
    fn new(profile: &'p Profile, facts: &'p RecordingFacts, samples: &'p TimedSamples<'p>) -> Self {
        let switches = &facts.schedule.switches;
        let first = samples.all.iter().map(|sample| sample.time).find(|time| *time > 0);
        let origin = first.into_iter().chain(switches.first().map(|switch| switch.time)).min();
        let origin = origin.unwrap_or(0);
        let command: Vec<String> = facts.facts.command.iter().map(|word| quoted(word)).collect();
        let product = if command.is_empty() { "perf.data".to_owned() } else { command.join(" ") };
        let before_first = first.unwrap_or(origin).saturating_sub(origin);
        let began = Duration::from_nanos(facts.began.unwrap_or(0).saturating_sub(before_first));
        let began = fxprof::ReferenceTimestamp::from_duration_since_unix_epoch(began);
        let frequency = facts.facts.events.first().and_then(|event| event.frequency);
        let interval = frequency.and_then(|frequency| 1_000_000_000_u64.checked_div(frequency));
        let interval = fxprof::SamplingInterval::from_nanos(interval.unwrap_or(1_000_000));
        let mut built = fxprof::Profile::new(&product, began, interval);
        built.set_os_name(&machine(facts));
        // Names that are not here are not known: viewers need not ask for them.
        built.set_symbolicated(true);
        Self { profile, facts, samples, origin, built, processes: FxHashMap::default() }
    }

    fn build(mut self, frames: &Frames<'_>) -> fxprof::Profile {
        let frames = FirefoxFrames::add_to(&mut self.built, frames);
        let lanes = Lanes::of(self.samples);
        let weights = EventWeights::of_events(self.profile, self.samples);
        let (mut threads, mut first) = (FxHashMap::default(), None);
        for lane in &lanes.all {
            let thread = self.thread(lane, lanes.have_several_events);
            first.get_or_insert(thread);
            if let Some(tid) = lane.tid {
                threads.entry(tid).or_insert(thread);
            }
            self.add_samples(thread, lane, &frames, &weights);
        }
        self.add_switches(&threads);
        self.add_counters(lanes.all.first());
        if let Some(thread) = first {
            self.add_notes(thread, &lanes, &weights);
        }
        self.built
    }

    fn time(&self, time: u64) -> fxprof::Timestamp {
        fxprof::Timestamp::from_nanos_since_reference(time.saturating_sub(self.origin))
    }
}

impl<'p> FirefoxBuilder<'p> {
    /// Adds the thread of a lane, and its process if that is new.
    fn thread(&mut self, lane: &Lane<'p>, names_event: bool) -> fxprof::ThreadHandle {
        let lives = &self.facts.schedule.lives;
        let life = |id: i32| lives.get(&id).filter(|life| life.pid == lane.pid);
        let start = |life: Option<&ThreadLife>| life.and_then(|life| life.began);
        let [began, ended] = [life(lane.pid), lane.tid.and_then(life)];
        let (process_start, thread_start) = (start(began), start(ended));
        let process = match self.processes.get(&(lane.pid, lane.process)) {
            Some(known) => *known,
            None => {
                let pid = u32::try_from(lane.pid).unwrap_or(0);
                let at = self.time(process_start.unwrap_or(self.origin));
                let process = self.built.add_process(lane.process, pid, at);
                if let Some(end) = began.and_then(|life| life.ended) {
                    let end = self.time(end);
                    self.built.set_process_end_time(process, end);
                }
                self.processes.insert((lane.pid, lane.process), process);
                process
            }
        };
        let (tid, at) = (lane.tid.unwrap_or(0), self.time(thread_start.unwrap_or(self.origin)));
        let is_main = lane.tid == Some(lane.pid) && lane.event == 0;
        let tid = u32::try_from(tid).unwrap_or(0);
        let thread = self.built.add_thread(process, tid, at, is_main);
        let event = self.profile.events().get(lane.event as usize).filter(|_| names_event);
        match event {
            Some(event) => {
                self.built.set_thread_name(thread, &format!("{} ({})", lane.name, event.name));
            }
            None => self.built.set_thread_name(thread, &lane.name),
        }
        if let Some(end) = ended.and_then(|life| life.ended) {
            let end = self.time(end);
            self.built.set_thread_end_time(thread, end);
        }
        thread
    }

    fn add_samples(
        &mut self,
        thread: fxprof::ThreadHandle,
        lane: &Lane<'_>,
        frames: &FirefoxFrames,
        weights: &EventWeights,
    ) {
        let event = lane.event as usize;
        let counts_time = self.profile.events().get(event).is_some_and(|event| event.counts_time);
        let frequency = self.facts.facts.events.get(event).and_then(|event| event.frequency);
        let interval = frequency.and_then(|hz| 1_000_000_000_u64.checked_div(hz)).unwrap_or(0);
        let Some(unit) = weights.units.get(event).copied().flatten() else { return };
        let (mut stacks, mut kept) = (Stacks::default(), 0);
        for place in &lane.samples {
            let Some(timed) = self.samples.all.get(*place as usize) else { continue };
            let sample = self.samples.sample(timed);
            let stack = self.stack(thread, &sample, frames, &mut stacks);
            let count = sample.count;
            let nanoseconds =
                if counts_time { count.period } else { interval.saturating_mul(count.samples) };
            let (time, weight) = (self.time(timed.time), unit.weight(count, &mut kept));
            let delta = fxprof::CpuDelta::from_nanos(nanoseconds);
            self.built.add_sample(thread, time, stack, delta, weight);
        }
    }

    /// Returns the stack of a sample in a thread.
    fn stack(
        &mut self,
        thread: fxprof::ThreadHandle,
        sample: &Sample,
        frames: &FirefoxFrames,
        known: &mut Stacks,
    ) -> Option<fxprof::StackHandle> {
        let chains: &Chains = &self.profile.calls.chains;
        // Callers up to those that are known; each is added once.
        let (mut new, mut at) = (Vec::new(), sample.callers);
        let mut stack = loop {
            let (known, node) = (known.get(&at), chains.node(at));
            match (known, node) {
                (Some(known), _) => break *known,
                (None, None) => break None,
                (None, Some(node)) => new.push((at, node.frame)),
            }
            at = node.map_or(0, |node| node.callers);
        };
        for (chain, frame) in new.into_iter().rev() {
            stack = self.longer(thread, stack, frames, frame);
            known.insert(chain, stack);
        }
        match sample.is_in_chain {
            true => self.longer(thread, stack, frames, sample.frame),
            false => stack,
        }
    }

    /// Returns a stack with one more frame.
    fn longer(
        &mut self,
        thread: fxprof::ThreadHandle,
        callers: Option<fxprof::StackHandle>,
        frames: &FirefoxFrames,
        frame: u32,
    ) -> Option<fxprof::StackHandle> {
        let Some(frame) = frames.get(frame) else { return callers };
        let frame = self.built.intern_frame(thread, frame);
        Some(self.built.intern_stack(thread, callers, frame))
    }
}

/// Returns what is known of the machine.
fn machine(facts: &RecordingFacts) -> String {
    let facts = &facts.facts;
    let kernel = facts.kernel.as_ref().map(|release| format!("Linux {release}"));
    let known = [kernel, facts.arch.clone(), facts.cpu.clone(), facts.host.clone()];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
