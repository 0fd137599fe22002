//! Tries `rep diff` on recordings of which the truth is known: how often does it see a change where
//! there is none, how often does it find one, and do its intervals hold the truth?
//!
//!     CARGO_PROFILE_RELEASE_STRIP=none cargo run --release -p recrep-tests --bin recrep-experiment
//!
//! It records a program of 60 functions of known shares as it is and with one function slower, and
//! real programs as they are, all in one random order. Then it draws runs for two sides, lets
//! `rep diff` compare them, and prints a table. Changes are counted apart for sides that were
//! recorded in turn, and for those of an early and a late part of the session.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]
#![allow(clippy::cast_precision_loss, reason = "its numbers are small")]

mod draws;
mod shares;

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Instant;

use clap::Parser;
use draws::{Draw, Random, Run, Sides};
use recrep_tests::programs::{rec, rep};
use serde::Deserialize;

/// Try `rep diff` on recordings of which the truth is known
#[derive(Debug, Parser)]
#[command(name = "recrep-experiment")]
struct Args {
    /// Number of recordings of each program as it is
    #[arg(long, default_value_t = 60)]
    runs: usize,

    /// Number of recordings with each change
    #[arg(long, default_value_t = 30)]
    changed: usize,

    /// Number of comparisons for each line of the table
    #[arg(long, default_value_t = 200)]
    draws: usize,

    /// Number of recordings on a side
    #[arg(long, default_value_t = 5)]
    side: usize,

    /// Samples a second
    #[arg(long, default_value_t = 4000)]
    frequency: u32,

    /// Rounds of the known program's work
    #[arg(long, default_value_t = 3200)]
    rounds: u64,

    /// Start of the random order
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Real programs, each a command of the shell [default: three that most machines have]
    #[arg(long = "program", value_name = "COMMAND")]
    programs: Vec<String>,

    /// Directory for the recordings [default: a temporary one]
    #[arg(long)]
    dir: Option<PathBuf>,

    /// Be the known program
    #[arg(long, hide = true)]
    work: bool,

    /// Function of the known program that is changed, and by which factor: w05=1.25
    #[arg(long, hide = true, value_parser = change)]
    change: Option<Change>,
}

/// A function and the factor of its work.
#[derive(Clone, Debug)]
struct Change {
    function: String,
    factor: f64,
}

fn change(text: &str) -> Result<Change, String> {
    let (function, factor) = text.split_once('=').ok_or("it is NAME=FACTOR")?;
    let factor = factor.parse().map_err(|_| "the factor is a number")?;
    Ok(Change { function: function.to_owned(), factor })
}

/// Changes of the known program.
const CHANGES: &[&str] = &["w05=1.25", "w30=1.10", "w01a=2"];

/// Real programs: each line is a command of the shell that takes about a second.
const PROGRAMS: &[&str] = &[
    "seq 600000 | sort -R | gzip -9 | wc -c",
    "python3 -c 'import json; d=[{str(i): [i*.5]*9} for i in range(9000)]; [json.loads(json.dumps(d)) for _ in range(9)]'",
    "perl -e 'for my $r (1..9) { my %h; $h{\"k$_\"} .= chr(65 + $_ % 26) for 1..50000; my @s = sort { $h{$a} cmp $h{$b} || $a cmp $b } keys %h }'",
];

/// Something that is recorded.
struct Subject {
    name: String,
    command: Vec<String>,
    runs: usize,
    change: Option<Change>,
    /// The recordings, in the order of time.
    recorded: Vec<Run>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.work {
        let changed = args.change.as_ref().map(|of| (of.function.as_str(), of.factor));
        shares::work(args.rounds, changed);
        return ExitCode::SUCCESS;
    }
    match experiment(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("recrep-experiment: {error}");
            ExitCode::FAILURE
        }
    }
}

fn experiment(args: &Args) -> Result<(), String> {
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dir = args.dir.as_deref().unwrap_or(temporary.path());
    let mut subjects = subjects(args)?;
    let mut random = Random::new(args.seed);
    record(&mut subjects, args, dir, &mut random)?;
    print_false_alarms(&subjects, args, &mut random)?;
    print_changes_found(&subjects, args, &mut random)
}

