//! Parser of event lists: from pieces of text to events.

use recrep_console::nearest::nearest;
use recrep_format::abi::EventType;

use super::error::{Problem, SpecError};
use super::modifiers::Modifiers;
use super::names;
use super::pmu_event::{self, PMU_TYPE_SHIFT, pmu_use};
use super::spec::EventSpec;
use super::terms::{self, Term};
use super::text::{self, Item, Span, WrittenTerm, Wrong};
use super::{breakpoint, tracepoints};
use crate::machine::pmu::Pmu;
use crate::machine::sources::EventSources;

/// Parses a comma-separated list of event specs.
pub(crate) fn parse(list: &str, sources: &EventSources) -> Result<Vec<EventSpec>, SpecError> {
    let mut events = Vec::new();
    append(&mut events, list, sources)?;
    Ok(events)
}

/// Returns the default events: `cycles:P`, on each kind of core.
pub(crate) fn default_events(sources: &EventSources) -> Vec<EventSpec> {
    // Parsing succeeds on all machines, as cycles is a generalized event.
    parse("cycles:P", sources).unwrap_or_else(|_| vec![EventSpec::default_event()])
}

/// Notes the name that several events have in common.
fn of_family(mut events: Vec<EventSpec>, name: &str) -> Vec<EventSpec> {
    if events.len() > 1 {
        for event in &mut events {
            event.family = Some(name.to_owned());
        }
    }
    events
}

/// Parses a comma-separated list of event specs (one `-e`), and appends them to those of earlier
/// lists.
pub(crate) fn append(
    events: &mut Vec<EventSpec>,
    list: &str,
    sources: &EventSources,
) -> Result<(), SpecError> {
    let first = events.len();
    let number = events.last().map_or(0, |last| last.list + 1);
    for item in
        text::split(list).map_err(|(at, problem)| SpecError::new(list, list, at, problem))?
    {
        match item {
            Item::Event(written) => events.extend(event(list, &written, sources)?),
            Item::Group { members, modifiers } => {
                group(events, list, &members, modifiers, sources)?;
            }
        }
    }
    for event in events.iter_mut().skip(first) {
        event.list = number;
    }
    Ok(())
}

/// Returns the events of a group; on a hybrid machine, one group per kind of core.
fn group(
    events: &mut Vec<EventSpec>,
    list: &str,
    members: &[WrittenTerm<'_>],
    modifiers: Option<Span<'_>>,
    sources: &EventSources,
) -> Result<(), SpecError> {
    let shared = modifiers.map(letters).transpose();
    let shared = shared
        .map_err(|(at, problem)| SpecError::new(list, list, at, problem))?
        .unwrap_or_default();
    let mut parts: Vec<(Option<String>, Vec<EventSpec>)> = Vec::new();
    for written in members {
        for event in event(list, written, sources)? {
            let kind = event.pmu.as_ref().map(|pmu| &pmu.name);
            let kind = kind.filter(|name| sources.hybrid().any(|pmu| pmu.name == **name)).cloned();
            // Events that any core can count join the part of the event before them.
            let part = match &kind {
                Some(_) => parts.iter_mut().find(|part| part.0 == kind),
                None => parts.last_mut(),
            };
            match part {
                Some((_, events)) => events.push(event),
                None => parts.push((kind, vec![event])),
            }
        }
    }
    for (_, part) in parts {
        let leader = events.len();
        for (place, mut event) in part.into_iter().enumerate() {
            let with = event.modifiers.with_group(shared, place == 0);
            event.modifiers = with.map_err(|problem| {
                SpecError::new(list, list, modifiers.map_or(0, |m| m.at), problem)
            })?;
            event.leader = (place > 0).then_some(leader);
            events.push(event);
        }
    }
    Ok(())
}

fn event(
    list: &str,
    written: &WrittenTerm<'_>,
    sources: &EventSources,
) -> Result<Vec<EventSpec>, SpecError> {
    let events = EventParser { written, sources }.parse();
    events.map_err(|(at, problem)| SpecError::new(list, written.whole.text, at, problem))
}

/// A spec that is being parsed.
struct EventParser<'a> {
    written: &'a WrittenTerm<'a>,
    sources: &'a EventSources,
}

/// Events without modifiers, and the modifiers' text.
type Unmodified<'a> = (Vec<EventSpec>, Option<Span<'a>>);

