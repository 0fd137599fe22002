//! Where the chain of a sample comes from. Whatever finds chains (the kernel following frame pointers, the hardware's
//! record of calls, an unwinder) gives them in one form, so that nothing behind it needs to know.

use recrep_format::abi::{CpuMode, SampleType, context};
use recrep_format::attr::Attr;
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::record::{Sample, SampleFields};

use super::deferred::Deferred;
use crate::timeline::{Moment, Task};

/// Finds the chains of samples.
pub trait ChainSource {
    /// Puts the chain of `sample`, of an event with this attr, into the empty `words`: addresses, innermost first, with a
    /// mark (`PERF_CONTEXT_*`) before those of each level.
    ///
    /// # Errors
    /// The record is too short for what it says.
    fn chain(&mut self, sample: (&Sample<'_, '_>, &Attr), task: &Task, at: Moment, words: &mut Vec<u64>) -> Result<()>;
}

/// How many frames of a chain are wanted, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLimit {
    /// At most so many.
    pub frames: usize,
    /// The outermost ones, if there are more; else the innermost.
    pub outermost: bool,
}

/// Chains as they were recorded; parts that came later are put in their places.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'d> {
    /// What came later.
    pub deferred: &'d Deferred<'d>,
    /// How many frames are wanted.
    pub most: ChainLimit,
}

impl ChainSource for Recorded<'_> {
    #[inline]
    fn chain(
        &mut self,
        (sample, _): (&Sample<'_, '_>, &Attr),
        _: &Task,
        _: Moment,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        match sample.callchain()? {
            Some(chain) => words.extend(chain.iter()),
            None => words.extend([mark(sample.cpu_mode()), sample.ip().unwrap_or(0)]),
        }
        if let [.., context::USER_DEFERRED, cookie] = words[..] {
            words.truncate(words.len() - 2);
            if let Some(rest) = sample.tid().and_then(|tid| self.deferred.chain(tid, cookie)) {
                words.extend(rest.iter());
            }
        }
        if words.len() > self.most.frames {
            cut(words, self.most);
        }
        Ok(())
    }
}

/// Chains whose user part is what the hardware has recorded of the calls that had not returned
/// (`PERF_SAMPLE_BRANCH_CALL_STACK`).
///
/// ```text
///   recorded   KERNEL k1 k2 USER u1 u2 …        branch stack, newest first   from→to  from→to  …
///   chain      KERNEL k1 k2 USER  to(0) from(0) from(1) …
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HardwareCalls<'d>(pub Recorded<'d>);

impl ChainSource for HardwareCalls<'_> {
    fn chain(
        &mut self,
        (sample, attr): (&Sample<'_, '_>, &Attr),
        task: &Task,
        at: Moment,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        let mut fields = SampleFields::default();
        sample.walk(const { UpTo::field(SampleType::BRANCH_STACK) }, &mut fields)?;
        let calls = fields.branch_stack.map(|stack| stack.entries());
        let (Some(chain), Some(mut calls)) = (fields.callchain, calls.filter(|calls| calls.len() > 0)) else {
            return self.0.chain((sample, attr), task, at, words);
        };
        words.extend(chain.iter().take(self.0.most.frames));
        let Some(user) = words.iter().position(|word| *word == context::USER) else {
            words.clear();
            return self.0.chain((sample, attr), task, at, words);
        };
        words.truncate(user + 1);
        if let Some(newest) = calls.next() {
            words.extend([newest.to, newest.from]);
        }
        words.extend(calls.map(|call| call.from));
        Ok(())
    }
}

/// Leaves as many frames of a chain as are wanted, with the marks before them.
pub(super) fn cut(words: &mut Vec<u64>, most: ChainLimit) {
    let is_frame = |word: &u64| *word < context::MAX;
    let too_many = words.iter().filter(|word| is_frame(word)).count().saturating_sub(most.frames);
    if too_many == 0 {
        return;
    }
    let (mut left, mut skipped) = (most.frames, too_many);
    let mut level = None;
    let mut kept = Vec::with_capacity(words.len());
    for word in words.iter().copied() {
        if !is_frame(&word) {
            level = Some(word);
        } else if most.outermost && skipped > 0 {
            skipped -= 1;
        } else if left > 0 {
            left -= 1;
            kept.extend(level.take());
            kept.push(word);
        }
    }
    *words = kept;
}

/// Whether all marks in a chain are known ones. With another perf takes the chain for damaged and lets go of all of it:
/// where functions keep no frame pointers, what stands in their place can look like a mark.
#[inline]
pub fn is_sound(words: &[u64]) -> bool {
    const MARKS: [u64; 3] = [context::KERNEL, context::USER, context::HV];
    words.iter().all(|word| *word < context::MAX || MARKS.contains(word))
}

/// Takes the sampled instruction off a chain whose innermost frame it is: how many words at its end are left. `None`
/// where the chain begins elsewhere. The same callers are met from many instructions, so they are worth interning apart.
#[inline]
pub fn callers(sample: &Sample<'_, '_>, words: &mut [u64]) -> Option<usize> {
    let mark = mark(sample.cpu_mode());
    match words {
        [first, second, rest @ ..] if *first == mark && Some(*second) == sample.ip() => match rest.first() {
            None => Some(0),
            // Nothing of this level is left.
            Some(next) if *next >= context::MAX => Some(rest.len()),
            Some(_) => {
                *second = mark;
                Some(rest.len() + 1)
            }
        },
        _ => None,
    }
}

/// What stands before the frames of this level.
fn mark(mode: CpuMode) -> u64 {
    match mode {
        CpuMode::Kernel => context::KERNEL,
        CpuMode::User => context::USER,
        _ => context::HV,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_chain_keeps_the_levels_of_its_frames() {
        let chain = [context::KERNEL, 1, 2, context::USER, 3, 4];
        let of = |frames, outermost| {
            let mut words = chain.to_vec();
            cut(&mut words, ChainLimit { frames, outermost });
            words
        };
        assert_eq!(of(4, false), chain);
        assert_eq!(of(3, false), [context::KERNEL, 1, 2, context::USER, 3]);
        assert_eq!(of(2, false), [context::KERNEL, 1, 2]);
        assert_eq!(of(3, true), [context::KERNEL, 2, context::USER, 3, 4]);
        assert_eq!(of(1, true), [context::USER, 4]);
        assert_eq!(of(0, true), [0; 0]);
    }
}
