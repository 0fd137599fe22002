//! Counts the samples of one file, names them and adds them to the profile: setup → scan → naming →
//! profile.

use rayon::prelude::*;
use recrep_format::abi::{EventType, SwEvent};
use recrep_format::attr::{AttrEntry, AttrIndex};
use rustc_hash::FxHashMap;

use super::setup::{Setup, answerable};
use super::{Labeller, loaded, multiplexed, numbers};
use crate::count::metrics::Metrics;
use crate::count::{Count, Rows};
use crate::profile::modules::ModuleUses;
use crate::profile::names::SharedNames;
use crate::profile::{Event, Profile};
use crate::query::{Field, KeyError, Meta, Mode, Query, SortKey};
use crate::samples::Session;
use crate::scan::{Dropped, Scan, Scanned};
use crate::symbols::{Module, Resolver};
use crate::timeline::Role;
use crate::tracepoints::Traced;

/// Where the names of an answer come from and are kept: all of its files share both.
#[derive(Clone, Copy)]
pub(crate) struct Names<'n> {
    pub(crate) resolver: &'n Resolver,
    pub(crate) shared: &'n SharedNames,
}

/// What is made of the counted samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Rows of the profile.
    Rows,
    /// The uses of modules, of callers too if callchains are counted, and no rows.
    ModuleUses,
}

/// Counts the samples of each module, and those without a function.
pub(crate) fn module_uses(
    query: &Query,
    session: &Session<'_>,
    resolver: &Resolver,
) -> Result<ModuleUses, KeyError> {
    let mut profile = Profile::default();
    let names = Names { resolver, shared: &SharedNames::default() };
    histogram(&mut profile, query, session, names, Purpose::ModuleUses)?;
    Ok(profile.module_uses)
}

/// Counts the samples on all cores, adds what is made of them to the profile, and returns the
/// numbers of samples without a row.
pub(crate) fn histogram(
    profile: &mut Profile,
    asked: &Query,
    session: &Session<'_>,
    names: Names<'_>,
    purpose: Purpose,
) -> Result<Dropped, KeyError> {
    let query = &answerable(asked, session);
    let setup = Setup::new(query, asked, session, names.resolver);
    let (traced, found) = setup.traced()?;
    let traced = (!found.is_empty()).then_some(&traced);
    profile.add_traced(&found);
    profile.warnings.extend(setup.formats.warnings.iter().cloned());
    let (filter, events) = (setup.filter(), session.events_of(query.mode));
    let modules = session.side_band.modules.iter().collect();
    let to_name = ToName { setup: &setup, traced, events: &events, modules, names };
    let counted = to_name.counted(&setup.scan(&filter, traced));
    Ok(counted.fill(profile, &setup, purpose))
}

/// What names the keys of a file.
struct ToName<'a> {
    setup: &'a Setup<'a>,
    traced: Option<&'a Traced<'a>>,
    events: &'a [String],
    modules: Vec<&'a Module>,
    names: Names<'a>,
}

impl<'a> ToName<'a> {
    /// Scans the samples, and names what was counted.
    fn counted(self, scan: &Scan<'_>) -> Counted<'a> {
        let Self { setup, traced, events, modules, names } = self;
        let session = setup.session;
        let (scanned, labeller) = scan.run(&session.split.pieces, |hits| {
            session.input.release();
            Labeller {
                query: setup.query,
                input: &session.input.name,
                fields: setup.query.fields(),
                timeline: setup.timeline(),
                module_numbers: numbers(setup.query, hits, &modules, names.shared),
                modules,
                symbols: loaded(setup.query, hits, &setup.functions),
                inlined: setup.inlined,
                events,
                names: names.shared,
                groups: &setup.groups,
                traced,
            }
        });
        Counted { scanned, labeller }
    }
}

/// The counted samples of a file, with functions in place of addresses.
struct Counted<'a> {
    scanned: Scanned,
    labeller: Labeller<'a>,
}

