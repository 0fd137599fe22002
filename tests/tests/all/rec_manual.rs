//! `rec man` and `rec completions`: the pages please mandoc, the completions load in each shell.

use std::path::Path;
use std::process::Command;

use recrep_tests::needs;
use recrep_tests::programs::rec;
use recrep_tests::run::run;

const COMMANDS: [&str; 7] = ["list", "stat", "mem", "c2c", "trace", "man", "completions"];

/// Writes what `rec WORDS` prints to a file.
#[track_caller]
fn printed(words: &[&str], file: &Path) -> String {
    let outcome = run(rec().args(words).env("SOURCE_DATE_EPOCH", "86400")).expect(0);
    std::fs::write(file, &outcome.stdout).unwrap();
    outcome.text().to_owned()
}

#[test]
fn manual_pages_are_well_formed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rec.1");
    for page in
        [&[][..], &["list"], &["stat"], &["mem"], &["c2c"], &["trace"], &["man"], &["completions"]]
    {
        let text = printed(&[&["man"], page].concat(), &file);
        let name = [&["rec"], page].concat().join("-").to_uppercase();
        assert!(text.starts_with(&format!(".TH {name} 1 1970-01-02 ")), "{text}");
        if needs::mandoc() {
            let linted = run(Command::new("mandoc").args(["-T", "lint"]).arg(&file));
            assert_eq!((linted.text(), linted.stderr.as_str()), ("", ""), "{page:?}");
        }
    }
    let whole = printed(&["man"], &file);
    for word in
        [r"\-\-call\-graph", r"rec\-mem(1)", ".SH EXAMPLES", "Exit status: that of the command"]
    {
        assert!(whole.contains(word), "{word}: {whole}");
    }
    assert!(!whole.contains("not event"), "negations are left out: {whole}");
    let refused = run(rec().args(["man", "ls"])).expect(2);
    assert!(
        refused.stderr.contains("rec has no command 'ls'") && refused.stderr.contains("rec -- man"),
        "{refused:?}"
    );
}

#[test]
fn completions_load_in_each_shell() {
    let dir = tempfile::tempdir().unwrap();
    for (shell, checks) in [
        ("bash", &["source ./_rec && complete -p rec"][..]),
        ("zsh", &["autoload -U compinit && compinit -D -u && source ./_rec && print $_comps[rec]"]),
        (
            "fish",
            &[
                "source ./_rec; complete -C 'rec --switch-max-f'",
                "source ./_rec; complete -C 'rec c2'",
            ],
        ),
    ] {
        let text = printed(&["completions", shell], &dir.path().join("_rec"));
        let has = |word: &str| text.contains(word);
        assert!(
            has("switch-max-files") && has("ldlat") && COMMANDS.iter().all(|name| has(name)),
            "{shell}: {text}"
        );
        if !needs::commands(shell) {
            continue;
        }
        let shell_in =
            |words: &[&str]| run(Command::new(shell).args(words).current_dir(dir.path())).expect(0);
        shell_in(&["-n", "_rec"]);
        for check in checks {
            let loaded = shell_in(&["-c", check]);
            let said = loaded.text();
            assert!(
                ["_rec", "switch-max-files", "c2c"].iter().any(|word| said.contains(word)),
                "{shell}: {loaded:?}"
            );
            assert_eq!(loaded.stderr, "", "{shell}: {check}");
        }
    }
    let refused = run(rec().args(["completions", "tcsh"])).expect(2);
    assert!(refused.stderr.contains("tcsh"), "{refused:?}");
}
