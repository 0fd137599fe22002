//! Names of two sides, matched.

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
    let (old, new) = ("_RNvNtCs3j7OyaTVhNh_1r5inner5parse", "_RNvNtCs6GmmlP4bgsG_1r5inner5parse");
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

/// Returns rows of JIT code as texts.
fn jit_rows(base: &[&str], new: &[&str]) -> Vec<String> {
    let rows = matched(&functions("[JIT] tid 1", base), &functions("perf-2.map", new));
    let list = |numbers: &[usize], names: &[&str]| {
        numbers.iter().map(|at| names[*at]).collect::<Vec<_>>().join(" ")
    };
    let text = |row: &Matched| format!("{} > {}", list(&row.base, base), list(&row.new, new));
    assert!(rows.iter().all(|row| !row.is_renamed && row.is_rebuilt));
    rows.iter().map(text).collect()
}

#[test]
fn code_of_a_jit_is_one_row_for_a_function() {
    // Tiers and versions, in each process at addresses of its own.
    assert_eq!(jit_rows(&["App.hot", "App.hot"], &["App.hot", "App.hot"]).len(), 1);
    let tiers = ["JS:~f /ci/1/a.js:1:2", "JS:*f /ci/1/a.js:1:2"];
    let found = jit_rows(&tiers, &["JS:^f /ci/2/a.js:7:2"]);
    assert_eq!(found, [format!("{} {} > JS:^f /ci/2/a.js:7:2", tiers[0], tiers[1])]);
    // Functions without a name are told apart by their place, in order.
    let found = jit_rows(&["JS:* a.js:1:2", "JS:* a.js:3:2"], &["JS:* a.js:3:2", "JS:* a.js:5:2"]);
    let expected = ["JS:* a.js:1:2 > JS:* a.js:3:2", "JS:* a.js:3:2 > JS:* a.js:5:2"];
    assert_eq!(found, expected);
}

#[test]
fn scripts_of_two_checkouts_are_the_same_but_not_files_of_one_name() {
    let [json, csv] = ["py::load:/usr/json/__init__.py", "py::load:/usr/csv/__init__.py"];
    assert_eq!(jit_rows(&[json, csv], &[json, csv]).len(), 2);
    let [old, new] = ["py::load:/ci/1/json/__init__.py", "py::load:/ci/2/json/__init__.py"];
    assert_eq!(
        jit_rows(&[old, csv], &[csv, new]),
        [format!("{csv} > {csv}"), format!("{old} > {new}")]
    );
    // Each run has a checkout of its own.
    let of = |numbers: [u32; 2]| numbers.map(|run| format!("py::f:/ci/{run}/app.py"));
    let (base, new) = (of([1, 2]), of([3, 4]));
    let [base, new] = [&base, &new].map(|names| [names[0].as_str(), names[1].as_str()]);
    assert_eq!(jit_rows(&base, &new).len(), 1);
}

#[test]
fn a_function_in_another_module_is_found_if_it_is_the_only_one() {
    let (app, library) = (functions("app", &["parse"]), functions("libapp.so.1", &["parse.cold"]));
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
    let found = matched(&[name("app", "comm 1"), name("app", "comm 2")], &[name("app", "comm 2")]);
    assert_eq!(found.len(), 2);
    let found =
        matched(&[name("perf-1.map", ""), name("[JIT] tid 2", "")], &[name("jitted-3-1.so", "")]);
    assert_eq!((found.len(), found[0].base.len()), (1, 2));
}