impl Counted<'_> {
    /// Adds what was counted to the profile, and returns the numbers of samples without a row.
    fn fill(mut self, profile: &mut Profile, setup: &Setup<'_>, purpose: Purpose) -> Dropped {
        let (query, session) = (setup.query, setup.session);
        let (scanned, labeller) = (&mut self.scanned, &self.labeller);
        profile.warnings.extend(multiplexed::warnings(session, &scanned.times, &setup.scales));
        if query.filters.resolved {
            leave_out_unresolved(&mut scanned.totals, &scanned.rows, query.mode);
        }
        add_totals(profile, &scanned.totals, session);
        // What a profile lacks cannot be recorded any more.
        let is_recording = session.input.profile_samples().is_none();
        if query.mode == Mode::Samples && purpose == Purpose::Rows && is_recording {
            let (hints, stacks) = labeller.hints(session, &scanned.rows, &scanned.stacks);
            profile.warnings.extend(hints);
            profile.user_stacks.add(stacks.all);
            profile.program_stacks.append(stacks.of_programs);
        }
        if query.has(SortKey::Symbol) {
            let doubts = labeller.count_modules(&scanned.rows, &mut profile.module_uses);
            profile.warnings.extend(doubts.warnings("samples"));
        }
        let dropped = std::mem::take(&mut scanned.dropped);
        match purpose {
            Purpose::Rows => self.add_rows(profile),
            Purpose::ModuleUses => {
                let Scanned { rows, stacks, .. } = scanned;
                labeller.count_callers(rows, stacks, &mut profile.module_uses);
            }
        }
        dropped
    }

    fn add_rows(self, profile: &mut Profile) {
        let Self { scanned: Scanned { rows, mut stacks, .. }, labeller } = self;
        let query = labeller.query;
        let is_shown = query.chains.counted && query.chains.is_shown();
        let mut rows = labeller.by_ancestors(rows, &mut stacks);
        if query.chains.counted && !is_shown || query.filters.by_symbol() {
            rows = rows.changed(|row| {
                if !is_shown {
                    *Field::Chain.of_mut(row) = 0;
                }
                labeller.takes(row)
            });
        }
        if is_shown {
            profile.children |= query.chains.children;
            labeller.cumulate(&rows, stacks, profile);
        } else {
            labeller.add_rows(&rows, profile);
        }
    }
}

impl Labeller<'_> {
    /// Adds rows without callers.
    fn add_rows(&self, rows: &Rows, profile: &mut Profile) {
        let with_parts = self.query.has_parts();
        let words = self.label(rows.len(), &|row, key| rows.read_key(row, key));
        let of_row =
            |row: usize| Metrics::of(rows.count(row), with_parts.then(|| rows.key(row)).as_ref());
        let metrics: Vec<Metrics> = (0..rows.len()).into_par_iter().map(of_row).collect();
        let keys = self.query.columns.iter().map(|column| column.key);
        profile.set_rows(words, metrics, rows.layout().is_told_by(keys));
    }
}

/// Returns the events of a profile in a mode.
pub(crate) fn profile_events(session: &Session<'_>, mode: Mode) -> Vec<Event> {
    if let Some(name) = mode.event() {
        return vec![Event { counts_time: true, ..Event::named(name) }];
    }
    let event = |(entry, name): (&AttrEntry, &String)| {
        let (kind, config) = (entry.attr.kind, entry.attr.config);
        let is_clock = [SwEvent::CPU_CLOCK.0, SwEvent::TASK_CLOCK.0].contains(&config)
            && kind == EventType::SOFTWARE;
        Event {
            counts_time: is_clock && mode == Mode::Samples,
            is_tracepoint: kind == EventType::TRACEPOINT,
            ..Event::named(name)
        }
    };
    session.file.attrs.entries().iter().zip(&session.events).map(event).collect()
}

/// Adds the totals of the events, with what was lost of each.
fn add_totals(profile: &mut Profile, totals: &[Count], session: &Session<'_>) {
    let side_band = &session.side_band;
    for (index, total) in totals.iter().enumerate() {
        let lost = of_event(&side_band.lost_samples, index, session);
        let filtered = of_event(&side_band.filtered_samples, index, session);
        profile.add_total(index, *total, lost, filtered);
    }
}

/// Returns the count of an event; of times, that of all events from which they are computed.
fn of_event(
    counts: &FxHashMap<Option<AttrIndex>, u64>,
    index: usize,
    session: &Session<'_>,
) -> u64 {
    let Some(times) = &session.off_cpu else {
        return counts.get(&Some(AttrIndex(index))).copied().unwrap_or(0);
    };
    if index > 0 {
        return 0;
    }
    let is_time =
        |event: &Option<AttrIndex>| event.is_some_and(|event| times.role(event) != Role::None);
    counts.iter().filter(|(event, _)| is_time(event)).map(|(_, count)| count).sum()
}

/// Subtracts samples without a function from the totals.
fn leave_out_unresolved(totals: &mut [Count], rows: &Rows, mode: Mode) {
    for (row, count) in rows.iter() {
        let meta = Meta::unpack(Field::Meta.of(&row));
        let total = totals.get_mut(usize::from(meta.event));
        if let Some(total) = total.filter(|_| !meta.is_resolved(mode.is_of_branches())) {
            total.samples = total.samples.saturating_sub(count.samples);
            total.period = total.period.wrapping_sub(count.period);
        }
    }
}
