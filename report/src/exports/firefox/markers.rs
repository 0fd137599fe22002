//! Markers: times that threads waited, and what a reader should know of the file. Counters.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerTiming, Profile, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle, ThreadHandle,
};
use rustc_hash::FxHashMap;

use super::FirefoxBuilder;
use super::lanes::{Lane, Lanes};
use crate::engine::schedule::{Activity, ThreadSwitch};
use crate::exports::losses;
use crate::exports::weights::{EventWeights, WeightUnit};

/// Time that a thread was off its CPU.
struct Wait {
    name: StringHandle,
    cpu: u32,
}

/// A text.
struct Note {
    name: StringHandle,
    text: StringHandle,
}

impl StaticSchemaMarker for Wait {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "OffCpu";
    const DESCRIPTION: Option<&'static str> = Some("Time that the thread was off its CPU");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "cpu",
        label: "CPU before",
        format: MarkerFieldFormat::Integer,
        flags: MarkerFieldFlags::empty(),
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.name
    }

    fn number_field_value(&self, _: u32) -> f64 {
        self.cpu.into()
    }
}

impl StaticSchemaMarker for Note {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Text";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.text}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name}: {marker.data.text}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "text",
        label: "Text",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.text
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

impl FirefoxBuilder<'_> {
    /// Adds the waits of these threads; of one that waits at the end, its beginning.
    pub(super) fn add_switches(&mut self, threads: &FxHashMap<i32, ThreadHandle>) {
        let mut open = FxHashMap::<i32, ThreadSwitch>::default();
        for switch in &self.facts.schedule.switches {
            let Some(thread) = threads.get(&switch.tid) else { continue };
            let before = match switch.activity() {
                Activity::Running => open.remove(&switch.tid),
                _ => open.insert(switch.tid, *switch),
            };
            if let Some(before) = before.filter(|_| switch.activity() == Activity::Running) {
                let timing = MarkerTiming::Interval(self.time(before.time), self.time(switch.time));
                self.add_wait(*thread, &before, timing);
            }
        }
        let mut open: Vec<ThreadSwitch> = open.into_values().collect();
        open.sort_unstable();
        for switch in open {
            if let Some(thread) = threads.get(&switch.tid) {
                self.add_wait(
                    *thread,
                    &switch,
                    MarkerTiming::IntervalStart(self.time(switch.time)),
                );
            }
        }
    }

    fn add_wait(&mut self, thread: ThreadHandle, switch: &ThreadSwitch, timing: MarkerTiming) {
        let name = self.built.intern_string(switch.activity().name());
        self.built.add_marker(thread, timing, Wait { name, cpu: switch.cpu });
    }

    /// Adds what the counters of each event counted until the end.
    pub(super) fn add_counters(&mut self, first: Option<&Lane<'_>>) {
        let process = first.and_then(|lane| self.processes.get(&(lane.pid, lane.process)));
        let Some(process) = process.copied() else { return };
        let end = self.samples.all.last().map_or(self.origin, |sample| sample.time);
        let (start, end) = (self.time(self.origin), self.time(end));
        for event in self.profile.events() {
            let Some(count) = event.count else { continue };
            let description = format!("Total of the counters of {}", event.name);
            let counter = self.built.add_counter(process, &event.name, "Counters", &description);
            self.built.add_counter_sample(counter, start, 0.0, 0);
            #[allow(clippy::cast_precision_loss, reason = "the format has numbers of this kind")]
            self.built.add_counter_sample(counter, end, count.value as f64, 0);
        }
    }

    /// Adds what a reader should know of the file.
    pub(super) fn add_notes(
        &mut self,
        thread: ThreadHandle,
        lanes: &Lanes<'_>,
        weights: &EventWeights,
    ) {
        let mut notes = Vec::new();
        for (event, unit) in self.profile.events().iter().zip(&weights.units) {
            match unit {
                Some(WeightUnit::Sample) => notes.push(format!(
                    "{}: weights are numbers of samples, which all have one period",
                    event.name
                )),
                Some(WeightUnit::Period(1)) => {
                    notes.push(format!("{}: weights are periods", event.name));
                }
                Some(WeightUnit::Period(unit)) => {
                    notes.push(format!("{}: a weight of 1 is a period of {unit}", event.name));
                }
                None => {}
            }
        }
        if lanes.joined > 0 {
            notes.push(format!(
                "the {} threads with the fewest samples are joined by the names of their processes",
                lanes.joined
            ));
        }
        notes.push("source lines and CPUs of samples are not in this format".to_owned());
        notes.extend(losses::lost(&self.facts.facts));
        let name = self.built.intern_string("rep export");
        for note in notes {
            let text = self.built.intern_string(&note);
            let at = self.time(self.origin);
            self.built.add_marker(thread, MarkerTiming::Instant(at), Note { name, text });
        }
    }
}
