//! Functions and strings of the recorded kernel, for print fmts.

use super::eval::Kernel;
use super::formats::Formats;
use crate::symbols::Functions;
use crate::timeline::{Moment, Timeline};

/// Functions of the kernel and its modules as mapped at the end of the recording, and the kernel's strings. Symbols are
/// loaded on first use.
#[derive(Debug)]
pub struct RecordedKernel<'s> {
    formats: &'s Formats,
    timeline: &'s Timeline,
    functions: &'s Functions<'s>,
}

impl<'s> RecordedKernel<'s> {
    /// Creates it without loading any symbols.
    pub fn new(formats: &'s Formats, timeline: &'s Timeline, functions: &'s Functions<'s>) -> Self {
        Self { formats, timeline, functions }
    }
}

impl Kernel for RecordedKernel<'_> {
    fn function(&self, address: u64) -> Option<(String, u64)> {
        let mapping = self.timeline.kernel_mapping(address, Moment::END)?;
        let loaded = self.functions.loaded(mapping.module?.0 as usize)?;
        let address = mapping.relative(address);
        let symbol = loaded.lookup(address)?;
        Some((loaded.shown(symbol.name).into_owned(), address.wrapping_sub(symbol.start)))
    }

    fn string(&self, address: u64) -> Option<&[u8]> {
        self.formats.string(address)
    }
}
