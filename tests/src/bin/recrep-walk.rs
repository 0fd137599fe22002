//! Walks at random through the code of the C library, writes what Intel PT would have traced, and holds `rep` and perf to
//! the log of the walk: each branch in order, its time, and the counts of a report.
//!
//!     cargo run --release -p recrep-tests --bin recrep-walk -- --branches 20000000 DIR
//!
//! The branches are shared by twelve ways to write a trace. perf is that of `PATH` or `PERF`, and the one that
//! `RECREP_PERF612` names. The exit status is 1 if anything differs. libipt is a third witness:
//!
//!     cc -O2 -o branches tests/libipt/branches.c -lipt
//!     cargo run --release -p recrep-tests --bin recrep-walk -- --libipt ./branches DIR
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use recrep_fixtures::trace::{Clocks, Image, PtFile, Settings, Timing, Walk};
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;
use recrep_tests::walking::{self, WalkCheck};

/// Holds `rep` and perf to the logs of random walks that are written as Intel PT
#[derive(Debug, Parser)]
#[command(name = "recrep-walk")]
struct Args {
    /// The folder of the files
    dir: PathBuf,

    /// Number of branches of all files
    #[arg(long, default_value_t = 1_200_000)]
    branches: u64,

    /// One file alone: 1 to 12
    #[arg(long, value_name = "N")]
    variant: Option<usize>,

    /// Let each indirect jump and call go to four places, not to any function
    #[arg(long)]
    few_targets: bool,

    /// Let an event that does not change the flow happen at one instruction in so many
    #[arg(long, value_name = "N", default_value_t = 0)]
    side_event_every: u64,

    /// Write the files, and check nothing
    #[arg(long)]
    write_only: bool,

    /// Hold the list of this program, with libipt, to the logs; returns go to their calls only: libipt does not take
    /// back the call of a return that goes elsewhere, as the manual of the processor has it
    #[arg(long, value_name = "PROGRAM")]
    libipt: Option<PathBuf>,

    /// Do not run perf
    #[arg(long)]
    no_perf: bool,

    /// File whose code is walked
    #[arg(long, value_name = "FILE", default_value = "/usr/lib/x86_64-linux-gnu/libc.so.6")]
    image: PathBuf,
}

/// Address at which the code is mapped.
const ADDRESS: u64 = 0x7f12_3456_7000;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("recrep-walk: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> std::io::Result<bool> {
    let image = Image::read(&args.image, ADDRESS)?;
    let all = (1..).zip(Settings::variants());
    let chosen: Vec<_> = all.filter(|(n, _)| args.variant.is_none_or(|one| one == *n)).collect();
    let share = args.branches / chosen.len().max(1) as u64;
    let mut is_equal = true;
    for (number, settings) in chosen {
        let settings = Settings {
            has_few_targets: args.few_targets,
            has_stray_returns: args.libipt.is_none(),
            side_event_every: args.side_event_every,
            ..settings
        };
        let seed = number as u64;
        let path = args.dir.join(format!("walk-{number}.data"));
        let walk = Walk::through(&image, settings, seed, share, |_| {});
        let Walk { trace, psbs, end, .. } = &walk;
        let file = PtFile { image: &image, settings, trace, psbs, end: *end };
        std::fs::write(&path, file.stream().file())?;
        println!(
            "{}: {} branches, {} instructions, {} bytes of trace, {settings:?}",
            path.display(),
            walk.branches,
            walk.instructions,
            trace.len(),
        );
        if args.write_only {
            continue;
        }
        let mut lists = vec![("rep".to_owned(), listing(rep(), settings.timing, &path))];
        if !args.no_perf {
            for perf in versions() {
                let mut command = listing(version(&perf), settings.timing, &path);
                command.arg("--no-inline").arg("-i").arg(&path);
                lists.push((perf.to_string_lossy().into_owned(), command));
            }
        }
        if let Some(program) = &args.libipt {
            let [pt, code] = ["pt", "code"].map(|extension| path.with_extension(extension));
            std::fs::write(&pt, trace)?;
            std::fs::write(&code, &image.code)?;
            let mut command = Command::new(program);
            command.arg(pt).arg(code).arg(format!("{ADDRESS:x}"));
            lists.push(("libipt".to_owned(), command));
        }
        for (name, command) in &mut lists {
            let check = walking::check(command, |log| {
                Walk::through(&image, settings, seed, share, log);
            })?;
            is_equal &= tell(name, &check);
        }
    }
    Ok(is_equal)
}

/// Returns the command that lists branches, with times if there are any.
fn listing(mut command: Command, timing: Timing, path: &Path) -> Command {
    let fields = if timing == Timing::None { "ip,addr" } else { "time,ip,addr" };
    command.args(["script", "--itrace=b", "-F", fields]);
    if timing != Timing::None {
        command.arg("--ns");
    }
    if command.get_program() == rep().get_program() {
        command.arg(path);
    }
    command
}

/// Prints what a check found; returns whether all is as logged.
fn tell(name: &str, check: &WalkCheck) -> bool {
    let WalkCheck { branches, differing, first, latest, earliest } = check;
    let times = match earliest.zip(*latest) {
        Some((early, late)) => format!(
            "; times from {early} to {late} ticks off the true clock, an MTC period is {}",
            Clocks::MTC_PERIOD
        ),
        None => String::new(),
    };
    println!("  {name}: {branches} branches, {differing} differ{times}");
    if let Some(first) = first {
        println!("    {first}");
    }
    *differing == 0
}
