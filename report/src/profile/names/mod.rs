//! Names of a profile: what the numbers in its rows and callchains stand for.
//!
//! ```text
//!   cell of a row ─► Label ─────┬─ a text that was recorded or formatted, and its subject
//!                               └─ FunctionId, with the mark before it and the offset behind
//!   frame of a chain ─► FrameId ─► NamedFrame ─┬─ FunctionId, or an address
//!                                              ├─ ModuleNameId ──► ModuleName
//!                                              └─ source line or offset
//!   FunctionId ─► short name, spelled name, Function
//! ```
//!
//! The files of an answer share them, so that what is equal has one number: of a thousand files,
//! nearly all show the same functions. Numbers depend on the order in which cores find names;
//! nothing that is printed does. Texts are made of the parts when a table or a tree is printed, and
//! nothing takes them apart again.

mod frames;
mod functions;
mod labels;
mod modules;
mod shared;

pub(crate) use frames::{CALLERS_UNKNOWN, FrameCode, FrameId, FramePosition, NamedFrame};
pub(crate) use functions::{FunctionId, FunctionName};
pub(crate) use labels::{FunctionLabel, Label, Subject};
pub(crate) use modules::{CodeKind, FileOffset, ModuleName, ModuleNameId};
pub(crate) use shared::{FRAME_SLOT, LABEL_SLOT, NewOrKnown, NumberSlot, SharedNames};

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use self::functions::FunctionNames;

/// Distinct values by number.
type Interned<T> = IndexSet<T, FxBuildHasher>;

/// Names of all files of an answer.
#[derive(Debug, Default)]
pub struct ProfileNames {
    functions: FunctionNames,
    labels: Interned<Label>,
    frames: Interned<NamedFrame>,
    modules: Interned<ModuleName>,
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

/// Returns the number of a value, adding the value if it is new.
fn number<T: Eq + std::hash::Hash>(numbers: &mut Interned<T>, value: T) -> u32 {
    u32::try_from(numbers.insert_full(value).0).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(crate) use modules::ModuleIdentity;
