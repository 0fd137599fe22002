//! Callchains in one worker.

use recrep_format::abi::{CpuMode, SampleType, context};
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::record::{Sample, SampleFields};

use super::task::Scan;
use crate::callchain::{
    ChainLimit, ChainOrigin, ChainRef, ChainSources, History, RecordedChains, callers,
    context_marker, is_sound, is_user_marker,
};
use crate::query::MAX_STACK;
use crate::samples::ChainReader;
use crate::timeline::{Moment, SampleContext, StandIn};

/// Finds the callchains of one worker's samples.
pub(super) struct ChainCounter<'f> {
    pub(super) reader: ChainReader<'f>,
    /// `true` if sampled instructions stay in their callchains: keys hold their functions, which do
    /// not give inlined functions or addresses.
    whole: bool,
    /// `true` if each chain begins with the sampled instruction.
    begins: bool,
    /// Number of frames at which chains are cut.
    most: usize,
    /// `Some` if branches precede the callers (`--branch-history`).
    history: Option<History>,
    /// Number of samples whose record ends within the chain.
    pub(super) torn: u64,
}

impl<'f> ChainCounter<'f> {
    pub(super) fn new(scan: &'f Scan<'f>) -> Self {
        let (chains, most) = (&scan.query.chains, scan.chains.most);
        Self {
            reader: scan.chains.reader(),
            whole: !scan.chains.names_callers,
            begins: scan.query.needs.addresses,
            most: most.frames.min(MAX_STACK),
            history: chains.branches.then(|| History::new(most, chains.shows_branches())),
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
        if !self.read(sample, origin, at) {
            return ChainRef::default().pack();
        }
        match stand_in {
            Some(frame) => self.standing_in(frame, at),
            None => self.numbered(sample.cpu_mode(), sample.ip(), at),
        }
    }

    /// Finds the chain of a sample in the kernel, without its kernel part: its innermost frame is
    /// `ip` in user code.
    pub(super) fn of_user(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
        ip: u64,
    ) -> u64 {
        if !self.read_user(sample, origin, at) {
            return ChainRef::default().pack();
        }
        self.numbered(CpuMode::User, Some(ip), at)
    }

    /// Finds the chain of a sample in the kernel with a frame in place of its kernel part.
    pub(super) fn of_wait(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
        frame: StandIn,
    ) -> u64 {
        if !self.read_user(sample, origin, at) {
            return ChainRef::default().pack();
        }
        self.standing_in(frame, at)
    }

    /// Reads a sample's chain into the words, without its kernel part if it has another. Returns
    /// whether it is whole.
    fn read_user(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
    ) -> bool {
        let is_read = self.read(sample, origin, at);
        let words = &mut self.reader.words;
        let kernel = words.iter().position(|word| is_user_marker(*word)).unwrap_or(0);
        words.drain(..kernel);
        is_read
    }

    /// Reads a sample's chain into the words. Returns whether it is whole.
    #[inline]
    fn read(&mut self, sample: &Sample<'_, '_>, origin: ChainOrigin, at: SampleContext) -> bool {
        let ChainReader { sources, words, .. } = &mut self.reader;
        words.clear();
        let found = match &mut self.history {
            Some(history) if origin != ChainOrigin::Calls => {
                with_history(history, sources, sample, origin, at, words)
            }
            _ => sources.chain(sample, origin, at, words),
        };
        if found.is_err() {
            self.torn += 1;
            return false;
        }
        // Of branches and callers, none are next to each other for certain.
        if origin == ChainOrigin::Recorded && self.history.is_none() {
            self.reader.finder.check(at, self.most, &mut self.reader.words);
        }
        true
    }

    /// Returns the chain of a frame without callers that stands in for a stack.
    pub(super) fn alone(&mut self, frame: StandIn, at: Moment) -> u64 {
        self.reader.words.clear();
        self.standing_in(frame, SampleContext { space: None, moment: at })
    }

    /// Returns the chain of a frame that stands in for a stack; the words are those of its callers.
    fn standing_in(&mut self, frame: StandIn, at: SampleContext) -> u64 {
        self.reader.words.splice(0..0, [context::KERNEL, frame.address]);
        self.numbered(CpuMode::Kernel, Some(frame.address), at)
    }

    /// Returns the chain of the words; the instruction `ip` is only part of it if instructions
    /// stay in their chains.
    #[inline]
    fn numbered(&mut self, mode: CpuMode, ip: Option<u64>, at: SampleContext) -> u64 {
        let ChainReader { finder, words, .. } = &mut self.reader;
        if self.begins
            && let Some(ip) = ip
            && callers(mode, Some(ip), &mut words.clone()).is_none()
        {
            words.splice(0..0, [context_marker(mode), ip]);
        }
        let stays = self.whole || self.history.is_some();
        let left = if stays { None } else { callers(mode, ip, words) };
        let len = words.len();
        let words = words.get(len - left.unwrap_or(len)..).unwrap_or_default();
        ChainRef { callers: finder.chain(at.space, at.moment, words), own: left.is_some() }.pack()
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
