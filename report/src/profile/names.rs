//! Texts of tables, call trees and folded stacks, each with a number.
//!
//! The files of an answer share them, so that equal texts have equal numbers, and a symbol keeps
//! the number of the text that was made of its name: of a thousand files, nearly all show the same
//! functions. Texts of different functions have different numbers, even if they are equal
//! ([`Function`]).

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexSet;
use rayon::prelude::*;
use recrep_format::build_id::BuildId;
use rustc_hash::FxBuildHasher;

use crate::symbols::{Function, FunctionPlace, LabelSlot, Module, ModuleKind};

#[derive(Debug, Default)]
pub struct Labels {
    all: IndexSet<Label, FxBuildHasher>,
}

/// A text, and what it stands for.
#[derive(Debug)]
struct Label {
    text: String,
    subject: Subject,
    /// Of the text and the function's name: thousands of functions may read alike.
    hash: u64,
}

/// What a text stands for.
#[derive(Debug, Default)]
pub enum Subject {
    /// Itself.
    #[default]
    Text,
    /// The word of a key that it was made of: flags, or a data source.
    Word(u64),
    /// A thread or process by its number; the text is that, a colon and the name.
    Task(i32),
    /// A function; `None` if only its name tells it from others.
    Function(Option<Named>),
    /// An address without a function, in its module's terms.
    Address(u64),
    /// An offset in the file of a module.
    Place { module: ModuleNumber, offset: u64 },
    /// A function, as a place in its module.
    FunctionPlace(FunctionPlace),
    /// A frame of callchains.
    Frame(NamedFrame),
}

/// Number of a module among [`AnswerLabels::modules`].
pub(crate) type ModuleNumber = u32;

/// What the text of a frame stands for.
#[derive(Debug, Default)]
pub struct NamedFrame {
    pub module: Option<ModuleNumber>,
    /// Address in the module's own terms, if frames are told apart by it; where nothing was mapped,
    /// the recorded one.
    pub address: Option<u64>,
    /// First address of the function, if frames are told apart by their addresses.
    pub start: Option<u64>,
    /// `path:line` or `file:line`, if frames are told apart by it and it is known.
    pub line: Option<Box<str>>,
    /// `true` for an inlined function; the frame that contains it follows in chains.
    pub is_inlined: bool,
    /// Length of the function's name, with which the text begins; `None` if no function is known.
    pub name_len: Option<usize>,
    /// The function, unless only its name tells it from others.
    pub named: Option<Named>,
}

/// Names of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModuleName {
    /// The short name, as in columns.
    pub name: String,
    /// Its path, or what stands for that.
    pub long_name: String,
    /// The path as it was recorded.
    pub path: String,
    pub code: CodeKind,
    /// What else tells it from others, if the output needs that.
    pub identity: ModuleIdentity,
}

/// Who made the code of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CodeKind {
    #[default]
    User,
    Kernel,
    /// A JIT, at run time.
    Jit,
}

/// Identity of a module besides its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModuleIdentity {
    pub build_id: Option<BuildId>,
    /// Load address of a module of the kernel; else 0.
    pub start: u64,
}

impl Subject {
    /// Returns the function, if the text names one that is known by more than its name.
    fn named(&self) -> Option<&Named> {
        match self {
            Self::Function(named) | Self::Frame(NamedFrame { named, .. }) => named.as_ref(),
            _ => None,
        }
    }

    /// Returns whether the function has no name: its text is that of the place where it begins.
    pub fn is_inferred(&self) -> bool {
        self.named().is_some_and(|named| named.function.is_inferred())
    }

    fn named_mut(&mut self) -> Option<&mut Named> {
        match self {
            Self::Function(named) | Self::Frame(NamedFrame { named, .. }) => named.as_mut(),
            _ => None,
        }
    }

