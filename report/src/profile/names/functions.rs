//! Functions by number, each with its names.
//!
//! Names are short, without parameters, until two functions of one module read alike in one output:
//! then both are spelled in full, and if that does not help, with their mangled names. Static
//! functions of one name read alike, as in perf, unless all names are asked for in full: then their
//! offsets follow. So do functions of different modules: the module, a column of its own,
//! distinguishes them.

use std::borrow::Cow;

use indexmap::IndexSet;
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::symbols::Function;

/// Distinct values by number.
pub(super) type Interned<T> = IndexSet<T, FxBuildHasher>;

/// Number of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FunctionId(pub(super) u32);

/// A function as it is shown. Functions that read alike are different, unless only their names are
/// known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FunctionName {
    pub(super) short: Box<str>,
    /// `None` if only its name distinguishes it from others.
    pub(super) function: Option<Function>,
}

impl FunctionName {
    pub(crate) fn new(short: &str, function: Option<Function>) -> Self {
        Self { short: short.into(), function }
    }
}

impl std::hash::Hash for FunctionName {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // Thousands of functions may read alike.
        (&self.short, self.function.as_ref().map(Function::name_hash)).hash(state);
    }
}

/// The functions of an answer.
#[derive(Debug, Default)]
pub(super) struct FunctionNames {
    all: Interned<FunctionName>,
    /// Names of those whose short names others have.
    pub(super) spelled: FxHashMap<FunctionId, Box<str>>,
}

/// A function whose short name another has.
#[derive(Clone, Copy)]
struct Namesake<'n> {
    id: FunctionId,
    short: &'n str,
    function: &'n Function,
}

impl<'n> Namesake<'n> {
    /// Returns the module and the short name.
    fn in_module(&self) -> (&'n str, &'n str) {
        (self.function.module(), self.short)
    }
}

impl FunctionNames {
    /// Returns the number of a function, adding the function if it is new.
    pub(super) fn number(&mut self, name: FunctionName) -> FunctionId {
        FunctionId(number(&mut self.all, name))
    }

    pub(super) fn get(&self, id: FunctionId) -> Option<&FunctionName> {
        self.all.get_index(id.0 as usize)
    }

    /// Iterates over the functions that are known by more than their names.
    fn known(&self) -> impl Iterator<Item = Namesake<'_>> {
        (0..).zip(&self.all).filter_map(|(number, name)| {
            let function = name.function.as_ref()?;
            Some(Namesake { id: FunctionId(number), short: &name.short, function })
        })
    }

    /// Spells functions out that would read alike.
    pub(super) fn disambiguate(&mut self) {
        let shared = self.shared_names();
        if shared.is_empty() {
            return;
        }
        let mut namesakes: Vec<Namesake<'_>> =
            self.known().filter(|one| shared.contains(&one.in_module())).collect();
        namesakes.par_sort_unstable_by_key(|one| (one.short, one.function, one.id));
        let of_names: Vec<&[Namesake<'_>]> =
            namesakes.chunk_by(|a, b| a.in_module() == b.in_module()).collect();
        let spelled: FxHashMap<FunctionId, Box<str>> =
            of_names.into_par_iter().flat_map_iter(spellings).collect();
        self.spelled = spelled;
    }

    /// Returns the short names that several functions of a module have, with the module.
    fn shared_names(&self) -> FxHashSet<(&str, &str)> {
        let mut first = FxHashMap::default();
        first.reserve(self.all.len());
        let mut shared = FxHashSet::default();
        for one in self.known() {
            if *first.entry(one.in_module()).or_insert(one.function) != one.function {
                shared.insert(one.in_module());
            }
        }
        shared
    }
}

/// Returns better names for these functions of one module that have one short name, sorted.
fn spellings(namesakes: &[Namesake<'_>]) -> Vec<(FunctionId, Box<str>)> {
    let functions: Vec<&[Namesake<'_>]> =
        namesakes.chunk_by(|a, b| a.function == b.function).collect();
    if functions.len() < 2 {
        return Vec::new();
    }
    let of_each = || functions.iter().filter_map(|equal| Some(equal.first()?.function));
    let full: Vec<Cow<'_, str>> = of_each().map(Function::full_name).collect();
    let of_full = counted(full.iter().map(|name| name.as_bytes()));
    let of_mangled = counted(of_each().map(Function::name));
    let mut spelled = Vec::with_capacity(namesakes.len());
    for ((equal, function), full) in functions.iter().zip(of_each()).zip(&full) {
        let mangled = function.name();
        let name = if of_full.get(full.as_bytes()) == Some(&1) {
            full.to_string()
        } else if of_mangled.get(mangled) == Some(&1) {
            format!("{full} ({})", String::from_utf8_lossy(mangled))
        } else if function.is_full() {
            format!("{full} ({}+{:#x})", function.module(), function.offset())
        } else {
            full.to_string()
        };
        let changed = equal.iter().filter(|one| one.short != name);
        spelled.extend(changed.map(|one| (one.id, name.as_str().into())));
    }
    spelled
}

fn counted<'n>(names: impl Iterator<Item = &'n [u8]>) -> FxHashMap<&'n [u8], usize> {
    let mut counts = FxHashMap::default();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Returns the number of a value, adding the value if it is new.
pub(super) fn number<T: Eq + std::hash::Hash>(numbers: &mut Interned<T>, value: T) -> u32 {
    u32::try_from(numbers.insert_full(value).0).unwrap_or(u32::MAX)
}
