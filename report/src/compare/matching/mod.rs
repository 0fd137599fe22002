//! Which rows of two sides are the same function, across builds.
//!
//! ```text
//!   name ─► module key        libz.so.1.3 ─► libz.so, [JIT] tid 7 ─► [JIT]
//!        ─► function key      parse.isra.0.cold ─► parse, core[3f2a]::fmt ─► core::fmt
//!                             numbers of closures apart: {closure#2} ─► {closure}, 2
//!
//!   same keys ─► one function: its names stay rows if both sides have the same ones,
//!                else they are one row
//!   left over ─► the function of another module, if it is the only one on both sides
//! ```
//!
//! Nothing is guessed beyond that.

mod keys;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use keys::{FunctionKey, function_key};
pub(crate) use keys::{function_text, module_key};

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
}

/// Returns the rows of two sides, given their names without repetition: sorted by key, so that the
/// order of names does not matter.
pub(crate) fn matched(base: &[RowName<'_>], new: &[RowName<'_>]) -> Vec<Matched> {
    let same_files = same_files(base, new);
    let functions = function_keys(base, new);
    let mut groups: BTreeMap<Group<'_>, [Vec<NamedEntry<'_>>; 2]> = BTreeMap::new();
    for (side, names) in [base, new].into_iter().enumerate() {
        for (number, name) in names.iter().enumerate() {
            let (group, key) = keyed(name, &same_files, &functions);
            let sides = groups.entry(group).or_default();
            let entry = NamedEntry { name: *name, number, numbers: key.numbers, shown: key.shown };
            sides.get_mut(side).into_iter().for_each(|entries| entries.push(entry.clone()));
        }
    }
    let mut rows: Vec<(Group<'_>, Matched)> = Vec::new();
    for (group, [base, new]) in groups {
        for sides in closures_paired(base, new) {
            rows.extend(rows_of(&group, sides).into_iter().map(|row| (group.clone(), row)));
        }
    }
    join_moved(rows)
}

