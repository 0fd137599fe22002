//! Compares builds of a program of which only names and places changed: a function was renamed, moved
//! to a library, inlined, split, or had a part extracted; a script was checked out elsewhere and
//! compiled by a JIT in a new process. `rep diff` must call these the same, and must find a change of
//! 20 % of a function of 10 % beside each of them.
//!
//! Every repetition records all builds in turn. Answers are counted by kind.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use recrep_tests::programs::{rec, rep};
use serde::Deserialize;

/// Try `rep diff` on builds of one program that differ in names and places
#[derive(Debug, Parser)]
#[command(name = "recrep-moves")]
struct Args {
    /// Number of comparisons for each number of the table
    #[arg(long, default_value_t = 20)]
    repeat: usize,

    /// Number of recordings on a side
    #[arg(long, default_value_t = 5)]
    side: usize,

    /// Samples a second
    #[arg(long, default_value_t = 4000)]
    frequency: u32,

    /// Rounds of the programs' work
    #[arg(long, default_value_t = 3000)]
    rounds: u32,

    /// Record callchains
    #[arg(short = 'g', long)]
    callchains: bool,

    /// Kinds of changes [default: all]
    #[arg(long = "kind", value_name = "NAME")]
    kinds: Vec<String>,

    /// Directory for programs and recordings [default: a temporary one]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// A change of names or places.
struct Kind {
    name: &'static str,
    /// Macro of the new build; none for the JIT.
    define: Option<&'static str>,
    source: &'static str,
}

const APP: &str = include_str!("app.c");
const PARTS: &str = include_str!("parts.c");
const JIT: &str = include_str!("jit.c");

const KINDS: [Kind; 6] = [
    Kind { name: "rename", define: Some("RENAMED"), source: APP },
    Kind { name: "move", define: Some("MOVED"), source: APP },
    Kind { name: "inline", define: Some("INLINED"), source: APP },
    Kind { name: "split", define: Some("SPLIT"), source: APP },
    Kind { name: "extract", define: Some("EXTRACTED"), source: APP },
    // A new process has other numbers and addresses, and its script is in another folder.
    Kind { name: "checkout and JIT run", define: None, source: JIT },
];

/// Work of the changed function, in percent of what it was.
const SAME: u32 = 100;
const CHANGED: u32 = 120;

/// A program and its recordings of a repetition.
struct Build {
    program: PathBuf,
    /// Folder that a JIT's script is in.
    folder: String,
    recorded: Vec<PathBuf>,
    /// Maps that the processes wrote.
    maps: Vec<PathBuf>,
}

/// The builds of a kind: base, new, and new with a change.
struct Trial<'k> {
    kind: &'k Kind,
    builds: [Build; 3],
    same: usize,
    found: usize,
    others_marked: usize,
}

fn main() -> ExitCode {
    match campaign(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("recrep-moves: {error}");
            ExitCode::FAILURE
        }
    }
}

fn campaign(args: &Args) -> Result<(), String> {
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dir = args.dir.as_deref().unwrap_or(temporary.path());
    let is_asked =
        |kind: &&Kind| args.kinds.is_empty() || args.kinds.iter().any(|name| name == kind.name);
    let kinds = KINDS.iter().filter(is_asked);
    let mut trials =
        kinds.map(|kind| trial(kind, args, dir)).collect::<Result<Vec<_>, String>>()?;
    for repetition in 0..args.repeat {
        for trial in &mut trials {
            trial.record(args, dir)?;
            trial.compare()?;
            trial.forget();
        }
        eprintln!("{} of {}", repetition + 1, args.repeat);
    }
    println!("| kind | `same` | change of 20 % found | other rows marked beside it |");
    println!("|---|---|---|---|");
    for Trial { kind, same, found, others_marked, .. } in &trials {
        let repeat = args.repeat;
        println!("| {} | {same} of {repeat} | {found} of {repeat} | {others_marked} |", kind.name);
    }
    Ok(())
}

