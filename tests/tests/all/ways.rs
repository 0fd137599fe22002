//! One way each: what is stated once, kept by a test.

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;

use recrep_tests::sources::{Source, sources};

use crate::architecture::code_of;

/// Tests stand beside the code; what they put in the place of the kernel or a machine does not.
#[test]
fn no_fake_is_compiled_into_a_program() {
    for source in ["format/src", "record/src", "report/src"].iter().flat_map(|dir| sources(dir)) {
        let fake = source.module.iter().find(|name| name.contains("fake") || *name == "model");
        assert_eq!(fake, None, "{} belongs into a package of the tests", source.path);
        // In two parts, so that this line is none of them.
        let gated = ["cfg(any(", "test"].concat();
        assert!(!source.text.contains(&gated), "{} has code for tests of others", source.path);
    }
}

/// The types that a crate declares, each with the files that do.
fn types(folder: &str) -> BTreeMap<String, Vec<String>> {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources(folder).iter().filter(|source| !is_test(source)) {
        for line in source.code().lines() {
            let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
            let kind = words.next().unwrap_or_default();
            if !matches!(kind, "struct" | "enum" | "trait" | "union") {
                continue;
            }
            let name = words.next().unwrap_or_default();
            let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
            types.entry(name[..end].to_owned()).or_default().push(source.path.clone());
        }
    }
    types
}

fn is_test(source: &Source) -> bool {
    source.path.ends_with("/tests.rs") || source.path.contains("/tests/")
}

/// Number of type names that a crate may use more than once: it may only fall.
const TYPES_TWICE: [(&str, usize); 2] = [("record/src", 0), ("report/src", 6)];

#[test]
fn a_type_has_a_name_of_its_own() {
    for (folder, most) in TYPES_TWICE {
        let mut twice = types(folder);
        assert!(twice.len() > 100, "{folder} declares types");
        twice.retain(|_, files| files.len() > 1);
        assert!(twice.len() <= most, "{folder}: {twice:#?}");
    }
}

/// The ids of the flags that files declare for clap.
fn flags(files: &[Source]) -> Vec<String> {
    let mut flags = Vec::new();
    for file in files {
        let code = file.code();
        for (_, behind) in code.match_indices("#[arg(").map(|(at, _)| code.split_at(at)) {
            let field = behind.lines().find(|line| line.ends_with(',') && line.contains(": "));
            let (name, _) = field.and_then(|line| line.split_once(": ")).unwrap();
            flags.push(name.split_whitespace().last().unwrap().to_owned());
        }
    }
    flags
}

/// Returns whether a file names a flag: by its id for clap, or as a field of the flags.
fn names_flag(source: &Source, flag: &str) -> bool {
    let code = source.code();
    code.split(|c: char| !(c.is_alphanumeric() || "_.\"".contains(c))).any(|path| {
        let mut names = path.split('.');
        let first = names.next().unwrap_or_default();
        first.strip_prefix('"').and_then(|id| id.strip_suffix('"')) == Some(flag)
            || (matches!(first, "self" | "flags" | "samples") && names.any(|name| name == flag))
    })
}

/// A flag is declared, parsed and made a setting in one file; a second may change it (`rec mem`) or
/// ask for its place among others. The third is the settings, which know no command line.
#[test]
fn a_flag_of_rec_is_in_three_files_at_most() {
    let cli = || sources("record/src/cli").into_iter().filter(|source| !is_test(source));
    let others: [(&str, &[&str]); 2] = [
        ("cli/flags/", &["cli/stat/", "cli/list/"]),
        ("cli/stat/flags.rs", &["cli/flags/", "cli/list/", "cli/mod.rs", "cli/tools.rs"]),
    ];
    for (declared, others) in others {
        let declaring: Vec<_> = cli().filter(|source| source.path.contains(declared)).collect();
        let flags = flags(&declaring);
        assert!(flags.len() > 40, "{declared} declares {} flags", flags.len());
        for flag in flags {
            let files: Vec<_> = cli()
                .filter(|source| !others.iter().any(|other| source.path.contains(other)))
                .filter(|source| names_flag(source, &flag))
                .map(|source| source.path)
                .collect();
            // `rec mem -e` names other events, and the order of -e and --filter matters; `cpu` is a
            // value, too.
            let most = if matches!(&flag[..], "event" | "cpu") { 3 } else { 2 };
            assert!(files.len() <= most, "--{flag} is in {files:?}");
        }
    }
}

