//! Which rows of two sides are the same function, across builds.
//!
//! ```text
//!   name ─► module key        libz.so.1.3 ─► libz.so, [JIT] tid 7 ─► [JIT]
//!        ─► function key      parse.isra.0.cold ─► parse, core[3f2a]::fmt ─► core::fmt
//!                             numbers of closures apart: {closure#2} ─► {closure}, 2
//!                             of JITs without tiers, folders, generated numbers (jit)
//!
//!   same keys ─► one function: its names stay rows if both sides have the same ones,
//!                else they are one row; code of a JIT is always one row
//!   left over ─► the function of another module, if it is the only one on both sides
//! ```
//!
//! Nothing is guessed beyond that; what else was renamed shows in times and callers.

mod jit;
mod keys;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use jit::function_key;
pub(crate) use jit::function_text;
use keys::FunctionKey;
pub(crate) use keys::{JIT, module_key, module_text};

/// Name of a row, as one side has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowName<'n> {
    /// Path or printed name of the module; empty if rows are not told apart by it.
    pub module: &'n str,
    /// What tells the module's file from others: its build ID, or device and inode.
    pub identity: Option<&'n str>,
    pub code: CodeName<'n>,
    /// All other cells, which must be equal.
    pub rest: &'n str,
}

/// The code that a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CodeName<'n> {
    /// All of it: functions are no part of the key.
    Any,
    /// A function, by the name that its file has: mangled, if it is.
    Function(&'n str),
    /// An address of the module without a function.
    Address(u64),
}

/// A row of both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matched {
    /// Numbers of base's names.
    pub base: Vec<usize>,
    /// Numbers of new's names.
    pub new: Vec<usize>,
    /// `true` if the sides have different names for it, apart from hashes of the compiler.
    pub is_renamed: bool,
    /// `true` if it stands for all addresses of a module without functions, which cannot be told
    /// apart between builds: `module+?`.
    pub is_unknown: bool,
    /// `true` if it is a function whose module is not the same file on both sides, so that it may
    /// have another name there.
    pub is_rebuilt: bool,
}

/// Returns the rows of two sides, given their names without repetition: sorted by key, so that the
/// order of names does not matter.
pub(crate) fn matched(base: &[RowName<'_>], new: &[RowName<'_>]) -> Vec<Matched> {
    let modules = ModuleKeys::of(base, new);
    let functions = function_keys(base, new, &modules);
    let mut groups: BTreeMap<Group<'_>, [Vec<NamedEntry<'_>>; 2]> = BTreeMap::new();
    for (side, names) in [base, new].into_iter().enumerate() {
        for (number, name) in names.iter().enumerate() {
            let (group, key) = keyed(name, &modules, &functions);
            let sides = groups.entry(group).or_default();
            let FunctionKey { numbers, shown, folders, .. } = key;
            let entry = NamedEntry { name: *name, number, numbers, shown, folders };
            sides.get_mut(side).into_iter().for_each(|entries| entries.push(entry.clone()));
        }
    }
    let mut rows: Vec<(Group<'_>, Matched)> = Vec::new();
    for (group, [base, new]) in groups {
        let is_function = matches!(group.code, CodeKey::Function(_));
        let is_rebuilt = is_function && !modules.same.contains(&group.module);
        for sides in closures_paired(&group, base, new) {
            let of_function = rows_of(&group, sides).into_iter();
            rows.extend(of_function.map(|row| (group.clone(), Matched { is_rebuilt, ..row })));
        }
    }
    join_moved(rows)
}

/// Keys of modules by their names, and which are the same file on both sides.
struct ModuleKeys<'n> {
    of_names: FxHashMap<&'n str, Cow<'n, str>>,
    same: BTreeSet<Cow<'n, str>>,
}

impl<'n> ModuleKeys<'n> {
    fn of(base: &[RowName<'n>], new: &[RowName<'n>]) -> Self {
        let distinct: FxHashSet<&str> = base.iter().chain(new).map(|name| name.module).collect();
        let of_names = distinct.into_iter().map(|module| (module, module_key(module))).collect();
        Self { same: same_files(base, new, &of_names), of_names }
    }

    fn key(&self, name: &RowName<'n>) -> Cow<'n, str> {
        self.of_names.get(name.module).cloned().unwrap_or_default()
    }
}

/// Returns the keys of all functions of files that differ. Demangling takes most of the time of matching,
/// and most names are on both sides.
fn function_keys<'n>(
    base: &[RowName<'n>],
    new: &[RowName<'n>],
    modules: &ModuleKeys<'n>,
) -> FunctionKeys<'n> {
    let names = base.iter().chain(new).filter_map(|name| {
        let CodeName::Function(function) = name.code else { return None };
        let module = modules.key(name);
        (!modules.same.contains(&module)).then(|| (module == JIT, function))
    });
    let distinct: FxHashSet<(bool, &str)> = names.collect();
    let key = |(is_jit, name): (bool, &'n str)| {
        ((is_jit, name), function_key(if is_jit { JIT } else { "" }, name))
    };
    distinct.into_par_iter().map(key).collect()
}

/// Keys by names, those of code that JITs made apart.
type FunctionKeys<'n> = FxHashMap<(bool, &'n str), FunctionKey>;