impl<'a> EventParser<'a> {
    fn parse(&self) -> Result<Vec<EventSpec>, Wrong> {
        let head = self.written.head;
        let name = head.text.split(':').next().unwrap_or(head.text);
        if let Some(why) = names::contradiction(name) {
            return Err((head.at, Problem::Contradiction { name: name.to_owned(), why }));
        }
        let terms = self.written.terms.map(terms::split).transpose()?;
        let (mut events, modifiers) = match &terms {
            _ if head.text.starts_with("mem:") => self.breakpoint(terms.as_deref())?,
            Some(terms) => (self.with_terms(terms)?, self.tail()),
            None => self.by_name()?,
        };
        if let Some(piece) = modifiers {
            let modifiers = letters(piece)?;
            // `W` applies only to groups.
            if modifiers.weak && self.written.alone {
                return Err((piece.at, Problem::WeakAlone));
            }
            for event in &mut events {
                (event.modifiers, event.letters) = (modifiers, piece.text.to_owned());
            }
        }
        Ok(events)
    }

    /// Returns the modifiers after the last slash, with or without a colon.
    fn tail(&self) -> Option<Span<'a>> {
        let tail = self.written.tail;
        let letters = tail.text.strip_prefix(':').map_or(tail, |_| tail.from(1));
        (!tail.text.is_empty()).then_some(letters)
    }

    fn breakpoint(&self, terms: Option<&[Term<'_>]>) -> Result<Unmodified<'a>, Wrong> {
        let (mut event, modifiers) = breakpoint::parse(self.written.head)?;
        if let Some(terms) = terms {
            common(terms, &mut event, "a breakpoint")?;
        }
        let tail = self.tail();
        if let (Some(_), Some(tail)) = (modifiers, tail) {
            return Err((tail.at, Problem::Stray(tail.text.chars().next().unwrap_or(':'))));
        }
        Ok((vec![event], modifiers.or(tail)))
    }

    /// Parses a name, and modifiers after a colon.
    fn by_name(&self) -> Result<Unmodified<'a>, Wrong> {
        let head = self.written.head;
        let (name, modifiers) =
            head.split_once(':').map_or((head, None), |(name, rest)| (name, Some(rest)));
        if let Some(events) = self.general(name.text) {
            return Ok((events, modifiers));
        }
        if let Some(events) = self.of_any_pmu(name)? {
            return Ok((events, modifiers));
        }
        match modifiers {
            // `cycels:u` is a mistyped name with its modifiers; `sched:sched_switch` is not.
            Some(rest) if !Modifiers::are(rest.text) => {
                let (event, modifiers) =
                    rest.split_once(':').map_or((rest, None), |(event, m)| (event, Some(m)));
                Ok((tracepoints::find(self.sources, name, event)?, modifiers))
            }
            _ => {
                let (near, tables) = (self.near(name.text), self.tables(name.text));
                Err((name.at, Problem::Unknown { name: name.text.to_owned(), near, tables }))
            }
        }
    }

    /// Finds a hardware, software, cache or raw event; on a hybrid machine, one per kind of core.
    fn general(&self, name: &str) -> Option<Vec<EventSpec>> {
        let (kind, config) =
            names::find(name).or_else(|| Some((EventType::RAW, names::raw(name)?)))?;
        if kind == names::TOOL_KIND {
            let unit = Some("ns".to_owned());
            return Some(vec![EventSpec { unit, ..EventSpec::numbered(name, kind, config) }]);
        }
        let cores: Vec<&Pmu> = match kind {
            EventType::SOFTWARE => Vec::new(),
            _ => self.sources.hybrid().collect(),
        };
        if cores.is_empty() {
            return Some(vec![EventSpec::numbered(name, kind, config)]);
        }
        Some(
            cores
                .iter()
                .map(|pmu| {
                    let full = format!("{}/{name}/", pmu.name);
                    let event = match kind {
                        EventType::RAW => EventSpec::numbered(&full, EventType(pmu.kind), config),
                        _ => EventSpec::numbered(
                            &full,
                            kind,
                            config | u64::from(pmu.kind) << PMU_TYPE_SHIFT,
                        ),
                    };
                    EventSpec { pmu: Some(pmu_use(pmu)), ..event }
                })
                .collect(),
        )
    }

    /// Finds a named event among all PMUs. Where that is one, and a table has the name, it is
    /// called as it was typed.
    fn of_any_pmu(&self, name: Span<'_>) -> Result<Option<Vec<EventSpec>>, Wrong> {
        let having = self.sources.pmus().iter().filter(|pmu| pmu.alias(name.text).is_some());
        let terms = [Term { key: name.text, value: None, at: name.at }];
        let (mut events, mut failed) = (Vec::new(), None);
        for pmu in having {
            let full = format!("{}/{}/", pmu.name, name.text);
            match pmu_event::parse(pmu, &full, name.at, &terms, false) {
                Ok(event) => events.push((pmu.is_in_table(name.text), event)),
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        if let [(true, only)] = events.as_mut_slice() {
            name.text.clone_into(&mut only.name);
        }
        let events: Vec<_> = events.into_iter().map(|(_, event)| event).collect();
        match (events.is_empty(), failed) {
            (true, Some(why)) => Err(why),
            (true, None) => Ok(None),
            (false, _) => Ok(Some(of_family(events, name.text))),
        }
    }

    /// Parses `pmu/terms/`, or a named event with common terms.
    fn with_terms(&self, terms: &[Term<'_>]) -> Result<Vec<EventSpec>, Wrong> {
        let head = self.written.head;
        if let Some((system, name)) = head.split_once(':') {
            let mut events = tracepoints::find(self.sources, system, name)?;
            events.iter_mut().try_for_each(|event| common(terms, event, "a tracepoint"))?;
            return Ok(events);
        }
        let pmus = self.sources.pmus();
        let hybrid = self.sources.hybrid().next().is_some();
        let inside = self.written.terms.map_or("", |terms| terms.text);
        let event = |pmu: &Pmu, name: &str| {
            pmu_event::parse(pmu, &format!("{name}/{inside}/"), head.at, terms, hybrid)
        };
        let (called, at_return) = text::pmu_of(head.text);
        if let Some(pmu) = pmus.iter().find(|pmu| pmu.is_called(called)) {
            let mut event = event(pmu, head.text)?;
            event.config |= u64::from(at_return);
            return Ok(vec![event]);
        }
        let meant: Vec<_> = pmus.iter().filter(|pmu| pmu.is_meant_by(head.text)).collect();
        if !meant.is_empty() {
            let events: Result<Vec<_>, _> =
                meant.into_iter().map(|pmu| event(pmu, &pmu.name)).collect();
            return events.map(|events| of_family(events, &format!("{}/{inside}/", head.text)));
        }
        if let Some(mut events) = self.general(head.text) {
            events.iter_mut().try_for_each(|event| {
                let event_name = event.name.clone();
                event.name = format!("{}/{inside}/", event_name.trim_end_matches('/'));
                common(terms, event, &format!("the event '{}'", head.text))
            })?;
            return Ok(events);
        }
        let named: Vec<&Pmu> = pmus.iter().filter(|pmu| pmu.alias(head.text).is_some()).collect();
        if !named.is_empty() {
            return self.named_with_terms(&named, terms);
        }
        let near = nearest(head.text, pmus.iter().map(|pmu| &pmu.name[..]).chain(names::all()));
        Err((head.at, Problem::UnknownPmu { name: head.text.to_owned(), near }))
    }

    /// Returns a PMU's named event with more terms: `inst_retired.any/cmask=1/`.
    fn named_with_terms(&self, pmus: &[&Pmu], terms: &[Term<'_>]) -> Result<Vec<EventSpec>, Wrong> {
        let head = self.written.head;
        let hybrid = self.sources.hybrid().next().is_some();
        let inside = self.written.terms.map_or("", |terms| terms.text);
        let mut all = vec![Term { key: head.text, value: None, at: head.at }];
        all.extend(terms.iter().cloned());
        let event = |pmu: &&Pmu| {
            let full = format!("{}/{},{inside}/", pmu.name, head.text);
            pmu_event::parse(pmu, &full, head.at, &all, hybrid)
        };
        let events = pmus.iter().map(event).collect::<Result<Vec<_>, _>>()?;
        Ok(of_family(events, &format!("{}/{inside}/", head.text)))
    }

    /// Returns the most similar known name: of an event, a PMU's event, or a group of tracepoints.
    fn near(&self, name: &str) -> Option<String> {
        let of_pmus: Vec<_> = self.sources.pmus().iter().flat_map(Pmu::aliases).collect();
        let of_tables = self.sources.pmus().iter().flat_map(Pmu::table).map(|(name, _)| name);
        let all: Vec<&str> =
            names::all().chain(of_pmus.iter().map(String::as_str)).chain(of_tables).collect();
        nearest(name, all)
    }

    /// Returns a sentence on where an unknown name may come from: the tables for this CPU, or those
    /// that were not given.
    fn tables(&self, name: &str) -> Option<String> {
        match self.sources.tables() {
            [] => name.contains(['.', '_']).then(|| {
                "names that the CPU's maker gives are in perf's tables (--event-tables DIR)"
                    .to_owned()
            }),
            tables => Some(format!("the table of events is {}", tables.join(", "))),
        }
    }
}

fn common(terms: &[Term<'_>], event: &mut EventSpec, of: &str) -> Result<(), Wrong> {
    terms.iter().try_for_each(|term| match terms::take(term, event)? {
        true => Ok(()),
        false => Err(term.unknown(of, &[])),
    })
}

fn letters(piece: Span<'_>) -> Result<Modifiers, Wrong> {
    Modifiers::parse(piece.text).map_err(|(at, problem)| (piece.at + at, problem))
}
