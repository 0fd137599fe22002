//! Sources of callchains: the kernel following frame pointers, the hardware's record of calls, an
//! unwinder. All give chains in one form, so that later steps need not know the source.
//!
//! ```text
//!   recorded by the kernel         KERNEL k1 k2  USER     u1 u2 u3
//!   the same, to be checked        KERNEL k1 k2  CHECKED  u1 [callers unknown] u2 u3
//!   whole, by the recorder         KERNEL k1 k2  RETURNS  u1 u2 u3
//!   cut short, by the recorder     KERNEL k1 k2  RETURNS  u1 u2  [callers unknown]
//!   from the trace of a processor  KERNEL k1 k2  RETURNS  u1 u2 u3
//!   unwound here                   KERNEL k1 k2  UNWOUND  u1 u2  [callers unknown] u4
//! ```
//!
//! `rec` unwinds most stacks while it records and writes chains: such a sample has neither
//! registers nor stack. If the chain is cut short, it has the registers, and no stack; with an
//! instruction pointer of 0 they are there for the arguments of a system call, and the chain is
//! whole. If rec could not unwind, the sample has both, and the kernel's part of the chain.

use recrep_format::abi::{
    AttrFlags, BranchSampleType, CpuMode, RecordType, RegsAbi, SampleType, context,
};
use recrep_format::attr::Attr;
use recrep_format::bytes::U64s;
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::read::File;
use recrep_format::record::{Body, RawRecord, Sample, SampleFields};
use recrep_unwind::End;
use rustc_hash::FxHashMap;

use super::ends::WorkerEnds;
use super::words::{RETURNS, UNWOUND, context_marker, is_sound};
use crate::callchain::rules::unwind::{CopiedStack, Scratch, StackUnwinder};
use crate::callchain::tree::stacks::MISSING;
use crate::timeline::SampleContext;

/// Limit on the frames of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainLimit {
    pub frames: usize,
    /// `true` if longer chains keep their outermost frames, not their innermost.
    pub outermost: bool,
}

/// User parts of callchains that were recorded after their samples
/// (`PERF_RECORD_CALLCHAIN_DEFERRED`), by thread and cookie: a thread's user stack does not change
/// while the thread is in the kernel, so one record, written at the return to user space, serves
/// all samples until then.
pub(crate) type Deferred<'a> = FxHashMap<(u32, u64), U64s<'a>>;

/// Collects the deferred callchains among these records.
pub(crate) fn deferred_chains<'a>(file: &File<'_>, records: &[RawRecord<'a>]) -> Deferred<'a> {
    let of_kind = records.iter().filter(|raw| raw.header.kind == RecordType::CALLCHAIN_DEFERRED);
    of_kind
        .filter_map(|raw| {
            let record = file.attrs.decode(raw).ok()?;
            let [_, tid] = record.trailer.tid?;
            let Body::CallchainDeferred(chain) = record.body else { return None };
            Some(((tid, chain.cookie), chain.ips))
        })
        .collect()
}

/// Chains as recorded, completed by user parts that were recorded later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedChains<'d> {
    pub deferred: &'d Deferred<'d>,
    pub most: ChainLimit,
}

impl RecordedChains<'_> {
    /// Writes the chain of a sample into the empty `words`: addresses, innermost first, with a
    /// context marker (`PERF_CONTEXT_*`) before those of each CPU mode. Fails if the record is too
    /// short for its fields.
    #[inline]
    pub(crate) fn chain(&self, sample: &Sample<'_, '_>, words: &mut Vec<u64>) -> Result<()> {
        match sample.callchain()? {
            Some(chain) => words.extend(chain.iter()),
            None => words.extend([context_marker(sample.cpu_mode()), sample.ip().unwrap_or(0)]),
        }
        if let [.., context::USER_DEFERRED, cookie] = words[..] {
            words.truncate(words.len() - 2);
            if let Some(rest) = sample.tid().and_then(|tid| self.deferred.get(&(tid, cookie))) {
                words.extend(rest.iter());
            }
        }
        if words.len() > self.most.frames {
            cut(words, self.most);
        }
        Ok(())
    }

    /// Writes a chain whose user part is the hardware's record of the calls that had not returned
    /// yet (`PERF_SAMPLE_BRANCH_CALL_STACK`).
    ///
    /// ```text
    ///   recorded   KERNEL k1 k2 USER u1 u2 …        branch stack, newest first   from→to  from→to  …
    ///   chain      KERNEL k1 k2 USER  to(0) from(0) from(1) …
    /// ```
    pub(crate) fn with_hardware_calls(
        &self,
        sample: &Sample<'_, '_>,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        let mut fields = SampleFields::default();
        sample.walk(const { UpTo::field(SampleType::BRANCH_STACK) }, &mut fields)?;
        let calls = fields.branch_stack.map(|stack| stack.entries());
        let (Some(chain), Some(mut calls)) =
            (fields.callchain, calls.filter(|calls| calls.len() > 0))
        else {
            return self.chain(sample, words);
        };
        words.extend(chain.iter().take(self.most.frames));
        let Some(user) = words.iter().position(|word| *word == context::USER) else {
            words.clear();
            return self.chain(sample, words);
        };
        words.truncate(user + 1);
        if let Some(newest) = calls.next() {
            words.extend([newest.to, newest.from]);
        }
        words.extend(calls.map(|call| call.from));
        Ok(())
    }
}

