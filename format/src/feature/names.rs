//! Names of the events of a recording, from its features.

use rustc_hash::FxHashMap;

use super::event_desc::EventDesc;
use super::simpleperf::SimpleperfMetaInfo;
use super::tracing::Tracing;
use crate::abi::EventType;
use crate::attr::{AttrEntry, AttrIndex, AttrTable};

impl AttrTable {
    /// Takes the events' names from EVENT_DESC: by id where it has ids, by position elsewhere.
    /// Tracepoints that it does not name take theirs from TRACING_DATA.
    pub fn take_names(&mut self, desc: Option<&EventDesc<'_>>, tracing: Option<&Tracing<'_>>) {
        let described = desc.iter().flat_map(|desc| desc.events.iter().enumerate());
        for (position, event) in described.filter(|(_, event)| !event.name.as_bytes().is_empty()) {
            let by_id = event.ids.iter().find_map(|id| self.by_id(id));
            self.set_name(by_id.unwrap_or(AttrIndex(position)), event.name.to_text().into_owned());
        }
        let is_unnamed =
            |entry: &AttrEntry| entry.name.is_none() && entry.attr.kind == EventType::TRACEPOINT;
        let Some(tracing) = tracing.filter(|_| self.entries().iter().any(is_unnamed)) else {
            return;
        };
        let names: FxHashMap<_, _> = tracing
            .events()
            .flatten()
            .map(|event| (event.id, format!("{}:{}", event.system, event.name)))
            .collect();
        for index in (0..self.entries().len()).map(AttrIndex) {
            let name = self
                .get(index)
                .filter(|entry| is_unnamed(entry))
                .and_then(|entry| names.get(&entry.attr.config));
            if let Some(name) = name {
                self.set_name(index, name.clone());
            }
        }
    }

    /// Takes the names of events without one from the facts that simpleperf recorded, by type and
    /// config.
    pub fn take_simpleperf_names(&mut self, facts: Option<&SimpleperfMetaInfo<'_>>) {
        let Some(facts) = facts else { return };
        for index in (0..self.entries().len()).map(AttrIndex) {
            let unnamed = self.get(index).filter(|entry| entry.name.is_none());
            if let Some(name) = unnamed.and_then(|entry| facts.event_name(&entry.attr)) {
                self.set_name(index, name);
            }
        }
    }
}
