//! Checks of recorded chains by one worker ([`crate::callchain::rules::frame_pointers`]). The innermost user frame is
//! checked in the words of its chain, since it may be no frame of the chain; the others carry the
//! results.

use recrep_format::abi::{CpuMode, context};

use super::checked::{Caller, ReturnAddress};
use super::finder::FrameFinder;
use super::images::MappedPiece;
use crate::callchain::read::words::CHECKED;
use crate::callchain::tree::stacks::{CallSite, Frame, MISSING, Step};
use crate::timeline::SampleContext;

impl FrameFinder<'_> {
    /// Checks the step from the innermost user frame of a recorded chain, and marks the others to
    /// be checked. A chain of `most` frames may have been cut at its outer end.
    pub(crate) fn check(&mut self, at: SampleContext, most: usize, words: &mut Vec<u64>) {
        let user = words.iter().position(|word| *word == context::USER);
        let Some(user) = user.filter(|_| self.checks.is_some()) else { return };
        let (innermost, next) = (user + 1, user + 2);
        if let Some(marker) = words.get_mut(user) {
            *marker = CHECKED;
        }
        let Some(ip) = words.get(innermost) else { return };
        let frames = || words.iter().filter(|word| **word < context::MAX).count();
        let is_cut = words.len() > most && frames() >= most;
        let step = self.innermost_step(at, *ip);
        let resumes = match words.get(next) {
            Some(caller) if step == Step::Skips => self.can_be_called(at, *caller),
            _ => true,
        };
        let is_whole = match step {
            Step::Right => words.len() > next,
            Step::Unchecked | Step::Outermost => true,
            Step::Skips | Step::Wrong => false,
        };
        if step == Step::Wrong || step == Step::Outermost || !resumes {
            words.truncate(next);
        } else if is_cut {
            // The limit cut off the caller of the outermost frame, so its step is not checked.
            words.insert(words.len() - 1, context::USER);
        }
        // What a limit cut off is not missing.
        let is_limit = is_cut && words.len() == next && step == Step::Right;
        if !(is_whole || is_limit) {
            words.insert(next, MISSING);
        }
    }

    /// Returns the step from a sampled instruction to the next frame of its chain.
    fn innermost_step(&mut self, at: SampleContext, ip: u64) -> Step {
        let context = self.context(Some(CpuMode::User), true, at.space, at.moment);
        let MappedPiece { shift, image, is_mapped, .. } = self.piece(context, ip, || at.moment);
        if !is_mapped {
            return Step::Unchecked;
        }
        let address = ip.wrapping_add(shift);
        let known = self.checks.as_ref().and_then(|checks| checks.recent_step(image, address));
        known.unwrap_or_else(|| self.new_innermost_step(address, image))
    }

    #[cold]
    fn new_innermost_step(&mut self, address: u64, image: u32) -> Step {
        let module = self.images.module(image);
        module
            .zip(self.checks.as_mut())
            .map_or(Step::Unchecked, |(module, checks)| checks.sampled_step(module, image, address))
    }

    /// Returns whether an address can be one that a call returns to.
    fn can_be_called(&mut self, at: SampleContext, ip: u64) -> bool {
        let epoch = self.epoch(at.space, at.moment);
        let kind = self.kind(CpuMode::User, CallSite::Checked, self.names_callers);
        let context = kind.context(&mut self.contexts, epoch);
        let MappedPiece { shift, image, is_mapped, .. } = self.piece(context, ip, || at.moment);
        if !is_mapped {
            return false;
        }
        let address = ip.wrapping_add(shift);
        let known = self.checks.as_ref().and_then(|checks| checks.recent_return(image, address));
        let found = known.unwrap_or_else(|| {
            let found = self.return_address(address, image);
            self.keep(address, image, found);
            found
        });
        found.follows_call != Some(false)
    }

    /// Returns what the checks say of a return address.
    #[cold]
    fn return_address(&mut self, address: u64, image: u32) -> ReturnAddress {
        let module = self.images.module(image);
        let checks = self.checks.as_mut();
        checks.map(|checks| checks.return_address(module, image, address)).unwrap_or_default()
    }

    fn keep(&mut self, address: u64, image: u32, found: ReturnAddress) {
        if let Some(checks) = &mut self.checks {
            checks.put(image, address, found);
        }
    }

    /// Returns the number of the frame of a return address whose step is checked.
    #[inline]
    pub(crate) fn checked_frame(&mut self, address: u64, image: u32) -> u32 {
        let known = self.checks.as_ref().and_then(|checks| checks.recent_return(image, address));
        match known.and_then(|known| known.frame.checked_sub(1)) {
            Some(frame) => frame,
            None => self.new_checked_frame(address, image),
        }
    }

    #[cold]
    fn new_checked_frame(&mut self, address: u64, image: u32) -> u32 {
        let found = self.return_address(address, image);
        if let Some(frame) = found.frame.checked_sub(1) {
            return frame;
        }
        let number = match found.follows_call {
            Some(true) => self.frame_of_caller(address, image, found.step),
            follows_call => self.frame_without_call(address, image, found.step, follows_call),
        };
        self.keep(address, image, ReturnAddress { frame: number.saturating_add(1), ..found });
        number
    }

    /// Returns the number of the frame of a return address that follows a call.
    fn frame_of_caller(&mut self, address: u64, image: u32, step: Step) -> u32 {
        let Self { checks, stacks, .. } = self;
        if let Some(Caller { frame, numbers }) =
            checks.as_mut().and_then(|checks| checks.caller(image, address))
            && let Some(number) = numbers.get_mut(step as usize)
        {
            if *number == 0 {
                *number = stacks.number(Frame { step, ..*frame }).saturating_add(1);
            }
            return *number - 1;
        }
        let (found, range) = self.look_up(address, image, CallSite::Before);
        let own = self.images.get(image).map_or_else(Frame::default, |image| image.at(address));
        let frame =
            Frame { site: CallSite::Before, can_be_called: own.module > 0, ..found.unwrap_or(own) };
        let number = self.stacks.number(Frame { step, ..frame });
        if let (Some(_), Some(checks)) = (found, &mut self.checks) {
            let mut numbers = [0; Step::COUNT];
            if let Some(of_step) = numbers.get_mut(step as usize) {
                *of_step = number.saturating_add(1);
            }
            checks.add_caller(Caller { frame, numbers }, range, image, address);
        }
        number
    }

    /// Returns the number of the frame of an address that no call is before, as far as is known.
    /// Without the code, it is looked up as in perf.
    fn frame_without_call(
        &mut self,
        address: u64,
        image: u32,
        step: Step,
        follows_call: Option<bool>,
    ) -> u32 {
        let own = self.images.get(image).map_or_else(Frame::default, |image| image.at(address));
        let site = if self.fields.inlined { CallSite::Inlined } else { CallSite::At };
        let frame = self.look_up(address, image, site).0.unwrap_or(own);
        let can_be_called = own.module > 0 && follows_call != Some(false);
        self.stacks.number(Frame { site, step, can_be_called, ..frame })
    }
}