/// Returns the group of a name, and the key of its function. In one and the same file each function has
/// its own name.
fn keyed<'n>(
    name: &RowName<'n>,
    modules: &ModuleKeys<'n>,
    functions: &FunctionKeys<'n>,
) -> (Group<'n>, FunctionKey) {
    let module = modules.key(name);
    let is_same = modules.same.contains(&module);
    let (code, key) = match name.code {
        CodeName::Any => (CodeKey::Any, FunctionKey::default()),
        CodeName::Function(function) if is_same => {
            (CodeKey::Function(function.into()), FunctionKey::default())
        }
        CodeName::Function(function) => {
            let of_name = (module == JIT, function);
            let mut key = functions.get(&of_name).cloned().unwrap_or_default();
            (CodeKey::Function(std::mem::take(&mut key.text).into()), key)
        }
        CodeName::Address(address) if is_same => {
            (CodeKey::Address(address), FunctionKey::default())
        }
        CodeName::Address(_) => (CodeKey::Unknown, FunctionKey::default()),
    };
    (Group { module, code, rest: name.rest }, key)
}

/// What names of one function have in common, but for the numbers of closures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group<'n> {
    module: Cow<'n, str>,
    code: CodeKey<'n>,
    rest: &'n str,
}

impl Group<'_> {
    fn is_jit(&self) -> bool {
        self.module == JIT
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CodeKey<'n> {
    Any,
    Function(Cow<'n, str>),
    Address(u64),
    Unknown,
}

/// A name in its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NamedEntry<'n> {
    name: RowName<'n>,
    number: usize,
    numbers: Vec<u64>,
    shown: String,
    folders: Vec<String>,
}

/// Returns the modules that are the same file on both sides, so that their addresses mean the same.
fn same_files<'n>(
    base: &[RowName<'n>],
    new: &[RowName<'n>],
    keys: &FxHashMap<&'n str, Cow<'n, str>>,
) -> BTreeSet<Cow<'n, str>> {
    let mut files: BTreeMap<Cow<'_, str>, [BTreeSet<Option<&str>>; 2]> = BTreeMap::new();
    for (side, names) in [base, new].into_iter().enumerate() {
        for name in names {
            let Some(key) = keys.get(name.module) else { continue };
            let sides = files.entry(key.clone()).or_default();
            sides.get_mut(side).into_iter().for_each(|files| _ = files.insert(name.identity));
        }
    }
    let same = files
        .into_iter()
        .filter(|(_, [base, new])| base == new && base.len() == 1 && !base.contains(&None));
    same.map(|(module, _)| module).collect()
}

/// Entries of one function on base's and on new's side.
type Sides<'n> = (Vec<NamedEntry<'n>>, Vec<NamedEntry<'n>>);

/// Splits a group by the numbers of closures. Numbers move when a closure is added before others,
/// so that those which only one side has are paired in order, if they are equally many.
///
/// Lines and columns of scripts move with every line that is added, and by chance to where another
/// function was: with JITs, equally many are always paired in order.
fn closures_paired<'n>(
    group: &Group<'n>,
    base: Vec<NamedEntry<'n>>,
    new: Vec<NamedEntry<'n>>,
) -> Vec<Sides<'n>> {
    let [base_names, new_names] = [&base, &new].map(|entries| {
        entries.iter().map(|entry| entry.name.code).collect::<BTreeSet<CodeName<'n>>>()
    });
    let exact: BTreeSet<Vec<u64>> = base
        .iter()
        .chain(&new)
        .filter(|entry| {
            !group.is_jit()
                && base_names.contains(&entry.name.code)
                && new_names.contains(&entry.name.code)
        })
        .map(|entry| entry.numbers.clone())
        .collect();
    let numbers = |entries: &[NamedEntry<'n>]| -> BTreeSet<Vec<u64>> {
        let numbers = entries.iter().map(|entry| entry.numbers.clone());
        numbers.filter(|numbers| !exact.contains(numbers)).collect()
    };
    let (base_numbers, new_numbers) = (numbers(&base), numbers(&new));
    let renumbered: BTreeMap<Vec<u64>, Vec<u64>> = match base_numbers.len() == new_numbers.len() {
        true => new_numbers.into_iter().zip(base_numbers).collect(),
        false => BTreeMap::new(),
    };
    let mut paired: BTreeMap<Vec<u64>, Sides<'n>> = BTreeMap::new();
    for entry in base {
        paired.entry(entry.numbers.clone()).or_default().0.push(entry);
    }
    for entry in new {
        let numbers = renumbered.get(&entry.numbers).unwrap_or(&entry.numbers);
        paired.entry(numbers.clone()).or_default().1.push(entry);
    }
    paired.into_values().collect()
}

