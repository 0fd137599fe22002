//! The tables of one input.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::sync::RwLock;

use anyhow::Context as _;
use jiff::Timestamp;

use super::cells::{DataTexts, EncodedColumn};
use super::columns::{Constant, DataColumn, FileSchema};
use super::groups::GroupRows;
use super::keys::{DATE, DataSetKeys, HOST, RECORDING};
use super::known_frames::KnownFrames;
use super::parts::{FinishedPart, PartPaths, PartWriter, PartitionValue};
use super::recordings::{self, RECORDINGS};
use super::samples::{self, EVENT, ReadPieces, SampleGroup, SampleWorker};
use super::stack_table::StackTable;
use super::stacks::{FRAMES, FrameCells, STACKS};
use crate::count::Count;
use crate::decode::{self, WantedTraces};
use crate::engine::counted::with_samples;
use crate::engine::described::dropped_warnings;
use crate::engine::facts::{RecordingFacts, facts};
use crate::engine::unmatched::{self, RecordedSamples};
use crate::engine::{FrameTexts, Labeller, fetching};
use crate::input::{Input, Keep};
use crate::query::{FilterValues, Mode, Query, Source, Warning};
use crate::samples::Session;
use crate::scan::{Dropped, SampleReader, Scan};
use crate::symbols::Resolver;
use crate::terminal::parts::{Workers, in_order};
use crate::timeline::Groups;

/// Number of pieces whose samples are a row group: 4 MiB of records.
const PIECES: usize = 4;

/// Number of row groups of each core in a batch.
const BATCH: usize = 2;

/// Number of frames in a row group.
const FRAMES_AT_ONCE: usize = 1 << 18;

/// Writes the tables of an input.
#[derive(Clone, Copy)]
pub(super) struct InputExport<'q> {
    pub(super) query: &'q Query,
    pub(super) keys: &'q DataSetKeys,
    pub(super) paths: &'q PartPaths,
    pub(super) resolver: &'q Resolver,
}

/// What all tables of an input have in common.
struct InputFacts<'q> {
    export: InputExport<'q>,
    source: &'q Source,
    /// Name of the recording.
    name: &'q str,
    recording: RecordingFacts,
    /// Values of the keys of partitions; `None` for the event.
    values: Vec<(&'q str, Option<Option<String>>)>,
    constants: Vec<Constant>,
}

/// What the workers made of the samples.
struct ReadSamples {
    totals: Vec<Count>,
    dropped: Dropped,
}

impl InputExport<'_> {
    /// Writes the tables, and returns warnings.
    pub(super) fn run(self, source: &Source, name: &str) -> anyhow::Result<Vec<Warning>> {
        let input = Input::recording(source, "tables of samples")?;
        let (parts, warnings) = input.unless_changed(self.written(source, name, &input))?;
        for part in parts {
            part.publish()?;
        }
        Ok(warnings)
    }

    /// Returns the files, complete but for their names, and warnings.
    fn written(
        self,
        source: &Source,
        name: &str,
        input: &Input,
    ) -> anyhow::Result<(Vec<FinishedPart>, Vec<Warning>)> {
        let traces = WantedTraces::each(&self.query.filters.samples.itrace);
        let opened = decode::open(input, Keep::Some, traces, self.resolver)?;
        let session = &Session::open(&opened, Mode::Samples, Some(self.resolver));
        let mut warnings = fetching::fetch(self.query, session, self.resolver)?;
        let groups = &Groups::read(session.file, &session.split.side_band, &session.clock);
        let facts = InputFacts::new(self, source, name, facts(session));
        let (parts, totals, dropped) =
            with_samples(self.query, session, self.resolver, |scan, labeller| {
                facts.tables(scan, labeller, groups)
            })??;
        warnings.extend(session.warnings());
        warnings.extend(dropped_warnings(&dropped));
        let recorded = RecordedSamples {
            session,
            resolver: self.resolver,
            symbol_sources: &self.query.symbol_sources,
            mode: Mode::Samples,
        };
        let is_empty = totals.iter().all(|total| total.samples == 0);
        let filters = unmatched::filter_values(&self.query.filters, is_empty, recorded)?;
        match is_empty {
            true => warnings.push(FilterValues::failure(&filters, session.samples())),
            false => warnings.extend(FilterValues::partly(&filters)),
        }
        Ok((parts, warnings))
    }
}

impl<'q> InputFacts<'q> {
    fn new(
        export: InputExport<'q>,
        source: &'q Source,
        name: &'q str,
        recording: RecordingFacts,
    ) -> Self {
        let DataSetKeys { partition, labels } = export.keys;
        let host = Constant { name: HOST.into(), value: recording.facts.host.clone() };
        let own = Constant { name: RECORDING.into(), value: Some(name.to_owned()) };
        let mut constants: Vec<Constant> = [host, own].into_iter().chain(labels.clone()).collect();
        let value = |key: &str| match key {
            EVENT => None,
            DATE => Some(recordings::began(&recording).and_then(date)),
            key => {
                let found = constants.iter().find(|constant| constant.name == key);
                Some(found.and_then(|constant| constant.value.clone()))
            }
        };
        let values = partition.iter().map(|key| (key.as_str(), value(key))).collect();
        // Readers take the columns of partitions from the names of folders.
        constants.retain(|constant| !partition.contains(&constant.name));
        Self { export, source, name, recording, values, constants }
    }

