//! Sources of callchains: the kernel following frame pointers, the hardware's record of calls, an
//! unwinder. All give chains in one form, so that later steps need not know the source.

use recrep_format::abi::{BranchSampleType, CpuMode, RecordType, SampleType, context};
use recrep_format::attr::Attr;
use recrep_format::bytes::U64s;
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::read::File;
use recrep_format::record::{Body, RawRecord, Sample, SampleFields};
use rustc_hash::FxHashMap;

use super::unwind::{Scratch, StackUnwinder};
use crate::count::metrics::share;
use crate::timeline::SampleContext;

/// Context markers that are known, and the CPU modes of the frames behind them.
const MARKERS: [(u64, CpuMode); 3] = [
    (context::KERNEL, CpuMode::Kernel),
    (context::USER, CpuMode::User),
    (context::HV, CpuMode::Hypervisor),
];

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
    pub(super) fn with_hardware_calls(
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
}

impl ChainOrigin {
    /// Returns the source for an event with this attr.
    pub(crate) fn of(attr: &Attr) -> Self {
        let copied = SampleType::REGS_USER | SampleType::STACK_USER;
        if !attr.sample_type.contains(SampleType::CALLCHAIN) {
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
                "{truncated} of {all} callchains ({percent:.1}%) lack outer frames: too little \
                 stack was copied; record with a larger copy (--call-graph dwarf,SIZE)"
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
    pub recorded: RecordedChains<'u>,
    unwinding: Option<(&'u StackUnwinder<'u>, Scratch)>,
    /// Addresses of the frames of the last chain that was unwound, innermost first.
    ips: Vec<u64>,
    /// Statistics on the chains from copied stacks.
    pub ends: UnwindStats,
}

impl<'u> ChainSources<'u> {
    /// Creates the sources; without `unwinding`, copied stacks are ignored.
    pub(crate) fn new(
        recorded: RecordedChains<'u>,
        unwinding: Option<&'u StackUnwinder<'u>>,
    ) -> Self {
        let unwinding = unwinding.map(|unwinding| (unwinding, Scratch::default()));
        Self { recorded, unwinding, ips: Vec::new(), ends: UnwindStats::default() }
    }

    /// Writes the chain of a sample into the empty `words`, as [`RecordedChains::chain`] does.
    #[inline]
    pub(crate) fn chain(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        if origin == ChainOrigin::Calls {
            return self.recorded.with_hardware_calls(sample, words);
        }
        self.recorded.chain(sample, words)?;
        if origin == ChainOrigin::Copied { self.unwind(sample, at, words) } else { Ok(()) }
    }

    /// Appends the frames of a sample's copied stack to `words`.
    fn unwind(
        &mut self,
        sample: &Sample<'_, '_>,
        at: SampleContext,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        let Some((unwinding, scratch)) = &mut self.unwinding else { return Ok(()) };
        let mut fields = SampleFields::default();
        sample.walk(const { UpTo::field(SampleType::STACK_USER) }, &mut fields)?;
        let (most, ips) = (self.recorded.most.frames, &mut self.ips);
        if let Some(is_truncated) = unwinding.sample(&fields, at, most, scratch, ips) {
            self.ends.add(UnwindStats { all: 1, truncated: is_truncated.into() });
            words.push(context::USER);
            words.extend(&self.ips);
        }
        Ok(())
    }

    /// Returns whether chains of this origin are unwound.
    pub(crate) fn unwinds(&self, origin: ChainOrigin) -> bool {
        self.unwinding.is_some() && origin == ChainOrigin::Copied
    }

    /// Returns the number of frames at the end of the last chain that were unwound.
    pub(crate) fn unwound(&self, origin: ChainOrigin) -> usize {
        if origin == ChainOrigin::Copied { self.ips.len() } else { 0 }
    }
}

/// Calls `frame` for each address of a chain, innermost first, with the CPU mode from the context
/// markers (`mode` before the first marker), and whether it is a return address: all are, except
/// the innermost of each mode.
pub(crate) fn for_each_address(
    mut mode: CpuMode,
    words: &[u64],
    mut frame: impl FnMut(CpuMode, u64, bool),
) {
    let mut is_return = false;
    for word in words {
        if let Some((_, next_mode)) = MARKERS.iter().find(|(marker, _)| marker == word) {
            (mode, is_return) = (*next_mode, false);
        } else {
            frame(mode, *word, is_return);
            is_return = true;
        }
    }
}

/// Cuts a chain to the limit; the frames left keep their context markers.
pub(super) fn cut(words: &mut Vec<u64>, most: ChainLimit) {
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

/// Returns whether all context markers in a chain are known. perf treats a chain with any other
/// marker as damaged and discards it whole: without frame pointers, callchains contain arbitrary
/// values, which can look like markers.
#[inline]
pub(crate) fn is_sound(words: &[u64]) -> bool {
    words
        .iter()
        .all(|word| *word < context::MAX || MARKERS.iter().any(|(marker, _)| marker == word))
}

/// Removes the sampled instruction, of this CPU mode, from a chain whose innermost frame it is, and
/// returns the number of words left, at the end of `words`; `None` if the chain starts elsewhere.
/// Many instructions share their callers, so these are kept alone.
#[inline]
pub(crate) fn callers(mode: CpuMode, ip: Option<u64>, words: &mut [u64]) -> Option<usize> {
    let marker = context_marker(mode);
    match words {
        [first, second, rest @ ..] if *first == marker && Some(*second) == ip => match rest.first()
        {
            None => Some(0),
            // No frame of this CPU mode is left.
            Some(next) if *next >= context::MAX => Some(rest.len()),
            Some(_) => {
                *second = marker;
                Some(rest.len() + 1)
            }
        },
        _ => None,
    }
}

/// Returns the context marker before frames of this CPU mode.
fn context_marker(mode: CpuMode) -> u64 {
    MARKERS.iter().find(|(_, of)| *of == mode).map_or(context::HV, |(marker, _)| *marker)
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

    #[test]
    fn context_markers_set_the_cpu_mode_of_later_addresses() {
        let of = |words: &[u64]| {
            let mut all = Vec::new();
            for_each_address(CpuMode::User, words, |mode, ip, is_return| {
                all.push((mode, ip, is_return));
            });
            all
        };
        let chain = [context::KERNEL, 1, 2, context::USER, 3];
        assert_eq!(
            of(&chain),
            [(CpuMode::Kernel, 1, false), (CpuMode::Kernel, 2, true), (CpuMode::User, 3, false)]
        );
        assert_eq!(
            of(&[7, context::HV, 8]),
            [(CpuMode::User, 7, false), (CpuMode::Hypervisor, 8, false)]
        );
    }
}
