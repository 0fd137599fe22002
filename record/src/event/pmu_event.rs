//! Events given by terms of a PMU: `cpu/event=0x3c,umask=0x1/`, `cpu/cpu-cycles/`, `cs_etm/@sink/`.
//!
//! A term is the first of these that matches: a common term; a word of the attr (`config1=`); a
//! term in the PMU's `format` directory; a named event of the PMU, which stands for terms; on a
//! core PMU, a generalized event or `rNNN`.

use recrep_console::nearest::nearest;
use recrep_format::abi::EventType;
use recrep_format::attr::Attr;

use super::error::Problem;
use super::names;
use super::probe::{self, Draft};
use super::spec::{EventSpec, PmuUse};
use super::terms::{self, COMMON, Term, WORDS};
use super::text::{self, Span, Wrong};
use crate::event::sampling::Rate;
use crate::machine::pmu::{Format, Pmu, intel_pt};

/// Position of the PMU's type in the config of a generalized event on hybrid machines
/// (`PERF_PMU_TYPE_SHIFT`).
pub(super) const PMU_TYPE_SHIFT: u32 = 32;

/// Returns the properties of a PMU that its events need.
pub(super) fn pmu_use(pmu: &Pmu) -> PmuUse {
    PmuUse {
        name: pmu.name.clone(),
        cpus: pmu.cpus.clone(),
        uncore: pmu.uncore(),
        has_aux: pmu.has_aux(),
        address_filters: pmu.number("nr_addr_filters", 10).unwrap_or(0),
    }
}