    /// Returns whether this and the subject of an equal text are one.
    fn is(&self, other: &Self) -> bool {
        if let (Self::Frame(a), Self::Frame(b)) = (self, other)
            && (a.module, a.address) != (b.module, b.address)
        {
            return false;
        }
        if let (Self::FunctionPlace(a), Self::FunctionPlace(b)) = (self, other)
            && a != b
        {
            return false;
        }
        match (self.named(), other.named()) {
            (Some(a), Some(b)) => a.function == b.function,
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

/// A function, and where its name is in a text.
#[derive(Debug)]
pub struct Named {
    pub function: Function,
    pub at: Range<usize>,
    /// `true` if the name is the whole one, as the short one does not tell the function from
    /// others.
    pub is_whole: bool,
}

/// Texts of all files of an answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerLabels {
    pub cells: SharedLabels,
    /// Texts of frames.
    pub frames: SharedLabels,
    modules: Mutex<IndexSet<ModuleName, FxBuildHasher>>,
}

impl AnswerLabels {
    /// Returns the number of a module, adding the module if it is new.
    /// Its identity is kept if it `is_identified`.
    pub(crate) fn module(&self, module: &Module, is_identified: bool) -> ModuleNumber {
        let start = if let ModuleKind::KernelModule { start } = module.kind { start } else { 0 };
        let identity = ModuleIdentity { build_id: module.build_id, start };
        let name = ModuleName {
            identity: if is_identified { identity } else { ModuleIdentity::default() },
            name: module.name().into_owned(),
            long_name: module.long_name().into_owned(),
            path: String::from_utf8_lossy(&module.path).into_owned(),
            code: match module.kind {
                ModuleKind::Kernel
                | ModuleKind::KernelModule { .. }
                | ModuleKind::KernelSymbol { .. } => CodeKind::Kernel,
                ModuleKind::PerfMap { .. } => CodeKind::Jit,
                ModuleKind::File | ModuleKind::Vdso | ModuleKind::Opaque => CodeKind::User,
            },
        };
        let mut all = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        u32::try_from(all.insert_full(name).0).unwrap_or(u32::MAX)
    }

    /// Returns the texts of cells and frames, and the modules.
    pub(crate) fn into_parts(self) -> (Labels, Labels, Vec<ModuleName>) {
        let modules = self.modules.into_inner().unwrap_or_else(PoisonError::into_inner);
        (self.cells.into_inner(), self.frames.into_inner(), modules.into_iter().collect())
    }
}

/// Texts to which several cores add.
#[derive(Debug, Default)]
pub(crate) struct SharedLabels(Mutex<Labels>);

impl SharedLabels {
    /// Waits until no other core adds texts.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Labels> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn into_inner(self) -> Labels {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text, or its number if that is known.
#[derive(Debug)]
pub enum Text<'s> {
    Known(u32),
    /// A text, what it stands for, and a slot that keeps its number for this kind of text.
    New(String, Subject, Option<(&'s LabelSlot, u8)>),
}

impl<'s> Text<'s> {
    /// Returns the text of a kind whose number a slot keeps, if it does.
    pub fn known(slot: Option<(&'s LabelSlot, u8)>) -> Option<Self> {
        slot.and_then(|(slot, kind)| slot.get(kind)).map(Self::Known)
    }
}

impl Hash for Label {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text && self.subject.is(&other.subject)
    }
}

impl Eq for Label {}

impl Label {
    fn new(text: String, subject: Subject) -> Self {
        let function = subject.named().map(|named| named.function.name_hash());
        let hash = FxBuildHasher.hash_one((&text, function));
        Self { text, subject, hash }
    }
}

impl Named {
    /// Creates a function whose name is `length` bytes of a text, from `start` on.
    pub fn new(function: Function, start: usize, length: usize) -> Self {
        Self { function, at: start..start + length, is_whole: false }
    }

    /// Returns the function's name, given the text.
    pub fn in_text<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.at.clone()).unwrap_or_default()
    }
}

impl Labels {
    /// Returns the number of a text that stands for itself, adding the text if it is new.
    pub fn intern(&mut self, text: String) -> u32 {
        self.add(text, Subject::Text)
    }

    fn add(&mut self, text: String, subject: Subject) -> u32 {
        u32::try_from(self.all.insert_full(Label::new(text, subject)).0).unwrap_or(u32::MAX)
    }

    /// Returns the number of a text, and keeps it in the text's slot.
    pub fn number(&mut self, text: Text<'_>) -> u32 {
        match text {
            Text::Known(label) => label,
            Text::New(text, subject, slot) => {
                let label = self.add(text, subject);
                if let Some((slot, kind)) = slot {
                    slot.set(kind, label);
                }
                label
            }
        }
    }

    /// Makes room for this many new texts.
    pub fn reserve(&mut self, texts: usize) {
        self.all.reserve(texts);
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Iterates over all texts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|label| label.text.as_str())
    }

    /// Iterates over the texts that name functions, with their numbers.
    pub(super) fn functions(&self) -> impl Iterator<Item = (usize, &str, &Named)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(number, label)| {
            Some((number, label.text.as_str(), label.subject.named()?))
        })
    }

    /// Replaces the names of functions in some texts.
    pub(super) fn rename(&mut self, names: impl Iterator<Item = (usize, String)>) {
        let mut all: Vec<Label> = std::mem::take(&mut self.all).into_iter().collect();
        for (number, name) in names {
            if let Some(label) = all.get_mut(number)
                && let Some(named) = label.subject.named_mut()
            {
                let mut text = std::mem::take(&mut label.text);
                text.replace_range(named.at.clone(), &name);
                named.at.end = named.at.start + name.len();
                named.is_whole = true;
                *label = Label::new(text, std::mem::take(&mut label.subject));
            }
        }
        self.all = all.into_iter().collect();
    }

    /// Returns the place of each text in sorted order, among all texts or only those that are
    /// `used`, by number; 0 for the others. Equal texts have the same place.
    pub fn ranks(&self, used: Option<&[bool]>) -> Vec<u32> {
        let numbered = self.iter().zip(0u32..).filter(|(_, number)| {
            used.is_none_or(|used| used.get(*number as usize) == Some(&true))
        });
        let mut order: Vec<(u128, u32)> =
            numbered.map(|(text, number)| (first_bytes(text), number)).collect();
        let text = |number: u32| self.text(number.into());
        order.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| text(a.1).cmp(text(b.1))));
        let mut ranks = vec![0; self.all.len()];
        let (mut rank, mut before) = (0, None);
        for (first, number) in order {
            let is_equal =
                before.is_some_and(|(other, of)| other == first && text(of) == text(number));
            rank += u32::from(before.is_some() && !is_equal);
            before = Some((first, number));
            if let Some(slot) = ranks.get_mut(number as usize) {
                *slot = rank;
            }
        }
        ranks
    }

    /// Compares two texts, equal ones by the functions that they name: their numbers depend on the
    /// order in which they were found.
    pub fn compare(&self, a: u64, b: u64) -> Ordering {
        self.text(a).cmp(self.text(b)).then_with(|| self.function(a).cmp(&self.function(b)))
    }

    fn function(&self, number: u64) -> Option<&Function> {
        Some(&self.subject(number).named()?.function)
    }

    /// Returns the text with this number.
    pub fn text(&self, number: u64) -> &str {
        self.label(number).map_or("", |label| label.text.as_str())
    }

    /// Returns the name of the function in a text as its file spells it, if it is shown otherwise.
    pub fn mangled(&self, number: u64) -> Option<String> {
        let Label { text, subject, .. } = self.label(number)?;
        let named = subject.named()?;
        let name = String::from_utf8_lossy(named.function.name());
        (name != named.in_text(text)).then(|| name.into_owned())
    }

    /// Returns what the text with this number stands for.
    pub fn subject(&self, number: u64) -> &Subject {
        self.label(number).map_or(&Subject::Text, |label| &label.subject)
    }

    fn label(&self, number: u64) -> Option<&Label> {
        usize::try_from(number).ok().and_then(|number| self.all.get_index(number))
    }
}

