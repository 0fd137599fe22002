//! Several inputs, some of them unreadable: these are left out, with a warning.

use recrep_fixtures::recorded;
use serde_json::json as value;

use super::*;

/// The commands that take several inputs.
const COMMANDS: &str = "--json | | --format csv | --format folded | --stats | --tasks | --mmaps | \
                        -D | --header-only | modules | timeline | mem -D | --header --sort comm";

/// Returns a directory with two good files, a text file and a truncated file.
fn place() -> Place {
    let place = Place::new();
    place.put("good", two_events(Endian::Little, 3).file());
    place.put("fine", two_events(Endian::Big, 3).pipe());
    place.put("text", b"hello, I am not what you think I am");
    place.put("torn", &two_events(Endian::Little, 3).file()[..110]);
    place
}

#[test]
fn unreadable_inputs_are_left_out_by_every_command() {
    let place = place();
    let path = |name: &str| place.at(name);
    for command in COMMANDS.split('|').map(str::trim) {
        let words = command.split_whitespace();
        let answer = |names: &[&str]| {
            rep().args(words.clone()).args(names.iter().map(|name| path(name))).output().unwrap()
        };
        let (alone, with) =
            (answer(&["good", "fine"]), answer(&["text", "good", "none", "fine", "torn"]));
        let said = String::from_utf8(with.stderr).unwrap();
        assert_eq!(with.status.code(), Some(0), "{command:?}: {said}");
        for name in ["text", "none", "torn"] {
            let warnings = said.lines().filter(|line| {
                line.contains(path(name).to_str().unwrap()) && line.contains("warning")
            });
            assert_eq!(warnings.count(), 1, "{command:?}: {said}");
        }
        assert!(!alone.stdout.is_empty() || command == "--format folded");
        if command != "--json" {
            assert!(with.stdout == alone.stdout, "{command:?}");
        }
        let none = answer(&["text", "none"]);
        let said = String::from_utf8(none.stderr).unwrap();
        assert_eq!(none.status.code(), Some(1), "{command:?}: {said}");
        assert!(
            said.contains("not a perf.data file") && said.contains("there is no such file"),
            "{said}"
        );
    }
}

#[test]
fn json_has_a_warning_for_each_unreadable_input() {
    let place = place();
    for command in ["--json", "--tasks"] {
        let paths = ["good", "text", "none"].map(|name| place.at(name));
        let answer = parsed(rep().args([command, "--json"]).args(&paths).output().unwrap().stdout);
        assert_eq!(list(&answer["inputs"]).len(), 1);
        assert_eq!(answer["inputs"][0]["path"], paths[0].to_str().unwrap());
        assert_eq!(codes(&answer), ["unreadable"; 2]);
        for (warning, path) in list(&answer["warnings"]).iter().zip(&paths[1..]) {
            assert!(
                warning["message"].as_str().unwrap().contains(path.to_str().unwrap()),
                "{warning}"
            );
        }
    }
}

