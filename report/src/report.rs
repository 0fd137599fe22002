//! The pipeline: inputs to a profile.
//!
//! ```text
//!   Input ─► Stage (parts, records, frozen side-band) ─► Scan (all cores)
//!              └─ modules ─► Resolver ─► Labeller ─────────┴─► Profile ─► view
//! ```

use std::sync::OnceLock;

use recrep_format::abi::SampleType;
use recrep_format::attrs::AttrIndex;

use crate::aggregate::Layout;
use crate::groups::Groups;
use crate::input::Input;
use crate::label::Labeller;
use crate::profile::{InputSummary, Profile};
use crate::query::Query;
use crate::resolve::Resolver;
use crate::scan::{Compiled, Scan, Sieve, Strays};
use crate::sort_key::{Mode, SortKey};
use crate::stage::{self, Stage};
use crate::times::Times;
use crate::warning::Warning;

/// Answers the query.
///
/// # Errors
/// An input cannot be read or is not a perf.data file.
pub fn run(query: &Query) -> anyhow::Result<Profile> {
    run_with(query, &mut |_| {})
}

/// The same, and shows `also` each input's stage.
///
/// # Errors
/// As [`run`].
pub fn run_with(query: &Query, also: &mut dyn FnMut(&Stage<'_>)) -> anyhow::Result<Profile> {
    let resolver = Resolver::new(query.symbol_sources.clone());
    let mut profile = Profile::default();
    for source in &query.sources {
        for input in Input::all(source)? {
            let before = profile.warnings.len();
            add(&mut profile, query, &input, &resolver, also)?;
            let mut new = profile.warnings.split_off(before);
            if query.sources.len() > 1 || input.name != source.name() {
                new.iter_mut().for_each(|warning| warning.message = format!("{}: {}", input.name, warning.message));
            }
            profile.warnings.extend(new);
        }
    }
    Ok(profile)
}

/// Adds one input to the profile.
fn add(
    profile: &mut Profile,
    query: &Query,
    input: &Input,
    resolver: &Resolver,
    also: &mut dyn FnMut(&Stage<'_>),
) -> anyhow::Result<()> {
    stage::on(input, |stage| {
        recorded(&input.name, query.mode, stage)?;
        let strays = histogram(profile, query, stage, resolver);
        also(stage);
        let (split, side_band) = (stage.split, &stage.side_band);
        profile.inputs.push(InputSummary {
            path: input.name.clone(),
            bytes: input.len(),
            records: split.counts.iter().map(|(kind, count)| (kind.to_string(), *count)).collect(),
            lost_events: side_band.lost_events,
            lost_samples: side_band.all_lost_samples(),
            complete: stage.is_complete(),
        });
        profile.warnings.extend(stage.warnings());
        profile.warnings.extend(strays_told(strays));
        if query.mode == Mode::Samples && samples_have(stage, SampleType::BRANCH_STACK) {
            let hint = format!("{} has branch stacks: -b counts the branches in them", input.name);
            profile.hints.push(hint);
        }
        Ok(())
    })
}

/// Whether what is asked for was recorded.
fn recorded(name: &str, mode: Mode, stage: &Stage<'_>) -> anyhow::Result<()> {
    let access = SampleType::DATA_SRC | SampleType::WEIGHT | SampleType::WEIGHT_STRUCT | SampleType::ADDR;
    match mode {
        Mode::Branches | Mode::FallThroughs if !samples_have(stage, SampleType::BRANCH_STACK) => {
            anyhow::bail!("{name}: no branch stacks were recorded; record with -b, or leave -b out")
        }
        Mode::Memory if !samples_have(stage, access) => {
            anyhow::bail!("{name}: no memory accesses were recorded; record with -d and -W, or leave --mem-mode out")
        }
        _ => Ok(()),
    }
}

/// Whether samples of an event have one of these fields.
fn samples_have(stage: &Stage<'_>, fields: SampleType) -> bool {
    stage.file.attrs.entries().iter().any(|entry| entry.attr.sample_type.intersects(fields))
}

/// Counts the samples on all cores and adds the rows; gives what made no row.
fn histogram(profile: &mut Profile, query: &Query, stage: &Stage<'_>, resolver: &Resolver) -> Strays {
    let (attrs, side_band, timeline) = (&stage.file.attrs, &stage.side_band, &stage.timeline);
    let places = profile.places(&stage.events);
    let layout = Layout::of(query);
    let groups = if needs_groups(query) {
        Groups::read(stage.file, &stage.split.side_band, &stage.clock)
    } else {
        Groups::default()
    };
    let sieve = Sieve::new(&query.filters, compiled(query, stage, &groups), timeline);
    let (clock, module_count, mode, quantum) = (&stage.clock, side_band.modules.len(), query.mode, query.quantum);
    let scan =
        Scan { attrs, clock, timeline, mode, layout: &layout, sieve: &sieve, groups: &groups, quantum, module_count };
    let modules = side_band.modules.iter().collect();
    let labeller = Labeller { query, timeline, modules, events: &stage.events, groups: &groups };
    let symbols = OnceLock::new();
    let scanned = scan.run(&stage.split.pieces, |hits| {
        let symbols = symbols.get_or_init(|| labeller.load(hits, resolver));
        |key| labeller.resolve(key, symbols)
    });
    for (index, (place, total)) in places.iter().zip(&scanned.totals).enumerate() {
        let lost = side_band.lost_samples.get(&Some(AttrIndex(index))).copied();
        profile.add_total(*place, *total, lost.unwrap_or(0));
    }
    let symbols = symbols.into_inner().unwrap_or_default();
    if query.has(SortKey::Symbol) {
        profile.module_uses.count(&scanned.rows, &side_band.modules, &symbols);
        profile.module_uses.guest += scanned.strays.guest;
    }
    for (event, columns, gathered) in labeller.label(scanned.rows, &scanned.named, &symbols, &mut profile.labels) {
        if let Some(place) = places.get(event) {
            profile.add_row(*place, columns, &gathered);
        }
    }
    scanned.strays
}

/// Whether a question asks for what CPUs and threads belong to.
fn needs_groups(query: &Query) -> bool {
    let keys = [SortKey::Socket, SortKey::Cgroup, SortKey::CgroupId];
    query.filters.socket.is_some() || keys.into_iter().any(|key| query.has(key))
}

/// The filters in the terms of this file.
fn compiled(query: &Query, stage: &Stage<'_>, groups: &Groups) -> Compiled {
    let filters = &query.filters;
    let modules = filters.dsos.as_ref().map(|wanted| {
        let passes =
            |path: &[u8], name: &str| wanted.contains(name) || wanted.contains(&*String::from_utf8_lossy(path));
        stage.side_band.modules.iter().map(|m| passes(&m.path, &m.name())).collect()
    });
    let bare = |name: &str| name.split_once(':').map_or(name, |(bare, _)| bare).to_owned();
    let events = filters.events.as_ref().map(|wanted| {
        let is_wanted = |name: &String| wanted.iter().any(|want| want == name || *want == bare(name));
        stage.events.iter().map(is_wanted).collect()
    });
    let socket = filters.socket.map(|socket| groups.cpus_of(socket));
    let times = filters.times.as_ref().map(|times| {
        let (first, last) = match times {
            Times::Absolute(_) => (0, 0),
            Times::Shares(_) => stage.sampled_between(),
        };
        times.stretches(first, last)
    });
    Compiled { events, modules, socket, times }
}

fn strays_told(strays: Strays) -> Vec<Warning> {
    let mut all = Vec::new();
    if strays.unknown_id > 0 {
        let message =
            format!("{} samples have an id that no event in the file has, and are left out", strays.unknown_id);
        all.push(Warning::new("unknown-id", message));
    }
    if strays.malformed > 0 {
        let message =
            format!("{} samples end before the fields that their event says, and are left out", strays.malformed);
        all.push(Warning::new("bad-sample", message));
    }
    if strays.guest > 0 {
        let message = format!("{} samples are of guests: they count in the totals and are in no row", strays.guest);
        all.push(Warning::new("guest-samples", message));
    }
    all
}
