//! Callchains in one worker.

use recrep_format::abi::{CpuMode, SampleType, context};
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::record::{Sample, SampleFields};

use super::task::Scan;
use crate::callchain::{
    ChainLimit, ChainOrigin, ChainRef, ChainSources, FrameFinder, History, RecordedChains, callers,
    context_marker, is_sound,
};
use crate::query::MAX_STACK;
use crate::timeline::{Moment, SampleContext, StandIn};

/// Finds the callchains of one worker's samples.
pub(super) struct ChainCounter<'f> {
    /// Distinct frames, and distinct lists of callers.
    pub(super) finder: FrameFinder<'f>,
    pub(super) sources: ChainSources<'f>,
    whole: bool,
    /// `true` if each chain begins with the sampled instruction.
    begins: bool,
    /// Number of frames at which chains are cut.
    most: usize,
    /// `Some` if branches precede the callers (`--branch-history`).
    history: Option<History>,
    words: Vec<u64>,
    /// Number of samples whose record ends within the chain.
    pub(super) torn: u64,
}

impl<'f> ChainCounter<'f> {
    pub(super) fn new(scan: &Scan<'f>) -> Self {
        let Scan { timeline, recorded, unwinding, early, whole, placed, checks, .. } = *scan;
        let chains = &scan.query.chains;
        Self {
            // Inlined functions and positions are found by address, later.
            finder: FrameFinder::new(timeline, placed, early, !whole, checks),
            sources: ChainSources::new(recorded, unwinding, chains.as_recorded),
            whole,
            begins: scan.query.needs.addresses,
            most: recorded.most.frames.min(MAX_STACK),
            history: chains.branches.then(|| History::new(recorded.most, chains.shows_branches())),
            words: Vec::new(),
            torn: 0,
        }
    }

    /// Finds a sample's chain and returns the word that refers to it; it may be that of a frame
    /// that stands in for another stack.
    #[inline]
    pub(super) fn of(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
        stand_in: Option<StandIn>,
    ) -> u64 {
        self.words.clear();
        let words = &mut self.words;
        let found = match &mut self.history {
            Some(history) if origin != ChainOrigin::Calls => {
                with_history(history, &mut self.sources, sample, origin, at, words)
            }
            _ => self.sources.chain(sample, origin, at, words),
        };
        if found.is_err() {
            self.torn += 1;
            return ChainRef::default().pack();
        }
        // Of branches and callers, none are next to each other for certain.
        if origin == ChainOrigin::Recorded && self.history.is_none() {
            self.finder.check(at, self.most, &mut self.words);
        }
        match stand_in {
            Some(frame) => self.standing_in(frame, at),
            None => self.numbered(sample.cpu_mode(), sample.ip(), at),
        }
    }

    /// Returns the chain of a frame without callers that stands in for a stack.
    pub(super) fn alone(&mut self, frame: StandIn, at: Moment) -> u64 {
        self.words.clear();
        self.standing_in(frame, SampleContext { space: None, moment: at })
    }

    /// Returns the chain of a frame that stands in for a stack; the words are those of its callers.
    fn standing_in(&mut self, frame: StandIn, at: SampleContext) -> u64 {
        self.words.splice(0..0, [context::KERNEL, frame.address]);
        self.numbered(CpuMode::Kernel, Some(frame.address), at)
    }

    /// Returns the chain of the words; the instruction `ip` is only part of it if instructions
    /// stay in their chains.
    #[inline]
    fn numbered(&mut self, mode: CpuMode, ip: Option<u64>, at: SampleContext) -> u64 {
        if self.begins
            && let Some(ip) = ip
            && callers(mode, Some(ip), &mut self.words.clone()).is_none()
        {
            self.words.splice(0..0, [context_marker(mode), ip]);
        }
        let stays = self.whole || self.history.is_some();
        let left = if stays { None } else { callers(mode, ip, &mut self.words) };
        let len = self.words.len();
        let words = self.words.get(len - left.unwrap_or(len)..).unwrap_or_default();
        ChainRef { callers: self.finder.chain(at.space, at.moment, words), own: left.is_some() }
            .pack()
    }
}

/// Writes a sample's chain into `words`, preceded by its branches; leaves `words` empty if the
/// chain is damaged.
fn with_history(
    history: &mut History,
    sources: &mut ChainSources<'_>,
    sample: &Sample<'_, '_>,
    origin: ChainOrigin,
    at: SampleContext,
    words: &mut Vec<u64>,
) -> Result<()> {
    let mut fields = SampleFields::default();
    sample.walk(const { UpTo::field(SampleType::BRANCH_STACK) }, &mut fields)?;
    let is_unwound = sources.unwinds(origin);
    if is_unwound {
        sources.chain(sample, origin, at, words)?;
    } else if fields.callchain.is_some() {
        // How much of it is kept depends on the branches.
        let most = ChainLimit { frames: usize::MAX, ..sources.recorded.most };
        RecordedChains { most, ..sources.recorded }.chain(sample, words)?;
        if !is_sound(words) {
            words.clear();
            return Ok(());
        }
    }
    if let Some(stack) = fields.branch_stack {
        history.put(stack.entries(), !is_unwound, words);
    } else {
        history.put(std::iter::empty(), !is_unwound, words);
    }
    Ok(())
}
