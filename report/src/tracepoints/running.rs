//! Functions and strings of the recorded kernel, for print fmts.

use recrep_format::abi::CpuMode;

use super::eval::Kernel;
use super::formats::Formats;
use crate::symbols::Functions;
use crate::timeline::{Moment, Place, Timeline};

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
        let (Place { module, address, .. }, _) = self.timeline.place_in(CpuMode::Kernel, None, address, Moment::END);
        let loaded = self.functions.loaded(module?.0 as usize)?;
        let symbol = loaded.lookup(address)?;
        Some((loaded.shown(symbol.name).into_owned(), address.wrapping_sub(symbol.start)))
    }

    fn string(&self, address: u64) -> Option<&[u8]> {
        self.formats.string(address)
    }
}
