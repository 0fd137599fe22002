//! The names of a profile by number, and the texts that are made of them.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::functions::{FunctionNames, Interned};
use super::{
    FrameCode, FrameId, FramePosition, FunctionId, FunctionLabel, Label, ModuleName, ModuleNameId,
    NamedFrame, Subject,
};
use crate::symbols::Function;

/// Names of all files of an answer.
#[derive(Debug, Default)]
pub struct ProfileNames {
    pub(super) functions: FunctionNames,
    pub(super) labels: Interned<Label>,
    pub(super) frames: Interned<NamedFrame>,
    pub(super) modules: Interned<ModuleName>,
}

/// Behind the name of an inlined function, as in perf.
pub(crate) const INLINED: &str = " (inlined)";

impl ProfileNames {
    /// Spells functions out whose short names others in their modules have.
    pub(crate) fn disambiguate(&mut self) {
        self.functions.disambiguate();
    }

    /// Returns the module with this number.
    pub(crate) fn module(&self, id: ModuleNameId) -> Option<&ModuleName> {
        self.modules.get_index(id.0 as usize)
    }
}

/// Text of a frame that stands for callers that are not known.
pub(crate) const CALLERS_UNKNOWN: &str = "[callers unknown]";

impl ProfileNames {
    /// Returns the name of a function as it is shown: the short one, unless others have that.
    pub(crate) fn spelled(&self, id: FunctionId) -> &str {
        let short = || self.functions.get(id).map_or("", |name| &name.short);
        self.disambiguated(id).unwrap_or_else(short)
    }

    /// Returns the longer name of a function whose short name others have.
    pub(crate) fn disambiguated(&self, id: FunctionId) -> Option<&str> {
        self.functions.spelled.get(&id).map(|name| &**name)
    }

    /// Returns the name of a function as its file spells it, if it is shown otherwise.
    pub(crate) fn mangled(&self, id: FunctionId) -> Option<String> {
        let name = String::from_utf8_lossy(self.function(id)?.name());
        (name != self.spelled(id)).then(|| name.into_owned())
    }

    /// Returns the name of a function with all that distinguishes it; `None` if no more than its
    /// short name is known.
    pub(crate) fn full_name(&self, id: FunctionId) -> Option<Cow<'_, str>> {
        self.function(id).map(Function::full_name)
    }

    /// Returns whether a function has no name: it was inferred that there is one.
    pub(crate) fn is_inferred(&self, id: FunctionId) -> bool {
        self.function(id).is_some_and(Function::is_inferred)
    }

    /// Compares functions, in an order that does not depend on their numbers. Those of which only
    /// the names are known come first.
    pub(crate) fn compare_functions(
        &self,
        a: Option<FunctionId>,
        b: Option<FunctionId>,
    ) -> Ordering {
        let [a, b] = [a, b].map(|id| self.function(id?));
        a.cmp(&b)
    }

    fn function(&self, id: FunctionId) -> Option<&Function> {
        self.functions.get(id)?.function.as_ref()
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

impl ProfileNames {
    pub(crate) fn frame(&self, id: FrameId) -> Option<&NamedFrame> {
        self.frames.get_index(id.0 as usize)
    }

    /// Returns the text of a frame: its function, or `module+address` without one. If frames are
    /// grouped by address or source line, that follows the function, as in perf: `function line`,
    /// or `function +offset` if the line is unknown.
    pub(crate) fn frame_text(&self, id: FrameId) -> Cow<'_, str> {
        let Some(frame) = self.frame(id) else { return "".into() };
        match frame.code {
            FrameCode::CallersUnknown => CALLERS_UNKNOWN.into(),
            FrameCode::Unmapped => "[unknown]".into(),
            FrameCode::Address(address) => match frame.module.and_then(|id| self.module(id)) {
                Some(module) => format!("{}+{address:#x}", module.name).into(),
                None => format!("{address:#x}").into(),
            },
            FrameCode::Function { function, is_inlined } => {
                let name = self.spelled(function);
                let inlined = if is_inlined { INLINED } else { "" };
                match &frame.position {
                    None if !is_inlined => name.into(),
                    None => [name, inlined].concat().into(),
                    Some(FramePosition::Line(line)) => format!("{name}{inlined} {line}").into(),
                    Some(FramePosition::Offset(offset)) => {
                        format!("{name}{inlined} +{offset}").into()
                    }
                }
            }
        }
    }

    /// Compares two frames by their texts, then by their modules, addresses and functions.
    pub(crate) fn compare_frames(&self, a: FrameId, b: FrameId) -> Ordering {
        let by_text = self.frame_text(a).cmp(&self.frame_text(b));
        let by_address = by_text.then_with(|| self.frame_address(a).cmp(&self.frame_address(b)));
        by_address.then_with(|| {
            let [a, b] = [a, b].map(|id| self.frame(id).and_then(NamedFrame::function));
            self.compare_functions(a, b)
        })
    }

    /// Returns the name of a frame's module, and its address in that.
    fn frame_address(&self, id: FrameId) -> (Option<&str>, Option<u64>) {
        let Some(frame) = self.frame(id) else { return (None, None) };
        let module = frame.module.and_then(|module| self.module(module));
        (module.map(|module| module.name.as_str()), frame.address)
    }
}
