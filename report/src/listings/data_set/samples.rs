//! Rows of samples, for one worker.

use std::sync::{PoisonError, RwLock};

use parquet::errors::Result;
use recrep_format::abi::{DataSrc, Weight};
use rustc_hash::{FxHashMap, FxHashSet};

use super::cells::{DataCell, DataTexts, EncodedColumn, TextCode};
use super::columns::{ColumnType, DataColumn, FileSchema};
use super::groups::GroupRows;
use super::known_frames::KnownFrames;
use super::stacks::{FunctionCells, StackCells, StackIds};
use crate::callchain::Frame;
use crate::count::Count;
use crate::engine::Labeller;
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::query::Field;
use crate::query::word_text::data_src_parts;
use crate::scan::{CountedSample, Dropped, Naming as _, SampleReader, Scan};
use crate::timeline::{CommRef, Groups};

/// A sample, as the table has it.
pub(super) struct SampleCells {
    event: TextCode,
    time: Option<u64>,
    pid: Option<u32>,
    tid: Option<u32>,
    comm: TextCode,
    cpu: Option<u32>,
    names: FunctionCells,
    file: Option<TextCode>,
    line: Option<u32>,
    period: u64,
    weight: Option<Weight>,
    access: Option<AccessCells>,
    ip: Option<u64>,
    addr: Option<u64>,
    phys_addr: Option<u64>,
    cgroup: Option<TextCode>,
    stack: Option<i64>,
}

/// Parts of a data source.
type AccessCells = [TextCode; 6];

/// Returns the cell of a part of the data source.
fn part<const PART: usize>(one: &SampleCells) -> DataCell<'_> {
    let part = one.access.as_ref().and_then(|parts| parts.get(PART));
    DataCell::of(part, |text| DataCell::Text(*text))
}

fn text(text: Option<TextCode>) -> DataCell<'static> {
    DataCell::of(text, DataCell::Text)
}

/// Returns a latency that `PERF_SAMPLE_WEIGHT_STRUCT` has beside the weight.
fn latency(one: &SampleCells, is_first: bool) -> DataCell<'_> {
    let parts = one.weight.and_then(Weight::parts);
    DataCell::int(parts.map(|parts| if is_first { parts.var2 } else { parts.var3 }.into()))
}

macro_rules! columns {
    ($($name:literal $kind:ident $cell:expr;)*) => {
        /// Columns of the table of samples.
        pub(super) static SAMPLES: &[DataColumn<SampleCells>] =
            &[$(DataColumn { name: $name, kind: ColumnType::$kind, cell: $cell }),*];
    };
}

columns! {
    "event" Text |one| DataCell::Text(one.event);
    "time" Long |one| DataCell::of(one.time, DataCell::count);
    "pid" Int |one| DataCell::int(one.pid);
    "tid" Int |one| DataCell::int(one.tid);
    "comm" Text |one| DataCell::Text(one.comm);
    "cpu" Int |one| DataCell::int(one.cpu);
    "cpumode" Text |one| DataCell::Text(one.names.cpu_mode);
    "function" Text |one| DataCell::Text(one.names.function);
    "linkage_name" Text |one| text(one.names.linkage_name);
    "module" Text |one| DataCell::Text(one.names.module);
    "build_id" Text |one| text(one.names.build_id);
    "file" Text |one| text(one.file);
    "line" Int |one| DataCell::int(one.line);
    "period" Long |one| DataCell::count(one.period);
    "weight" Long |one| DataCell::of(one.weight.map(Weight::cost), DataCell::count);
    "ins_lat" Int |one| latency(one, true);
    "retire_lat" Int |one| latency(one, false);
    "op" Text part::<0>;
    "mem" Text part::<1>;
    "snoop" Text part::<2>;
    "tlb" Text part::<3>;
    "locked" Text part::<4>;
    "blocked" Text part::<5>;
    "ip" Address |one| DataCell::address(one.ip);
    "addr" Address |one| DataCell::address(one.addr);
    "phys_addr" Address |one| DataCell::address(one.phys_addr);
    "cgroup" Text |one| text(one.cgroup);
    "stack" Long |one| DataCell::of(one.stack, DataCell::Long);
}

