//! Names of functions that would read alike.
//!
//! Names are short, without parameters, until two functions of one module read alike in one output:
//! then both are printed whole, and if that does not help, with their mangled names. Static
//! functions of one name read alike, as in perf, unless all names are asked for in full: then their
//! offsets follow. So do functions of different modules: what tells them apart is the module, a
//! column of its own.

use std::borrow::Cow;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{Labels, Named};
use crate::symbols::Function;

/// A text that names a function.
struct Use<'l> {
    is_cell: bool,
    number: usize,
    text: &'l str,
    named: &'l Named,
}

impl<'l> Use<'l> {
    fn short(&self) -> &'l str {
        self.named.in_text(self.text)
    }

    fn function(&self) -> &'l Function {
        &self.named.function
    }

    /// Returns the module and the short name.
    fn in_module(&self) -> (&'l str, &'l str) {
        (self.function().module(), self.short())
    }
}

/// A better name for the function in a text.
struct Renamed {
    is_cell: bool,
    number: usize,
    name: String,
}

/// Has functions printed so that they differ in the cells of tables and in the frames of
/// callchains.
pub(crate) fn tell_apart(cells: &mut Labels, frames: &mut Labels) {
    let (of_cells, of_frames) = rayon::join(|| alike(cells), || alike(frames));
    let clashes: FxHashSet<(&str, &str)> = of_cells.into_iter().chain(of_frames).collect();
    if clashes.is_empty() {
        return;
    }
    let mut uses: Vec<Use<'_>> = Vec::new();
    for (is_cell, labels) in [(true, &*cells), (false, &*frames)] {
        let all = labels.functions();
        let all = all.map(|(number, text, named)| Use { is_cell, number, text, named });
        uses.extend(all.filter(|used| clashes.contains(&used.in_module())));
    }
    uses.par_sort_unstable_by_key(|used| {
        (used.short(), used.function(), used.is_cell, used.number)
    });
    let of_names: Vec<&[Use<'_>]> = uses.chunk_by(|a, b| a.in_module() == b.in_module()).collect();
    let renamed: Vec<Renamed> = of_names.into_par_iter().flat_map_iter(spellings).collect();
    let (of_cells, of_frames): (Vec<_>, Vec<_>) =
        renamed.into_iter().partition(|renamed| renamed.is_cell);
    for (labels, renamed) in [(cells, of_cells), (frames, of_frames)] {
        if !renamed.is_empty() {
            labels.rename(renamed.into_iter().map(|renamed| (renamed.number, renamed.name)));
        }
    }
}

/// Returns the short names that several functions of a module have, with the module.
fn alike(labels: &Labels) -> Vec<(&str, &str)> {
    let mut first = FxHashMap::default();
    first.reserve(labels.len());
    let mut found = Vec::new();
    for (_, text, named) in labels.functions() {
        let name = (named.function.module(), named.in_text(text));
        if *first.entry(name).or_insert(&named.function) != &named.function {
            found.push(name);
        }
    }
    found
}

/// Returns better names for these uses of functions of one module that have one short name, sorted
/// by their functions.
fn spellings(uses: &[Use<'_>]) -> Vec<Renamed> {
    let functions: Vec<&[Use<'_>]> = uses.chunk_by(|a, b| a.function() == b.function()).collect();
    if functions.len() < 2 {
        return Vec::new();
    }
    let of_each = || functions.iter().filter_map(|uses| Some(uses.first()?.function()));
    let wholes: Vec<Cow<'_, str>> = of_each().map(Function::whole).collect();
    let of_wholes = counted(wholes.iter().map(|whole| whole.as_bytes()));
    let of_mangled = counted(of_each().map(Function::name));
    let mut renamed = Vec::with_capacity(uses.len());
    for ((uses, function), whole) in functions.iter().zip(of_each()).zip(&wholes) {
        let mangled = function.name();
        let name = if of_wholes.get(whole.as_bytes()) == Some(&1) {
            whole.to_string()
        } else if of_mangled.get(mangled) == Some(&1) {
            format!("{whole} ({})", String::from_utf8_lossy(mangled))
        } else if function.is_full() {
            format!("{whole} ({}+{:#x})", function.module(), function.offset())
        } else {
            whole.to_string()
        };
        let changed = uses.iter().filter(|used| used.short() != name);
        renamed.extend(changed.map(|used| Renamed {
            is_cell: used.is_cell,
            number: used.number,
            name: name.clone(),
        }));
    }
    renamed
}

fn counted<'n>(names: impl Iterator<Item = &'n [u8]>) -> FxHashMap<&'n [u8], usize> {
    let mut counts = FxHashMap::default();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}