/// Rooms of `report` that know outputs.
const OF_OUTPUTS: [&str; 5] = ["commands", "analyses", "listings", "cli", "exports"];

/// Files that list values of `--format` or choose among them by an enum of their own.
fn registries() -> Vec<String> {
    let rooms = OF_OUTPUTS.iter().flat_map(|room| code_of("report/src", room));
    let is_registry = |code: &str| {
        code.contains("static OUTPUTS")
            || code.lines().any(|line| {
                let name = line.trim().split_once("enum ").map_or("", |(_, rest)| rest);
                name.split(|c: char| !c.is_alphanumeric()).next().unwrap().ends_with("Format")
            })
    };
    rooms.filter(|(_, code)| is_registry(code)).map(|(path, _)| path).collect()
}

#[test]
fn one_registry_has_all_outputs() {
    assert_eq!(registries(), ["report/src/exports/outputs.rs"]);
}

/// What a profile must have is said by outputs, and where these have no say: pictures, gates and the
/// branches of annotated functions.
#[test]
fn outputs_state_their_needs_themselves() {
    let others = [
        "report/src/analyses/annotate/branches.rs",
        "report/src/analyses/diff/args.rs",
        "report/src/analyses/diff/gates.rs",
        "report/src/commands/picture.rs",
    ];
    for room in ["commands", "analyses", "listings", "cli"] {
        for (path, code) in code_of("report/src", room) {
            let states = code.contains("Needs {");
            assert!(!states || others.contains(&path.as_str()), "{path}: needs are of outputs");
        }
    }
}

/// Prints in how many ways the programs do what one way is enough for.
#[test]
fn the_number_of_ways_falls() {
    let code = |folder: &str| -> Vec<(String, String)> {
        let files = sources(folder).into_iter().filter(|file| !file.path.ends_with("tests.rs"));
        files.map(|file| (file.path.clone(), file.code())).collect()
    };
    let (report, record) = (code("report/src"), code("record/src"));
    let naming = |files: &[(String, String)], words: &[&str]| {
        files.iter().filter(|(_, code)| words.iter().any(|word| code.contains(word))).count()
    };
    let set_ups = naming(&report, &["ChainSources::new(", "FrameFinder::new("]);
    let filters = naming(&report, &["fn takes_task(", "fn passes("]);
    let registries = registries().len();
    let twins = shared_lines(&report, &record);
    let flag = naming(&record, &["max_samples"]);
    let ways = format!(
        "ways: {set_ups} set-ups of the pass over samples, {filters} filters, {registries} \
         registries of outputs, {twins} lines that rec and rep share by copy, {flag} files that \
         name --max-samples\n"
    );
    // The log has it also where the test passes.
    std::io::stderr().write_all(ways.as_bytes()).unwrap();
    let most =
        [("set-ups", set_ups, 1), ("filters", filters, 1), ("twins", twins, 8), ("flag", flag, 4)];
    for (what, count, most) in most {
        assert!(count <= most, "{what}: {count}, at most {most}");
    }
}

/// Returns the number of lines of code in runs of six and more that both have.
fn shared_lines(one: &[(String, String)], other: &[(String, String)]) -> usize {
    const RUN: usize = 6;
    let lines = |files: &[(String, String)]| -> Vec<Vec<String>> {
        let of_file = |(_, code): &(String, String)| {
            let lines = code.lines().map(str::trim).filter(|line| line.len() > 1);
            lines.filter(|line| !line.starts_with("use ")).map(str::to_owned).collect()
        };
        files.iter().map(of_file).collect()
    };
    let known: HashSet<Vec<String>> =
        lines(one).iter().flat_map(|file| file.windows(RUN).map(<[String]>::to_vec)).collect();
    let mut shared = 0;
    for file in lines(other) {
        let mut end = 0;
        for (at, run) in file.windows(RUN).enumerate().filter(|(_, run)| known.contains(*run)) {
            shared += (at + run.len()).saturating_sub(end.max(at));
            end = at + run.len();
        }
    }
    shared
}
