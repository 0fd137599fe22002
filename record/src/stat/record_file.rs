//! `rec stat record`: the file with the counts, for `rep stat` and `perf stat report`.
//!
//! ```text
//!  attrs, features │ EVENT_UPDATE … THREAD_MAP CPU_MAP STAT_CONFIG │ STAT … STAT_ROUND │ STAT … STAT_ROUND
//!                    units, CPUs of events                           a value per counter, at the end
//!                                                                    of each interval, or once
//! ```
//!
//! Values are those since the start of counting; readers subtract those of the interval before. As
//! numbers of the kinds of sums, the file has those of perf 6.9 and newer: an older `perf stat
//! report` takes `--per-core`, `--per-thread` and `--per-node`.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use recrep_format::abi::{Cpu, StatConfigTag, StatRoundKind};
use recrep_format::attr::AttrEntry;
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::record::{
    Body, CpuMap, CpuSet, EventProperty, EventUpdate, Record, Scale, Stat, StatConfig, StatRound,
    ThreadMap, ThreadMapEntry,
};
use recrep_format::wire::Text;
use recrep_format::write::{FeatureWriter, FileWriter, PipeWriter};

use super::Settings;
use super::table::Table;
use crate::machine::tracepoint;
use crate::messages::error::{Error, Result};
use crate::output::{features, place};

/// The data file.
pub(super) struct RecordFile {
    /// `None` for standard output.
    path: Option<PathBuf>,
    stage: FileStage,
}

enum FileStage {
    /// Created, and empty.
    Created(File),
    File(FileWriter<File>, FeatureWriter),
    Pipe(PipeWriter<File>),
    /// Could not be written.
    Broken,
}

