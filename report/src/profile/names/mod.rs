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
mod profile_names;
mod shared;

pub(crate) use frames::{FrameCode, FrameId, FramePosition, NamedFrame};
pub(crate) use functions::{FunctionId, FunctionName};
pub(crate) use labels::{FunctionLabel, Label, Subject};
pub(crate) use modules::{CodeKind, FileOffset, ModuleName, ModuleNameId};
pub(crate) use profile_names::{CALLERS_UNKNOWN, INLINED, ProfileNames};
pub(crate) use shared::{FRAME_SLOT, LABEL_SLOT, NewOrKnown, NumberSlot, SharedNames};

#[cfg(test)]
pub(crate) use modules::ModuleIdentity;
