//! Names to which several cores add.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::functions::{FunctionNames, Interned, number};
use super::{FrameId, FunctionName, Label, ModuleName, ModuleNameId, NamedFrame, ProfileNames};
use crate::symbols::{CacheSlot, Module};

/// Names of all files of an answer, while the files are read.
#[derive(Debug, Default)]
pub(crate) struct SharedNames {
    functions: Mutex<FunctionNames>,
    labels: Mutex<Interned<Label>>,
    frames: Mutex<Interned<NamedFrame>>,
    modules: Mutex<Interned<ModuleName>>,
    /// `true` if symbols keep these numbers, which only one table of names may have them do.
    are_kept: bool,
}

/// A label or frame, or its number if that is known.
#[derive(Debug)]
pub(crate) enum NewOrKnown<'s, T> {
    Known(u32),
    /// A value, and where its number is kept.
    New(T, Option<NumberSlot<'s>>),
}

/// Slot of a symbol for the number of the label or the frame that shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberSlot<'s> {
    pub slot: &'s CacheSlot,
    /// Kind of the label: a symbol has one label of each kind.
    pub kind: u8,
}

/// Index of a symbol's slot for a label.
pub(crate) const LABEL_SLOT: usize = 0;
/// Index of a symbol's slot for a frame.
pub(crate) const FRAME_SLOT: usize = 1;

impl NumberSlot<'_> {
    /// Returns the number that is kept.
    pub(crate) fn get(self) -> Option<u32> {
        self.slot.get(self.kind)
    }
}

impl<'s, T> NewOrKnown<'s, T> {
    /// Replaces a new value.
    fn map<U>(self, value: impl FnOnce(T) -> U) -> NewOrKnown<'s, U> {
        match self {
            Self::Known(number) => NewOrKnown::Known(number),
            Self::New(new, slot) => NewOrKnown::New(value(new), slot),
        }
    }
}

impl SharedNames {
    /// Creates the names of all files whose symbols one resolver loads: the symbols keep numbers.
    pub(crate) fn of_resolver() -> Self {
        Self { are_kept: true, ..Self::default() }
    }

    /// Returns whether symbols keep these numbers.
    pub(crate) fn are_kept(&self) -> bool {
        self.are_kept
    }

    /// Returns the number of a module, adding the module if it is new. Its identity is kept if it
    /// `is_identified`.
    pub(crate) fn module(&self, module: &Module, is_identified: bool) -> ModuleNameId {
        let name = ModuleName::from_module(module, is_identified);
        ModuleNameId(number(&mut lock(&self.modules), name))
    }

    /// Returns the numbers of labels, adding new ones.
    pub(crate) fn labels(&self, labels: Vec<NewOrKnown<'_, Label<FunctionName>>>) -> Vec<u32> {
        let mut functions = lock(&self.functions);
        let labels: Vec<NewOrKnown<'_, Label>> = labels
            .into_iter()
            .map(|one| one.map(|label| label.with_function(|name| functions.number(name))))
            .collect();
        drop(functions);
        numbers(&self.labels, labels)
    }

    /// Returns the numbers of frames, adding new ones.
    pub(crate) fn frames(
        &self,
        frames: Vec<NewOrKnown<'_, NamedFrame<FunctionName>>>,
    ) -> Vec<FrameId> {
        let mut functions = lock(&self.functions);
        let frames: Vec<NewOrKnown<'_, NamedFrame>> = frames
            .into_iter()
            .map(|one| one.map(|frame| frame.with_function(|name| functions.number(name))))
            .collect();
        drop(functions);
        numbers(&self.frames, frames).into_iter().map(FrameId).collect()
    }

    pub(crate) fn into_names(self) -> ProfileNames {
        ProfileNames {
            functions: into_inner(self.functions),
            labels: into_inner(self.labels),
            frames: into_inner(self.frames),
            modules: into_inner(self.modules),
        }
    }
}

/// Returns the numbers of values, adding new ones, and keeps these numbers in their slots.
fn numbers<T: Eq + std::hash::Hash>(
    known: &Mutex<Interned<T>>,
    values: Vec<NewOrKnown<'_, T>>,
) -> Vec<u32> {
    let mut known = lock(known);
    let mut numbers = Vec::with_capacity(values.len());
    for value in values {
        numbers.push(match value {
            NewOrKnown::Known(number) => number,
            NewOrKnown::New(value, slot) => {
                let number = number(&mut known, value);
                if let Some(NumberSlot { slot, kind }) = slot {
                    slot.set(kind, number);
                }
                number
            }
        });
    }
    numbers
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
impl SharedNames {
    /// Returns the number of the label with this text.
    pub(crate) fn text(&self, text: &str) -> u64 {
        number(&mut lock(&self.labels), Label::text(text)).into()
    }
}

#[cfg(test)]
impl ProfileNames {
    /// Returns the number of the label with this text.
    pub(crate) fn add_text(&mut self, text: &str) -> u64 {
        number(&mut self.labels, Label::text(text)).into()
    }

    /// Returns the number of the frame of a function of which only the name is known.
    pub(crate) fn add_frame(&mut self, name: &str) -> FrameId {
        use super::FrameCode;
        let function = self.functions.number(FunctionName::new(name, None));
        let code = FrameCode::Function { function, is_inlined: false };
        FrameId(number(&mut self.frames, NamedFrame::from_code(code)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::SymbolCache;

    #[test]
    fn a_number_that_a_slot_keeps_is_found_again() {
        let (cache, names) = (SymbolCache::default(), SharedNames::default());
        let slot = |place| Some(NumberSlot { slot: cache.slot(place)?, kind: 1 });
        let kept = |place| slot(place).and_then(NumberSlot::get);
        assert_eq!(kept(LABEL_SLOT), None);
        let numbers = names.labels(vec![NewOrKnown::New(Label::text("f"), slot(LABEL_SLOT))]);
        assert_eq!((kept(LABEL_SLOT), kept(FRAME_SLOT)), (Some(numbers[0]), None));
        assert_eq!(names.labels(vec![NewOrKnown::Known(numbers[0])]), numbers);
    }
}
