//! Names of functions that would read alike.
//!
//! Names are short, without parameters, until two functions of one module read alike in one output:
//! then both are printed whole, and if that does not help, with their mangled names. Static
//! functions of one name read alike, as in perf, unless all names are asked for in full: then their
//! offsets follow. So do functions of different modules: what tells them apart is the module, a
//! column of its own.

use std::borrow::Cow;
use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};

use super::function::Function;
use super::labels::{Labels, Named};

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
    fn in_module(&self) -> (Cow<'l, str>, &'l str) {
        (self.function().module(), self.short())
    }
}

/// Has functions printed so that they differ in the cells of tables and in the frames of
/// callchains.
pub(crate) fn tell_apart(cells: &mut Labels, frames: &mut Labels) {
    let clashes: FxHashSet<(Cow<'_, str>, &str)> = alike(cells).chain(alike(frames)).collect();
    if clashes.is_empty() {
        return;
    }
    let (of_cells, of_frames) = {
        let mut uses: Vec<Use<'_>> = Vec::new();
        for (is_cell, labels) in [(true, &*cells), (false, &*frames)] {
            let of_function = |(number, text, named)| Use { is_cell, number, text, named };
            uses.extend(
                labels
                    .functions()
                    .map(of_function)
                    .filter(|used| clashes.contains(&used.in_module())),
            );
        }
        uses.sort_unstable_by_key(|used| {
            (used.short(), used.function(), used.is_cell, used.number)
        });
        let names = uses.chunk_by(|a, b| a.in_module() == b.in_module()).flat_map(spellings);
        let renamed = uses.iter().zip(names).filter(|(used, name)| used.short() != name);
        let (of_cells, of_frames): (Vec<_>, Vec<_>) = renamed.partition(|(used, _)| used.is_cell);
        let numbers = |list: Vec<(&Use<'_>, String)>| {
            list.into_iter().map(|(used, name)| (used.number, name)).collect()
        };
        (numbers(of_cells), numbers(of_frames))
    };
    cells.rename(of_cells);
    frames.rename(of_frames);
}

/// Returns the short names that several functions of a module have, with the module.
fn alike(labels: &Labels) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let mut first = FxHashMap::default();
    labels.functions().filter_map(move |(_, text, named)| {
        let name = (named.function.module(), named.in_text(text));
        match first.entry(name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(&named.function);
                None
            }
            Entry::Occupied(entry) => (*entry.get() != &named.function).then_some(name),
        }
    })
}

/// Returns the names for these uses of functions of one module that have one short name, sorted by
/// their functions.
fn spellings(uses: &[Use<'_>]) -> Vec<String> {
    let functions: Vec<&[Use<'_>]> = uses.chunk_by(|a, b| a.function() == b.function()).collect();
    if functions.len() < 2 {
        return uses.iter().map(|used| used.short().to_owned()).collect();
    }
    let wholes: Vec<Cow<'_, str>> =
        functions.iter().filter_map(|uses| Some(uses.first()?.function().whole())).collect();
    let of_wholes = counted(wholes.iter().map(|whole| whole.as_bytes()));
    let of_mangled =
        counted(functions.iter().filter_map(|uses| Some(uses.first()?.function().name())));
    let mut names = Vec::with_capacity(uses.len());
    for (uses, whole) in functions.into_iter().zip(&wholes) {
        for function in uses.iter().map(Use::function) {
            let mangled = function.name();
            let is_only =
                |counts: &FxHashMap<&[u8], usize>, name: &[u8]| counts.get(name) == Some(&1);
            names.push(if is_only(&of_wholes, whole.as_bytes()) {
                whole.to_string()
            } else if is_only(&of_mangled, mangled) {
                format!("{whole} ({})", String::from_utf8_lossy(mangled))
            } else if function.is_full() {
                format!("{whole} ({}+{:#x})", function.module(), function.offset())
            } else {
                whole.to_string()
            });
        }
    }
    names
}

fn counted<'n>(names: impl Iterator<Item = &'n [u8]>) -> FxHashMap<&'n [u8], usize> {
    let mut counts = FxHashMap::default();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}