/// Text of a frame that stands for those that are not known.
pub(crate) const CALLERS_UNKNOWN: &str = "[callers unknown]";

/// Texts of frames, with the modules that their numbers mean.
#[derive(Clone, Copy, Debug)]
pub struct FrameNames<'p> {
    pub labels: &'p Labels,
    pub modules: &'p [ModuleName],
}

impl FrameNames<'_> {
    /// Compares two frames by their texts, then by their modules, addresses and functions.
    pub fn compare(&self, a: u32, b: u32) -> Ordering {
        let (a, b) = (a.into(), b.into());
        let by_text = self.labels.text(a).cmp(self.labels.text(b));
        let by_place = by_text.then_with(|| self.place(a).cmp(&self.place(b)));
        by_place.then_with(|| self.labels.function(a).cmp(&self.labels.function(b)))
    }

    fn place(&self, frame: u64) -> (Option<&str>, Option<u64>) {
        let Subject::Frame(frame) = self.labels.subject(frame) else { return (None, None) };
        let module = frame.module.and_then(|module| self.modules.get(module as usize));
        (module.map(|module| module.name.as_str()), frame.address)
    }
}

/// Returns the first 16 bytes of a text, and zeros after its end, as a number by which texts are
/// sorted.
pub(crate) fn first_bytes(text: &str) -> u128 {
    let mut first = [0; 16];
    first.iter_mut().zip(text.bytes()).for_each(|(into, byte)| *into = byte);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::LabelSlots;

    #[test]
    fn a_known_text_is_not_made_again() {
        let (slots, mut labels) = (LabelSlots::default(), Labels::default());
        let place = Some((&slots.cell, 1));
        assert!(Text::known(place).is_none());
        let label = labels.number(Text::New("f".into(), Subject::Text, place));
        assert_eq!(Text::known(place).map(|text| labels.number(text)), Some(label));
        assert!(Text::known(Some((&slots.frame, 1))).is_none() && Text::known(None).is_none());
    }
}
