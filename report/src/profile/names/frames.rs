//! Frames of callchains: functions or addresses, with what else distinguishes them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::{FunctionId, INLINED, ModuleNameId, ProfileNames};
use crate::symbols::{LineOrName, SourceLine};

/// Number of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub(crate) u32);

/// A frame of callchains.
#[derive(Debug)]
pub(crate) struct NamedFrame<F = FunctionId> {
    pub code: FrameCode<F>,
    /// `None` if nothing was mapped.
    pub module: Option<ModuleNameId>,
    /// Address in the module's own terms, if frames are grouped by address; where nothing was mapped,
    /// the recorded one.
    pub address: Option<u64>,
    /// Position in the function, if frames are grouped by source line or address.
    pub position: Option<FramePosition>,
    /// First address of the function, if frames are grouped by address.
    pub start: Option<u64>,
}

/// Code of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FrameCode<F = FunctionId> {
    /// None: the frame stands for callers that are not known.
    CallersUnknown,
    /// None: nothing was mapped.
    Unmapped,
    /// An address without a function, in the module's own terms; without a module, the recorded
    /// one.
    Address(u64),
    Function {
        function: F,
        /// `true` for an inlined function; the frame that contains it follows in chains.
        is_inlined: bool,
    },
}

/// Position of a frame in its function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FramePosition {
    Line(LineOrName),
    /// Offset of an address whose source line is unknown.
    Offset(u32),
}

impl<F> NamedFrame<F> {
    /// Creates a frame with this code alone.
    pub(crate) fn from_code(code: FrameCode<F>) -> Self {
        Self { code, module: None, address: None, position: None, start: None }
    }

    /// Replaces the function.
    pub(super) fn with_function<G>(self, function: impl FnOnce(F) -> G) -> NamedFrame<G> {
        let Self { code, module, address, position, start } = self;
        let code = match code {
            FrameCode::CallersUnknown => FrameCode::CallersUnknown,
            FrameCode::Unmapped => FrameCode::Unmapped,
            FrameCode::Address(address) => FrameCode::Address(address),
            FrameCode::Function { function: of, is_inlined } => {
                FrameCode::Function { function: function(of), is_inlined }
            }
        };
        NamedFrame { code, module, address, position, start }
    }
}

impl NamedFrame {
    /// Returns what distinguishes frames: where a function starts may differ between builds.
    fn identity(&self) -> (&FrameCode, Option<ModuleNameId>, Option<u64>, Option<&FramePosition>) {
        (&self.code, self.module, self.address, self.position.as_ref())
    }

    /// Returns the source line, if frames are grouped by it and it is known.
    pub(crate) fn source_line(&self) -> Option<&SourceLine> {
        match &self.position {
            Some(FramePosition::Line(LineOrName::Line(line))) => Some(line),
            _ => None,
        }
    }

    fn function(&self) -> Option<FunctionId> {
        match self.code {
            FrameCode::Function { function, .. } => Some(function),
            _ => None,
        }
    }
}

impl Hash for NamedFrame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl PartialEq for NamedFrame {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for NamedFrame {}

/// Text of a frame that stands for callers that are not known.
pub(crate) const CALLERS_UNKNOWN: &str = "[callers unknown]";

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
