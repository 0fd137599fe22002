//! Results of one worker's checks ([`super::checks`]). Nothing is computed twice: steps are kept for
//! the ranges of instructions that have them, return addresses by image and address. Small caches
//! stand before both, as most samples repeat.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::images::{ImageRange, RecentAddresses, RecentRanges};
use crate::callchain::rules::frame_pointers::ChainChecks;
use crate::callchain::tree::stacks::{Frame, Step, small};

/// Checks of one worker, and their results.
#[derive(Debug)]
pub(crate) struct Checks<'t> {
    of: ChainChecks<'t>,
    /// Steps from ranges of instructions, by the starts of these.
    steps: FxHashMap<StepKey, BTreeMap<u64, RangeStep>>,
    /// Steps from recent sampled instructions, and from recent calls.
    recent_steps: [RecentRanges<Step>; 2],
    /// Return addresses, by image and address.
    returns: FxHashMap<(u32, u64), ReturnAddress>,
    recent_returns: RecentAddresses<ReturnAddress>,
    /// Functions that call others. There may be several for one function.
    callers: Vec<Caller>,
    /// Numbers of the callers that recent return addresses are in.
    recent_callers: RecentRanges<u32>,
}

/// Instructions whose steps are kept together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StepKey {
    module: u32,
    /// Whether they are calls, not sampled instructions.
    are_calls: bool,
}

/// A step, and the end of the range of instructions that have it.
#[derive(Clone, Copy, Debug)]
struct RangeStep {
    end: u64,
    step: Step,
}

/// A return address in a checked chain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReturnAddress {
    /// The step from its frame to the next one.
    pub(crate) step: Step,
    /// Whether a call is before it; `None` if the code is not known.
    pub(crate) follows_call: Option<bool>,
    /// Number of its frame plus one; 0 until a chain has it.
    pub(crate) frame: u32,
}

/// A function that calls others.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Its frame, without a step.
    pub(crate) frame: Frame,
    /// Numbers plus one of its frames, by their steps; 0 if there is none yet.
    pub(crate) numbers: [u32; Step::COUNT],
}

impl<'t> Checks<'t> {
    pub(crate) fn new(of: ChainChecks<'t>) -> Self {
        Self {
            of,
            steps: FxHashMap::default(),
            recent_steps: Default::default(),
            returns: FxHashMap::default(),
            recent_returns: RecentAddresses::default(),
            callers: Vec::new(),
            recent_callers: RecentRanges::default(),
        }
    }

    /// Returns the step from a sampled instruction of an image, if it was asked for lately.
    #[inline]
    pub(crate) fn recent_step(&self, image: u32, address: u64) -> Option<Step> {
        let [sampled, _] = &self.recent_steps;
        sampled.get(image, address)
    }

    /// Returns the step from a sampled instruction of an image of this module.
    pub(crate) fn sampled_step(&mut self, module: u32, image: u32, address: u64) -> Step {
        self.step(StepKey { module, are_calls: false }, image, address)
    }

    /// Returns what is known of a return address of an image, if it was asked for lately.
    #[inline]
    pub(crate) fn recent_return(&self, image: u32, address: u64) -> Option<ReturnAddress> {
        self.recent_returns.get(image, address)
    }

    /// Returns what is known of a return address of an image, or else checks it; `module` is that
    /// of the image.
    pub(crate) fn return_address(
        &mut self,
        module: Option<u32>,
        image: u32,
        address: u64,
    ) -> ReturnAddress {
        if let Some(known) = self.returns.get(&(image, address)) {
            self.recent_returns.put(image, address, *known);
            return *known;
        }
        let Some(module) = module else { return ReturnAddress::default() };
        let call = address.wrapping_sub(1);
        let step = self.step(StepKey { module, are_calls: true }, image, call);
        let follows_call = self.of.follows_call(module as usize, address);
        ReturnAddress { step, follows_call, frame: 0 }
    }

    /// Keeps what is known of a return address of an image.
    pub(crate) fn put(&mut self, image: u32, address: u64, of: ReturnAddress) {
        self.returns.insert((image, address), of);
        self.recent_returns.put(image, address, of);
    }

    /// Returns the function that a return address of an image is in, if it was asked for lately.
    pub(crate) fn caller(&mut self, image: u32, address: u64) -> Option<&mut Caller> {
        let number = self.recent_callers.get(image, address)?;
        self.callers.get_mut(number as usize)
    }

    /// Adds a function that return addresses in this range of an image are in.
    pub(crate) fn add_caller(&mut self, caller: Caller, range: Range<u64>, image: u32, at: u64) {
        let Range { start, end } = range;
        let value = small(self.callers.len());
        self.recent_callers.put(ImageRange { start, end, image, value }, at);
        self.callers.push(caller);
    }

    /// Returns the step from an instruction of an image.
    fn step(&mut self, key: StepKey, image: u32, at: u64) -> Step {
        let [sampled, calls] = &mut self.recent_steps;
        let recent = if key.are_calls { calls } else { sampled };
        if let Some(step) = recent.get(image, at) {
            return step;
        }
        let known = self.steps.entry(key).or_default();
        let before = known.range(..=at).next_back().filter(|(_, range)| at < range.end);
        let (step, Range { start, end }) = match before {
            Some((start, RangeStep { end, step })) => (*step, *start..*end),
            None => {
                let (step, range) = self.of.step(key.module as usize, at, key.are_calls);
                known.insert(range.start, RangeStep { end: range.end, step });
                (step, range)
            }
        };
        recent.put(ImageRange { start, end, image, value: step }, at);
        step
    }
}
