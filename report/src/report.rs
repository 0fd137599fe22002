//! The pipeline: inputs to a profile.
//!
//! ```text
//!   Input ─► File (parts) ─► Split (one pass) ─► SideBand ─► Timeline (frozen) ─► Scan (all cores)
//!                                                    └─ modules ─► Resolver ─► Labeller ─► Profile ─► view
//! ```

use std::sync::OnceLock;

use anyhow::Context as _;
use recrep_format::attrs::AttrIndex;
use recrep_format::error::Error;
use recrep_format::read::{File, Mode};

use crate::aggregate::Layout;
use crate::clock::Clock;
use crate::event_name::event_name;
use crate::input::Input;
use crate::label::Labeller;
use crate::profile::{InputSummary, Profile};
use crate::query::Query;
use crate::resolve::{Resolver, SymbolOptions};
use crate::scan::{Scan, Strays};
use crate::sideband::SideBand;
use crate::split::Split;
use crate::timeline::Timeline;
use crate::unpack::{self, Unpacked};
use crate::warning::Warning;

/// Answers the query.
///
/// # Errors
/// An input cannot be read or is not a perf.data file.
pub fn run(query: &Query) -> anyhow::Result<Profile> {
    let resolver = Resolver::new(SymbolOptions::default());
    let mut profile = Profile::default();
    for source in &query.sources {
        let input = Input::open(source)?;
        add(&mut profile, query, &input, &resolver)?;
    }
    Ok(profile)
}

/// Adds one input to the profile.
fn add(profile: &mut Profile, query: &Query, input: &Input, resolver: &Resolver) -> anyhow::Result<()> {
    let file = File::parse(input.bytes()).with_context(|| format!("cannot read {}", input.name))?;
    let unpacked = unpack::is_compressed(file.records()).then(|| unpack::unpack(file.records(), &file.attrs));
    let (data, offset) = unpacked.as_ref().map_or((file.data_bytes(), file.data.offset), |u| (&u.bytes, 0));
    let split = Split::of(data, offset, file.endian);
    let clock = Clock::new(&file.attrs, file.mode, &split.pieces, split.first_round);
    let mut side_band = SideBand::read(&file, &split.side_band, &clock);
    let names: Vec<String> = event_names(&file);
    let places = profile.places(&names);
    let mut strays = Strays::default();
    if !query.stats || file.attrs.entries().len() > 1 {
        let timeline = Timeline::build(std::mem::take(&mut side_band.changes));
        let layout = Layout::of(query);
        let modules = query.filters.dsos.as_ref().map(|wanted| {
            let passes =
                |path: &[u8], name: &str| wanted.contains(name) || wanted.contains(&*String::from_utf8_lossy(path));
            side_band.modules.iter().map(|m| passes(&m.path, &m.name())).collect()
        });
        let (attrs, filters, module_count) = (&file.attrs, &query.filters, side_band.modules.len());
        let (timeline, layout) = (&timeline, &layout);
        let scan = Scan { attrs, clock: &clock, timeline, layout, filters, modules, module_count };
        let labeller = Labeller { query, timeline, modules: side_band.modules.iter().collect(), events: &names };
        let symbols = OnceLock::new();
        let scanned = scan.run(&split.pieces, |hits| {
            let symbols = symbols.get_or_init(|| labeller.load(hits, resolver));
            |key| labeller.resolve(key, symbols)
        });
        strays = scanned.strays;
        for (index, (place, total)) in places.iter().zip(&scanned.totals).enumerate() {
            let lost = side_band.lost_samples.get(&Some(AttrIndex(index))).copied();
            profile.add_total(*place, *total, lost.unwrap_or(0));
        }
        let symbols = symbols.into_inner().unwrap_or_default();
        for (event, columns, count) in labeller.label(scanned.rows, &symbols, &mut profile.labels) {
            if let Some(place) = places.get(event) {
                profile.add_row(*place, columns, count);
            }
        }
    }
    let warnings = warnings(&file, unpacked.as_ref(), &split, &side_band, strays);
    profile.inputs.push(InputSummary {
        path: input.name.clone(),
        bytes: input.bytes().len() as u64,
        records: split.counts.iter().map(|(kind, count)| (kind.to_string(), *count)).collect(),
        lost_events: side_band.lost_events,
        lost_samples: side_band.all_lost_samples(),
        complete: is_complete(&file, unpacked.as_ref(), &split),
    });
    profile.warnings.extend(warnings);
    Ok(())
}

fn event_names(file: &File<'_>) -> Vec<String> {
    let name = |e: &recrep_format::attrs::AttrEntry| e.name.clone().unwrap_or_else(|| event_name(&e.attr));
    file.attrs.entries().iter().map(name).collect()
}

fn is_complete(file: &File<'_>, unpacked: Option<&Unpacked>, split: &Split<'_>) -> bool {
    let mended = file.warnings.iter().any(|w| matches!(w.code, "truncated" | "no-data-size"));
    // A recorder writes the data's size and the features last.
    let ended = file.mode == Mode::Pipe || file.header.data.size > 0 || !file.features.is_empty();
    ended && !mended && split.damage.is_none() && unpacked.is_none_or(|u| u.damage.is_none())
}

fn warnings(
    file: &File<'_>,
    unpacked: Option<&Unpacked>,
    split: &Split<'_>,
    side_band: &SideBand,
    strays: Strays,
) -> Vec<Warning> {
    let mut all: Vec<Warning> = file.warnings.iter().cloned().map(Warning::from).collect();
    let ends = |error: &Error| {
        let warning = Warning::from(error);
        Warning { message: format!("{}; what is before it is reported", warning.message), ..warning }
    };
    all.extend(unpacked.and_then(|u| u.damage.as_ref()).map(ends));
    all.extend(split.damage.as_ref().map(ends));
    if let Some((count, first)) = &side_band.malformed {
        let message =
            format!("{count} records are not what their type says and are left out; the first: {}", first.kind);
        all.push(Warning { code: "bad-record", message, offset: Some(first.offset) });
    }
    if file.attrs.entries().is_empty() {
        all.push(Warning::new("no-events", "the file describes no events, so its samples cannot be read"));
    }
    if strays.unknown_id > 0 {
        let message =
            format!("{} samples have an id that no event in the file has, and are left out", strays.unknown_id);
        all.push(Warning::new("unknown-id", message));
    }
    if strays.guest > 0 {
        let message = format!("{} samples are of guests: they count in the totals and are in no row", strays.guest);
        all.push(Warning::new("guest-samples", message));
    }
    all
}