/// Small files are read side by side, in groups: whatever the number of threads, the answer is that
/// of all of them in order.
#[test]
fn many_small_files_are_answered_in_order() {
    const FILES: u64 = 100;
    let place = Place::new();
    let mut paths = Vec::new();
    for number in 0..FILES {
        let name = format!("{number:03}");
        let event = if number % 3 == 0 { "cycles" } else { "instructions" };
        let stream = Stream::new(Endian::Little)
            .event(Event::new(event))
            .task(7, 7)
            .at(1)
            .comm(&format!("c{}", number % 5));
        let stream =
            stream.map("/no/such", 0x1000, 0x1000, 0).at(2).sample(SampleSpec::at(0x1000 + number));
        paths.push(match number % 40 {
            39 => place.put(&name, b"hello, I am not what you think I am"),
            _ => place.put(&name, stream.file()),
        });
    }
    let answer = |command: &[&str], threads: &str| {
        let output =
            rep().args(command).args(&paths).env("RAYON_NUM_THREADS", threads).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        output.stdout
    };
    for command in
        [&["--json"][..], &["-s", "comm,ip"], &["--format", "folded"], &["modules", "--json"]]
    {
        let one = answer(command, "1");
        for threads in ["2", "7"] {
            assert!(answer(command, threads) == one, "{command:?}: {threads} threads");
        }
    }
    let all = parsed(answer(&["--json", "-s", "comm"], "2"));
    let texts = |of: &Value, key: &str| -> Vec<String> {
        list(of).iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    let (read, unread): (Vec<_>, Vec<_>) = paths
        .iter()
        .map(|path| path.to_str().unwrap())
        .partition(|path| !path.ends_with("39") && !path.ends_with("79"));
    assert_eq!(texts(&all["inputs"], "path"), read);
    let warnings = texts(&all["warnings"], "message");
    assert!(
        warnings.iter().zip(&unread).all(|(said, path)| said.contains(path))
            && warnings.len() == unread.len()
    );
    let samples: Vec<_> =
        list(&all["events"]).iter().map(|event| event["samples"].as_u64().unwrap()).collect();
    assert_eq!(samples, [33, 65]);
}

/// The callchains of several files are merged: those of two equal files have the trees of one,
/// whatever the columns.
#[test]
fn equal_files_have_the_trees_of_one() {
    let recorded = recorded::ALL.iter().find(|file| file.name.starts_with("callchains")).unwrap();
    let place = Place::new();
    let files = ["x.data", "y.data"].map(|name| place.put(name, recorded.bytes));
    for keys in
        ["comm,dso,symbol", "srcline", "cpu,srcfile", "symoff,dso_size", "pid,phys_daddr,ip"]
    {
        let answer = |files: &[PathBuf]| {
            let text = super::super::run(
                rep().args(["--children", "-g", "caller", "-s", keys]).args(files),
            );
            text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
        };
        let one = answer(&files[..1]);
        assert!(one.contains("--"), "{keys}: no trees");
        assert_eq!(answer(&files), one, "{keys}");
    }
}

#[test]
fn unreadable_files_of_a_directory_are_left_out() {
    let place = place();
    // Files that are not perf.data at all are ignored without a warning.
    let answer = parsed(rep().arg("--json").arg(place.dir.path()).output().unwrap().stdout);
    assert_eq!(list(&answer["inputs"]).len(), 2);
    assert_eq!(codes(&answer), ["unreadable"]);
    assert!(answer["warnings"][0]["message"].as_str().unwrap().contains("torn"));
    for name in ["good", "fine"] {
        fs::remove_file(place.at(name)).unwrap();
    }
    assert_eq!(rep().arg("--json").arg(place.dir.path()).output().unwrap().status.code(), Some(1));
}

/// Each file's rows are those that it has alone, under the part of its path.
#[test]
fn by_parts_of_paths_files_stay_apart() {
    let place = place();
    let paths = ["good", "fine"].map(|name| place.at(name));
    let rows = |words: &[&str], files: &[PathBuf]| {
        let mut command = rep();
        let answer = parsed(
            command
                .args(["--json", "-s", "comm,dso"])
                .args(words)
                .args(files)
                .output()
                .unwrap()
                .stdout,
        );
        let mut rows: Vec<Value> = Vec::new();
        for event in list(&answer["events"]) {
            let mut sort: Vec<Value> =
                words.iter().skip(1).step_by(2).map(|by| value!(name(by))).collect();
            sort.extend([value!("comm"), value!("dso")]);
            assert_eq!(event["sort"], Value::from(sort));
            for row in list(&event["rows"]) {
                rows.push(value!([event["name"], row["key"], row["samples"], row["period"]]));
            }
        }
        rows
    };
    let by = ["--by", "first=/(.)[^/]*$", "--by", "file"];
    let mut expected: Vec<Value> = Vec::new();
    for (path, first) in paths.iter().zip(["g", "f"]) {
        for mut row in rows(&[], std::slice::from_ref(path)) {
            row[1]["first"] = value!(first);
            row[1]["file"] = value!(path);
            expected.push(row);
        }
    }
    let mut found = rows(&by, &paths);
    let text = |row: &Value| row.to_string();
    found.sort_by_key(text);
    expected.sort_by_key(text);
    assert_eq!(found, expected);
    let wrong = rep().args(["--by", "comm=x"]).arg(&paths[0]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

/// The name of a column of `--by`.
fn name(by: &str) -> &str {
    by.split('=').next().unwrap()
}
