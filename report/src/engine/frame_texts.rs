//! Frames as texts, which mean the same in all files.

use super::labeller::Labeller;
use crate::callchain::Frame;
use crate::profile::names::Label;
use crate::query::word_text::mode_name;
use crate::symbols::{LineId, LineOrName, SourceLine};

/// What is known of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameTexts {
    /// Function, or the address without one.
    pub function: String,
    /// Name of the function in the symbol table, if it is another.
    pub linkage_name: Option<String>,
    /// Base name of the module.
    pub module: String,
    pub path: Option<String>,
    pub build_id: Option<String>,
    pub cpu_mode: &'static str,
    /// `true` if it is inlined into the next frame.
    pub is_inlined: bool,
    /// Source file and line, if they were looked up and are known.
    pub line: Option<(String, u32)>,
}

impl Labeller<'_> {
    /// Returns what is known of a frame.
    pub(crate) fn frame_texts(&self, frame: &Frame) -> FrameTexts {
        let module = self.module(frame.module.into());
        let (function, linkage_name) = match self.function(frame) {
            Some(name) => {
                let function = self.distinct_function(frame);
                let linkage = function.map(|one| String::from_utf8_lossy(one.name()).into_owned());
                let linkage = linkage.filter(|linkage| *linkage != name);
                (name.into_owned(), linkage)
            }
            None => match self.address_label(frame) {
                Label::Text(text, _) => (text.into(), None),
                Label::Function(_) => Default::default(),
            },
        };
        let line = frame.line.checked_sub(1).and_then(|number| {
            let loaded = self.loaded(frame.module.into())?;
            match loaded.lines().get(LineId(number)) {
                LineOrName::Line(SourceLine { file, line, .. }) => Some((file.into(), line)),
                LineOrName::Name(_) => None,
            }
        });
        FrameTexts {
            function,
            linkage_name,
            module: module.map_or_else(|| "[unknown]".into(), |module| module.name().into_owned()),
            path: module.map(|module| String::from_utf8_lossy(&module.path).into_owned()),
            build_id: module.and_then(|module| Some(module.build_id?.to_string())),
            cpu_mode: mode_name(frame.end.cpu_mode),
            is_inlined: frame.end.is_inlined,
            line,
        }
    }
}
