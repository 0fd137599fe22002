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
