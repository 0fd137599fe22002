//! Kinds of waits in one worker.

use recrep_format::abi::context;
use recrep_format::bytes::U64s;
use recrep_format::record::Sample;
use rustc_hash::FxHashMap;

use crate::timeline::{KernelFunction, KernelPart, WaitKind};
use crate::tracepoints::{KernelTexts as _, RecordedKernel};

/// Finds what threads wait for by the kernel's part of the callchains of their switches.
pub(super) struct WaitKinds<'f> {
    kernel: RecordedKernel<'f>,
    /// What functions say, by address; `None` of those without a name.
    known: FxHashMap<u64, Option<KernelFunction>>,
}

impl<'f> WaitKinds<'f> {
    pub(super) fn new(kernel: RecordedKernel<'f>) -> Self {
        Self { kernel, known: FxHashMap::default() }
    }

    /// Returns the kind of the wait that a switch begins.
    pub(super) fn kind(&mut self, sample: &Sample<'_, '_>) -> WaitKind {
        let Self { kernel, known } = self;
        let mut part = KernelPart::default();
        let chain = sample.callchain().ok().flatten();
        let words = chain.iter().flat_map(U64s::iter);
        for address in words.take_while(|word| *word != context::USER) {
            let function = *known.entry(address).or_insert_with(|| {
                let name = kernel.function(address).filter(|_| address < context::MAX);
                name.map(|(name, _)| KernelFunction::of(&name))
            });
            if let Some(function) = function {
                part.add(function);
            }
        }
        part.wait_kind()
    }
}