fn print_false_alarms(
    subjects: &[Subject],
    args: &Args,
    random: &mut Random,
) -> Result<(), String> {
    println!("Changes seen where there are none, % of {} comparisons:\n", args.draws);
    println!("| program | samples a run | in turn | apart | one run a side |");
    println!("|---|---|---|---|---|");
    for subject in subjects.iter().filter(|subject| subject.change.is_none()) {
        let runs = &subject.recorded;
        let in_turn = tried(runs, runs, Draw::InTurn, args.side, args.draws, random)?;
        let apart = tried(runs, runs, Draw::Apart, args.side, args.draws, random)?;
        let single = tried(runs, runs, Draw::InTurn, 1, args.draws, random)?;
        println!(
            "| {} | {:.0} | {} | {} | {} |",
            subject.name,
            in_turn.samples_a_run(args.side),
            in_turn.percent_changed(),
            apart.percent_changed(),
            single.percent_changed()
        );
    }
    Ok(())
}

fn print_changes_found(
    subjects: &[Subject],
    args: &Args,
    random: &mut Random,
) -> Result<(), String> {
    println!("\nChanges found, % of {} comparisons in turn:\n", args.draws);
    println!("| change | found | other rows marked | true intervals: changed row | other rows |");
    println!("|---|---|---|---|---|");
    let Some(known) = subjects.first() else { return Ok(()) };
    for subject in subjects {
        let Some(change) = &subject.change else { continue };
        let (base, new) = (&known.recorded, &subject.recorded);
        let found = tried(base, new, Draw::InTurn, args.side, args.draws, random)?;
        let (own, others) = found.against(change);
        if own.rows == 0 {
            return Err("the known program has no symbols: CARGO_PROFILE_RELEASE_STRIP=none".into());
        }
        println!(
            "| {} by {:+.0} % | {} | {} | {} | {} |",
            change.function,
            100.0 * (change.factor - 1.0),
            percent(own.marked, own.rows),
            percent(others.marked, others.rows),
            percent(own.held, own.with_interval),
            percent(others.held, others.with_interval),
        );
    }
    Ok(())
}

/// Returns what is recorded; the known program as it is comes first.
fn subjects(args: &Args) -> Result<Vec<Subject>, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let known = |change: Option<&str>| {
        let mut command =
            vec![own.display().to_string(), "--work".into(), format!("--rounds={}", args.rounds)];
        command.extend(change.map(|change| format!("--change={change}")));
        command
    };
    let mut subjects = vec![Subject {
        name: "known shares".into(),
        command: known(None),
        runs: args.runs,
        change: None,
        recorded: Vec::new(),
    }];
    for text in CHANGES {
        subjects.push(Subject {
            name: (*text).into(),
            command: known(Some(text)),
            runs: args.changed,
            change: Some(change(text)?),
            recorded: Vec::new(),
        });
    }
    let default: Vec<String> = PROGRAMS.iter().map(|line| (*line).to_owned()).collect();
    for line in if args.programs.is_empty() { &default } else { &args.programs } {
        let name = line.split([' ', '|']).next().unwrap_or(line);
        let command = ["sh", "-c", line].map(str::to_owned).into();
        subjects.push(Subject {
            name: name.into(),
            command,
            runs: args.runs,
            change: None,
            recorded: Vec::new(),
        });
    }
    Ok(subjects)
}

/// Records all subjects in a random order.
fn record(
    subjects: &mut [Subject],
    args: &Args,
    dir: &Path,
    random: &mut Random,
) -> Result<(), String> {
    let places = subjects.iter().enumerate();
    let mut order: Vec<usize> =
        places.flat_map(|(place, subject)| std::iter::repeat_n(place, subject.runs)).collect();
    random.shuffle(&mut order);
    let begun = Instant::now();
    for (number, place) in order.iter().enumerate() {
        let Some(subject) = subjects.get_mut(*place) else { continue };
        let file = dir.join(format!("{number}.data"));
        let start = begun.elapsed();
        let mut command = rec();
        command.args(["-q", "-e", "cpu-clock:u", "-F", &args.frequency.to_string(), "-o"]);
        command.arg(&file).arg("--").args(&subject.command);
        let outcome = command.stdout(Stdio::null()).output().map_err(|error| error.to_string())?;
        if !outcome.status.success() {
            let said = String::from_utf8_lossy(&outcome.stderr);
            return Err(format!("{}: {}: {said}", subject.command.join(" "), outcome.status));
        }
        subject.recorded.push(Run { file, start });
    }
    eprintln!("{} recordings in {:.0} s", order.len(), begun.elapsed().as_secs_f64());
    Ok(())
}

