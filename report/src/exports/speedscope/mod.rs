//! A profile as speedscope reads it: JSON, the callchains of each event merged.
//!
//! ```text
//!   call trees ─► frames ─► function, file     distinct and sorted: the same bytes with any number of
//!             └─► stacks ─► weights of events  threads
//! ```
//!
//! The labels of samples are the outermost frames, as in folded lines. The order of samples in time
//! is not in a profile: speedscope's "left heavy" view is the one to look at.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::json;

use super::export::FileExport;
use super::losses::exporter;
use crate::callchain::RowId;
use crate::engine::facts::RecordingFacts;
use crate::profile::Profile;
use crate::profile::names::FrameId;
use crate::query::{FrameKey, Needs, Query};
use crate::table::RowTexts;

pub(super) struct Speedscope;

/// A function or a label, as `shared.frames` has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct StackFrame<'p> {
    name: Cow<'p, str>,
    /// Path of the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'p str>,
}

/// Event and labels of samples, by their row.
type Labels<'p> = FxHashMap<RowId, (usize, Vec<StackFrame<'p>>)>;

impl FileExport for Speedscope {
    fn extension(&self) -> &'static str {
        "speedscope.json"
    }

    fn complete(&self, query: &mut Query) {
        query.needs = Needs { stacks: true, ..Needs::NONE };
        query.chains.key = FrameKey::Function;
        query.chains.most = Some(usize::MAX);
    }

    fn write(
        &self,
        profile: &Profile,
        query: &Query,
        facts: &RecordingFacts,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let labels = labels(profile, query);
        let functions: BTreeMap<u32, StackFrame<'_>> = functions(profile);
        let frames: BTreeSet<&StackFrame<'_>> =
            functions.values().chain(labels.values().flat_map(|(_, labels)| labels)).collect();
        let frames: Vec<&StackFrame<'_>> = frames.into_iter().collect();
        let number = |frame: &StackFrame<'_>| frames.binary_search(&frame).unwrap_or_default();
        let functions: FxHashMap<u32, usize> =
            functions.iter().map(|(id, frame)| (*id, number(frame))).collect();
        let mut stacks = vec![BTreeMap::<Vec<usize>, u64>::new(); profile.events().len()];
        for sample in &profile.calls.samples {
            let Some((event, labels)) = labels.get(&(sample.base, sample.class)) else { continue };
            let called = sample.frames(&profile.calls.chains);
            let called = called.filter_map(|id| functions.get(&id).copied());
            let mut stack: Vec<usize> = called.chain(labels.iter().rev().map(number)).collect();
            stack.reverse();
            if let Some(stacks) = stacks.get_mut(*event) {
                let weight = stacks.entry(stack).or_default();
                *weight = weight.saturating_add(sample.count.period);
            }
        }
        let events = profile.events().iter().zip(&facts.facts.events).zip(&stacks);
        let profiles = events.map(|((event, facts), stacks)| {
            json!({
                "type": "sampled",
                "name": facts.name,
                "unit": if event.counts_time { "nanoseconds" } else { "none" },
                "startValue": 0,
                "endValue": stacks.values().fold(0, |sum: u64, weight| sum.saturating_add(*weight)),
                "samples": stacks.keys().collect::<Vec<_>>(),
                "weights": stacks.values().collect::<Vec<_>>(),
            })
        });
        let file = json!({
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": exporter(&facts.facts, "times and source lines are not in this format"),
            "shared": { "frames": frames },
            "profiles": profiles.collect::<Vec<_>>(),
        });
        serde_json::to_writer(&mut *out, &file)?;
        out.write_all(b"\n")
    }
}

/// Returns the functions that samples are in or were called by, by the number of their frame.
fn functions(profile: &Profile) -> BTreeMap<u32, StackFrame<'_>> {
    let calls = &profile.calls;
    let found = calls.samples.iter().flat_map(|sample| sample.frames(&calls.chains));
    let found: BTreeSet<u32> = found.collect();
    let frame = |id: u32| {
        let known = profile.names.frame(FrameId(id));
        let module = known.and_then(|frame| profile.names.module(frame.module?));
        let file = module.map(|module| module.path.as_str());
        (id, StackFrame { name: profile.names.frame_text(FrameId(id)), file })
    };
    found.into_iter().map(frame).collect()
}

fn labels<'p>(profile: &'p Profile, query: &'p Query) -> Labels<'p> {
    let texts = RowTexts::new(profile, query, &profile.names);
    let mut all = FxHashMap::default();
    for (id, row) in &profile.calls.rows {
        let Some((event, cells)) = texts.row(*row) else { continue };
        let labels = cells.iter().enumerate().map(|(column, cell)| StackFrame {
            name: texts.text(column, *cell).into_owned().into(),
            file: None,
        });
        all.insert(*id, (event, labels.collect()));
    }
    all
}