/// Builds the programs of a kind.
fn trial<'k>(kind: &'k Kind, args: &Args, dir: &Path) -> Result<Trial<'k>, String> {
    let build = |name: &str, define: Option<&str>, percent: u32| {
        let folder = dir.join(kind.name.replace(' ', "-")).join(name);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let program = folder.join("app");
        let source = folder.join("app.c");
        std::fs::write(&source, kind.source).map_err(|error| error.to_string())?;
        let mut compiler = Command::new("cc");
        // Equal functions must not become one.
        compiler.args(["-O1", "-g0", "-fno-ipa-icf"]);
        compiler.arg(format!("-DROUNDS={}", args.rounds)).arg(format!("-DPERCENT={percent}"));
        compiler
            .args(define.map(|define| format!("-D{define}")))
            .arg("-o")
            .arg(&program)
            .arg(&source);
        if define == Some("MOVED") {
            compiler.arg(library(&folder)?).arg(format!("-Wl,-rpath,{}", folder.display()));
        }
        compiled(&mut compiler)?;
        let folder = folder.display().to_string();
        Ok::<_, String>(Build { program, folder, recorded: Vec::new(), maps: Vec::new() })
    };
    let builds = [
        build("base", None, SAME)?,
        build("new", kind.define, SAME)?,
        build("changed", kind.define, CHANGED)?,
    ];
    Ok(Trial { kind, builds, same: 0, found: 0, others_marked: 0 })
}

/// Builds the library that a function moved to.
fn library(folder: &Path) -> Result<PathBuf, String> {
    let (source, library) = (folder.join("parts.c"), folder.join("libparts.so"));
    std::fs::write(&source, PARTS).map_err(|error| error.to_string())?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g0", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    compiled(&mut compiler)?;
    Ok(library)
}

fn compiled(compiler: &mut Command) -> Result<(), String> {
    let outcome = compiler.output().map_err(|error| format!("cc: {error}"))?;
    match outcome.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&outcome.stderr).into_owned()),
    }
}

/// A comparison, as `rep diff --json` has it.
#[derive(Deserialize)]
struct Answer {
    verdict: String,
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    key: Key,
    change: Change,
}

#[derive(Deserialize)]
struct Key {
    symbol: String,
}

#[derive(Deserialize)]
struct Change {
    relative: Option<f64>,
    significant: bool,
}

impl Trial<'_> {
    /// Records all builds in turn.
    fn record(&mut self, args: &Args, dir: &Path) -> Result<(), String> {
        for run in 0..args.side {
            for (number, build) in self.builds.iter_mut().enumerate() {
                let file = dir.join(format!("{number}.{run}.data"));
                let mut command = rec();
                command.args(["-q", "-e", "cpu-clock:u", "-F", &args.frequency.to_string()]);
                command.args(args.callchains.then_some("-g")).arg("-o").arg(&file).arg("--");
                command.arg(&build.program).arg(&build.folder);
                let outcome = command.output().map_err(|error| error.to_string())?;
                if !outcome.status.success() {
                    return Err(String::from_utf8_lossy(&outcome.stderr).into_owned());
                }
                build.recorded.push(file);
                let printed = String::from_utf8_lossy(&outcome.stdout);
                build.maps.extend(printed.lines().map(PathBuf::from));
            }
        }
        Ok(())
    }

    /// Removes what the repetition left.
    fn forget(&mut self) {
        for build in &mut self.builds {
            build.recorded.clear();
            for map in build.maps.drain(..) {
                // Another process may have removed it.
                _ = std::fs::remove_file(map);
            }
        }
    }

    fn compare(&mut self) -> Result<(), String> {
        let [base, new, changed] = &self.builds;
        self.same += usize::from(compared(base, new)?.verdict == "same");
        let answer = compared(base, changed)?;
        let rows = answer.events.iter().flat_map(|event| &event.rows);
        let (own, others): (Vec<&Row>, Vec<&Row>) = rows
            .filter(|row| row.change.significant)
            .partition(|row| row.key.symbol.contains("emit"));
        let is_found = own.iter().any(|row| row.change.relative.is_some_and(|part| part > 0.0));
        self.found += usize::from(is_found);
        self.others_marked += others.len();
        Ok(())
    }
}

fn compared(base: &Build, new: &Build) -> Result<Answer, String> {
    let mut command = rep();
    command.args(["diff", "--json"]).args(&base.recorded).arg("--").args(&new.recorded);
    let outcome = command.output().map_err(|error| error.to_string())?;
    serde_json::from_slice(&outcome.stdout).map_err(|error| {
        format!("rep diff --json: {error}: {}", String::from_utf8_lossy(&outcome.stderr))
    })
}
