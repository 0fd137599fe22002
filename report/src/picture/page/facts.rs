//! What a page says of its recordings, as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::columns::Weights;
use super::fit::CutStacks;
use crate::picture::{Picture, PictureEvent, PictureModule, SIDES};

/// What is known besides the samples.
#[derive(Debug, Default)]
pub(crate) struct PageFacts {
    pub(crate) title: String,
    pub(crate) sides: Vec<SideFacts>,
    pub(crate) warnings: Vec<PageWarning>,
    pub(crate) broken: Vec<PageBroken>,
    pub(crate) remedies: Vec<String>,
    pub(crate) views: Vec<PageView>,
    pub(crate) verdicts: Vec<PageVerdict>,
    pub(crate) code: Vec<PageCode>,
}

/// A recording, or several that are one side.
#[derive(Debug, Default, Serialize)]
pub(crate) struct SideFacts {
    pub(crate) name: String,
    pub(crate) command: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) os: Option<String>,
    pub(crate) arch: Option<String>,
    pub(crate) cpus: Option<u32>,
    /// Local time.
    pub(crate) date: Option<String>,
    /// Nanoseconds.
    pub(crate) duration: Option<u64>,
    /// Time of the first sample on the recording's clock, in seconds.
    pub(crate) begin: Option<String>,
    pub(crate) files: Vec<SideFile>,
}

/// A file of a side.
#[derive(Debug, Default, Serialize)]
pub(crate) struct SideFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) records: BTreeMap<String, u64>,
    pub(crate) lost_events: u64,
    pub(crate) lost_samples: u64,
    pub(crate) complete: bool,
}

/// Instructions of a function.
#[derive(Debug, Serialize)]
pub(crate) struct PageCode {
    /// Numbers in [`Picture::frames`] and [`Picture::events`].
    pub(crate) frame: u32,
    pub(crate) event: usize,
    pub(crate) rows: Vec<PageInstruction>,
}

#[derive(Debug, Serialize)]
pub(crate) struct PageInstruction {
    pub(crate) address: String,
    pub(crate) text: String,
    pub(crate) samples: u64,
    /// `file:line`, and the line if it is there; if it is another one than before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// Number of the row that it jumps to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jump: Option<usize>,
    /// The innermost function that was inlined here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) function: Option<String>,
}

/// A warning about a recording or the page.
#[derive(Debug, Serialize)]
pub(crate) struct PageWarning {
    pub(crate) code: String,
    pub(crate) message: String,
    /// `true` if it is about less than a hundredth of the samples: no banner says it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_minor: bool,
}

/// Stacks of a program that do not reach its start.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PageBroken {
    pub(crate) program: String,
    pub(crate) stacks: u64,
    pub(crate) broken: u64,
    pub(crate) cut: u64,
    pub(crate) remedy: String,
}

/// What a comparison of both sides says of an event.
#[derive(Debug, Serialize)]
pub(crate) struct PageVerdict {
    /// Name of the event; empty for all.
    pub(crate) event: String,
    pub(crate) word: &'static str,
    pub(crate) lines: Vec<String>,
    /// Functions that changed, largest impact first.
    pub(crate) changes: Vec<PageChange>,
}

/// A function that changed.
#[derive(Debug, Serialize)]
pub(crate) struct PageChange {
    /// Number in [`Picture::frames`].
    pub(crate) frame: usize,
    /// Binary logarithm of the ratio of the first side to the second.
    pub(crate) change: f64,
    pub(crate) text: String,
}

/// A command line that shows more.
#[derive(Debug, Serialize)]
pub(crate) struct PageView {
    pub(crate) what: &'static str,
    pub(crate) line: String,
}

