//! The tracepoints of a file: the format of each event, and the recorded kernel's functions and
//! strings.

use recrep_format::abi::{CpuMode, EventType};
use recrep_format::feature::tracing::Tracing;
use recrep_format::read::File;
use rustc_hash::FxHashMap;

use super::eval::KernelTexts;
use super::event::Tracepoint;
use crate::query::Warning;
use crate::symbols::Functions;
use crate::timeline::{Moment, Place, Timeline};

/// The formats of a file's tracepoints, and the kernel's strings.
#[derive(Debug, Default)]
pub(crate) struct Formats {
    /// By the index of the event in the file; `None` if it is not a tracepoint or the file lacks
    /// its format.
    events: Vec<Option<Tracepoint>>,
    strings: FxHashMap<u64, Vec<u8>>,
    /// Warnings about parts that could not be read.
    pub warnings: Vec<Warning>,
}

impl Formats {
    /// Reads the formats and strings in the file. Only the formats of the file's own events are
    /// parsed.
    pub(crate) fn read(file: &File<'_>) -> Self {
        let attrs = file.attrs.entries().iter().map(|entry| &entry.attr);
        let ids = attrs.map(|attr| (attr.kind == EventType::TRACEPOINT).then_some(attr.config));
        let ids: Vec<Option<u64>> = ids.collect();
        let mut formats = Self { events: vec![None; ids.len()], ..Self::default() };
        if ids.iter().all(Option::is_none) {
            return formats;
        }
        let tracing: Tracing<'_> = match file.feature() {
            Some(Ok(tracing)) => tracing,
            Some(Err(error)) => {
                formats.warn(&error);
                return formats;
            }
            None => {
                let message = "the file lacks the formats of its tracepoints, so their fields \
                               cannot be shown";
                formats.warnings.push(Warning::new("no-tracing-data", message));
                return formats;
            }
        };
        let long_size = usize::from(tracing.long_size);
        for format in tracing.events() {
            match format {
                Ok(format) if ids.contains(&Some(format.id)) => {
                    let id = Some(format.id);
                    let event = Tracepoint::new(format, tracing.endian, long_size);
                    for (slot, _) in
                        formats.events.iter_mut().zip(&ids).filter(|(_, have)| **have == id)
                    {
                        *slot = Some(event.clone());
                    }
                }
                Ok(_) => {}
                Err(error) if formats.warnings.is_empty() => formats.warn(&error),
                Err(_) => {}
            }
        }
        formats.strings =
            tracing.strings().map(|(address, text)| (address, text.to_vec())).collect();
        formats
    }

    fn warn(&mut self, error: &recrep_format::error::Error) {
        let message = format!("cannot read the formats of tracepoints: {}", error.kind);
        let warning = Warning::new("bad-tracing-data", message);
        self.warnings.push(Warning { offset: Some(error.offset), ..warning });
    }

    /// Returns the tracepoint with this index among the file's events.
    pub(crate) fn event(&self, place: usize) -> Option<&Tracepoint> {
        self.events.get(place)?.as_ref()
    }

    /// Returns whether all events of a file are tracepoints whose formats it has.
    pub(crate) fn cover_all_events(file: &File<'_>) -> bool {
        let entries = file.attrs.entries();
        let are_tracepoints = entries.iter().all(|entry| entry.attr.kind == EventType::TRACEPOINT);
        are_tracepoints
            && !entries.is_empty()
            && Self::read(file).events.iter().all(Option::is_some)
    }
}

/// Functions of the kernel and its modules as mapped at the end of the recording, and the kernel's
/// strings. Symbols are loaded on first use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedKernel<'s> {
    pub formats: &'s Formats,
    pub timeline: &'s Timeline,
    pub functions: &'s Functions<'s>,
}

impl KernelTexts for RecordedKernel<'_> {
    fn function(&self, address: u64) -> Option<(String, u64)> {
        let (Place { module, address, .. }, _) =
            self.timeline.place_in(CpuMode::Kernel, None, address, Moment::END);
        let loaded = self.functions.loaded(module?.0 as usize)?;
        let symbol = loaded.table.lookup(address)?;
        Some((loaded.shown(symbol.name).into_owned(), address.wrapping_sub(symbol.start)))
    }

    fn string(&self, address: u64) -> Option<&[u8]> {
        self.formats.strings.get(&address).map(Vec::as_slice)
    }
}
