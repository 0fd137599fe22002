//! Which samples are listed: the filters in the terms of one file.

use recrep_format::attrs::AttrIndex;

use super::query::{ScriptFilters, Symbols};
use crate::pipeline::session::Session;
use crate::query::times::{Interval, Times};

/// What a sample is asked about.
pub(super) struct Asked<'a> {
    pub(super) time: Option<u64>,
    pub(super) cpu: Option<u32>,
    pub(super) comm: &'a str,
    pub(super) tid: [i32; 2],
    /// The place of its module.
    pub(super) module: Option<usize>,
}

/// The filters, compiled.
pub(super) struct SampleFilter<'q> {
    filters: &'q ScriptFilters,
    /// Whether each module is one of those asked for.
    modules: Option<Vec<bool>>,
    times: Option<Vec<Interval>>,
    on: Option<AttrIndex>,
    off: Option<AttrIndex>,
    /// Whether samples are left out until one switches them on.
    is_off: bool,
}

impl<'q> SampleFilter<'q> {
    /// # Errors
    /// An event that is to switch is not in the file.
    pub(super) fn new(filters: &'q ScriptFilters, session: &Session<'_>) -> anyhow::Result<Self> {
        let modules = filters.dsos.as_ref().map(|wanted| {
            let is_wanted = |name: &str| wanted.contains(name);
            session.side_band.modules.iter().map(|m| is_wanted(&m.name()) || is_wanted(&m.long_name())).collect()
        });
        let times = filters.times.as_ref().map(|times| match times {
            Times::Absolute(_) => times.stretches(0, 0),
            Times::Shares(_) => {
                let (first, last) = session.sampled_between();
                times.stretches(first, last)
            }
        });
        let (on, off) =
            (event("--switch-on", &filters.switch_on, session)?, event("--switch-off", &filters.switch_off, session)?);
        Ok(Self { filters, modules, times, on, off, is_off: on.is_some() })
    }

    /// Whether records other than samples are listed that come from this CPU.
    pub(super) fn lists_records_of(&self, cpu: Option<u32>) -> bool {
        let cpu = cpu.filter(|cpu| *cpu != u32::MAX);
        self.filters.cpus.as_ref().zip(cpu).is_none_or(|(wanted, cpu)| wanted.contains(&cpu))
    }

    /// Whether a sample is listed, as far as that can be said without its function.
    pub(super) fn passes(&self, asked: &Asked<'_>) -> bool {
        let filters = self.filters;
        let time = asked.time.unwrap_or(u64::MAX);
        let [pid, tid] = asked.tid;
        self.times.as_ref().is_none_or(|all| all.iter().any(|(from, to)| (*from..=*to).contains(&time)))
            && self.lists_records_of(asked.cpu)
            && filters.comms.as_ref().is_none_or(|wanted| wanted.contains(asked.comm))
            && filters.pids.as_ref().is_none_or(|wanted| wanted.contains(&pid))
            && filters.tids.as_ref().is_none_or(|wanted| wanted.contains(&tid))
            && self
                .modules
                .as_ref()
                .is_none_or(|wanted| asked.module.and_then(|module| wanted.get(module)).copied().unwrap_or(false))
    }

    /// The functions that are asked for.
    pub(super) fn symbols(&self) -> Option<&'q Symbols> {
        self.filters.symbols.as_ref()
    }

    /// Whether a sample of this event is listed where events switch samples on and off.
    pub(super) fn is_on(&mut self, event: AttrIndex) -> bool {
        if self.is_off && self.on.is_some() {
            if self.on != Some(event) {
                return false;
            }
            self.is_off = false;
            return self.filters.show_switches;
        }
        if self.off == Some(event) && !self.is_off {
            self.is_off = true;
            return self.filters.show_switches;
        }
        // Without an event that switches on, nothing comes after the one that switches off.
        !self.is_off
    }
}

fn event(flag: &str, name: &Option<String>, session: &Session<'_>) -> anyhow::Result<Option<AttrIndex>> {
    let Some(name) = name else { return Ok(None) };
    let found = session.events.iter().position(|event| event == name);
    match found {
        Some(place) => Ok(Some(AttrIndex(place))),
        None => anyhow::bail!("{flag}: no event is called `{name}`; there are: {}", session.events.join(", ")),
    }
}
