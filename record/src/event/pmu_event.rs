//! Events that are made of a PMU's terms: `cpu/event=0x3c,umask=0x1/`, `cpu/cpu-cycles/`, `cs_etm/@sink/`.
//!
//! A term is, in this order: one that all events have; a word of the attr (`config1=`); a place in the attr by the PMU's `format`;
//! a named event of the PMU, which stands for terms; on a core, a generalized event or `rNNN`.

use recrep_format::abi::EventType;
use recrep_format::attr::Attr;

use super::error::Problem;
use super::names;
use super::nearest::nearest;
use super::probe::{self, Draft};
use super::spec::{EventSpec, PmuUse};
use super::terms::{self, COMMON, Term, WORDS};
use super::text::{Piece, Wrong};
use crate::event::sampling::Rate;
use crate::machine::pmu::{Format, Pmu, intel_pt};

/// The upper half of a generalized event's config is the PMU, where there are several (`PERF_PMU_TYPE_SHIFT`).
pub(super) const PMU_TYPE_SHIFT: u32 = 32;

/// What an event needs to know of its PMU.
pub(super) fn pmu_use(pmu: &Pmu) -> PmuUse {
    PmuUse {
        name: pmu.name.clone(),
        cpus: pmu.cpus.clone(),
        uncore: pmu.uncore(),
        has_aux: pmu.has_aux(),
        address_filters: pmu.number("nr_addr_filters", 10).unwrap_or(0),
    }
}

/// An event of a PMU, by its terms.
pub(super) fn parse(pmu: &Pmu, name: &str, at: usize, terms: &[Term<'_>], hybrid: bool) -> Result<EventSpec, Wrong> {
    let base = EventSpec { pmu: Some(pmu_use(pmu)), ..EventSpec::numbered(name, EventType(pmu.kind), 0) };
    let mut draft = PmuEvent { pmu, hybrid, all: terms, spec: base, probe: Draft::default(), replaces: false };
    if pmu.name == "intel_pt" {
        draft.replaces = true;
        for (term, value) in intel_pt::defaults(pmu) {
            if let Ok(Some(format)) = pmu.format(term) {
                draft.put(format, value);
            }
        }
    }
    // The attr's own words come first, whatever the order, so that terms add to them.
    for term in terms.iter().filter(|term| WORDS.contains(&term.key)) {
        terms::take_word(term, &mut draft.spec)?;
    }
    for term in terms.iter().filter(|term| !WORDS.contains(&term.key)) {
        draft.take(term, true)?;
    }
    if probe::is_probe(&pmu.name) {
        draft.probe.finish(&pmu.name, at, &mut draft.spec)?;
    }
    Ok(draft.spec)
}

struct PmuEvent<'a> {
    pmu: &'a Pmu,
    hybrid: bool,
    all: &'a [Term<'a>],
    spec: EventSpec,
    probe: Draft<'a>,
    /// Whether a term replaces what its bits were, or adds to them, as perf has it for all but Intel PT.
    replaces: bool,
}

impl<'a> PmuEvent<'a> {
    /// Takes one term; `typed`: the user's, not one of those that a named event stands for.
    fn take(&mut self, term: &Term<'a>, typed: bool) -> Result<(), Wrong> {
        if probe::is_probe(&self.pmu.name) && self.probe.take(&self.pmu.name, term)? {
            return Ok(());
        }
        if let Some(sink) = term.key.strip_prefix('@') {
            return self.sink(sink, term);
        }
        let format = self.pmu.format(term.key).map_err(|why| term.wrong(Problem::Sysfs(why)))?;
        // A PMU's own word is stronger than one that all events have, but for those that perf knows.
        if terms::take(term, &mut self.spec)? || (!typed && terms::take_word(term, &mut self.spec)?) {
            return Ok(());
        }
        match (format, term.value) {
            (Some(_), Some(value)) if term.key.eq_ignore_ascii_case("event") && self.named(value, term, typed)? => {
                Ok(())
            }
            (Some(format), _) => self.formatted(format, term),
            // The parameter of a named event.
            (None, Some(_)) if typed && self.is_parameter(term.key) => Ok(()),
            (None, None) if self.named(term.key, term, typed)? || self.general(term.key) => Ok(()),
            _ => Err(self.unknown(term)),
        }
    }

    fn put(&mut self, format: Format, value: u64) {
        let spec = &mut self.spec;
        let (config, config1) = (spec.config, spec.config1);
        let mut attr = Attr { config, config1, config2: spec.config2, config3: spec.config3, ..Attr::default() };
        if !self.replaces {
            attr = Attr::default();
        }
        format.put(value, &mut attr);
        if self.replaces {
            (spec.config, spec.config1, spec.config2, spec.config3) =
                (attr.config, attr.config1, attr.config2, attr.config3);
        } else {
            spec.config |= attr.config;
            spec.config1 |= attr.config1;
            spec.config2 |= attr.config2;
            spec.config3 |= attr.config3;
        }
    }