#[derive(Debug, Serialize)]
pub(super) struct PageMeta<'p> {
    format: u32,
    title: &'p str,
    sides: &'p [SideFacts],
    step: u64,
    steps: u64,
    /// By side.
    side_steps: Vec<u64>,
    cpus: u32,
    modules: &'p [PictureModule],
    nodes: usize,
    names: usize,
    commands: usize,
    threads: usize,
    events: Vec<MetaEvent<'p>>,
    warnings: &'p [PageWarning],
    broken: &'p [PageBroken],
    remedies: &'p [String],
    cut: Option<CutStacks>,
    views: &'p [PageView],
    verdicts: &'p [PageVerdict],
    tool: &'static str,
}

#[derive(Debug, Serialize)]
struct MetaEvent<'p> {
    name: &'p str,
    /// Name in the switch between what ran and what waited, if both are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'static str>,
    counts_time: bool,
    unit: &'static str,
    /// What the height of the timeline shows, where that is a number of threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    axis: Option<&'static str>,
    /// By side.
    samples: Vec<u64>,
    period: Vec<u64>,
    lost_samples: u64,
    cells: usize,
    /// `true` if cells have extents.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_extents: bool,
    entries: usize,
    /// Weight of a sample, if all weigh the same.
    quantum: Option<u64>,
    /// Unit of the entries' weights.
    unit_weight: u64,
}

impl<'p> MetaEvent<'p> {
    /// Creates that of an event, given the label of an event of running threads.
    fn of(picture: &'p Picture, event: &'p PictureEvent, on_cpu: Option<&'static str>) -> Self {
        let (quantum, unit_weight) = match event.weights(picture.step) {
            Weights::Equal(quantum) => (Some(quantum), 1),
            Weights::Units(unit) => (None, unit),
        };
        let (label, axis) = match event.name.as_str() {
            "off-cpu" => (Some("waiting"), Some("threads waiting")),
            "wall" => (Some("wall"), Some("threads")),
            "critical-path" => (Some("critical path"), Some("on the path")),
            _ => (on_cpu, event.counts_time.then_some("CPUs busy")),
        };
        let totals = event.totals.iter().take(picture.sides.min(SIDES));
        Self {
            name: &event.name,
            label,
            counts_time: event.counts_time,
            unit: match (event.counts_time, event.is_tracepoint) {
                (true, _) => "ns",
                (false, true) => "samples",
                (false, false) => "events",
            },
            axis,
            samples: totals.clone().map(|total| total.samples).collect(),
            period: totals.map(|total| total.period).collect(),
            lost_samples: event.lost_samples,
            cells: event.cells.len(),
            has_extents: event.has_extents,
            entries: event.entries.len(),
            quantum,
            unit_weight,
        }
    }
}

/// Returns whether an event counts time off CPUs.
fn is_of_waits(event: &str) -> bool {
    ["off-cpu", "wall", "critical-path"].contains(&event)
}

impl<'p> PageMeta<'p> {
    pub(super) fn of(picture: &'p Picture, facts: &'p PageFacts, cut: Option<CutStacks>) -> Self {
        let has_waits = picture.events.iter().any(|event| event.name == "off-cpu");
        let running = picture.events.iter().filter(|event| !is_of_waits(&event.name)).count();
        // Several events of one running thread have names of their own.
        let on_cpu = (has_waits && running == 1).then_some("on CPU");
        let events = picture.events.iter().map(|event| MetaEvent::of(picture, event, on_cpu));
        Self {
            format: 1,
            title: &facts.title,
            sides: &facts.sides,
            step: picture.step,
            steps: picture.steps(),
            side_steps: picture.side_steps().into_iter().take(picture.sides).collect(),
            cpus: picture.cpus(),
            modules: &picture.modules,
            nodes: picture.nodes.len(),
            names: picture.frames.len(),
            commands: picture.commands.len(),
            threads: picture.threads.len(),
            events: events.collect(),
            warnings: &facts.warnings,
            broken: &facts.broken,
            remedies: &facts.remedies,
            cut,
            views: &facts.views,
            verdicts: &facts.verdicts,
            tool: concat!("rep ", env!("CARGO_PKG_VERSION")),
        }
    }
}
