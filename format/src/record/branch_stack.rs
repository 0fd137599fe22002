//! The last branches of a sample: the field BRANCH_STACK.

use crate::abi::{BranchEntry, BranchFlags, BranchSampleType};
use crate::bytes::{Cursor, Encoder, U64s};
use crate::error::{Error, Result};
use crate::fields::{Value, shown};
use crate::wire::Wire;

/// The last branches of a sample.
#[derive(Clone, Copy, Debug)]
pub struct BranchStack<'a> {
    /// The hardware's index of the newest branch; `None` without HW_INDEX in `branch_sample_type`.
    pub hw_idx: Option<u64>,
    /// Three words for each branch: from, to, flags ([`BranchStack::entries`]).
    pub words: U64s<'a>,
    /// A word of counters for each branch; `None` without COUNTERS in `branch_sample_type`.
    pub counters: Option<U64s<'a>>,
}

shown! {
    BranchStack<'_>: |stack| Value::Words(stack.words);
}

impl<'a> BranchStack<'a> {
    pub(super) fn decode(c: &mut Cursor<'a>, kind: BranchSampleType) -> Result<Self> {
        let nr = c.u64("sample.branch_stack.nr")?;
        let hw_idx = kind.contains(BranchSampleType::HW_INDEX);
        let hw_idx = hw_idx.then(|| c.u64("sample.branch_stack.hw_idx")).transpose()?;
        let words = c.take_u64s(nr.saturating_mul(3), "sample.branch_stack")?;
        let counters = kind.contains(BranchSampleType::COUNTERS);
        let counters =
            counters.then(|| c.take_u64s(nr, "sample.branch_stack.counters")).transpose()?;
        Ok(Self { hw_idx, words, counters })
    }

    /// Returns the branches, newest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = BranchEntry> + use<'a> {
        let words = self.words;
        let word = move |at| words.get(at).unwrap_or(0);
        (0..words.len() / 3).map(move |i| BranchEntry {
            from: word(3 * i),
            to: word(3 * i + 1),
            flags: BranchFlags::from_word(word(3 * i + 2), words.endian()),
        })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        let (branches, words) = (self.entries().len(), self.words.len());
        if words != 3 * branches || self.counters.is_some_and(|counters| counters.len() != branches)
        {
            let detail = format!(
                "{words} words and {:?} counters",
                self.counters.map(|counters| counters.len())
            );
            return Err(Error::invalid(e.len() as u64, "sample.branch_stack", detail));
        }
        e.u64(branches as u64);
        self.hw_idx.encode(e)?;
        for branch in self.entries() {
            e.u64(branch.from);
            e.u64(branch.to);
            e.u64(branch.flags.to_word(e.endian()));
        }
        self.counters.encode(e)
    }
}

/// Compares the values: the byte order of the flags also changes the order of their bits.
impl PartialEq for BranchStack<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.hw_idx, self.counters) == (other.hw_idx, other.counters)
            && self.entries().eq(other.entries())
    }
}

impl Eq for BranchStack<'_> {}
