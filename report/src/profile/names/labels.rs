//! Labels: what the cells of columns of names and texts show.

use std::hash::{Hash, Hasher};

use super::{FileOffset, FunctionId};
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
