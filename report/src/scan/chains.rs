//! The callchains that a worker meets.

use recrep_format::error::Result;
use recrep_format::record::Sample;

use super::task::Naming;
use crate::aggregate::{Field, Key, Meta};
use crate::callchain::{ChainSource, Chained, Frame, Interner, Recorded, Whereabouts, callers, is_sound};
use crate::timeline::{Moment, Stretch, Task, Timeline};

/// Distinct callchains, and what makes it cheap to find the one of the next sample.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Each distinct list of callers.
    pub(super) interner: Interner,
    source: Recorded,
    stretch: Option<Stretch>,
    words: Vec<u64>,
    functions: Vec<Option<(Frame, Frame)>>,
}

/// How many addresses are remembered with their functions.
const REMEMBERED: u64 = 1 << 14;

impl Chains {
    /// What a sample's chain is.
    #[inline]
    pub(super) fn of(
        &mut self,
        sample: &Sample<'_, '_>,
        timeline: &Timeline,
        task: &Task,
        at: Moment,
    ) -> Result<Chained> {
        self.words.clear();
        self.source.chain(sample, task, at, &mut self.words)?;
        let whole = self.words.len();
        if whole == 0 || !is_sound(&self.words) {
            return Ok(Chained::default());
        }
        let (own, words) = match callers(sample, &mut self.words) {
            Some(0) => return Ok(Chained { callers: 0, own: true }),
            Some(left) => (true, left),
            None => (false, whole),
        };
        let words = self.words.get(whole - words..).unwrap_or_default();
        let stretch = match self.stretch {
            Some(stretch) if stretch.covers(task.space, at) => stretch,
            _ => *self.stretch.insert(timeline.stretch(task.space, at)),
        };
        let Stretch { space, mapped, kernel, .. } = stretch;
        Ok(Chained { callers: self.interner.intern(Whereabouts { space, mapped, kernel }, at, words), own })
    }

    /// Puts the function in the place of a key's address. Instructions are many and functions few: with addresses, each
    /// sample would have a key of its own.
    #[inline]
    pub(super) fn name(&mut self, key: &mut Key, naming: &dyn Naming) {
        let frame = Frame { ip: 0, size: 0, ..Frame::of(key) };
        if frame.module == 0 {
            return;
        }
        if self.functions.is_empty() {
            self.functions.resize(usize::try_from(REMEMBERED).unwrap_or(0), None);
        }
        let mixed = (frame.address ^ u64::from(frame.module) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let Some(slot) = usize::try_from(mixed % REMEMBERED).ok().and_then(|at| self.functions.get_mut(at)) else {
            return;
        };
        let named = match slot {
            Some((known, named)) if *known == frame => *named,
            _ => slot.insert((frame, naming.frame(frame))).1,
        };
        let meta = Meta { at: named.end, ..Meta::unpack(Field::Meta.of(key)) };
        *Field::Meta.of_mut(key) = meta.pack();
        *Field::Address.of_mut(key) = named.address;
    }
}
