//! Outputs read the parts of names: a test keeps them from taking texts apart.

use recrep_tests::sources::sources;

/// The rooms of `rep` above the profile that read names.
const ROOMS: [&str; 4] = ["exports", "picture", "analyses", "compare"];

/// Files above the profile that take texts apart, and whose texts these are. The parts of names are
/// in the profile: nothing takes apart what rep made of them.
const CUTS: [(&str, &str); 24] = [
    ("report/src/exports/folded/mod.rs", "names of functions in files, as stackcollapse cuts them"),
    ("report/src/exports/frames.rs", "paths of modules, and what CPython puts before names"),
    ("report/src/exports/pprof/builder.rs", "paths of modules"),
    ("report/src/exports/sheet.rs", "the space before the first heading"),
    ("report/src/exports/text/tree.rs", "the sort key that was typed"),
    ("report/src/picture/page/mod.rs", "the scripts of the page"),
    ("report/src/picture/sides.rs", "paths of modules"),
    ("report/src/picture/svg/colours.rs", "paths of modules"),
    ("report/src/picture/text.rs", "names of functions in files, cut to the width of a box"),
    ("report/src/analyses/annotate/source.rs", "paths of source files"),
    ("report/src/analyses/annotate/text.rs", "paths of source files, and instructions"),
    ("report/src/analyses/branches/bolt.rs", "paths of modules"),
    ("report/src/analyses/diff/args.rs", "arguments"),
    ("report/src/analyses/diff/numbers.rs", "a number"),
    ("report/src/analyses/diff/rows/labels.rs", "names of functions in files"),
    ("report/src/analyses/diff/runs.rs", "recorded commands"),
    ("report/src/analyses/modules.rs", "paths of modules"),
    ("report/src/analyses/callers.rs", "names of functions in files"),
    ("report/src/analyses/syscalls/crossings.rs", "names of tracepoints"),
    ("report/src/analyses/syscalls/names.rs", "names of system calls and architectures"),
    ("report/src/compare/matching/jit.rs", "what names of a JIT have in common between runs"),
    ("report/src/compare/matching/keys.rs", "what names in files have in common between builds"),
    ("report/src/compare/rules/file.rs", "rules of a file"),
    ("report/src/compare/rules/parse.rs", "rules"),
];

#[test]
fn names_are_not_taken_out_of_texts() {
    let ways =
        ["split_once(", "rsplit", "strip_prefix(", "strip_suffix(", "starts_with(", "ends_with("];
    let mut found = Vec::new();
    for source in sources("report/src") {
        let room = source.module.first().map_or("", String::as_str);
        if !ROOMS.contains(&room) || source.path.ends_with("/tests.rs") {
            continue;
        }
        let (path, code) = (&source.path, source.code());
        let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        assert!(!words.any(|word| word == "Subject"), "{path}: tables give the parts of cells");
        if ways.iter().any(|way| code.contains(way)) {
            found.push(source.path);
        }
    }
    let allowed = CUTS.iter().map(|(path, _)| (*path).to_owned());
    let new: Vec<_> =
        found.iter().filter(|path| !allowed.clone().any(|one| one == **path)).collect();
    assert!(new.is_empty(), "{new:?}: read the parts of names, and name other texts in CUTS");
    let gone: Vec<_> = allowed.filter(|path| !found.contains(path)).collect();
    assert!(gone.is_empty(), "{gone:?}: take them off CUTS");
}
