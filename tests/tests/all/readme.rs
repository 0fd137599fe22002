//! README.md is true: its commands are there, their flags are known, its links lead somewhere.

use std::process::Command;

use recrep_tests::programs::{rec, rep, workspace};
use recrep_tests::run::run;

fn readme() -> String {
    std::fs::read_to_string(workspace().join("README.md")).unwrap()
}

/// The lines of the blocks that a shell would run.
fn commands(readme: &str) -> Vec<&str> {
    let blocks = readme.split("```").skip(1).step_by(2);
    let shell = blocks
        .filter_map(|block| block.strip_prefix("sh\n").or_else(|| block.strip_prefix("console\n")));
    let lines = shell.flat_map(str::lines).map(|line| line.strip_prefix("$ ").unwrap_or(line));
    lines
        .map(|line| line.split('#').next().unwrap_or("").trim())
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn it_opens_with_the_two_commands() {
    let readme = readme();
    let cargo: Vec<&str> =
        commands(&readme).into_iter().filter(|line| line.starts_with("cargo ")).collect();
    assert_eq!(cargo[..2], ["cargo demo", "cargo test --workspace"]);
    let config = std::fs::read_to_string(workspace().join(".cargo/config.toml")).unwrap();
    assert!(config.contains("\ndemo = "), "cargo demo is an alias");
}

#[test]
fn the_flags_it_shows_are_known() {
    let readme = readme();
    let mut flags = 0;
    for (name, program) in [("rec", rec as fn() -> Command), ("rep", rep)] {
        for line in commands(&readme) {
            let mut words = line.split_whitespace().peekable();
            if words.next() != Some(name) {
                continue;
            }
            // A command of the program has flags of its own.
            let command = words.next_if(|word| {
                let known = "script info evlist dump mem c2c branches timeline bundle diff export \
                             html flame annotate syscalls waits trace stat";
                known.split(' ').any(|command| command == *word)
            });
            let help = run(program().args(command).arg("--help")).expect(0);
            let known: Vec<&str> =
                help.text().split(|c: char| c.is_whitespace() || ",=[<".contains(c)).collect();
            for flag in words
                .take_while(|word| *word != "--")
                .filter(|word| word.starts_with('-') && *word != "-")
            {
                let flag = flag.split('=').next().unwrap();
                assert!(
                    known.contains(&flag),
                    "{name} has no {flag}, which README.md shows: {line}"
                );
                flags += 1;
            }
        }
    }
    assert!(flags >= 5, "README.md shows {flags} flags");
}

#[test]
fn its_links_lead_somewhere() {
    let readme = readme();
    let targets = readme.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
        let path = target.split('#').next().unwrap();
        assert!(workspace().join(path).exists(), "README.md links to {target}");
    }
}
