//! Frames of callchains: functions or addresses, with what else distinguishes them.

use std::hash::{Hash, Hasher};

use super::{FunctionId, ModuleNameId};
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

    pub(super) fn function(&self) -> Option<FunctionId> {
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