    /// Writes all tables.
    fn tables(
        &self,
        scan: &Scan<'_>,
        labeller: &Labeller<'_>,
        groups: &Groups,
    ) -> anyhow::Result<(Vec<FinishedPart>, Vec<Count>, Dropped)> {
        let mut parts = Vec::new();
        let by_event = self.export.keys.partition.iter().any(|key| key == EVENT);
        let schema = &self.schema("samples", &samples::columns(by_event))?;
        let stack_schema = &self.schema("stacks", &STACKS.iter().collect::<Vec<_>>())?;
        let written = &RwLock::default();
        let mut stacks =
            StackTable::new(self.part("stacks", None, stack_schema)?, stack_schema, written);
        let known_frames = KnownFrames::new(labeller);
        let new =
            || SampleWorker::new(scan, labeller, &known_frames, groups, schema, by_event, written);
        let ReadSamples { totals, dropped } =
            self.samples(scan, labeller, schema, new, &mut stacks, &mut parts)?;
        parts.push(stacks.finish()?);
        parts.push(self.frames(&known_frames.finish())?);
        let mut texts = DataTexts::default();
        let rows = recordings::rows(&self.recording, &totals, &mut texts);
        let columns: Vec<_> = RECORDINGS.iter().collect();
        let schema = self.schema("recordings", &columns)?;
        let mut part = self.part("recordings", None, &schema)?;
        part.append(encoded(&rows, &columns, &schema, &mut texts)?)?;
        parts.push(part.finish()?);
        Ok((parts, totals, dropped))
    }

    /// Writes the samples, and adds the files.
    fn samples<'l>(
        &self,
        scan: &'l Scan<'l>,
        labeller: &'l Labeller<'l>,
        schema: &'l FileSchema,
        new: impl Fn() -> SampleWorker<'l> + Sync,
        stacks: &mut StackTable<'_>,
        parts: &mut Vec<FinishedPart>,
    ) -> anyhow::Result<ReadSamples> {
        let workers = Workers::<SampleWorker<'_>>::default();
        let mut writers: BTreeMap<Option<usize>, PartWriter> = BTreeMap::new();
        if !self.export.keys.partition.iter().any(|key| key == EVENT) {
            writers.insert(None, self.part("samples", None, schema)?);
        }
        let threads = rayon::current_num_threads();
        let batch = if SampleReader::is_ordered(scan) { 1 } else { BATCH * threads };
        in_order(
            scan.session.split.pieces.chunks(PIECES),
            batch,
            |pieces| workers.with(&new, |worker: &mut SampleWorker<'_>| worker.read(pieces)),
            |read| {
                let ReadPieces { groups, stacks: found } = read?;
                stacks.add(&found)?;
                for SampleGroup { event, columns } in groups {
                    let writer = match writers.entry(event) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => {
                            let name = event.and_then(|event| labeller.events.get(event));
                            new.insert(self.part("samples", name.map(String::as_str), schema)?)
                        }
                    };
                    writer.append(columns)?;
                }
                Ok::<_, anyhow::Error>(ControlFlow::Continue(()))
            },
        )?;
        for writer in writers.into_values() {
            parts.push(writer.finish()?);
        }
        let mut read = ReadSamples {
            totals: vec![Count::default(); labeller.events.len()],
            dropped: Dropped::default(),
        };
        for worker in workers.finish() {
            for (all, one) in read.totals.iter_mut().zip(&worker.totals) {
                all.samples += one.samples;
                all.period = all.period.wrapping_add(one.period);
            }
            read.dropped.add(worker.finish());
        }
        Ok(read)
    }

    fn frames(&self, frames: &BTreeMap<i64, FrameTexts>) -> anyhow::Result<FinishedPart> {
        let columns: Vec<_> = FRAMES.iter().collect();
        let schema = self.schema("frames", &columns)?;
        let mut part = self.part("frames", None, &schema)?;
        let all: Vec<(&i64, &FrameTexts)> = frames.iter().collect();
        for frames in all.chunks(FRAMES_AT_ONCE) {
            let mut texts = DataTexts::default();
            let rows: Vec<FrameCells> =
                frames.iter().map(|(id, frame)| FrameCells::of(**id, frame, &mut texts)).collect();
            part.append(encoded(&rows, &columns, &schema, &mut texts)?)?;
        }
        part.finish()
    }

    fn schema<R>(&self, table: &str, columns: &[&DataColumn<R>]) -> anyhow::Result<FileSchema> {
        FileSchema::of(table, columns, &self.constants)
            .with_context(|| format!("the columns of {table}"))
    }

    /// Creates the file of a table, or of the samples of an event.
    fn part(
        &self,
        table: &str,
        event: Option<&str>,
        schema: &FileSchema,
    ) -> anyhow::Result<PartWriter> {
        let values = self.values.iter().filter_map(|(key, value)| {
            let value = match value {
                Some(value) => value.as_deref(),
                None => Some(event?),
            };
            Some(PartitionValue { key, value })
        });
        let values: Vec<PartitionValue<'_>> = values.collect();
        PartWriter::create(self.export.paths.take(table, &values, self.source, self.name)?, schema)
    }
}

/// Encodes rows as a row group.
fn encoded<R>(
    rows: &[R],
    columns: &[&DataColumn<R>],
    schema: &FileSchema,
    texts: &mut DataTexts,
) -> parquet::errors::Result<Vec<EncodedColumn>> {
    let mut group = GroupRows::of(schema);
    for row in rows {
        group.push(columns, row);
    }
    group.encoded(schema, texts)
}

/// Returns the day of a time in nanoseconds since 1970.
fn date(nanoseconds: u64) -> Option<String> {
    let time = Timestamp::from_nanosecond(nanoseconds.into()).ok()?;
    Some(time.strftime("%F").to_string())
}
