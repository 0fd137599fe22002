//! Builds the message of a profile.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::FxHashMap;

use super::labels::{LabelSets, LabelValue, Labels};
use super::mappings::Mappings;
use super::places::{PlaceNumbers, keep_callers_apart};
use crate::count::Count;
use crate::engine::facts::RecordingFacts;
use crate::exports::frames::{CodePlace, Frames};
use crate::pprof::{self, EventFacts, Facts, PprofLabel, ValueType};
use crate::profile::recording::quoted;
use crate::profile::{Event, Profile};
use crate::query::{Query, is_named};

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

/// What is equal in the samples that are added up: numbers of the set of labels and of locations,
/// innermost first.
type SampleKey = (usize, Vec<u32>);

/// Samples that are added up, sorted: the counts of each event.
type AddedSamples = BTreeMap<SampleKey, Vec<Count>>;

pub(in crate::exports) struct ProfileBuilder<'f, 'p> {
    profile: &'p Profile,
    query: &'p Query,
    frames: &'f Frames<'p>,
    texts: StringTable,
}

impl<'f, 'p> ProfileBuilder<'f, 'p> {
    pub(in crate::exports) fn new(
        profile: &'p Profile,
        query: &'p Query,
        frames: &'f Frames<'p>,
    ) -> Self {
        Self { profile, query, frames, texts: StringTable::default() }
    }

