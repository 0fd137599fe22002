//! Labels: what the cells of columns of names and texts show.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::{FileOffset, FunctionId, INLINED, ProfileNames};
use crate::symbols::FunctionPlace;

/// What a cell shows. Its number is the cell.
#[derive(Debug)]
pub(crate) enum Label<F = FunctionId> {
    Function(FunctionLabel<F>),
    /// A text, and its subject. Equal texts are one label, unless they are functions of two builds.
    Text(Box<str>, Subject),
}

/// A function in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FunctionLabel<F = FunctionId> {
    pub function: F,
    pub is_inlined: bool,
    /// Letter of the CPU mode, unless that is a column of its own.
    pub mark: Option<char>,
    /// Offset in the function, if the column shows it.
    pub offset: Option<u64>,
}

/// What a text stands for.
#[derive(Debug, Default)]
pub(crate) enum Subject {
    /// Itself.
    #[default]
    Text,
    /// The word of a key that it was made of: flags, or a data source.
    Word(u64),
    /// A thread or process by its number.
    Task(i32),
    /// An address without a function, in its module's terms.
    Address(u64),
    FileOffset(FileOffset),
    FunctionPlace(FunctionPlace),
}

impl<F> Label<F> {
    /// Creates a label that shows a recorded or formatted text, which stands for itself.
    pub(crate) fn text(text: impl Into<Box<str>>) -> Self {
        Self::Text(text.into(), Subject::Text)
    }

    /// Replaces the function.
    pub(super) fn with_function<G>(self, function: impl FnOnce(F) -> G) -> Label<G> {
        match self {
            Self::Function(FunctionLabel { function: of, is_inlined, mark, offset }) => {
                Label::Function(FunctionLabel { function: function(of), is_inlined, mark, offset })
            }
            Self::Text(text, subject) => Label::Text(text, subject),
        }
    }
}

impl Hash for Label {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Function(function) => function.hash(state),
            Self::Text(text, _) => text.hash(state),
        }
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Function(a), Self::Function(b)) => a == b,
            (Self::Text(a, of_a), Self::Text(b, of_b)) => a == b && of_a.is_same(of_b),
            _ => false,
        }
    }
}

impl Eq for Label {}

impl Subject {
    /// Returns whether this and the subject of an equal text are one.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::FunctionPlace(a), Self::FunctionPlace(b)) => a == b,
            _ => true,
        }
    }
}

impl ProfileNames {
    /// Returns the number of labels.
    pub(crate) fn labels(&self) -> usize {
        self.labels.len()
    }

    fn label(&self, number: u64) -> Option<&Label> {
        usize::try_from(number).ok().and_then(|number| self.labels.get_index(number))
    }

    /// Returns the function of a label; `None` if it shows none.
    pub(crate) fn label_function(&self, number: u64) -> Option<FunctionId> {
        match self.label(number)? {
            Label::Function(label) => Some(label.function),
            Label::Text(..) => None,
        }
    }

    /// Returns what the text of a label stands for; `None` if that is a function.
    pub(crate) fn label_subject(&self, number: u64) -> Option<&Subject> {
        match self.label(number)? {
            Label::Function(_) => None,
            Label::Text(_, subject) => Some(subject),
        }
    }

    /// Returns the text of a label.
    pub(crate) fn label_text(&self, number: u64) -> Cow<'_, str> {
        match self.label(number) {
            Some(Label::Function(label)) => self.function_text(label),
            Some(Label::Text(text, _)) => (&**text).into(),
            None => "".into(),
        }
    }

    /// Returns the text of a function in a cell, `[k] name (inlined)+0x12`: the letter of the CPU
    /// mode and the offset only if the cell has them.
    fn function_text(&self, label: &FunctionLabel) -> Cow<'_, str> {
        let FunctionLabel { function, is_inlined, mark, offset } = *label;
        let name = self.spelled(function);
        if mark.is_none() && offset.is_none() && !is_inlined {
            return name.into();
        }
        let mut text = String::with_capacity(4 + name.len());
        if let Some(letter) = mark {
            text.extend(['[', letter, ']', ' ']);
        }
        text.push_str(name);
        text.push_str(if is_inlined { INLINED } else { "" });
        if let Some(offset) = offset {
            text.push_str(&format!("+{offset:#x}"));
        }
        text.into()
    }

    /// Compares two labels by their texts, equal ones by their functions.
    pub(crate) fn compare_labels(&self, a: u64, b: u64) -> Ordering {
        let by_text = self.label_text(a).cmp(&self.label_text(b));
        by_text.then_with(|| self.compare_functions(self.label_function(a), self.label_function(b)))
    }
}