/// Name of the column that the samples of a file may be partitioned by.
pub(super) const EVENT: &str = "event";

/// A row group of samples: of one event where these are partitions, else of all.
pub(super) struct SampleGroup {
    pub(super) event: Option<usize>,
    pub(super) columns: Vec<EncodedColumn>,
}

/// What a worker makes of some pieces.
pub(super) struct ReadPieces {
    pub(super) groups: Vec<SampleGroup>,
    /// Stacks that no file has yet, in the order of their first samples.
    pub(super) stacks: Vec<StackCells>,
}

/// Number of chains of addresses at which a worker forgets them: most are in the samples of a moment.
const MOST_CHAINS: usize = 1 << 17;

/// Makes row groups of samples.
pub(super) struct SampleWorker<'s> {
    reader: SampleReader<'s>,
    lookups: SampleLookups<'s>,
    schema: &'s FileSchema,
    /// Columns of the schema.
    columns: Vec<&'static DataColumn<SampleCells>>,
    by_event: bool,
    /// IDs of the stacks that were written.
    written: &'s RwLock<FxHashSet<i64>>,
    buffer: UnpackBuffer,
    /// Samples and periods by event.
    pub(super) totals: Vec<Count>,
}

/// What the cells of a worker's samples are looked up in.
struct SampleLookups<'s> {
    labeller: &'s Labeller<'s>,
    groups: &'s Groups,
    known_frames: &'s KnownFrames<'s>,
    texts: DataTexts,
    stacks: StackIds<'s>,
    comms: FxHashMap<u64, TextCode>,
    /// Functions by the words of their frames; `None` for those that the filters leave out.
    functions: FxHashMap<u64, Option<SampledFunction>>,
    /// Functions by their frames, which many addresses have.
    named: FxHashMap<Frame, SampledFunction>,
    accesses: FxHashMap<u64, AccessCells>,
    cgroups: FxHashMap<u64, Option<TextCode>>,
}

#[derive(Clone, Copy)]
struct SampledFunction {
    names: FunctionCells,
    /// ID of its frame.
    frame: i64,
}

impl<'s> SampleWorker<'s> {
    pub(super) fn new(
        scan: &'s Scan<'s>,
        labeller: &'s Labeller<'s>,
        known_frames: &'s KnownFrames<'s>,
        groups: &'s Groups,
        schema: &'s FileSchema,
        by_event: bool,
        written: &'s RwLock<FxHashSet<i64>>,
    ) -> Self {
        Self {
            reader: SampleReader::new(scan),
            lookups: SampleLookups {
                labeller,
                groups,
                known_frames,
                texts: DataTexts::default(),
                stacks: StackIds::new(known_frames),
                comms: FxHashMap::default(),
                functions: FxHashMap::default(),
                named: FxHashMap::default(),
                accesses: FxHashMap::default(),
                cgroups: FxHashMap::default(),
            },
            schema,
            columns: columns(by_event),
            by_event,
            written,
            buffer: UnpackBuffer::default(),
            totals: vec![Count::default(); labeller.events.len()],
        }
    }