    pub(in crate::exports) fn profile(mut self, recorded: &RecordingFacts) -> pprof::PprofProfile {
        let frames = self.frames;
        let kept = self.kept_events();
        let events = recorded.facts.events.iter().zip(&kept).filter(|(_, is_kept)| **is_kept);
        let events = events.map(|(event, _)| event.clone()).collect();
        let facts = &Facts { events, ..recorded.facts.clone() };
        let labels = LabelSets::of(self.profile, self.query);
        let (locations, samples) = self.samples(&labels);
        let mappings = Mappings::of(frames, &locations);
        let sample_type = self.types(&facts.events, &kept);
        let period_type = sample_type.get(1).copied();
        let sample = self.sample_messages(&labels.sets, samples, &kept);
        let mapping = self.mapping_messages(&locations, &mappings);
        let location = location_messages(&locations, &mappings);
        let function =
            frames.functions.iter().zip(1..).map(|(function, id)| pprof::PprofFunction {
                id,
                name: self.texts.number(&function.name),
                system_name: self.texts.number(&function.system_name),
                filename: self.texts.number(function.file),
                start_line: function.start_line.into(),
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
            time_nanos: signed(recorded.began.unwrap_or(0)),
            duration_nanos: signed(recording.and_then(|one| one.duration).unwrap_or(0)),
            comment,
            facts: facts.to_text(),
            string_table: self.texts.all,
        }
    }

    /// Returns whether each event is asked for; all are if no sample would be left.
    fn kept_events(&self) -> Vec<bool> {
        let events = self.profile.events();
        let Some(names) = &self.query.filters.events else { return vec![true; events.len()] };
        let is_asked = |event: &Event| names.iter().any(|wanted| is_named(&event.name, wanted));
        let kept: Vec<bool> = events.iter().map(is_asked).collect();
        if kept.contains(&true) { kept } else { vec![true; events.len()] }
    }

    /// Returns the types of the values. The first is `samples`, or with several events
    /// `EVENT.samples`.
    fn types(&mut self, events: &[EventFacts], kept: &[bool]) -> Vec<ValueType> {
        let mut types = Vec::with_capacity(2 * events.len());
        let of_profile = self.profile.events().iter().zip(kept).filter(|(_, is_kept)| **is_kept);
        for ((event, _), facts) in of_profile.zip(events) {
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
    fn samples(&self, labels: &LabelSets<'p>) -> (Vec<CodePlace>, AddedSamples) {
        let (calls, frames) = (&self.profile.calls, self.frames);
        let (mut places, mut found) = (PlaceNumbers::new(frames), Vec::new());
        for sample in &calls.samples {
            let Some(row) = labels.of_rows.get(&(sample.base, sample.class)) else { continue };
            let stack = places.of_stack(sample.frames(&calls.chains));
            let innermost = stack.first().and_then(|place| places.all.get(*place as usize));
            let set = row.set(innermost.map(|place| frames.mode(place)));
            found.push((row.event, set, stack, sample.count));
        }
        for place in frames.starts() {
            places.number(place);
        }
        let mut all = places.all;
        keep_callers_apart(&mut all, found.iter().map(|(_, _, stack, _)| stack.as_slice()));
        let ranks = ranks(&all);
        let mut samples = AddedSamples::new();
        for (event, set, mut stack, count) in found {
            for place in &mut stack {
                *place = ranks.get(*place as usize).copied().unwrap_or(0);
            }
            let counts = samples
                .entry((set, stack))
                .or_insert_with(|| vec![Count::default(); self.profile.events().len()]);
            if let Some(sum) = counts.get_mut(event) {
                sum.add(count);
            }
        }
        all.sort();
        (all, samples)
    }

    fn sample_messages(
        &mut self,
        sets: &[Labels<'p>],
        samples: AddedSamples,
        kept: &[bool],
    ) -> Vec<pprof::PprofSample> {
        let (mut of_sets, mut messages) = (HashMap::new(), Vec::with_capacity(samples.len()));
        for ((set, stack), counts) in samples {
            let label = of_sets.entry(set).or_insert_with(|| {
                let labels = sets.get(set).map(Vec::as_slice).unwrap_or_default();
                self.label_messages(labels)
            });
            messages.push(pprof::PprofSample {
                label: label.clone(),
                location: stack.into_iter().map(|place| u64::from(place) + 1).collect(),
                value: counts
                    .iter()
                    .zip(kept)
                    .filter(|(_, is_kept)| **is_kept)
                    .flat_map(|(count, _)| [count.samples, count.period].map(signed))
                    .collect(),
            });
        }
        messages
    }

    fn label_messages(&mut self, labels: &[(&str, LabelValue)]) -> Vec<PprofLabel> {
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
        label.collect()
    }

    fn mapping_messages(
        &mut self,
        locations: &[CodePlace],
        mappings: &Mappings,
    ) -> Vec<pprof::PprofMapping> {
        let modules = &self.frames.modules;
        let mut are_named = vec![false; modules.len()];
        let mut have_inlined = vec![false; modules.len()];
        for CodePlace { module, lines, .. } in locations {
            let Some(module) = *module else { continue };
            if let Some(is_named) = are_named.get_mut(module) {
                *is_named |= !lines.is_empty();
            }
            if let Some(has_inlined) = have_inlined.get_mut(module) {
                *has_inlined |= lines.len() > 1;
            }
        }
        let known = are_named.into_iter().zip(have_inlined);
        let mapping = modules.iter().zip(&mappings.all).zip(known).zip(1..).map(
            |(((module, at), (is_named, has_inlined)), id)| {
                let is_path = module.name == module.path.rsplit('/').next().unwrap_or(&module.path);
                let build_id =
                    module.identity.build_id.map_or_else(String::new, |id| id.to_string());
                pprof::PprofMapping {
                    id,
                    start: at.start,
                    limit: at.limit,
                    offset: at.offset,
                    filename: self.texts.number(if is_path { &module.path } else { &module.name }),
                    build_id: self.texts.number(&build_id),
                    // Where there are names, what is known was looked up: pprof need not look for
                    // files.
                    has_functions: is_named,
                    has_filenames: is_named,
                    has_line_numbers: is_named,
                    has_inline_frames: has_inlined,
                }
            },
        );
        mapping.collect()
    }
}

/// Returns the places of these in sorted order.
fn ranks(all: &[CodePlace]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all.get(*a).cmp(&all.get(*b)));
    let mut ranks = vec![0; all.len()];
    for (rank, number) in (0..).zip(order) {
        if let Some(slot) = ranks.get_mut(number) {
            *slot = rank;
        }
    }
    ranks
}

fn location_messages(locations: &[CodePlace], mappings: &Mappings) -> Vec<pprof::Location> {
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
    location.collect()
}

/// Returns the period of an event: that of each sample, or of the clock's nanoseconds between two.
fn period(event: &EventFacts) -> i64 {
    match event.frequency {
        Some(frequency) => signed(1_000_000_000_u64.checked_div(frequency).unwrap_or(0)),
        None => signed(event.period),
    }
}
