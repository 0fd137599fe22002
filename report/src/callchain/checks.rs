//! Checks of recorded chains by one worker ([`super::frame_pointers`]). The innermost user frame is
//! checked in the words of its chain, since it may be no frame of the chain; the others carry what
//! was found.

use recrep_format::abi::{CpuMode, context};

use super::frame_pointers::Checked;
use super::images::MappedPiece;
use super::place::FrameFinder;
use super::source::CHECKED;
use super::stacks::{CallSite, Frame, MISSING, Step};
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
            // Nothing is said of the step from the outermost one.
            words.insert(words.len() - 1, context::USER);
        }
        // What a limit cut off is not missing.
        let is_limit = is_cut && words.len() == next && step == Step::Right;
        if !(is_whole || is_limit) {
            words.insert(next, MISSING);
        }
    }

    /// Returns the step from an instruction to the next frame of its chain.
    fn innermost_step(&mut self, at: SampleContext, ip: u64) -> Step {
        let context = self.context(Some(CpuMode::User), true, at.space, at.moment);
        let MappedPiece { shift, image, is_mapped, .. } = self.piece(context, ip, || at.moment);
        let address = ip.wrapping_add(shift);
        let known = self.checks.as_ref().and_then(|checks| checks.steps.get(image, address));
        match known {
            Some(step) => step,
            None if is_mapped => {
                let step = self.checked(address, image, CallSite::At).step;
                if let Some(checks) = &mut self.checks {
                    checks.steps.put(image, address, step);
                }
                step
            }
            None => Step::Unchecked,
        }
    }

    /// Returns whether an address can be one that a call returns to.
    fn can_be_called(&mut self, at: SampleContext, ip: u64) -> bool {
        let epoch = self.epoch(at.space, at.moment);
        let kind = self.kind(CpuMode::User, CallSite::Checked, self.names_callers);
        let context = kind.context(&mut self.contexts, epoch);
        let MappedPiece { shift, image, is_mapped, .. } = self.piece(context, ip, || at.moment);
        let found = self.checked(ip.wrapping_add(shift), image, CallSite::Checked);
        is_mapped && found.follows_call != Some(false)
    }

    /// Returns what the checks say of an address of an image.
    fn checked(&mut self, address: u64, image: u32, site: CallSite) -> Checked {
        let module = self.images.get(image).and_then(|image| image.frame.module.checked_sub(1));
        let checked = module.zip(self.checks.as_mut());
        checked.map_or_else(Checked::default, |(module, checks)| checks.at(module, address, site))
    }

    /// Returns the number of the frame of a return address whose step is checked.
    #[inline]
    pub(super) fn checked_frame(&mut self, address: u64, image: u32) -> u32 {
        let known = self.checks.as_ref().and_then(|checks| checks.frames.get(image, address));
        known.unwrap_or_else(|| self.new_checked_frame(address, image))
    }

    #[cold]
    fn new_checked_frame(&mut self, address: u64, image: u32) -> u32 {
        let Checked { step, follows_call } = self.checked(address, image, CallSite::Checked);
        let own = self.images.get(image).map_or_else(Frame::default, |image| image.at(address));
        // Without the code, it is looked up as in perf.
        let site = match follows_call {
            Some(true) => CallSite::Before,
            _ if self.fields.inlined => CallSite::Inlined,
            _ => CallSite::At,
        };
        let frame = self.look_up(address, image, site).0.unwrap_or(own);
        let can_be_called = own.module > 0 && follows_call != Some(false);
        let number = self.stacks.number(Frame { site, step, can_be_called, ..frame });
        if let Some(checks) = &mut self.checks {
            checks.frames.put(image, address, number);
        }
        number
    }
}
