//! A profile as pprof reads it: gzip of `profile.proto`.
//!
//! ```text
//!   call trees ─► frames ─► functions, modules ─┐ sorted by what they are, not by the order in which
//!             └─► chains ─► locations ──────────┼─ they were found: the same bytes with any number
//!                        └► samples, labels ────┘ of threads
//! ```
//!
//! Frames that were inlined into one another are one location with several lines. Values of events
//! come in pairs: number of samples, period.

mod frames;
mod mappings;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use prost::Message as _;
use rustc_hash::{FxHashMap, FxHashSet};

use self::frames::{CodePlace, Frames};
use self::mappings::Mappings;
use super::export::FileExport;
use crate::callchain::RowId;
use crate::count::Count;
use crate::engine::facts::RecordingFacts;
use crate::pprof::{self, EventFacts, Facts, PprofLabel, ValueType};
use crate::profile::Profile;
use crate::profile::recording::quoted;
use crate::query::word_text::cpu_number;
use crate::query::{Column, FrameKey, Needs, Query, SortKey};
use crate::table::RowTexts;

pub(super) struct Pprof;

/// Name of a column that is no label.
const UNLABELLED: &str = "";

impl FileExport for Pprof {
    fn extension(&self) -> &'static str {
        "pb.gz"
    }

    fn complete(&self, query: &mut Query) {
        query.needs = Needs { stacks: true, addresses: true, ..Needs::NONE };
        query.chains.key = FrameKey::Address;
        query.chains.most = Some(usize::MAX);
        query.symbol_sources.source_paths = true;
        // The CPU mode of the function is a label of samples whose mode does not follow from their
        // address.
        for (typed, key) in [(UNLABELLED, SortKey::Symbol), ("cpumode", SortKey::CpuMode)] {
            query.columns.push(Column { typed: typed.into(), key });
        }
    }

    fn write(
        &self,
        profile: &Profile,
        query: &Query,
        facts: &RecordingFacts,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let builder = ProfileBuilder { profile, query, texts: StringTable::default() };
        let message = builder.profile(&facts.facts, facts.began);
        // Without a time, so that equal profiles are equal files.
        let mut packed = GzBuilder::new().mtime(0).write(out, Compression::default());
        packed.write_all(&message.encode_to_vec())?;
        packed.finish()?.flush()
    }
}

/// Texts of a profile; number 0 is the empty one.
struct StringTable {
    all: Vec<String>,
    numbers: FxHashMap<String, i64>,
}

impl Default for StringTable {
    fn default() -> Self {
        let empty = std::iter::once((String::new(), 0));
        Self { all: vec![String::new()], numbers: empty.collect() }
    }
}

impl StringTable {
    fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = signed(self.all.len() as u64);
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Returns a number as profiles have it.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Value of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LabelValue {
    Text(String),
    Number(i64),
    /// CPU mode, which is left out if it follows from the address.
    Mode(String),
}

/// Moves callers into their call where another place has their address, which is that behind the
/// call: a sample may have been taken right there, in another line. An address of a profile has the
/// lines of one place.
fn keep_callers_apart<'s>(places: &mut [CodePlace], stacks: impl Iterator<Item = &'s [usize]>) {
    let (mut sampled, mut callers) = (BTreeSet::new(), BTreeSet::new());
    for stack in stacks {
        if let [innermost, outer @ ..] = stack {
            sampled.insert(*innermost);
            callers.extend(outer);
        }
    }
    let mut taken = FxHashSet::default();
    for number in sampled.iter().chain(callers.difference(&sampled)) {
        if let Some(place) = places.get_mut(*number)
            && !taken.insert((place.module, place.address))
        {
            place.address = place.address.map(|address| address.wrapping_sub(1));
        }
    }
}

/// Labels of samples: names and values.
type Labels<'p> = Vec<(&'p str, LabelValue)>;

/// What is equal in the samples that are added up: labels and locations, innermost first.
type SampleKey<'p> = (Labels<'p>, Vec<usize>);

struct ProfileBuilder<'p> {
    profile: &'p Profile,
    query: &'p Query,
    texts: StringTable,
}

