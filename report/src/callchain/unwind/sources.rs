//! Chooses the source of an event's callchains, for all commands.

use recrep_format::abi::{BranchSampleType, SampleType};
use recrep_format::attr::Attr;
use recrep_format::error::Result;
use recrep_format::record::Sample;

use super::copied::{Copied, UnwindStats};
use super::unwinder::StackUnwinder;
use crate::callchain::Recorded;
use crate::timeline::{Moment, SpaceId};

/// Source of an event's callchains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Callchains from the kernel, which followed frame pointers.
    Recorded,
    /// Calls recorded by the hardware.
    Calls,
    /// Copied stacks.
    Copied,
}

impl Origin {
    /// Returns the source for an event with this attr.
    pub fn of(attr: &Attr) -> Self {
        let has = |fields| attr.sample_type.contains(SampleType::CALLCHAIN | fields);
        if has(SampleType::BRANCH_STACK) && attr.branch_sample_type.contains(BranchSampleType::CALL_STACK) {
            Self::Calls
        } else if has(SampleType::REGS_USER | SampleType::STACK_USER) {
            Self::Copied
        } else {
            Self::Recorded
        }
    }
}

/// All sources of a file's callchains: the state of one worker.
#[derive(Debug)]
pub struct ChainSources<'u> {
    /// Source of chains as recorded.
    pub recorded: Recorded<'u>,
    copied: Option<Copied<'u>>,
}

impl<'u> ChainSources<'u> {
    /// Creates the sources; without `unwinding`, copied stacks are ignored.
    pub fn new(recorded: Recorded<'u>, unwinding: Option<&'u StackUnwinder<'u>>) -> Self {
        Self { recorded, copied: unwinding.map(|unwinding| Copied::new(unwinding, recorded)) }
    }

    /// Returns statistics on the chains from copied stacks.
    pub fn ends(&self) -> UnwindStats {
        self.copied.as_ref().map(|copied| copied.ends).unwrap_or_default()
    }

    /// Writes the chain of a sample into the empty `words`, as [`Recorded::chain`] does.
    ///
    /// # Errors
    /// Returns an error if the record is too short for its fields.
    #[inline]
    pub fn chain(
        &mut self,
        (sample, origin): (&Sample<'_, '_>, Origin),
        (space, at): (Option<SpaceId>, Moment),
        words: &mut Vec<u64>,
    ) -> Result<()> {
        match (origin, &mut self.copied) {
            (Origin::Calls, _) => self.recorded.with_hardware_calls(sample, words),
            (Origin::Copied, Some(copied)) => copied.chain(sample, (space, at), words),
            _ => self.recorded.chain(sample, words),
        }
    }

    /// Returns whether chains of this origin are unwound.
    pub fn unwinds(&self, origin: Origin) -> bool {
        self.copied.is_some() && origin == Origin::Copied
    }

    /// Returns the number of frames at the end of the last chain that were unwound.
    pub fn unwound(&self, origin: Origin) -> usize {
        self.copied.as_ref().filter(|_| origin == Origin::Copied).map_or(0, |copied| copied.ips.len())
    }
}
