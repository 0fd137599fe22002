//! Identity of functions that share a name.
//!
//! A function is a place in a module, not a name: overloads, const methods, clones and static
//! functions share names. Two are one if their modules have one name, the files spell their names
//! alike (mangled), and, if the module has several functions of that name, their offsets are equal:
//! the offset of a function differs between two builds of a program, its mangled name does not.
//!
//! Code of a JIT has no functions in this sense, only names: a JIT compiles one function several
//! times.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use recrep_console::demangle;

use crate::query::Demangle;
use crate::symbols::module::Module;
use crate::symbols::module::ModuleKind;
use crate::symbols::names::table::{SymbolId, name_hash};
use crate::symbols::resolver::loaded::Loaded;

/// A function of a module.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    loaded: Arc<Loaded>,
    spelt: Spelt,
    name_hash: u64,
}

/// The name of a function as the file spells it.
#[derive(Clone, Debug)]
enum Spelt {
    /// That of a symbol.
    Symbol(SymbolId),
    /// That of an inlined function, mangled.
    Inlined(Box<str>),
}

impl Function {
    /// Returns the function of a symbol; `None` if functions of its module are told apart by name
    /// alone, and it has one.
    pub(crate) fn of_symbol(loaded: &Arc<Loaded>, id: SymbolId) -> Option<Self> {
        let module = &loaded.module;
        let has_names_alone =
            matches!(module.kind, ModuleKind::PerfMap { .. } | ModuleKind::KernelSymbol { .. })
                || module.is_jit_cache();
        if has_names_alone && !loaded.is_inferred(id) {
            return None;
        }
        let name_hash = name_hash(loaded.symbol(id).map(|symbol| symbol.name).unwrap_or_default());
        Some(Self { loaded: loaded.clone(), spelt: Spelt::Symbol(id), name_hash })
    }

    /// Returns an inlined function; `None` if its name is not mangled, and so does not tell it from
    /// others.
    pub(crate) fn inlined(loaded: &Arc<Loaded>, name: &str) -> Option<Self> {
        let (spelt, name_hash) = (Spelt::Inlined(name.into()), name_hash(name.as_bytes()));
        let function = Self { loaded: loaded.clone(), spelt, name_hash };
        demangle::is_mangled(name.as_bytes()).then_some(function)
    }

    /// Returns the name as the file spells it.
    pub(crate) fn name(&self) -> &[u8] {
        match &self.spelt {
            Spelt::Symbol(id) => {
                self.loaded.symbol(*id).map(|symbol| symbol.name).unwrap_or_default()
            }
            Spelt::Inlined(name) => name.as_bytes(),
        }
    }

    /// Returns whether the function has no name: it was inferred that there is one.
    pub(crate) fn is_inferred(&self) -> bool {
        matches!(self.spelt, Spelt::Symbol(id) if self.loaded.is_inferred(id))
    }

    /// Returns the hash of [`Function::name`].
    pub(crate) fn name_hash(&self) -> u64 {
        self.name_hash
    }

    /// Returns the offset in the module if the name does not tell the function from others;
    /// otherwise 0. The first call for a module reads all its names: most functions are told apart
    /// without.
    pub(crate) fn offset(&self) -> u64 {
        let Spelt::Symbol(id) = self.spelt else { return 0 };
        let start = self.loaded.start(id).filter(|_| self.loaded.shares_name(id));
        start.map_or(0, |start| start.wrapping_sub(base(&self.loaded.module)))
    }

    /// Returns the place in the file of a file's symbol.
    fn in_file(&self) -> Option<u64> {
        let Spelt::Symbol(id) = self.spelt else { return None };
        self.loaded.start(id).filter(|_| self.loaded.module.kind == ModuleKind::File)
    }

    /// Returns whether the modules are copies of one file, such as those of several containers.
    fn is_of_build(&self, other: &Self) -> bool {
        let (a, b) = (&self.loaded, &other.loaded);
        match (a.module.build_id, b.module.build_id) {
            (Some(a), Some(b)) => a.is_same(&b),
            (None, None) => Arc::ptr_eq(a, b) || a.fingerprint() == b.fingerprint(),
            _ => false,
        }
    }

    /// Returns whether all names of the module are printed in full.
    pub(crate) fn is_full(&self) -> bool {
        self.loaded.demangle == Demangle::Full
    }

    /// Returns the name of the module, by which modules are told apart.
    pub(crate) fn module(&self) -> &str {
        // The kernel's name depends on how it was recorded.
        if self.loaded.module.kind == ModuleKind::Kernel { "[kernel]" } else { &self.loaded.name }
    }

    /// Returns the name with all that distinguishes functions, or as the file spells it if names are
    /// not demangled.
    pub(crate) fn full_name(&self) -> Cow<'_, str> {
        self.loaded.whole(self.name())
    }
}

/// By what tells functions apart: an order that does not depend on that in which they were found.
impl Ord for Function {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.loaded, &other.loaded)
            && let (Spelt::Symbol(a), Spelt::Symbol(b)) = (&self.spelt, &other.spelt)
            && a == b
        {
            return Ordering::Equal;
        }
        let by_name = self.module().cmp(other.module()).then_with(|| self.name().cmp(other.name()));
        by_name.then_with(|| match (self.in_file(), other.in_file()) {
            // Of one build, equal names at different places are shared.
            (Some(a), Some(b)) if self.is_of_build(other) => a.cmp(&b),
            // Costly comparisons come last.
            _ => self.offset().cmp(&other.offset()),
        })
    }
}

impl PartialOrd for Function {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name_hash == other.name_hash && self.cmp(other).is_eq()
    }
}

impl Eq for Function {}

/// Returns the address from which offsets in a module are counted: the kernel and its modules are
/// loaded elsewhere after each start.
fn base(module: &Module) -> u64 {
    match &module.kind {
        ModuleKind::Kernel => {
            module.origin.reference.as_ref().map_or(0, |reference| reference.address)
        }
        ModuleKind::KernelModule { start } => *start,
        _ => 0,
    }
}
