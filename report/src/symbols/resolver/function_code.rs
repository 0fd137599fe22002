//! The machine code of functions.
//!
//! ```text
//!   module      file: the mapped file or its cached copy · vdso: this process's · JIT: its dump
//!               kernel: its image, else /proc/kcore, which also has modules
//!      └──────► proven as for names ─► MachineCode of a FunctionPlace
//! ```
//!
//! A file that is not proven to be the recorded one has another function at the address: its code is
//! not shown, and [`NoCode`] says why.

use std::ffi::OsStr;
use std::fmt;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use object::elf::Machine;

use crate::symbols::elf::Segment;
use crate::symbols::elf::code::MachineCode;
use crate::symbols::file::Refusal;
use crate::symbols::module::{JitDump, Module, ModuleKind};
use crate::symbols::names::table::SymbolId;
use crate::symbols::outcome::{Attempt, Outcome, Source};
use crate::symbols::resolver::loaded::Loaded;
use crate::symbols::search::kernel::vdso;

/// Reason why there is no code of a function.
#[derive(Clone, Debug)]
pub(crate) enum NoCode {
    /// What was tried, each with the reason, and what would help.
    Refused(Vec<Attempt>, &'static str),
    Because(&'static str),
}

/// A function by its place: a symbol of a module, or an inferred function.
#[derive(Clone, Debug)]
pub(crate) struct FunctionPlace {
    loaded: Arc<Loaded>,
    symbol: SymbolId,
}

impl FunctionPlace {
    pub(crate) fn new(loaded: Arc<Loaded>, symbol: SymbolId) -> Self {
        Self { loaded, symbol }
    }

    pub(crate) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    pub(crate) fn module(&self) -> &Module {
        &self.loaded.module
    }

    /// Returns the addresses of the function in its module
    /// ([`ModuleKind::first_address`](super::ModuleKind::first_address)).
    pub(crate) fn range(&self) -> Range<u64> {
        self.loaded.symbol(self.symbol).map_or(0..0, |symbol| symbol.start..symbol.end)
    }

    /// Reads the function's code.
    ///
    /// # Errors
    /// Returns the reasons if no file with it is found or proven to be the recorded one.
    pub(crate) fn code(&self) -> Result<MachineCode, NoCode> {
        self.loaded.code(&self.range())
    }
}

impl Loaded {
    /// Reads code at addresses of the module. That of a JIT is in pieces: the range must begin
    /// with one.
    ///
    /// # Errors
    /// Returns the reasons if no file with it is found or proven to be the recorded one.
    pub(crate) fn code(&self, range: &Range<u64>) -> Result<MachineCode, NoCode> {
        let Self { module, search, kernel, .. } = self;
        let mut outcome = Outcome::default();
        let size = range.end.saturating_sub(range.start);
        let found = match &module.kind {
            ModuleKind::File => search.code(module, range.start, size, &mut outcome),
            ModuleKind::Vdso => vdso::kept_or_running(search, kernel, module, &mut outcome)
                .and_then(|file| {
                    MachineCode::in_image(&file.path, &file.image, range.start, size).ok()
                }),
            ModuleKind::KernelSymbol { .. } => {
                return Err(NoCode::Because("nothing keeps the code that the kernel generates"));
            }
            ModuleKind::Kernel | ModuleKind::KernelModule { .. } => {
                let is_image = module.kind == ModuleKind::Kernel;
                let in_image = is_image
                    .then(|| kernel.code_in_image(module, &search.options, range, &mut outcome));
                in_image.flatten().or_else(|| self.running_code(range, &mut outcome))
            }
            ModuleKind::PerfMap { dump: None, .. } => {
                return Err(NoCode::Because(
                    "a JIT's map has no code, only names: let the JIT write a jitdump",
                ));
            }
            ModuleKind::PerfMap { dump: Some(dump), .. } => self.jit_code(range, dump),
            ModuleKind::Opaque => None,
        };
        found.ok_or_else(|| {
            let mut attempts = outcome.attempts;
            attempts.retain(|attempt| {
                attempt.result.as_ref().is_err_and(|refusal| {
                    !matches!(refusal, Refusal::Missing | Refusal::NotRegular)
                })
            });
            match &module.kind {
                ModuleKind::Kernel if !attempts.is_empty() => {
                    NoCode::Refused(attempts, "; --vmlinux names an image of the kernel")
                }
                _ if !attempts.is_empty() => NoCode::Refused(attempts, ""),
                ModuleKind::Kernel => NoCode::Because(
                    "no image of the recorded kernel was found (--vmlinux names one), nor can its \
                     memory be read (/proc/kcore)",
                ),
                ModuleKind::KernelModule { .. } => NoCode::Because(
                    "code of kernel modules is read only from the kernel's memory, which cannot \
                                     be read (/proc/kcore)",
                ),
                ModuleKind::PerfMap { .. } => NoCode::Because("the jitdump lacks it"),
                _ => NoCode::Because("the recorded file is not on this machine"),
            }
        })
    }

    /// Reads code from the running kernel's memory.
    fn running_code(&self, range: &Range<u64>, outcome: &mut Outcome) -> Option<MachineCode> {
        let Self { module, search, kernel, .. } = self;
        let code = match search.options.symfs {
            Some(_) => Err(Refusal::Symfs),
            None => kernel.running_code(module, range),
        };
        code.map_err(|refusal| outcome.add(Source::Memory, "/proc/kcore", Err(refusal))).ok()
    }

    fn jit_code(&self, range: &Range<u64>, dump: &JitDump) -> Option<MachineCode> {
        let frames = self.search.jit_frames(&self.module)?;
        let code = frames.all.get(frames.find(range.start)?)?;
        let (address, bytes) = code.code_at(range)?;
        Some(MachineCode {
            address,
            bytes: bytes.get(..bytes.len().min(MachineCode::MAX))?.to_vec(),
            machine: Machine(frames.machine),
            path: Path::new(OsStr::from_bytes(&dump.path)).to_owned(),
            segments: vec![Segment::moved(address, range.start)],
        })
    }
}

impl PartialEq for FunctionPlace {
    fn eq(&self, other: &Self) -> bool {
        let is_module = || {
            Arc::ptr_eq(&self.loaded, &other.loaded) || self.loaded.module == other.loaded.module
        };
        self.symbol == other.symbol && is_module()
    }
}

impl fmt::Display for NoCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Because(why) => f.write_str(why),
            Self::Refused(attempts, help) => {
                let attempts: Vec<String> = attempts.iter().map(Attempt::to_string).collect();
                let attempts = attempts.join("; ");
                write!(f, "no file with its code is shown to be the recorded one: {attempts}{help}")
            }
        }
    }
}
