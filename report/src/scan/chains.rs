//! The callchains that a worker meets.

use recrep_format::abi::SampleType;
use recrep_format::attr::Attr;
use recrep_format::error::Result;
use recrep_format::layout::UpTo;
use recrep_format::record::{Sample, SampleFields};

use super::naming::Naming;
use crate::callchain::unwind::{ChainSources, Ends, Origin, Unwinding};
use crate::callchain::{
    ChainLimit, ChainRef, ChainSource, Frame, FrameFields, History, Interner, Recorded, SpaceEpoch, callers, is_sound,
};
use crate::count::{End, Field, Key, Meta};
use crate::timeline::{Epoch, Moment, Task, Timeline};

/// What is known of a file's callchains before its samples are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Chaining<'f> {
    /// What was recorded, and how much of it is wanted.
    pub recorded: Recorded<'f>,
    /// Unwinds copied stacks.
    pub unwinding: Option<&'f Unwinding<'f>>,
    /// What is wanted of frames.
    pub placed: FrameFields,
    /// Whether sampled instructions stay in their chains.
    pub whole: bool,
    /// Whether branches stand before callers, and if so, whether what is known of them is wanted.
    pub history: Option<bool>,
    /// Names functions while samples are counted; nothing where a part of a function is asked for.
    pub early: Option<&'f dyn Naming>,
}

/// Distinct callchains, and what makes it cheap to find the one of the next sample.
#[derive(Debug)]
pub(super) struct ChainCounter<'f> {
    /// Each distinct list of callers.
    pub(super) interner: Interner,
    sources: ChainSources<'f>,
    early: Option<&'f dyn Naming>,
    whole: bool,
    history: Option<History>,
    stretch: Option<Epoch>,
    words: Vec<u64>,
    functions: Vec<Function>,
}

/// An address and what stands in its place; small, so that many are remembered. Module 0 is none.
#[derive(Clone, Copy, Debug, Default)]
struct Function {
    module: u32,
    level: u8,
    end: End,
    address: u64,
    named: u64,
}

/// How many addresses are remembered with their functions.
const REMEMBERED: u64 = 1 << 15;

impl<'f> ChainCounter<'f> {
    pub(super) fn new(chaining: &Chaining<'f>) -> Self {
        let Chaining { recorded, unwinding, early, whole, history, .. } = *chaining;
        Self {
            interner: Interner::default(),
            sources: ChainSources::new(recorded, unwinding),
            early,
            whole,
            history: history.map(|annotated| History::new(recorded.most, annotated)),
            stretch: None,
            words: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// How the chains on copied stacks end.
    pub(super) fn ends(&self) -> Ends {
        self.sources.ends()
    }

    /// What a sample's chain is.
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
        let stretch = match self.stretch {
            Some(stretch) if stretch.covers(task.space, at) => stretch,
            _ => *self.stretch.insert(timeline.stretch(task.space, at)),
        };
        let Epoch { space, mapped, kernel, .. } = stretch;
        Ok(ChainRef { callers: self.interner.intern(SpaceEpoch { space, mapped, kernel }, at, words), own })
    }

    /// Puts the function in the place of a key's address. Instructions are many and functions few: with addresses, each
    /// sample would have a key of its own.
    #[inline]
    pub(super) fn name(&mut self, key: &mut Key) {
        let Some(naming) = self.early else { return };
        let frame = Frame { ip: 0, size: 0, ..Frame::of(key) };
        if frame.module == 0 {
            return;
        }
        if self.functions.is_empty() {
            self.functions.resize(usize::try_from(REMEMBERED).unwrap_or(0), Function::default());
        }
        let mixed = (frame.address ^ u64::from(frame.module) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let Some(slot) = usize::try_from(mixed % REMEMBERED).ok().and_then(|at| self.functions.get_mut(at)) else {
            return;
        };
        let Frame { module, address, end, .. } = frame;
        if (slot.module, slot.address, slot.level) != (module, address, end.level) {
            let named = naming.frame(frame);
            *slot = Function { module, address, level: end.level, end: named.end, named: named.address };
        }
        let named = *slot;
        let meta = Meta { at: named.end, ..Meta::unpack(Field::Meta.of(key)) };
        *Field::Meta.of_mut(key) = meta.pack();
        *Field::Address.of_mut(key) = named.named;
    }
}

/// The same with the sample's branches in front; nothing where the chain is damaged.
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
        // The branches decide how much of it is left.
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