impl<'p> ProfileBuilder<'p> {
    fn profile(mut self, facts: &Facts, began: Option<u64>) -> pprof::PprofProfile {
        let frames = Frames::of(self.profile);
        let (locations, samples) = self.samples(&frames);
        let mappings = Mappings::of(&frames, &locations);
        let sample_type = self.types(&facts.events);
        let period_type = sample_type.get(1).copied();
        let sample = self.sample_messages(&samples);
        let (mapping, location) = self.location_messages(&frames, &locations, &mappings);
        let function =
            frames.functions.iter().zip(1..).map(|(function, id)| pprof::PprofFunction {
                id,
                name: self.texts.number(&function.name),
                system_name: self.texts.number(&function.system_name),
                filename: self.texts.number(function.file),
            });
        let function = function.collect();
        let command: Vec<String> = facts.command.iter().map(|word| quoted(word)).collect();
        let command = Some(command.join(" ")).filter(|line| !line.is_empty());
        let comment = command.iter().map(|line| self.texts.number(line)).collect();
        let recording = self.profile.inputs.first().map(|input| &input.recording);
        pprof::PprofProfile {
            default_sample_type: period_type.map_or(0, |kind| kind.name),
            period_type,
            period: facts.events.first().map_or(0, period),
            sample_type,
            sample,
            mapping,
            location,
            function,
            time_nanos: signed(began.unwrap_or(0)),
            duration_nanos: signed(recording.and_then(|one| one.duration).unwrap_or(0)),
            comment,
            facts: facts.to_text(),
            string_table: self.texts.all,
        }
    }

    /// Returns the types of the values. The first is `samples`, or with several events
    /// `EVENT.samples`.
    fn types(&mut self, events: &[EventFacts]) -> Vec<ValueType> {
        let mut types = Vec::with_capacity(2 * events.len());
        for (event, facts) in self.profile.events().iter().zip(events) {
            let samples = match events.len() {
                1 => "samples".into(),
                _ => format!("{}.samples", facts.name),
            };
            let unit = if event.counts_time { "nanoseconds" } else { "count" };
            for (name, unit) in [(&samples, "count"), (&facts.name, unit)] {
                let (name, unit) = (self.texts.number(name), self.texts.number(unit));
                types.push(ValueType { name, unit });
            }
        }
        types
    }

    /// Returns the locations and the samples, both sorted.
    fn samples(
        &self,
        frames: &Frames<'p>,
    ) -> (Vec<CodePlace>, BTreeMap<SampleKey<'p>, Vec<Count>>) {
        let calls = &self.profile.calls;
        let labels = self.labels();
        let (mut known, mut all) = (FxHashMap::<CodePlace, usize>::default(), Vec::new());
        let (mut found, mut number) = (Vec::new(), |place: CodePlace| {
            *known.entry(place).or_insert_with_key(|place| {
                all.push(place.clone());
                all.len() - 1
            })
        });
        for sample in &calls.samples {
            let Some((event, labels)) = labels.get(&(sample.base, sample.class)) else { continue };
            let places = frames.places(sample.frames(&calls.chains));
            let mut labels = labels.clone();
            let follows = places.first().map(|place| frames.mode(place));
            labels.retain(
                |(_, value)| !matches!(value, LabelValue::Mode(mode) if follows == Some(mode)),
            );
            let places: Vec<usize> = places.into_iter().map(&mut number).collect();
            found.push((*event, labels, places, sample.count));
        }
        for place in frames.starts() {
            number(place);
        }
        keep_callers_apart(&mut all, found.iter().map(|(_, _, places, _)| places.as_slice()));
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by(|a, b| all.get(*a).cmp(&all.get(*b)));
        let mut ranks = vec![0; all.len()];
        for (rank, number) in order.iter().enumerate() {
            if let Some(slot) = ranks.get_mut(*number) {
                *slot = rank;
            }
        }
        let mut samples = BTreeMap::<SampleKey<'p>, Vec<Count>>::new();
        for (event, labels, mut places, count) in found {
            for place in &mut places {
                *place = ranks.get(*place).copied().unwrap_or(0);
            }
            let counts = samples
                .entry((labels, places))
                .or_insert_with(|| vec![Count::default(); self.profile.events().len()]);
            if let Some(sum) = counts.get_mut(event) {
                sum.add(count);
            }
        }
        all.sort();
        (all, samples)
    }