/// Returns the keys of all functions. Demangling takes most of the time of matching, and most names are
/// on both sides.
fn function_keys<'n>(base: &[RowName<'n>], new: &[RowName<'n>]) -> FxHashMap<&'n str, FunctionKey> {
    let names = base.iter().chain(new).filter_map(|name| match name.code {
        CodeName::Function(function) => Some(function),
        _ => None,
    });
    let distinct: FxHashSet<&str> = names.collect();
    distinct.into_par_iter().map(|name| (name, function_key(name))).collect()
}

/// Returns the group of a name, and the key of its function.
fn keyed<'n>(
    name: &RowName<'n>,
    same_files: &BTreeSet<Cow<'n, str>>,
    functions: &FxHashMap<&'n str, FunctionKey>,
) -> (Group<'n>, FunctionKey) {
    let module = module_key(name.module);
    let (code, key) = match name.code {
        CodeName::Any => (CodeKey::Any, FunctionKey::default()),
        CodeName::Function(function) => {
            let mut key = functions.get(function).cloned().unwrap_or_default();
            (CodeKey::Function(std::mem::take(&mut key.text)), key)
        }
        CodeName::Address(address) if same_files.contains(&module) => {
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
    code: CodeKey,
    rest: &'n str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CodeKey {
    Any,
    Function(String),
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
}

/// Returns the modules that are the same file on both sides, so that their addresses mean the same.
fn same_files<'n>(base: &[RowName<'n>], new: &[RowName<'n>]) -> BTreeSet<Cow<'n, str>> {
    let mut files: BTreeMap<Cow<'_, str>, [BTreeSet<Option<&str>>; 2]> = BTreeMap::new();
    for (side, names) in [base, new].into_iter().enumerate() {
        for name in names {
            let sides = files.entry(module_key(name.module)).or_default();
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
fn closures_paired<'n>(base: Vec<NamedEntry<'n>>, new: Vec<NamedEntry<'n>>) -> Vec<Sides<'n>> {
    let [base_names, new_names] = [&base, &new].map(|entries| {
        entries.iter().map(|entry| entry.name.code).collect::<BTreeSet<CodeName<'n>>>()
    });
    let exact: BTreeSet<Vec<u64>> = base
        .iter()
        .chain(&new)
        .filter(|entry| {
            base_names.contains(&entry.name.code) && new_names.contains(&entry.name.code)
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
    let is_renamed = !base.is_empty() && !new.is_empty() && shown(&base) != shown(&new);
    let numbers = |entries: Vec<NamedEntry<'_>>| entries.iter().map(|entry| entry.number).collect();
    vec![Matched { base: numbers(base), new: numbers(new), is_renamed, is_unknown }]
}

/// Returns the names as people know them.
fn shown<'e>(entries: &'e [NamedEntry<'_>]) -> BTreeSet<&'e str> {
    entries.iter().map(|entry| entry.shown.as_str()).collect()
}

/// Joins functions that only one side has with those of another module, if there is exactly one on
/// each side.
fn join_moved(rows: Vec<(Group<'_>, Matched)>) -> Vec<Matched> {
    let mut places: BTreeMap<(String, &str), [Vec<usize>; 2]> = BTreeMap::new();
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
        }
    }
    rows.retain(|row| !row.base.is_empty() || !row.new.is_empty());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions<'n>(module: &'n str, names: &[&'n str]) -> Vec<RowName<'n>> {
        let name = |name: &&'n str| RowName {
            module,
            identity: None,
            code: CodeName::Function(name),
            rest: "",
        };
        names.iter().map(name).collect()
    }

    /// Returns rows as texts: names of base, an arrow, names of new, and `!` if it is renamed.
    fn rows(base: &[&str], new: &[&str]) -> Vec<String> {
        let rows = matched(&functions("app", base), &functions("app", new));
        let texts = rows.iter().map(|row| {
            let list = |numbers: &[usize], names: &[&str]| {
                numbers.iter().map(|at| names[*at]).collect::<Vec<_>>().join(" ")
            };
            let sign = if row.is_renamed { " !" } else { "" };
            format!("{} > {}{sign}", list(&row.base, base), list(&row.new, new))
        });
        texts.collect()
    }

    #[test]
    fn equal_names_stay_rows() {
        let names = ["_ZN3app3eatEi", "_ZN3app3eatEd", "parse", "parse.cold"];
        let found = rows(&names, &names);
        let mut expected = names.map(|name| format!("{name} > {name}"));
        expected[..2].reverse();
        assert_eq!(found, expected);
    }

    #[test]
    fn parts_of_a_function_are_joined_if_the_sides_differ() {
        assert_eq!(
            rows(&["parse", "parse.cold"], &["parse.isra.0"]),
            ["parse parse.cold > parse.isra.0 !"]
        );
        assert_eq!(rows(&["parse", "parse.cold"], &["parse"]), ["parse parse.cold > parse !"]);
        assert_eq!(rows(&["parse"], &["other"]), [" > other", "parse > "]);
    }

    #[test]
    fn a_hash_is_no_new_name() {
        assert_eq!(
            rows(&["_ZN1r5apply17h0f25a0978a5e98d7E"], &["_ZN1r5apply17hfc6e747b326f99b9E"]),
            ["_ZN1r5apply17h0f25a0978a5e98d7E > _ZN1r5apply17hfc6e747b326f99b9E"]
        );
        // Two compilers give the crate two hashes.
        let (old, new) =
            ("_RNvNtCs3j7OyaTVhNh_1r5inner5parse", "_RNvNtCs6GmmlP4bgsG_1r5inner5parse");
        assert_eq!(rows(&[old], &[new]), [format!("{old} > {new}")]);
        // Instances that only hashes tell apart are one row.
        assert_eq!(
            rows(
                &["_ZN1r5apply17h0f25a0978a5e98d7E", "_ZN1r5apply17h8f81fbb8f59ee6dbE"],
                &["_ZN1r5apply17hfc6e747b326f99b9E"]
            )
            .len(),
            1
        );
    }

    #[test]
    fn closures_are_paired_in_order_if_they_are_equally_many() {
        let closure =
            |number: &str, crates: &str| format!("_RNCNvNtCs{crates}_1r5inner5parse{number}B5_");
        let [a0, a1, a2] = ["0", "s_0", "s0_0"].map(|number| closure(number, "3j7OyaTVhNh"));
        let [b0, b1, b2] = ["0", "s_0", "s0_0"].map(|number| closure(number, "6GmmlP4bgsG"));
        // One was added before them.
        let found = rows(&[&a0, &a1], &[&b2, &b1]);
        assert_eq!(found, [format!("{a0} > {b1} !"), format!("{a1} > {b2} !")]);
        // One more: numbers stay.
        let found = rows(&[&a0, &a1], &[&b0, &b1, &b2]);
        assert_eq!(found, [format!("{a0} > {b0}"), format!("{a1} > {b1}"), format!(" > {b2}")]);
        // Full names that both sides have are no question.
        let found = rows(&[&a0, &a1], &[&a1, &a2]);
        assert_eq!(found, [format!("{a0} > {a2} !"), format!("{a1} > {a1}")]);
        // Lambdas keep their parameters.
        let lambda = ["_ZZN3app5parseEiENKUliE_clEi", "_ZZN3app5parseEiENKUldE_clEd"];
        assert_eq!(rows(&lambda[..1], &lambda[1..]).len(), 2);
    }

    #[test]
    fn a_function_in_another_module_is_found_if_it_is_the_only_one() {
        let (app, library) =
            (functions("app", &["parse"]), functions("libapp.so.1", &["parse.cold"]));
        let found = matched(&app, &library);
        assert_eq!(found.len(), 1);
        assert!(found[0].is_renamed && found[0].base == [0] && found[0].new == [0]);
        let mut two = library;
        two.extend(functions("libother.so", &["parse"]));
        assert_eq!(matched(&app, &two).len(), 3);
        // A function that stayed did not move.
        let mut both = functions("app", &["parse"]);
        both.extend(functions("libapp.so", &["parse"]));
        assert_eq!(matched(&app, &both).len(), 2);
    }

    #[test]
    fn addresses_are_told_apart_in_the_same_file_only() {
        let address = |identity, address| RowName {
            module: "app",
            identity,
            code: CodeName::Address(address),
            rest: "",
        };
        let base = [address(Some("id1"), 16), address(Some("id1"), 32)];
        let same = matched(&base, &[address(Some("id1"), 32)]);
        assert_eq!(same.len(), 2);
        assert!(same.iter().all(|row| !row.is_unknown && !row.is_renamed));
        for other in [Some("id2"), None] {
            let found = matched(&base, &[address(other, 32), address(other, 48)]);
            assert_eq!(found.len(), 1);
            assert!(found[0].is_unknown && !found[0].is_renamed);
            assert_eq!((found[0].base.len(), found[0].new.len()), (2, 2));
        }
        let unknown = matched(&[address(None, 16)], &[address(None, 16)]);
        assert!(unknown[0].is_unknown, "{unknown:?}");
    }

    #[test]
    fn rows_do_not_depend_on_the_order_of_names() {
        let names = ["parse", "parse.cold", "_ZN3app3eatEi", "main", "f.isra.0"];
        let mut turned = names;
        turned.reverse();
        let new = ["parse", "main", "f"];
        assert_eq!(rows(&names, &new), rows(&turned, &new));
    }

    #[test]
    fn other_cells_and_jits_are_kept_and_joined() {
        let name = |module, rest| RowName { module, identity: None, code: CodeName::Any, rest };
        let found =
            matched(&[name("app", "comm 1"), name("app", "comm 2")], &[name("app", "comm 2")]);
        assert_eq!(found.len(), 2);
        let found = matched(
            &[name("perf-1.map", ""), name("[JIT] tid 2", "")],
            &[name("jitted-3-1.so", "")],
        );
        assert_eq!((found.len(), found[0].base.len()), (1, 2));
    }
}