/// Returns the rows of a function: one for each name if both sides have the same names, else one.
fn rows_of<'n>(group: &Group<'n>, (mut base, mut new): Sides<'n>) -> Vec<Matched> {
    if group.is_jit() && group.code != CodeKey::Unknown {
        return folders_paired((base, new), 0).into_iter().map(one_row).collect();
    }
    // Two files of one name may have the same function: names come first.
    for side in [&mut base, &mut new] {
        side.sort_by(|a, b| (a.name.code, a).cmp(&(b.name.code, b)));
    }
    let is_unknown = group.code == CodeKey::Unknown;
    let same =
        base.len() == new.len() && base.iter().zip(&new).all(|(a, b)| a.name.code == b.name.code);
    if same && !is_unknown {
        let one = |(base, new): (&NamedEntry<'_>, &NamedEntry<'_>)| Matched {
            base: vec![base.number],
            new: vec![new.number],
            ..Matched::default()
        };
        return base.iter().zip(&new).map(one).collect();
    }
    vec![Matched { is_unknown, ..one_row((base, new)) }]
}

/// Returns the row of all of these names.
fn one_row((base, new): Sides<'_>) -> Matched {
    let is_renamed = !base.is_empty() && !new.is_empty() && shown(&base) != shown(&new);
    let numbers = |entries: Vec<NamedEntry<'_>>| entries.iter().map(|entry| entry.number).collect();
    Matched { base: numbers(base), new: numbers(new), is_renamed, ..Matched::default() }
}

/// Splits the names of a script's function by folders, from the last one on, as far as both sides
/// have them: a checkout is elsewhere, and `json/__init__.py` is not `csv/__init__.py`. `depth` is the
/// number of folders that they have in common.
fn folders_paired(sides: Sides<'_>, depth: usize) -> Vec<Sides<'_>> {
    let (base, new) = sides;
    let mut by_folder: BTreeMap<Option<String>, Sides<'_>> = BTreeMap::new();
    for (side, entries) in [base, new].into_iter().enumerate() {
        for entry in entries {
            let folder = entry.folders.get(depth).cloned();
            let (base, new) = by_folder.entry(folder).or_default();
            if side == 0 { base } else { new }.push(entry);
        }
    }
    let mut found = Vec::new();
    let mut left: Sides<'_> = (Vec::new(), Vec::new());
    for (folder, (base, new)) in by_folder {
        if base.is_empty() || new.is_empty() || folder.is_none() {
            left.0.extend(base);
            left.1.extend(new);
        } else {
            found.extend(folders_paired((base, new), depth + 1));
        }
    }
    if !left.0.is_empty() || !left.1.is_empty() {
        found.push(left);
    }
    found
}

/// Returns the names as people know them.
fn shown<'e>(entries: &'e [NamedEntry<'_>]) -> BTreeSet<&'e str> {
    entries.iter().map(|entry| entry.shown.as_str()).collect()
}

/// Joins functions that only one side has with those of another module, if there is exactly one on
/// each side.
fn join_moved(rows: Vec<(Group<'_>, Matched)>) -> Vec<Matched> {
    let mut places: BTreeMap<(Cow<'_, str>, &str), [Vec<usize>; 2]> = BTreeMap::new();
    for (place, (group, row)) in rows.iter().enumerate() {
        if let CodeKey::Function(function) = &group.code
            && row.base.is_empty() != row.new.is_empty()
        {
            let sides = places.entry((function.clone(), group.rest)).or_default();
            let side = usize::from(row.base.is_empty());
            sides.get_mut(side).into_iter().for_each(|places| places.push(place));
        }
    }
    let pairs = places.values().filter_map(|sides| match sides {
        [base, new] => {
            Some((*base.first()?, *new.first()?)).filter(|_| base.len() + new.len() == 2)
        }
    });
    let mut rows: Vec<Matched> = rows.into_iter().map(|(_, row)| row).collect();
    for (base, new) in pairs {
        let moved = rows.get_mut(new).map(std::mem::take).unwrap_or_default();
        if let Some(row) = rows.get_mut(base) {
            row.new = moved.new;
            row.is_renamed = true;
            row.is_rebuilt |= moved.is_rebuilt;
        }
    }
    rows.retain(|row| !row.base.is_empty() || !row.new.is_empty());
    rows
}

#[cfg(test)]
mod tests;
