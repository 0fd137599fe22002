//! Callchains of samples: what all workers of a pass share, and what each reads them with.

use recrep_format::abi::{AttrFlags, BranchSampleType};
use recrep_format::attr::AttrEntry;
use recrep_format::record::Sample;

use super::session::Session;
use crate::callchain::{
    ChainChecks, ChainLimit, ChainOrigin, ChainSources, Deferred, FrameFields, FrameFinder,
    FrameWord, RecordedChains, StackUnwinder, deferred_chains, for_each_frame,
};
use crate::symbols::Functions;
use crate::timeline::{SampleContext, Timeline};

/// How the chains of a file are read, and what their frames are told apart by.
pub(crate) struct ChainSetup<'s> {
    pub timeline: &'s Timeline,
    /// Parts of chains that were recorded after their samples.
    pub deferred: Deferred<'s>,
    /// Number of frames at which chains are cut, and from which end.
    pub most: ChainLimit,
    /// Unwinder of copied stacks; without it, these are ignored.
    pub unwinding: Option<StackUnwinder<'s>>,
    /// `true` if nothing marks missing callers, and recorded addresses are looked up as in perf.
    pub as_recorded: bool,
    /// Fields that distinguish frames.
    pub fields: FrameFields,
    /// Functions that replace the addresses of sampled instructions.
    pub functions: Option<&'s Functions<'s>>,
    /// `true` if functions replace the addresses of callers, too.
    pub names_callers: bool,
    /// Checks of recorded chains.
    pub checks: Option<ChainChecks<'s>>,
}

impl<'s> ChainSetup<'s> {
    /// Sets up chains as recorded, of addresses.
    pub(crate) fn new(session: &'s Session<'s>, timeline: &'s Timeline, most: ChainLimit) -> Self {
        Self {
            timeline,
            deferred: deferred_chains(session.file, &session.split.side_band),
            most,
            unwinding: None,
            as_recorded: true,
            fields: FrameFields::default(),
            functions: None,
            names_callers: false,
            checks: None,
        }
    }

    /// Returns what one worker reads chains with.
    pub(crate) fn reader(&'s self) -> ChainReader<'s> {
        let recorded = RecordedChains { deferred: &self.deferred, most: self.most };
        ChainReader {
            sources: ChainSources::new(recorded, self.unwinding.as_ref(), self.as_recorded),
            finder: FrameFinder::new(
                self.timeline,
                self.fields,
                self.functions,
                self.names_callers,
                self.checks,
            ),
            words: Vec::new(),
        }
    }
}

/// Reads the chains of one worker's samples.
pub(crate) struct ChainReader<'s> {
    pub sources: ChainSources<'s>,
    /// Distinct frames, and distinct lists of callers.
    pub finder: FrameFinder<'s>,
    /// The chain at hand.
    pub words: Vec<u64>,
}

impl ChainReader<'_> {
    /// Replaces `frames` by those of a sample, innermost first; by none if its record ends within
    /// the chain.
    pub(crate) fn frames(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
        frames: &mut Vec<FrameWord>,
    ) {
        frames.clear();
        self.words.clear();
        if self.sources.chain(sample, origin, at, &mut self.words).is_ok() {
            for_each_frame(sample.cpu_mode(), &self.words, |frame| frames.push(frame));
        }
    }
}

/// Returns whether inlined functions become frames unless the user asks otherwise: as in perf where
/// stacks `are_unwound`; where rec unwound, its samples have chains.
pub(crate) fn shows_inlined(session: &Session<'_>, are_unwound: bool) -> bool {
    let are_copied = session.file.attrs.entries().iter().any(|AttrEntry { attr, .. }| {
        ChainOrigin::of(attr) == ChainOrigin::Copied
            && attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_USER)
    });
    are_unwound && are_copied || session.input.shows_inlined()
}

/// Returns whether callchains come from the call stack of the hardware (LBR): their frames are
/// calls, not return addresses.
pub(crate) fn are_hardware_calls(session: &Session<'_>) -> bool {
    let mut entries = session.file.attrs.entries().iter();
    entries.any(|entry| entry.attr.branch_sample_type.contains(BranchSampleType::CALL_STACK))
}