/// Source of an event's callchains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainOrigin {
    /// Callchains from the kernel, which followed frame pointers.
    Recorded,
    /// Calls recorded by the hardware.
    Calls,
    /// Copied stacks.
    Copied,
    /// Calls and returns in the trace of a processor.
    Traced,
}

impl ChainOrigin {
    /// Flags of events whose callchains come from a trace: no part is the kernel's.
    pub(crate) const TRACED: AttrFlags =
        AttrFlags::EXCLUDE_CALLCHAIN_USER.union(AttrFlags::EXCLUDE_CALLCHAIN_KERNEL);

    /// Returns the source for an event with this attr.
    pub(crate) fn of(attr: &Attr) -> Self {
        let copied = SampleType::REGS_USER | SampleType::STACK_USER;
        if attr.flags.contains(Self::TRACED) {
            Self::Traced
        } else if !attr.sample_type.contains(SampleType::CALLCHAIN) {
            Self::Recorded
        } else if attr.sample_type.contains(SampleType::BRANCH_STACK)
            && attr.branch_sample_type.contains(BranchSampleType::CALL_STACK)
        {
            Self::Calls
        } else if attr.sample_type.contains(copied) {
            Self::Copied
        } else {
            Self::Recorded
        }
    }
}

/// All sources of a file's callchains: the state of one worker.
pub(crate) struct ChainSources<'u> {
    /// Source of chains as recorded.
    pub recorded: RecordedChains<'u>,
    unwinding: Option<(&'u StackUnwinder<'u>, Scratch)>,
    /// `true` if nothing marks missing callers, and recorded addresses are looked up as in perf.
    as_recorded: bool,
    /// User part of the kernel's chain of the sample at hand.
    links: Vec<u64>,
    /// How chains from copied stacks ended.
    pub ends: WorkerEnds,
}

impl<'u> ChainSources<'u> {
    /// Creates the sources; without `unwinding`, copied stacks are ignored. If `as_recorded`,
    /// nothing marks missing callers, and recorded addresses are looked up as in perf.
    pub(crate) fn new(
        recorded: RecordedChains<'u>,
        unwinding: Option<&'u StackUnwinder<'u>>,
        as_recorded: bool,
    ) -> Self {
        let unwinding = unwinding.map(|unwinding| (unwinding, Scratch::default()));
        Self { recorded, unwinding, as_recorded, links: Vec::new(), ends: WorkerEnds::default() }
    }

    /// Writes the chain of a sample into the empty `words`, as [`RecordedChains::chain`] does,
    /// perhaps with other markers before its user frames; leaves out what was recorded if that is
    /// damaged.
    #[inline]
    pub(crate) fn chain(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        match origin {
            ChainOrigin::Calls => self.recorded.with_hardware_calls(sample, words)?,
            ChainOrigin::Copied => {
                self.copied(sample, at, words)?;
                if self.as_recorded {
                    words.retain(|word| *word != MISSING);
                    for marker in words.iter_mut().filter(|word| **word == RETURNS) {
                        *marker = context::USER;
                    }
                }
                return Ok(());
            }
            ChainOrigin::Traced => {
                self.recorded.chain(sample, words)?;
                if !self.as_recorded {
                    for marker in words.iter_mut().filter(|word| **word == context::USER) {
                        *marker = RETURNS;
                    }
                }
                return Ok(());
            }
            ChainOrigin::Recorded => self.recorded.chain(sample, words)?,
        }
        if !is_sound(words) {
            words.clear();
        }
        if sample.waits_at_start()
            && let Some(marker) = words.iter_mut().find(|word| **word == context::USER)
        {
            // rec unwound it, not the kernel by frame pointers.
            *marker = RETURNS;
        }
        Ok(())
    }

