//! Filters of samples, compiled for one file.

use recrep_format::attr::AttrIndex;

use super::args::Switches;
use crate::query::SampleFilters;
use crate::samples::{SampleFilter, Session};

pub(super) struct ListingFilter<'q> {
    pub(super) samples: SampleFilter<'q>,
    /// Event whose samples switch samples on; until the first of them, samples are left out.
    pub(super) on: Option<AttrIndex>,
    /// Event whose samples switch samples off.
    pub(super) off: Option<AttrIndex>,
    /// `true` if the samples of these two events are printed too.
    shows_switches: bool,
}

impl<'q> ListingFilter<'q> {
    /// # Errors
    /// Returns an error if the event of `--switch-on` or `--switch-off` is not in the file.
    pub(super) fn new(
        filters: &'q SampleFilters,
        switches: &Switches,
        session: &Session<'_>,
    ) -> anyhow::Result<Self> {
        let on = find_event("--switch-on", &switches.switch_on, session)?;
        let off = find_event("--switch-off", &switches.switch_off, session)?;
        let samples = SampleFilter::new(session, filters, None, None);
        let samples = SampleFilter { takes_unknown: true, ..samples };
        Ok(Self { samples, on, off, shows_switches: switches.show_on_off_events })
    }

    /// Returns whether a sample of this event is listed where events switch samples on and off.
    pub(super) fn is_on(&self, event: AttrIndex, is_off: &mut bool) -> bool {
        if *is_off && self.on.is_some() {
            if self.on != Some(event) {
                return false;
            }
            *is_off = false;
            return self.shows_switches;
        }
        if self.off == Some(event) && !*is_off {
            *is_off = true;
            return self.shows_switches;
        }
        // Without an event that switches on, nothing comes after the one that switches off.
        !*is_off
    }
}

fn find_event(
    flag: &str,
    name: &Option<String>,
    session: &Session<'_>,
) -> anyhow::Result<Option<AttrIndex>> {
    let Some(name) = name else { return Ok(None) };
    match session.events.iter().position(|event| event == name) {
        Some(index) => Ok(Some(AttrIndex(index))),
        None => anyhow::bail!(
            "{flag}: unknown event `{name}`; events of the file: {}",
            session.events.join(", ")
        ),
    }
}
