//! `rep evlist` against `perf evlist`: every event with every field of its attr, on recordings,
//! fixtures and a corpus.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use recrep_fixtures::manifest::cases;
use recrep_fixtures::recorded;
use recrep_format::endian::Endian;
use recrep_format::read::{File, Mode};
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::run;
use recrep_tests::{needs, perf};

/// In what the lists of one file differ, if perf lists it at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    /// In nothing.
    Same,
    /// perf cannot read the file.
    Refused,
    /// perf lists nothing, and does not say why.
    Silent,
    /// perf takes the ids behind the short attrs of a pipe for fields of the attr.
    IdsAsFields,
    /// There are bits that perf 6.1 has no name for.
    Newer,
    /// perf does not turn all numbers of the other byte order.
    Unturned,
    /// perf makes a name of the attr where rep has the file's own.
    Named,
}

/// The lines; none where the file is refused.
fn listed(mut tool: Command, flag: &str, file: &Path) -> Option<Vec<String>> {
    let outcome = run(tool.args(["evlist", flag, "-i"]).arg(file));
    // perf's advice about tracepoints.
    let lines = outcome.text().lines().filter(|line| !line.starts_with('#'));
    // perf's status is sometimes 0 then.
    let refused = outcome.code() != 0 || outcome.stderr.contains("incompatible file format");
    (!refused).then(|| lines.map(str::to_owned).collect())
}

/// The name, and the fields of the attr.
fn halves(line: &str) -> (&str, &str) {
    // Names have colons, but none is followed by the first fields of an attr.
    let at = [": type: ", ": size: "].iter().filter_map(|first| line.find(first)).min();
    line.split_at(at.unwrap_or(line.len()))
}

/// The fields of an attr without the values that perf 6.1 leaves in the other byte order.
fn turned(fields: &str) -> Vec<&str> {
    const NOT: [&str; 4] = ["clockid", "sample_regs_intr", "aux_watermark", "aux_sample_size"];
    let field = |field| {
        NOT.into_iter().find(|name| str::starts_with(field, &format!("{name}: "))).unwrap_or(field)
    };
    fields.split(", ").map(field).collect()
}

#[track_caller]
fn held(file: &Path) -> Found {
    let Some(theirs) = listed(perf::perf(), "-v", file) else { return Found::Refused };
    let ours =
        listed(rep(), "-v", file).unwrap_or_else(|| panic!("rep refuses {}", file.display()));
    if ours == theirs {
        return Found::Same;
    }
    let bytes = std::fs::read(file).unwrap();
    let parsed = File::parse(&bytes).unwrap();
    let pipe = parsed.mode == Mode::Pipe;
    if theirs.is_empty() {
        return Found::Silent;
    }
    assert_eq!(ours.len(), theirs.len(), "{}:\n{ours:#?}\n{theirs:#?}", file.display());
    let pairs = || ours.iter().zip(&theirs);
    let short = parsed.attrs.entries().iter().all(|entry| entry.attr.size < 128);
    let begun = |(our, their): (&String, &String)| halves(their).1.starts_with(halves(our).1);
    if pipe && short && pairs().all(begun) {
        return Found::IdsAsFields;
    }
    let mut found = Found::Named;
    let big = parsed.endian == Endian::Big;
    for (our, their) in pairs() {
        let (of_ours, of_theirs) = (halves(our), halves(their));
        if of_ours.1 != of_theirs.1 {
            let words = |line: &str| {
                line.split([' ', ',', '|']).map(str::to_owned).collect::<BTreeSet<_>>()
            };
            if big && turned(of_ours.1) == turned(of_theirs.1) {
                found = Found::Unturned;
                continue;
            }
            let unnamed: Vec<_> =
                words(of_ours.1).difference(&words(of_theirs.1)).cloned().collect();
            let known = words(of_theirs.1).is_subset(&words(of_ours.1));
            assert!(known && !unnamed.is_empty(), "{}:\n{our}\n{their}", file.display());
            found = Found::Newer;
        }
        let entry =
            parsed.attrs.entries().iter().find(|entry| entry.name.as_deref() == Some(of_ours.0));
        assert!(
            of_ours.0 == of_theirs.0 || entry.is_some(),
            "{}: {our}, not {their}",
            file.display()
        );
    }
    found
}

#[test]
fn fixtures_are_listed_alike() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut found: BTreeMap<Found, usize> = BTreeMap::new();
    for case in cases() {
        for form in case.forms() {
            let file = dir.path().join(format!("{}.{form}", case.name));
            std::fs::write(&file, case.bytes(form)).unwrap();
            let one = held(&file);
            *found.entry(one).or_default() += 1;
        }
    }
    for file in recorded::ALL {
        let path = dir.path().join(file.name);
        std::fs::write(&path, file.bytes).unwrap();
        // perf does not take the names from a pipe.
        let expected = if file.is_pipe { Found::Named } else { Found::Same };
        assert_eq!(held(&path), expected, "{}", file.name);
    }
    println!("fixtures: {found:?}");
    assert!(found.get(&Found::Same).is_some_and(|same| *same > 300), "{found:?}");
}

#[test]
fn a_corpus_is_listed_alike() {
    let Some(folder) = needs::corpus() else { return };
    if !needs::perf_events() {
        return;
    }
    let mut found: BTreeMap<Found, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_data = path.is_file() && std::fs::read(&path).unwrap().starts_with(b"PERF");
        if is_data {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.entry(held(&path)).or_default().push(name);
        }
    }
    println!("{found:#?}");
    assert!(found.get(&Found::Same).is_some_and(|same| same.len() > 3), "{found:?}");
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn recordings_are_listed_alike() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let spin = workload("hot --ms 20");
        for args in [
            "-e cpu-clock",
            "-e cpu-clock:u,page-faults -c 100 -g",
            "-e task-clock -F 77 -d",
            "-e context-switches:k",
        ] {
            for (name, recorder) in
                [("perf", perf::record as fn(&Path, &str, &[String]) -> _), ("rec", record)]
            {
                let file = dir.path().join(name);
                recorder(&file, args, &spin);
                assert_eq!(held(&file), Found::Same, "{name} {args}");
                for flag in ["-F", "-g"] {
                    assert_eq!(
                        listed(rep(), flag, &file),
                        listed(perf::perf(), flag, &file),
                        "{name} {args} {flag}"
                    );
                }
            }
        }
    }
}
