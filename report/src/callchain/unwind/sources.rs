//! Chooses the source of an event's callchains, for all commands.

use recrep_format::abi::{BranchSampleType, SampleType, context};
use recrep_format::attr::Attr;
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::record::{Sample, SampleFields};

use super::unwinder::{Scratch, StackUnwinder};
use crate::callchain::Recorded;
use crate::count::metrics::share;
use crate::timeline::{Moment, SpaceId};

/// Source of an event's callchains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Callchains from the kernel, which followed frame pointers.
    Recorded,
    /// Calls recorded by the hardware.
    Calls,
    /// Copied stacks.
    Copied,
}

impl Origin {
    /// Returns the source for an event with this attr.
    pub(crate) fn of(attr: &Attr) -> Self {
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

/// Number of unwound chains, and of truncated ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnwindStats {
    pub all: u64,
    /// Chains that end where the copy of the stack ends.
    pub truncated: u64,
}

impl UnwindStats {
    /// Returns a warning if any chain is truncated.
    pub fn warning(self) -> Option<String> {
        let Self { all, truncated } = self;
        let percent = share(truncated, all);
        (truncated > 0).then(|| {
            format!(
                "{truncated} of {all} callchains ({percent:.1}%) lack outer frames: too little stack was copied; \
                 record with a larger copy (--call-graph dwarf,SIZE)"
            )
        })
    }

    pub fn add(&mut self, other: Self) {
        self.all += other.all;
        self.truncated += other.truncated;
    }
}

/// All sources of a file's callchains: the state of one worker.
pub(crate) struct ChainSources<'u> {
    /// Source of chains as recorded.
    pub recorded: Recorded<'u>,
    unwinding: Option<(&'u StackUnwinder<'u>, Scratch)>,
    /// Addresses of the frames of the last chain that was unwound, innermost first.
    ips: Vec<u64>,
    /// Statistics on the chains from copied stacks.
    pub ends: UnwindStats,
}

impl<'u> ChainSources<'u> {
    /// Creates the sources; without `unwinding`, copied stacks are ignored.
    pub(crate) fn new(recorded: Recorded<'u>, unwinding: Option<&'u StackUnwinder<'u>>) -> Self {
        let unwinding = unwinding.map(|unwinding| (unwinding, Scratch::default()));
        Self { recorded, unwinding, ips: Vec::new(), ends: UnwindStats::default() }
    }

    /// Writes the chain of a sample into the empty `words`, as [`Recorded::chain`] does.
    ///
    /// # Errors
    /// Returns an error if the record is too short for its fields.
    #[inline]
    pub(crate) fn chain(
        &mut self,
        (sample, origin): (&Sample<'_, '_>, Origin),
        (space, at): (Option<SpaceId>, Moment),
        words: &mut Vec<u64>,
    ) -> Result<()> {
        if origin == Origin::Calls {
            return self.recorded.with_hardware_calls(sample, words);
        }
        self.recorded.chain(sample, words)?;
        if origin == Origin::Copied { self.unwind(sample, (space, at), words) } else { Ok(()) }
    }

    /// Appends the frames of a sample's copied stack to `words`.
    fn unwind(
        &mut self,
        sample: &Sample<'_, '_>,
        (space, at): (Option<SpaceId>, Moment),
        words: &mut Vec<u64>,
    ) -> Result<()> {
        let Some((unwinding, scratch)) = &mut self.unwinding else { return Ok(()) };
        let mut fields = SampleFields::default();
        sample.walk(const { UpTo::field(SampleType::STACK_USER) }, &mut fields)?;
        let into = (scratch, &mut self.ips);
        if let Some(is_truncated) = unwinding.sample(&fields, (space, at), self.recorded.most.frames, into) {
            self.ends.add(UnwindStats { all: 1, truncated: is_truncated.into() });
            words.push(context::USER);
            words.extend(&self.ips);
        }
        Ok(())
    }

    /// Returns whether chains of this origin are unwound.
    pub(crate) fn unwinds(&self, origin: Origin) -> bool {
        self.unwinding.is_some() && origin == Origin::Copied
    }

    /// Returns the number of frames at the end of the last chain that were unwound.
    pub(crate) fn unwound(&self, origin: Origin) -> usize {
        if origin == Origin::Copied { self.ips.len() } else { 0 }
    }
}