/// What comparisons said.
#[derive(Default)]
struct Tried {
    comparisons: usize,
    changed: usize,
    samples: u64,
    rows: Vec<Row>,
}

/// A row of a comparison, as `rep diff --json` has it.
#[derive(Deserialize)]
struct Row {
    key: Key,
    status: String,
    change: Estimate,
}

#[derive(Deserialize)]
struct Key {
    symbol: String,
}

#[derive(Deserialize)]
struct Estimate {
    low: Option<f64>,
    high: Option<f64>,
    significant: bool,
}

#[derive(Deserialize)]
struct Answer {
    verdict: String,
    base: Vec<Input>,
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Input {
    samples: u64,
}

#[derive(Deserialize)]
struct Event {
    rows: Vec<Row>,
}

/// Rows and how many of them are marked, and have an interval that holds the truth.
#[derive(Default)]
struct Held {
    rows: usize,
    marked: usize,
    with_interval: usize,
    held: usize,
}

impl Tried {
    fn percent_changed(&self) -> String {
        percent(self.changed, self.comparisons)
    }

    fn samples_a_run(&self, side: usize) -> f64 {
        self.samples as f64 / (self.comparisons * side).max(1) as f64
    }

    /// Returns what was said of the changed function, and of the others of the known program.
    fn against(&self, change: &Change) -> (Held, Held) {
        let (mut own, mut others) = (Held::default(), Held::default());
        for row in &self.rows {
            let name = row.key.symbol.rsplit("::").next().unwrap_or_default();
            if shares::FUNCTIONS.iter().all(|function| function.name != name) {
                continue;
            }
            let is_changed = name == change.function;
            let truth = if is_changed { change.factor - 1.0 } else { 0.0 };
            let held = if is_changed { &mut own } else { &mut others };
            held.rows += 1;
            held.marked += usize::from(row.status == "changed" && row.change.significant);
            if let (Some(low), Some(high)) = (row.change.low, row.change.high) {
                held.with_interval += 1;
                held.held += usize::from((low..=high).contains(&truth));
            }
        }
        (own, others)
    }
}

/// Compares sides that are drawn from runs.
fn tried(
    base: &[Run],
    new: &[Run],
    draw: Draw,
    side: usize,
    draws: usize,
    random: &mut Random,
) -> Result<Tried, String> {
    let mut tried = Tried::default();
    for _ in 0..draws {
        let sides = Sides::drawn(base, new, draw, side, random);
        let answer = compared(&sides.ok_or("too few runs for these sides")?)?;
        tried.comparisons += 1;
        tried.changed += usize::from(answer.verdict == "changed");
        tried.samples += answer.base.iter().map(|input| input.samples).sum::<u64>();
        tried.rows.extend(answer.events.into_iter().flat_map(|event| event.rows));
    }
    Ok(tried)
}

fn compared(sides: &Sides<'_>) -> Result<Answer, String> {
    let files = |runs: &[&Run]| runs.iter().map(|run| run.file.clone()).collect::<Vec<_>>();
    let mut command = rep();
    command.args(["diff", "--json"]).args(files(&sides.base)).arg("--").args(files(&sides.new));
    let outcome = command.output().map_err(|error| error.to_string())?;
    serde_json::from_slice(&outcome.stdout).map_err(|error| {
        format!("rep diff --json: {error}: {}", String::from_utf8_lossy(&outcome.stderr))
    })
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.1}", 100.0 * part as f64 / whole.max(1) as f64)
}