    /// Returns the event and the labels of samples, by their row.
    fn labels(&self) -> FxHashMap<RowId, (usize, Labels<'p>)> {
        let texts = RowTexts::new(self.profile, self.query, &self.profile.names);
        let mut all = FxHashMap::default();
        for (id, row) in &self.profile.calls.rows {
            let Some((event, cells)) = texts.row(*row) else { continue };
            let mut labels = Vec::new();
            for (place, (column, cell)) in self.query.columns.iter().zip(cells).enumerate() {
                if column.typed != UNLABELLED
                    && let Some(value) = label(&texts, column.key, place, *cell)
                {
                    labels.push((column.typed.as_str(), value));
                }
            }
            all.insert(*id, (event, labels));
        }
        all
    }

    fn sample_messages(
        &mut self,
        samples: &BTreeMap<SampleKey<'p>, Vec<Count>>,
    ) -> Vec<pprof::PprofSample> {
        let message = |((labels, places), counts): (&SampleKey<'p>, &Vec<Count>)| {
            let label = labels.iter().map(|(key, value)| {
                let key = self.texts.number(key);
                match value {
                    LabelValue::Text(text) | LabelValue::Mode(text) => {
                        PprofLabel { key, text: self.texts.number(text), ..PprofLabel::default() }
                    }
                    LabelValue::Number(number) => {
                        PprofLabel { key, number: *number, ..PprofLabel::default() }
                    }
                }
            });
            pprof::PprofSample {
                label: label.collect(),
                location: places.iter().map(|place| *place as u64 + 1).collect(),
                value: counts
                    .iter()
                    .flat_map(|count| [count.samples, count.period].map(signed))
                    .collect(),
            }
        };
        samples.iter().map(message).collect()
    }

    fn location_messages(
        &mut self,
        frames: &Frames<'p>,
        locations: &[CodePlace],
        mappings: &Mappings,
    ) -> (Vec<pprof::PprofMapping>, Vec<pprof::Location>) {
        let has_inlined = locations.iter().any(|place| place.lines.len() > 1);
        let mapping =
            frames.modules.iter().zip(&mappings.all).zip(1..).map(|((module, at), id)| {
                let is_named =
                    module.name == module.path.rsplit('/').next().unwrap_or(&module.path);
                let build_id =
                    module.identity.build_id.map_or_else(String::new, |id| id.to_string());
                pprof::PprofMapping {
                    id,
                    start: at.start,
                    limit: at.limit,
                    offset: at.offset,
                    filename: self.texts.number(if is_named { &module.path } else { &module.name }),
                    build_id: self.texts.number(&build_id),
                    // What is known was looked up: pprof need not look for files.
                    has_functions: true,
                    has_filenames: true,
                    has_line_numbers: true,
                    has_inline_frames: has_inlined,
                }
            });
        let location = locations.iter().zip(1..).map(|(place, id)| pprof::Location {
            id,
            mapping: place.module.map_or(0, |module| module as u64 + 1),
            address: mappings.address(place),
            line: place
                .lines
                .iter()
                .map(|(function, line)| pprof::PprofLine {
                    function: *function as u64 + 1,
                    line: (*line).into(),
                })
                .collect(),
        });
        (mapping.collect(), location.collect())
    }
}

/// Returns the period of an event: that of each sample, or of the clock's nanoseconds between two.
fn period(event: &EventFacts) -> i64 {
    match event.frequency {
        Some(frequency) => signed(1_000_000_000_u64.checked_div(frequency).unwrap_or(0)),
        None => signed(event.period),
    }
}

/// Returns the label that a column's cell makes; numbers where they are what counts.
fn label(texts: &RowTexts<'_>, key: SortKey, column: usize, cell: u64) -> Option<LabelValue> {
    let text = || texts.text(column, cell).into_owned();
    match key {
        SortKey::CpuMode => Some(LabelValue::Mode(text())),
        SortKey::Process | SortKey::Tid => {
            Some(LabelValue::Number(texts.task(column, cell)?.into()))
        }
        SortKey::Cpu => Some(LabelValue::Number(cpu_number(cell).into())),
        _ => Some(LabelValue::Text(text())),
    }
}