    fn formatted(&mut self, format: Format, term: &Term<'_>) -> Result<(), Wrong> {
        let value = match term.value {
            None if format.is_flag() => 1,
            // A parameter, which the user gives as a term of its own.
            Some("?") => {
                let given = self.all.iter().find(|other| other.key == term.key);
                let given = given
                    .ok_or_else(|| term.wrong(Problem::NoValue { term: term.key.to_owned(), wanted: "NUMBER" }))?;
                given.number()?
            }
            _ => term.number()?,
        };
        if value > format.most() {
            let term_name = term.key.to_owned();
            return Err(term.wrong(Problem::TooLarge { term: term_name, value, most: format.most() }));
        }
        self.put(format, value);
        Ok(())
    }

    /// A named event of the PMU: the terms that it stands for.
    fn named(&mut self, name: &str, term: &Term<'_>, typed: bool) -> Result<bool, Wrong> {
        // A name that a name stands for is the kernel's mistake.
        let Some(alias) = self.pmu.alias(name).filter(|_| typed) else { return Ok(false) };
        let (pmu, hybrid, all) = (self.pmu, self.hybrid, self.all);
        let spec = std::mem::replace(&mut self.spec, EventSpec::default_event());
        let mut inner = PmuEvent { pmu, hybrid, all, spec, probe: Draft::default(), replaces: self.replaces };
        let rate = inner.spec.terms.rate.take();
        let at_term = |(_, problem): Wrong| term.wrong(problem);
        for part in terms::split(Piece { text: &alias.terms, at: 0 }).map_err(at_term)? {
            // The user's own terms are for the parameters only.
            inner.take_owned(&part).map_err(at_term)?;
        }
        // A period that the name stands for is what is usual; what the user says of any event outdoes it.
        if let Some(Rate::Period(period)) = std::mem::replace(&mut inner.spec.terms.rate, rate) {
            inner.spec.default_period = Some(period);
        }
        self.spec = inner.spec;
        self.spec.unit = alias.unit.or(self.spec.unit.take());
        self.spec.scale = alias.scale.or(self.spec.scale.take());
        Ok(true)
    }

    /// A term of a named event; its text lives only as long as the reading of it.
    fn take_owned(&mut self, term: &Term<'_>) -> Result<(), Wrong> {
        if terms::take(term, &mut self.spec)? || terms::take_word(term, &mut self.spec)? {
            return Ok(());
        }
        match self.pmu.format(term.key).map_err(|why| term.wrong(Problem::Sysfs(why)))? {
            Some(format) => self.formatted(format, term),
            None => Err(self.unknown(term)),
        }
    }

    /// Whether a named event among the terms has a parameter of this name.
    fn is_parameter(&self, name: &str) -> bool {
        let aliases = self.all.iter().filter_map(|term| self.pmu.alias(term.value.unwrap_or(term.key)));
        { aliases }.any(|alias| alias.terms.split(',').any(|term| term.trim() == format!("{name}=?")))
    }

    /// A generalized event, or a raw one, on a core.
    fn general(&mut self, name: &str) -> bool {
        if let Some(config) = names::raw(name) {
            self.spec.config = config;
            return true;
        }
        let known = names::find(name).filter(|(kind, _)| self.pmu.core && *kind != EventType::SOFTWARE);
        let Some((kind, config)) = known else { return false };
        self.spec.kind = kind;
        self.spec.config = config | if self.hybrid { u64::from(self.pmu.kind) << PMU_TYPE_SHIFT } else { 0 };
        true
    }

    /// `@NAME`: where the data of an AUX area goes (CoreSight's sinks): its number is the low half of config2.
    fn sink(&mut self, name: &str, term: &Term<'_>) -> Result<(), Wrong> {
        if let Some(number) = self.pmu.sink(name) {
            self.spec.config2 |= u64::from(number);
            return Ok(());
        }
        let sinks = self.pmu.sinks();
        let known = if sinks.is_empty() { "there are none".to_owned() } else { format!("@{}", sinks.join(" @")) };
        Err(term.wrong(Problem::UnknownTerm {
            term: term.key.to_owned(),
            of: format!("PMU '{}', or no sink of it", self.pmu.name),
            near: nearest(name, sinks.iter().map(String::as_str)).map(|near| format!("@{near}")),
            known,
        }))
    }

    fn unknown(&self, term: &Term<'_>) -> Wrong {
        let own = probe::own_terms(&self.pmu.name).iter().chain(WORDS).map(|term| (*term).to_owned());
        let known: Vec<String> = own.chain(self.pmu.formats()).collect();
        let named = self.pmu.aliases();
        let table = self.pmu.table().map(|(name, _)| name);
        let all = known.iter().chain(&named).map(String::as_str).chain(table).chain(COMMON.iter().copied());
        term.wrong(Problem::UnknownTerm {
            term: term.key.to_owned(),
            of: format!("PMU '{}'", self.pmu.name),
            near: nearest(term.key, all),
            known: known.iter().map(String::as_str).chain(COMMON.iter().copied()).collect::<Vec<_>>().join(" "),
        })
    }
}
