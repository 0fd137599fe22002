//! Callchains from copied stacks: what a sample recorded, given to the unwinder.

use recrep_format::abi::{SampleType, context};
use recrep_format::attr::Attr;
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::record::{Sample, SampleFields};

use super::unwinder::{Chain, ChainEnd, Scratch, StackUnwinder};
use crate::callchain::{ChainSource, Recorded};
use crate::count::metrics::share;
use crate::timeline::{Moment, Task};

/// Chains whose user part is unwound from a copied stack: the state of one worker.
#[derive(Debug)]
pub struct Copied<'u> {
    unwinding: &'u StackUnwinder<'u>,
    recorded: Recorded<'u>,
    scratch: Scratch,
    chain: Chain,
    /// Statistics on the ends of the chains.
    pub ends: UnwindStats,
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
    pub fn new(unwinding: &'u StackUnwinder<'u>, recorded: Recorded<'u>) -> Self {
        Self { unwinding, recorded, scratch: Scratch::default(), chain: Chain::default(), ends: UnwindStats::default() }
    }

    /// Returns the number of frames of the last chain that were unwound.
    pub fn frames(&self) -> usize {
        self.chain.ips.len()
    }
}

impl ChainSource for Copied<'_> {
    fn chain(
        &mut self,
        (sample, attr): (&Sample<'_, '_>, &Attr),
        task: &Task,
        at: Moment,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        self.recorded.chain((sample, attr), task, at, words)?;
        let mut fields = SampleFields::default();
        sample.walk(const { UpTo::field(SampleType::STACK_USER) }, &mut fields)?;
        let into = (&mut self.scratch, &mut self.chain);
        if self.unwinding.sample(&fields, (task, at), self.recorded.most.frames, into) {
            self.ends.add(UnwindStats { all: 1, truncated: u64::from(self.chain.end == ChainEnd::Truncated) });
            words.push(context::USER);
            words.extend(&self.chain.ips);
        } else {
            self.chain.ips.clear();
        }
        Ok(())
    }
}
