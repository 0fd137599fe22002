//! Modules by number.

use recrep_format::build_id::BuildId;

use crate::symbols::{Module, ModuleKind};

/// Number of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ModuleNameId(pub(super) u32);

/// An offset in the file of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileOffset {
    pub module: ModuleNameId,
    pub offset: u64,
}

/// Names of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ModuleName {
    /// The short name, as in columns.
    pub name: String,
    /// Its path, or what stands for that.
    pub long_name: String,
    /// The path as it was recorded.
    pub path: String,
    pub code: CodeKind,
    /// What else distinguishes it from others, if the output needs that.
    pub identity: ModuleIdentity,
}

/// Who made the code of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum CodeKind {
    #[default]
    User,
    Kernel,
    /// A JIT, at run time.
    Jit,
}

/// Identity of a module besides its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ModuleIdentity {
    pub build_id: Option<BuildId>,
    /// Load address of a module of the kernel; else 0.
    pub start: u64,
}

impl ModuleName {
    /// Returns the names of a module, with its identity if it `is_identified`.
    pub(super) fn from_module(module: &Module, is_identified: bool) -> Self {
        let start = if let ModuleKind::KernelModule { start } = module.kind { start } else { 0 };
        let identity = ModuleIdentity { build_id: module.build_id, start };
        Self {
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
        }
    }
}