/// Parses an event of a PMU from its terms.
pub(super) fn parse(
    pmu: &Pmu,
    name: &str,
    at: usize,
    terms: &[Term<'_>],
    hybrid: bool,
) -> Result<EventSpec, Wrong> {
    let base =
        EventSpec { pmu: Some(pmu_use(pmu)), ..EventSpec::numbered(name, EventType(pmu.kind), 0) };
    let mut draft =
        PmuEvent { pmu, hybrid, all: terms, spec: base, probe: Draft::default(), replaces: false };
    if pmu.name == "intel_pt" {
        draft.replaces = true;
        for (term, value) in intel_pt::defaults(pmu) {
            if let Ok(Some(format)) = pmu.format(term) {
                draft.put(format, value);
            }
        }
    }
    // Words of the attr are applied first, regardless of the order, so that terms modify them.
    for term in terms.iter().filter(|term| WORDS.contains(&term.key)) {
        terms::take_word(term, &mut draft.spec)?;
    }
    for term in terms.iter().filter(|term| !WORDS.contains(&term.key)) {
        draft.take(term, true)?;
    }
    if text::is_probe(&pmu.name) {
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
    /// `true` if a term replaces its bits (Intel PT) or adds to them (all other PMUs), as in perf.
    replaces: bool,
}

impl<'a> PmuEvent<'a> {
    /// Applies a term; `typed` if the user gave it, instead of a named event.
    fn take(&mut self, term: &Term<'a>, typed: bool) -> Result<(), Wrong> {
        if text::is_probe(&self.pmu.name) && self.probe.take(&self.pmu.name, term)? {
            return Ok(());
        }
        if let Some(sink) = term.key.strip_prefix('@') {
            return self.sink(sink, term);
        }
        let format = self.pmu.format(term.key).map_err(|why| term.wrong(Problem::Sysfs(why)))?;
        // perf's common terms take precedence over the PMU's terms, and those over the attr's
        // words.
        if terms::take(term, &mut self.spec)? || (!typed && terms::take_word(term, &mut self.spec)?)
        {
            return Ok(());
        }
        match (format, term.value) {
            (Some(_), Some(value))
                if term.key.eq_ignore_ascii_case("event") && self.named(value, term, typed)? =>
            {
                Ok(())
            }
            (Some(format), _) => self.formatted(format, term),
            // A parameter of a named event, which has been used already.
            (None, Some(_)) if typed && self.is_parameter(term.key) => Ok(()),
            (None, None) if self.named(term.key, term, typed)? || self.general(term.key) => Ok(()),
            _ => Err(self.unknown(term)),
        }
    }

    fn put(&mut self, format: Format, value: u64) {
        let spec = &mut self.spec;
        let (config, config1) = (spec.config, spec.config1);
        let (config2, config3, config4) = (spec.config2, spec.config3, spec.config4);
        let mut attr = Attr { config, config1, config2, config3, config4, ..Attr::default() };
        if !self.replaces {
            attr = Attr::default();
        }
        format.put(value, &mut attr);
        if self.replaces {
            (spec.config, spec.config1, spec.config2) = (attr.config, attr.config1, attr.config2);
            (spec.config3, spec.config4) = (attr.config3, attr.config4);
        } else {
            spec.config |= attr.config;
            spec.config1 |= attr.config1;
            spec.config2 |= attr.config2;
            spec.config3 |= attr.config3;
            spec.config4 |= attr.config4;
        }
    }

    fn formatted(&mut self, format: Format, term: &Term<'_>) -> Result<(), Wrong> {
        let value = match term.value {
            None if format.is_flag() => 1,
            // A parameter, whose value the user gives as a separate term.
            Some("?") => {
                let given = self.all.iter().find(|other| other.key == term.key);
                let given = given.ok_or_else(|| {
                    term.wrong(Problem::NoValue { term: term.key.to_owned(), wanted: "NUMBER" })
                })?;
                given.number()?
            }
            _ => term.number()?,
        };
        if value > format.most() {
            let term_name = term.key.to_owned();
            return Err(term.wrong(Problem::TooLarge {
                term: term_name,
                value,
                most: format.most(),
            }));
        }
        self.put(format, value);
        Ok(())
    }

    /// Applies the terms of a named event of the PMU. Returns whether there is one.
    fn named(&mut self, name: &str, term: &Term<'_>, typed: bool) -> Result<bool, Wrong> {
        // Named events do not nest.
        let Some(alias) = self.pmu.alias(name).filter(|_| typed) else { return Ok(false) };
        let (pmu, hybrid, all) = (self.pmu, self.hybrid, self.all);
        let spec = std::mem::replace(&mut self.spec, EventSpec::default_event());
        let mut inner =
            PmuEvent { pmu, hybrid, all, spec, probe: Draft::default(), replaces: self.replaces };
        let rate = inner.spec.terms.rate.take();
        let at_term = |(_, problem): Wrong| term.wrong(problem);
        for part in terms::split(Span { text: &alias.terms, at: 0 }).map_err(at_term)? {
            // The user's terms only supply parameters here.
            inner.take_owned(&part).map_err(at_term)?;
        }
        // A period that the name stands for is what is usual; what the user says of any event
        // outdoes it.
        if let Some(Rate::Period(period)) = std::mem::replace(&mut inner.spec.terms.rate, rate) {
            inner.spec.default_period = Some(period);
        }
        self.spec = inner.spec;
        self.spec.unit = alias.unit.or(self.spec.unit.take());
        self.spec.scale = alias.scale.or(self.spec.scale.take());
        Ok(true)
    }

    /// Applies a term of a named event, whose text is borrowed only for this call.
    fn take_owned(&mut self, term: &Term<'_>) -> Result<(), Wrong> {
        if terms::take(term, &mut self.spec)? || terms::take_word(term, &mut self.spec)? {
            return Ok(());
        }
        match self.pmu.format(term.key).map_err(|why| term.wrong(Problem::Sysfs(why)))? {
            Some(format) => self.formatted(format, term),
            None => Err(self.unknown(term)),
        }
    }

    /// Returns whether a named event among the terms has a parameter of this name.
    fn is_parameter(&self, name: &str) -> bool {
        let aliases =
            self.all.iter().filter_map(|term| self.pmu.alias(term.value.unwrap_or(term.key)));
        { aliases }
            .any(|alias| alias.terms.split(',').any(|term| term.trim() == format!("{name}=?")))
    }

    /// Applies a generalized or raw event on a core PMU. Returns whether it is one.
    fn general(&mut self, name: &str) -> bool {
        if let Some(config) = names::raw(name) {
            self.spec.config = config;
            return true;
        }
        let known =
            names::find(name).filter(|(kind, _)| self.pmu.core && *kind != EventType::SOFTWARE);
        let Some((kind, config)) = known else { return false };
        self.spec.kind = kind;
        self.spec.config =
            config | if self.hybrid { u64::from(self.pmu.kind) << PMU_TYPE_SHIFT } else { 0 };
        true
    }

    /// Applies `@NAME`, a sink for the data of an AUX area (CoreSight). Its number is the low half
    /// of config2.
    fn sink(&mut self, name: &str, term: &Term<'_>) -> Result<(), Wrong> {
        if let Some(number) = self.pmu.sink(name) {
            self.spec.config2 |= u64::from(number);
            return Ok(());
        }
        let sinks = self.pmu.sinks();
        let known =
            if sinks.is_empty() { "no sinks".to_owned() } else { format!("@{}", sinks.join(" @")) };
        Err(term.wrong(Problem::UnknownTerm {
            term: term.key.to_owned(),
            of: format!("PMU '{}'", self.pmu.name),
            near: nearest(name, sinks.iter().map(String::as_str)).map(|near| format!("@{near}")),
            known,
        }))
    }

    fn unknown(&self, term: &Term<'_>) -> Wrong {
        let own =
            probe::own_terms(&self.pmu.name).iter().chain(WORDS).map(|term| (*term).to_owned());
        let known: Vec<String> = own.chain(self.pmu.formats()).collect();
        let named = self.pmu.aliases();
        let table = self.pmu.table().map(|(name, _)| name);
        let all = known
            .iter()
            .chain(&named)
            .map(String::as_str)
            .chain(table)
            .chain(COMMON.iter().copied());
        term.wrong(Problem::UnknownTerm {
            term: term.key.to_owned(),
            of: format!("PMU '{}'", self.pmu.name),
            near: nearest(term.key, all),
            known: known
                .iter()
                .map(String::as_str)
                .chain(COMMON.iter().copied())
                .collect::<Vec<_>>()
                .join(" "),
        })
    }
}
