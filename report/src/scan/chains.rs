//! Callchains in one worker.

use recrep_format::abi::SampleType;
use recrep_format::attr::Attr;
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::record::{Sample, SampleFields};

use super::naming::Naming;
use crate::callchain::unwind::{ChainSources, Origin, StackUnwinder, UnwindStats};
use crate::callchain::{
    ChainLimit, ChainRef, ChainSource, Frame, FrameFields, History, Interner, Recorded, callers, is_sound,
};
use crate::count::{End, Field, Key, Meta};
use crate::timeline::{Epoch, Moment, Task, Timeline};

/// Settings for the callchains of a file.
#[derive(Clone, Copy, Debug)]
pub struct ChainSettings<'f> {
    /// Recorded chains, and the limit on their frames.
    pub recorded: Recorded<'f>,
    /// Unwinder for copied stacks.
    pub unwinding: Option<&'f StackUnwinder<'f>>,
    /// Fields that distinguish frames.
    pub placed: FrameFields,
    /// Whether sampled instructions stay in their chains.
    pub whole: bool,
    /// `Some` if branches precede the callers (`--branch-history`); then, whether branch information is shown.
    pub history: Option<bool>,
    /// Names functions while samples are counted; `None` if the query needs source lines or offsets in functions.
    pub early: Option<&'f dyn Naming>,
}

/// Distinct callchains, and caches for finding the next sample's.
#[derive(Debug)]
pub(super) struct ChainCounter<'f> {
    /// Distinct lists of callers.
    pub(super) interner: Interner,
    sources: ChainSources<'f>,
    early: Option<&'f dyn Naming>,
    whole: bool,
    history: Option<History>,
    epoch: Option<Epoch>,
    words: Vec<u64>,
    functions: Vec<Function>,
}

/// An address and the function that replaces it; small, so that the cache can hold many. Module 0 marks an empty slot.
#[derive(Clone, Copy, Debug, Default)]
struct Function {
    module: u32,
    cpu_mode: u8,
    end: End,
    address: u64,
    named: u64,
}

/// Number of addresses in the cache of functions.
const CACHE_SIZE: u64 = 1 << 15;

impl<'f> ChainCounter<'f> {
    pub(super) fn new(chaining: &ChainSettings<'f>) -> Self {
        let ChainSettings { recorded, unwinding, early, whole, history, .. } = *chaining;
        Self {
            interner: Interner::default(),
            sources: ChainSources::new(recorded, unwinding),
            early,
            whole,
            history: history.map(|annotated| History::new(recorded.most, annotated)),
            epoch: None,
            words: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// Returns statistics on the chains from copied stacks.
    pub(super) fn ends(&self) -> UnwindStats {
        self.sources.ends()
    }

    /// Interns a sample's chain and returns the reference to it.
    #[inline]
    pub(super) fn of(
        &mut self,
        (sample, attr, origin): (&Sample<'_, '_>, &Attr, Origin),
        timeline: &Timeline,
        task: &Task,
        at: Moment,
    ) -> Result<ChainRef> {
        self.words.clear();
        let (sampled, words) = ((sample, attr, origin), &mut self.words);
        match &mut self.history {
            Some(history) if origin != Origin::Calls => {
                with_history(history, &mut self.sources, sampled, (task, at), words)
            }
            _ => self.sources.chain(sampled, task, at, words),
        }?;
        let whole = self.words.len();
        let is_historic = self.history.is_some();
        if whole == 0 || ((!is_historic || origin == Origin::Calls) && !is_sound(&self.words)) {
            return Ok(ChainRef::default());
        }
        let (own, words) = match if self.whole || is_historic { None } else { callers(sample, &mut self.words) } {
            Some(0) => return Ok(ChainRef { callers: 0, own: true }),
            Some(left) => (true, left),
            None => (false, whole),
        };
        let words = self.words.get(whole - words..).unwrap_or_default();
        let epoch = match self.epoch {
            Some(epoch) if epoch.covers(task.space, at) => epoch,
            _ => *self.epoch.insert(timeline.epoch(task.space, at)),
        };
        Ok(ChainRef { callers: self.interner.intern(epoch.of, at, words), own })
    }

    /// Replaces a key's address by its function. There are many instructions but few functions: with addresses, nearly
    /// each sample would have a key of its own.
    #[inline]
    pub(super) fn name(&mut self, key: &mut Key) {
        let Some(naming) = self.early else { return };
        let frame = Frame { ip: 0, size: 0, ..Frame::of(key) };
        if frame.module == 0 {
            return;
        }
        if self.functions.is_empty() {
            self.functions.resize(usize::try_from(CACHE_SIZE).unwrap_or(0), Function::default());
        }
        let mixed = (frame.address ^ u64::from(frame.module) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let Some(slot) = usize::try_from(mixed % CACHE_SIZE).ok().and_then(|at| self.functions.get_mut(at)) else {
            return;
        };
        let Frame { module, address, end, .. } = frame;
        if (slot.module, slot.address, slot.cpu_mode) != (module, address, end.cpu_mode) {
            let named = naming.frame(frame);
            *slot = Function { module, address, cpu_mode: end.cpu_mode, end: named.end, named: named.address };
        }
        let named = *slot;
        let meta = Meta { at: named.end, ..Meta::unpack(Field::Meta.of(key)) };
        *Field::Meta.of_mut(key) = meta.pack();
        *Field::Address.of_mut(key) = named.named;
    }
}

/// Writes a sample's chain into `words`, preceded by its branches; leaves `words` empty if the chain is damaged.
fn with_history(
    history: &mut History,
    sources: &mut ChainSources<'_>,
    (sample, attr, origin): (&Sample<'_, '_>, &Attr, Origin),
    (task, at): (&Task, Moment),
    words: &mut Vec<u64>,
) -> Result<()> {
    let mut fields = SampleFields::default();
    sample.walk(const { UpTo::field(SampleType::BRANCH_STACK) }, &mut fields)?;
    let is_unwound = sources.unwinds(origin);
    if is_unwound {
        sources.chain((sample, attr, origin), task, at, words)?;
    } else if fields.callchain.is_some() {
        // How much of it is kept depends on the branches.
        let recorded = sources.recorded();
        let mut whole = Recorded { most: ChainLimit { frames: usize::MAX, ..recorded.most }, ..recorded };
        whole.chain((sample, attr), task, at, words)?;
    }
    if !is_sound(words) {
        words.clear();
        return Ok(());
    }
    if let Some(stack) = fields.branch_stack {
        history.put(stack.entries(), !is_unwound, words);
    } else {
        history.put(std::iter::empty(), !is_unwound, words);
    }
    Ok(())
}