    /// Writes the chain of a sample of an event that copies stacks.
    fn copied(
        &mut self,
        sample: &Sample<'_, '_>,
        at: SampleContext,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        let mut fields = SampleFields::default();
        sample.walk(const { UpTo::field(SampleType::STACK_USER) }, &mut fields)?;
        self.recorded.chain(sample, words)?;
        if !is_sound(words) {
            words.clear();
        }
        let Some((unwinding, scratch)) = &mut self.unwinding else { return Ok(()) };
        let registers = fields
            .regs_user
            .filter(|regs| regs.abi != RegsAbi::NONE && !unwinding.is_said_complete(regs));
        let user = words.iter().position(|word| *word == context::USER);
        let Some(registers) = registers else {
            if let Some(marker) = user.and_then(|user| words.get_mut(user)) {
                *marker = RETURNS;
                self.ends.recorded[0] += 1;
            }
            return Ok(());
        };
        let bytes = fields.stack_user.map(|stack| stack.copied()).unwrap_or_default();
        if bytes.is_empty() {
            self.cut_short(sample, at, user, words);
            return Ok(());
        }
        self.links.clear();
        if let Some(chain) = &fields.callchain {
            let recorded = chain.iter().skip_while(|word| *word != context::USER);
            self.links.extend(recorded.skip(2).take_while(|word| *word < context::MAX));
        }
        let all = words.len();
        words.push(UNWOUND);
        let stack = CopiedStack { registers: &registers, bytes, links: &self.links };
        let most = self.recorded.most.frames;
        let Some(mut end) = unwinding.sample(stack, at, most, scratch, words) else {
            words.truncate(all);
            return Ok(());
        };
        if matches!(end, End::Cut(_))
            && words.last().is_some_and(|last| unwinding.is_entry(*last, at))
        {
            end = End::Whole;
        }
        if let Some(user) = user {
            words.drain(user..all);
        }
        if matches!(end, End::Cut(_)) {
            words.push(MISSING);
        }
        self.ends.add(end);
        Ok(())
    }

    /// Completes a chain that its recorder could not complete, and of whose stack it kept nothing;
    /// `user` is the place of the marker of its user part.
    fn cut_short(
        &mut self,
        sample: &Sample<'_, '_>,
        at: SampleContext,
        user: Option<usize>,
        words: &mut Vec<u64>,
    ) {
        let Some((unwinding, _)) = &self.unwinding else { return };
        match (user.and_then(|user| words.get_mut(user)), sample.ip()) {
            (Some(marker), _) => *marker = RETURNS,
            (None, Some(ip)) if sample.cpu_mode() == CpuMode::User && !self.as_recorded => {
                words.extend([RETURNS, ip]);
            }
            // In the kernel, the process may be about to become another.
            _ => return,
        }
        let is_whole =
            words.last().is_some_and(|last| unwinding.is_entry(last.wrapping_sub(1), at));
        let [whole, cut] = &mut self.ends.recorded;
        *(if is_whole { whole } else { cut }) += 1;
        if !is_whole && words.len() < self.recorded.most.frames {
            words.push(MISSING);
        }
    }

    /// Returns whether chains of this origin are unwound.
    pub(crate) fn unwinds(&self, origin: ChainOrigin) -> bool {
        self.unwinding.is_some() && origin == ChainOrigin::Copied
    }
}

/// Cuts a chain to the limit; the frames left keep their context markers.
pub(crate) fn cut(words: &mut Vec<u64>, most: ChainLimit) {
    let frames = words.iter().filter(|word| **word < context::MAX).count();
    let too_many = frames.saturating_sub(most.frames);
    if too_many == 0 {
        return;
    }
    let places = if most.outermost { too_many..usize::MAX } else { 0..most.frames };
    let (mut place, mut marker, mut kept) = (0, None, Vec::with_capacity(words.len()));
    for word in words.iter().copied() {
        if word >= context::MAX {
            marker = Some(word);
            continue;
        }
        if places.contains(&place) {
            kept.extend(marker.take());
            kept.push(word);
        }
        place += 1;
    }
    *words = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_chain_keeps_the_context_markers_of_its_frames() {
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