impl RecordFile {
    /// Creates the file; one that is there already becomes `FILE.old`.
    pub(super) fn create(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            let stdout = stdout.map_err(|why| Error::io("cannot write to standard output", why))?;
            return Ok(Self { path: None, stage: FileStage::Created(stdout.into()) });
        }
        let file = place::create(path)?;
        Ok(Self { path: Some(path.to_owned()), stage: FileStage::Created(file) })
    }

    pub(super) fn is_stdout(&self) -> bool {
        self.path.is_none()
    }

    /// Writes what comes before the counts.
    pub(super) fn begin(&mut self, settings: &Settings, table: &Table) -> Result<()> {
        let FileStage::Created(file) = std::mem::replace(&mut self.stage, FileStage::Broken) else {
            return Ok(());
        };
        let counters = &table.counters;
        let machine = &settings.machine;
        // perf needs the formats of tracepoints in a file, and cannot skip them in a stream.
        let tracepoints = if self.is_stdout() { Vec::new() } else { counters.tracepoints() };
        let tracing =
            tracepoint::formats(&tracepoints, machine.tracefs.as_deref(), machine.page_size)?;
        let features =
            features::of_counts(&settings.cmdline, machine, counters, tracing.as_deref());
        let entries: Vec<AttrEntry> = counters
            .events
            .iter()
            .enumerate()
            .map(|(index, event)| AttrEntry {
                attr: event.attr.clone(),
                ids: counters.ids(index),
                name: Some(event.full_name()),
            })
            .collect();
        let begun = match self.path {
            Some(_) => FileWriter::new(file, Endian::NATIVE, &entries)
                .map(|writer| FileStage::File(writer, features)),
            None => PipeWriter::new(file, Endian::NATIVE, &entries, &features).map(FileStage::Pipe),
        };
        self.stage = begun.map_err(|why| self.failed(why))?;
        let mut records = Encoder::new(Endian::NATIVE);
        put_events(table, &mut records);
        let threads = table.grouping.threads.iter();
        let mut threads: Vec<_> = threads
            .map(|thread| ThreadMapEntry::new(u64::from(thread.tid), thread.comm.as_bytes()))
            .collect();
        if threads.is_empty() {
            // Any thread.
            threads.push(ThreadMapEntry::new(u64::MAX, b""));
        }
        put(&mut records, Body::ThreadMap(ThreadMap::new(threads)));
        let cpus = counters.all.iter().map(|counter| counter.place.cpu);
        put(&mut records, Body::CpuMap(cpu_map(cpus)));
        let interval = settings.interval.map_or(0, |interval| interval.as_millis());
        let mut words = Encoder::new(Endian::NATIVE);
        let entries = [
            (StatConfigTag::AGGR_MODE, settings.by.mode()),
            (StatConfigTag::INTERVAL, u64::try_from(interval).unwrap_or(u64::MAX)),
            (StatConfigTag::SCALE, u64::from(!settings.unscaled)),
        ];
        for (tag, value) in entries {
            words.u64(tag.0);
            words.u64(value);
        }
        let words = U64s::new(words.as_bytes(), Endian::NATIVE);
        put(&mut records, Body::StatConfig(StatConfig { nr: entries.len() as u64, words }));
        self.write(&records)
    }

    /// Writes the values of all counters, and the end of an interval, or of all (`last`).
    pub(super) fn round(&mut self, table: &Table, time: Duration, last: bool) -> Result<()> {
        let mut records = Encoder::new(Endian::NATIVE);
        for value in table.values() {
            let stat = Stat {
                id: value.counter.id,
                cpu: value.counter.place.cpu.map_or(Cpu::ANY, Cpu),
                thread: u32::try_from(value.thread.unwrap_or(0)).unwrap_or(u32::MAX),
                value: value.count.value,
                enabled: value.count.enabled,
                running: value.count.running,
            };
            put(&mut records, Body::Stat(stat));
        }
        let kind = if last { StatRoundKind::FINAL } else { StatRoundKind::INTERVAL };
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        put(&mut records, Body::StatRound(StatRound { kind, time }));
        self.write(&records)
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<()> {
        let done = match std::mem::replace(&mut self.stage, FileStage::Broken) {
            FileStage::File(writer, features) => writer.finish(&features).map(drop),
            FileStage::Pipe(writer) => writer.finish().map(drop),
            FileStage::Created(_) | FileStage::Broken => Ok(()),
        };
        done.map_err(|why| self.failed(why))
    }

    fn write(&mut self, records: &Encoder) -> Result<()> {
        let written = match &mut self.stage {
            FileStage::File(writer, _) => writer.write(records.as_bytes()),
            FileStage::Pipe(writer) => writer.write(records.as_bytes()),
            FileStage::Created(_) | FileStage::Broken => Ok(()),
        };
        written.map_err(|why| self.failed(why))
    }

    fn failed(&self, why: io::Error) -> Error {
        let tried = match &self.path {
            Some(path) => format!("cannot write '{}'", path.display()),
            None => "cannot write to standard output".to_owned(),
        };
        Error::unwritable(tried, why)
    }
}

/// Writes units, factors and CPUs of the events.
fn put_events(table: &Table, records: &mut Encoder) {
    let counters = &table.counters;
    for (index, plan) in counters.events.iter().enumerate() {
        let Some(id) = counters.ids(index).first().copied() else { continue };
        let event = super::table::event(plan);
        let mut update = |property| put(records, Body::EventUpdate(EventUpdate { id, property }));
        if !event.unit.is_empty() {
            update(EventProperty::Unit(Text::new(event.unit.as_bytes())));
        }
        if event.scale.to_bits() != 1f64.to_bits() {
            update(EventProperty::Scale(Scale::new(event.scale)));
        }
        if let Some(cpus) = &plan.cpus {
            update(EventProperty::Cpus(cpu_map(cpus.iter().map(|cpu| Some(*cpu)))));
        }
    }
}

/// Returns the map of these CPUs, each once; `None` is any CPU.
fn cpu_map(cpus: impl Iterator<Item = Option<u32>>) -> CpuMap<'static> {
    let mut numbers: Vec<u16> =
        cpus.map(|cpu| cpu.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(u16::MAX)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() > 1 {
        // Beside CPUs there is no need of any.
        numbers.retain(|cpu| *cpu != u16::MAX);
    }
    CpuMap::new(CpuSet::Cpus(numbers))
}

fn put(records: &mut Encoder, body: Body<'_>) {
    // None of these is longer than a record can be: the kernel has fewer CPUs than that; a list of
    // more threads than 2,700 is left out, and each count still has its counter's id.
    let _ = Record::new(0, body).encode(records);
}
