//! First contact: mistyped words, help, manual pages, completions, and the choice of the input.

use std::process::{Command, Output, Stdio};

use recrep_tests::needs;

use super::*;

/// Runs `rep` in a directory; returns its exit status, standard output and standard error.
fn outcome(dir: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = rep().args(words).current_dir(dir).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn words_that_look_like_commands_are_usage_errors() {
    let place = Place::new();
    place.put("x.data", two_events(Endian::Little, 1).file());
    for (words, says) in [
        (&["scirpt", "x.data"][..], "rep: no command or file 'scirpt'; did you mean 'rep script'?"),
        (&["flamegraph", "x.data"], "rep: no command or file 'flamegraph'"),
        (&["diff", "x.data"], "rep: two sides are expected"),
        (&["x.data", "script"], "rep: no file 'script'"),
        (&["mem", "report", "x.data"], "rep: no file 'report'"),
        (&["-s", "sybmol", "x.data"], "did you mean 'symbol'?"),
        (&["script", "-F", "symm", "x.data"], "did you mean 'sym'?"),
        (&["-g", "calller", "x.data"], "did you mean 'caller'?"),
        (&["dump", "--type", "SAMPEL", "x.data"], "did you mean 'SAMPLE'?"),
        (&["--tui", "x.data"], "interactive interface"),
        (&["-f", "x.data"], "nothing to force"),
        (&["help", "tmieline"], "did you mean 'rep timeline'?"),
    ] {
        let (status, stdout, stderr) = outcome(place.dir.path(), words);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{words:?}: {stderr}");
        assert!(
            stderr.starts_with("rep: ") && stderr.contains(says) && stderr.len() < 400,
            "{words:?}: {stderr}"
        );
    }
    // A file of such a name is a file.
    place.put("scirpt", two_events(Endian::Little, 1).file());
    assert_eq!(outcome(place.dir.path(), &["scirpt"]).0, Some(0));
}

#[test]
fn short_help_fits_on_a_screen_and_commands_come_first() {
    let dir = tempfile::tempdir().unwrap();
    for command in [
        "report", "diff", "script", "mem", "c2c", "branches", "timeline", "modules", "info",
        "evlist", "dump", "man",
    ] {
        let (status, short, _) = outcome(dir.path(), &[command, "-h"]);
        let (_, long, _) = outcome(dir.path(), &[command, "--help"]);
        assert_eq!(status, Some(0));
        assert!(short.lines().count() <= 30 && long.len() > short.len(), "{command}: {short}");
    }
    let (_, long, _) = outcome(dir.path(), &["--help"]);
    let place = |word: &str| long.find(word).unwrap_or_else(|| panic!("{word}: {long}"));
    let order =
        ["Commands", "completions", "Options:", "Rows and columns:", "Filters:", "Examples:"];
    assert!(order.map(place).is_sorted(), "{long}");
}

#[test]
fn manual_pages_and_completions_are_well_formed() {
    let dir = tempfile::tempdir().unwrap();
    let piped = |program: &str, args: &[&str], text: &str| {
        let mut command = Command::new(program);
        let mut child = command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let pages = [
        "", "report", "script", "mem", "c2c", "branches", "timeline", "modules", "info", "evlist",
        "dump",
    ];
    let has_mandoc = Command::new("mandoc").arg("-V").output().is_ok();
    for page in pages {
        let words: Vec<&str> = ["man", page].into_iter().filter(|word| !word.is_empty()).collect();
        let (status, text, _) = outcome(dir.path(), &words);
        assert!(status == Some(0) && text.contains(".SH OPTIONS"), "{page}: {text}");
        if has_mandoc {
            let linted = piped("mandoc", &["-T", "lint"], &text);
            let said = [linted.stdout, linted.stderr].concat();
            assert!(said.is_empty(), "{page}: {}", String::from_utf8_lossy(&said));
        }
    }
    for (shell, check) in [
        ("bash", "source /dev/stdin && complete -p rep"),
        (
            "zsh",
            "autoload -U compinit && compinit -D -u && source /dev/stdin && print $_comps[rep]",
        ),
        ("fish", "source -; complete -C 'rep --percent-l'"),
    ] {
        let (status, text, _) = outcome(dir.path(), &["completions", shell]);
        assert!(
            status == Some(0) && text.contains("percent-limit") && text.contains("timeline"),
            "{shell}"
        );
        if needs::commands(shell) {
            let loaded = piped(shell, &["-c", check], &text);
            let said = String::from_utf8_lossy(&loaded.stdout).into_owned();
            assert!(said.contains("rep") || said.contains("percent-limit"), "{shell}: {loaded:?}");
        }
    }
}

#[test]
fn each_option_of_a_manual_page_has_a_text() {
    let dir = tempfile::tempdir().unwrap();
    let pages = |program: fn() -> Command, names: &[&str]| {
        for name in names {
            let words = ["man", name].into_iter().filter(|word| !word.is_empty());
            let page = program().args(words).current_dir(dir.path()).output().unwrap();
            let page = String::from_utf8(page.stdout).unwrap();
            let lines: Vec<&str> = page.lines().collect();
            let mut options = 0;
            for pair in lines.windows(3).filter(|three| three[0] == ".TP") {
                options += 1;
                assert!(!pair[2].starts_with('.') && !pair[2].is_empty(), "{name}: {pair:?}");
            }
            assert!(options > 0, "{name}: {page}");
        }
    };
    let commands = [
        "", "report", "diff", "script", "timeline", "modules", "mem", "c2c", "branches",
        "syscalls", "waits", "stat", "flame", "html", "annotate", "bundle", "export", "info",
        "evlist", "dump",
    ];
    pages(rep, &commands);
    pages(recrep_tests::programs::rec, &["", "stat", "list", "mem", "c2c", "trace"]);
}

#[test]
fn each_sort_key_has_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let (status, text, _) = outcome(dir.path(), &["help", "keys"]);
    assert_eq!(status, Some(0));
    let line = |names: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(&format!("{names}  ")));
        found.unwrap_or_else(|| panic!("{names}: {text}")).trim().to_owned()
    };
    assert!(line("comm").ends_with("The thread's name at the time of the sample"));
    assert!(line("symbol, sym, symbol_iaddr").contains("The function"));
    assert!(line("switch").contains("waited") && line("mispredict").contains("mispredicted"));
    assert!(text.lines().count() > 50 && text.lines().all(|line| line.len() < 160), "{text}");
}