    /// Returns the row groups of pieces, and their stacks.
    pub(super) fn read(&mut self, pieces: &[Piece<'_>]) -> Result<ReadPieces> {
        let Self { reader, lookups, schema, columns, by_event, buffer, totals, .. } = self;
        if reader.stacks().chains.len() > MOST_CHAINS {
            reader.forget_chains();
            lookups.stacks.forget_chains();
        }
        let mut groups: Vec<(Option<usize>, GroupRows)> = Vec::new();
        for piece in pieces {
            reader.read(piece, buffer, |sample| {
                let Some(cells) = lookups.cells(&sample) else { return };
                if let Some(total) = totals.get_mut(sample.event) {
                    total.samples += 1;
                    total.period = total.period.wrapping_add(sample.period);
                }
                let event = by_event.then(|| lookups.first_namesake(sample.event));
                let known = groups.iter().position(|(of, _)| *of == event);
                let place = known.unwrap_or_else(|| {
                    groups.push((event, GroupRows::of(schema)));
                    groups.len() - 1
                });
                if let Some((_, rows)) = groups.get_mut(place) {
                    rows.push(columns, &cells);
                }
            });
        }
        let encoded = groups.into_iter().map(|(event, rows)| {
            Ok(SampleGroup { event, columns: rows.encoded(schema, &mut lookups.texts)? })
        });
        let groups = encoded.collect::<Result<_>>()?;
        Ok(ReadPieces { groups, stacks: self.new_stacks() })
    }

    /// Returns the stacks of the pieces at hand that were not written.
    fn new_stacks(&mut self) -> Vec<StackCells> {
        let sampled = self.lookups.stacks.take_sampled();
        let written = self.written.read().unwrap_or_else(PoisonError::into_inner);
        let new = sampled.into_iter().filter(|stack| !written.contains(&stack.id));
        new.map(|stack| self.lookups.stacks.cells(self.reader.stacks(), stack)).collect()
    }

    /// Returns the numbers of samples that were not read.
    pub(super) fn finish(self) -> Dropped {
        self.reader.finish()
    }
}

/// Returns the columns of a file of samples.
pub(super) fn columns(by_event: bool) -> Vec<&'static DataColumn<SampleCells>> {
    SAMPLES.iter().filter(|column| !(by_event && column.name == EVENT)).collect()
}

impl SampleLookups<'_> {
    /// Returns the first event with the name of an event: they share a partition.
    fn first_namesake(&self, event: usize) -> usize {
        let events = self.labeller.events;
        let first = events.iter().position(|name| Some(name) == events.get(event));
        first.unwrap_or(event)
    }

    /// Returns the cells of a sample; `None` if the filters leave out its function.
    fn cells(&mut self, s: &CountedSample<'_, '_>) -> Option<SampleCells> {
        let function = self.function(s)?;
        let (sample, fields, stacks) = (s.sample, s.fields, &s.finder.stacks);
        let stack = self.stacks.stack(stacks, s.chain(), function.frame);
        let line = self.stacks.line(stacks, s.chain());
        let (file, line) =
            line.map_or((None, None), |(file, line)| (Some(self.texts.code(file)), Some(*line)));
        let event = self.labeller.events.get(s.event).map_or("", String::as_str);
        Some(SampleCells {
            event: self.texts.code(event),
            time: sample.time(),
            pid: sample.pid(),
            tid: sample.tid(),
            comm: self.comm(Field::Comm.of(s.key)),
            cpu: sample.cpu(),
            names: function.names,
            file,
            line,
            period: s.period,
            weight: fields.weight,
            access: fields.data_src.map(|word| self.access(word)),
            ip: sample.ip(),
            addr: sample.addr(),
            phys_addr: fields.phys_addr,
            cgroup: fields.cgroup.and_then(|id| self.cgroup(id)),
            stack,
        })
    }

    fn function(&mut self, s: &CountedSample<'_, '_>) -> Option<SampledFunction> {
        if let Some(known) = self.functions.get(&s.frame_word()) {
            return *known;
        }
        let mut key = *s.key;
        s.frame().put(&mut key);
        let key = self.labeller.key(key);
        let found = self.labeller.takes(&key).then(|| {
            let frame = Frame { ip: 0, ..Frame::of(&key) };
            *self.named.entry(frame).or_insert_with(|| {
                let (id, texts) = self.known_frames.described(&frame);
                SampledFunction { names: FunctionCells::of(&texts, &mut self.texts), frame: id }
            })
        });
        self.functions.insert(s.frame_word(), found);
        found
    }

    fn comm(&mut self, word: u64) -> TextCode {
        let (texts, timeline) = (&mut self.texts, self.labeller.timeline);
        *self.comms.entry(word).or_insert_with(|| texts.code(&timeline.comm(CommRef::unpack(word))))
    }

    fn access(&mut self, word: u64) -> AccessCells {
        let texts = &mut self.texts;
        *self
            .accesses
            .entry(word)
            .or_insert_with(|| data_src_parts(DataSrc(word)).map(|(_, part)| texts.code(&part)))
    }

    fn cgroup(&mut self, id: u64) -> Option<TextCode> {
        let (texts, groups) = (&mut self.texts, self.groups);
        *self.cgroups.entry(id).or_insert_with(|| groups.cgroup(id).map(|path| texts.code(path)))
    }
}
