//! Callchains from copied stacks: what a sample recorded, given to the unwinder.

use recrep_format::abi::{SampleType, context};
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::record::{Sample, SampleFields};

use super::unwinder::{Scratch, StackUnwinder};
use crate::callchain::Recorded;
use crate::count::metrics::share;
use crate::timeline::{Moment, SpaceId};

/// Chains whose user part is unwound from a copied stack: the state of one worker.
#[derive(Debug)]
pub(super) struct Copied<'u> {
    unwinding: &'u StackUnwinder<'u>,
    recorded: Recorded<'u>,
    scratch: Scratch,
    /// Addresses of the frames of the last chain, innermost first.
    pub(super) ips: Vec<u64>,
    /// Statistics on the ends of the chains.
    pub(super) ends: UnwindStats,
}

/// Number of unwound chains, and of truncated ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnwindStats {
    /// All unwound chains.
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

    /// Adds other statistics.
    pub fn add(&mut self, other: Self) {
        self.all += other.all;
        self.truncated += other.truncated;
    }
}

impl<'u> Copied<'u> {
    /// Creates the state of a worker.
    pub(super) fn new(unwinding: &'u StackUnwinder<'u>, recorded: Recorded<'u>) -> Self {
        Self { unwinding, recorded, scratch: Scratch::default(), ips: Vec::new(), ends: UnwindStats::default() }
    }

    /// Writes the chain of a sample into `words`, as [`Recorded::chain`] does.
    pub(super) fn chain(
        &mut self,
        sample: &Sample<'_, '_>,
        (space, at): (Option<SpaceId>, Moment),
        words: &mut Vec<u64>,
    ) -> Result<()> {
        self.recorded.chain(sample, words)?;
        let mut fields = SampleFields::default();
        sample.walk(const { UpTo::field(SampleType::STACK_USER) }, &mut fields)?;
        let into = (&mut self.scratch, &mut self.ips);
        if let Some(is_truncated) = self.unwinding.sample(&fields, (space, at), self.recorded.most.frames, into) {
            self.ends.add(UnwindStats { all: 1, truncated: is_truncated.into() });
            words.push(context::USER);
            words.extend(&self.ips);
        }
        Ok(())
    }
}