#[test]
fn pages_and_pictures_are_written_beside_the_recording() {
    let place = Place::new();
    place.put("x.data", two_events(Endian::Little, 9).file());
    for (command, file) in [("html", "x.data.html"), ("flame", "x.data.svg")] {
        let (status, _, stderr) = outcome(place.dir.path(), &[command, "x.data"]);
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stderr.contains(&format!("rep: wrote {file} (")), "{stderr}");
        fs::write(place.at(file), "of somebody else").unwrap();
        let (status, _, stderr) = outcome(place.dir.path(), &[command, "x.data"]);
        let old = format!("{file}.old");
        assert!(
            status == Some(0) && stderr.contains(&format!("the earlier file is {old}")),
            "{stderr}"
        );
        assert_eq!(fs::read_to_string(place.at(&old)).unwrap(), "of somebody else");
        assert!(fs::metadata(place.at(file)).unwrap().len() > 1000);
    }
    let (status, _, stderr) = outcome(place.dir.path(), &["html", "x.data", "x.data"]);
    assert!(status == Some(2) && stderr.contains("-o FILE"), "{stderr}");
}

#[test]
fn usual_mistakes_say_what_would_be_right() {
    let place = Place::new();
    place.put("x.data", two_events(Endian::Little, 9).file());
    for (words, code, says) in [
        (&["--limit", "-3", "x.data"][..], 2, "--limit takes a whole number from 0 on, not `-3`"),
        (&["--percent-limit", "x", "x.data"], 2, "--percent-limit takes a number, not `x`"),
        (&["mem", "x.data"], 1, "rec mem"),
        (&["c2c", "x.data"], 1, "rec c2c"),
        (&["--html", "x.data"], 2, "rep html"),
        (&["--format", "svg", "x.data"], 2, "rep flame"),
        (&["--top", "5", "x.data"], 2, "--limit"),
        (&["-e", "cycles", "x.data"], 2, "--event"),
    ] {
        let (status, stdout, stderr) = outcome(place.dir.path(), words);
        assert_eq!((status, stdout.as_str()), (Some(code), ""), "{words:?}: {stderr}");
        assert!(stderr.starts_with("rep: ") && stderr.contains(says), "{words:?}: {stderr}");
        assert!(!stderr.contains("invalid"), "{words:?}: {stderr}");
    }
}

#[test]
fn the_newer_default_file_is_read_and_named() {
    let place = Place::new();
    place.put("out.data", two_events(Endian::Little, 1).file());
    let perf = place.put("perf.data", two_events(Endian::Little, 20).file());
    let age = |name: &str, seconds| {
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().append(true).open(place.at(name)).unwrap().set_modified(time).unwrap();
    };
    age("out.data", 86_400 * 3);
    age("perf.data", 86_400 * 9);
    let (_, text, _) = outcome(place.dir.path(), &[]);
    assert!(text.contains("# perf.data, written 1970-01-"), "{text}");
    let (_, _, stderr) = outcome(place.dir.path(), &["--json"]);
    assert!(stderr.contains("rep: reading perf.data, written 1970-01-"), "{stderr}");
    age("out.data", 86_400 * 19);
    let (_, text, _) = outcome(place.dir.path(), &[]);
    assert!(text.contains("# out.data, written 1970-01-"), "{text}");
    assert!(!outcome(place.dir.path(), &[perf.to_str().unwrap()]).1.contains("written"));
}
