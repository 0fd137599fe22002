//! Where the chain of a sample comes from. Whatever finds chains (the kernel following frame pointers, an unwinder)
//! gives them in one form, so that nothing behind it needs to know.

use recrep_format::abi::{CpuMode, context};
use recrep_format::error::Result;
use recrep_format::record::Sample;

use crate::timeline::{Moment, Task};

/// Finds the chains of samples.
pub trait ChainSource {
    /// Puts the chain of `sample` into the empty `words`: addresses, innermost first, with a mark (`PERF_CONTEXT_*`)
    /// before those of each level.
    ///
    /// # Errors
    /// The record is too short for what it says.
    fn chain(&mut self, sample: &Sample<'_, '_>, task: &Task, at: Moment, words: &mut Vec<u64>) -> Result<()>;
}

/// Chains as they were recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded;

impl ChainSource for Recorded {
    #[inline]
    fn chain(&mut self, sample: &Sample<'_, '_>, _: &Task, _: Moment, words: &mut Vec<u64>) -> Result<()> {
        match sample.callchain()? {
            Some(chain) => words.extend(chain.iter()),
            None => words.extend([mark(sample.cpu_mode()), sample.ip().unwrap_or(0)]),
        }
        Ok(())
    }
}

/// Whether all marks in a chain are known ones. With another perf takes the chain for damaged and lets go of all of it:
/// where functions keep no frame pointers, what stands in their place can look like a mark.
#[inline]
pub fn is_sound(words: &[u64]) -> bool {
    const MARKS: [u64; 4] = [context::KERNEL, context::USER, context::HV, context::USER_DEFERRED];
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
