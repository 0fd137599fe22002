//! Damages perf.data files in very many ways and holds `rep --json` to its rules on each.
//!
//!     cargo run --release -p recrep-tests --bin recrep-damage -- --variants 20000 DIR
//!
//! The same number is the same damage in every run: `--first N --variants 1` repeats one,
//! `--keep DIR` leaves the files that broke a rule. The exit status is 1 if any did.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use recrep_tests::campaign::{Campaign, originals};
use recrep_tests::programs::programs;

/// Runs `rep --json` on damaged variants of every perf.data file in a folder
#[derive(Debug, Parser)]
#[command(name = "recrep-damage")]
struct Args {
    /// The folder
    dir: PathBuf,

    /// Number of variants in all
    #[arg(long, default_value_t = 1000)]
    variants: u64,

    /// The number of the first one
    #[arg(long, default_value_t = 0)]
    first: u64,

    /// Number of runs at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,

    /// Leave the variants that broke a rule in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,

    /// The program to be tried, if not the one that is built for it
    #[arg(long, value_name = "FILE")]
    rep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Args { dir, variants, first, jobs, keep, rep } = Args::parse();
    let originals = match originals(&dir) {
        Ok(originals) if originals.is_empty() => {
            eprintln!("recrep-damage: there is no perf.data file in {}", dir.display());
            return ExitCode::from(2);
        }
        Ok(originals) => originals,
        Err(error) => {
            eprintln!("recrep-damage: cannot read {}: {error}", dir.display());
            return ExitCode::from(2);
        }
    };
    if let Some(Err(error)) = keep.as_ref().map(std::fs::create_dir_all) {
        eprintln!("recrep-damage: cannot make the folder of what is kept: {error}");
        return ExitCode::from(2);
    }
    let rep = rep.unwrap_or_else(|| programs().rep.clone());
    println!("{variants} variants of {} files, by {}", originals.len(), rep.display());
    let campaign =
        Campaign { rep, originals, numbers: first..first.saturating_add(variants), jobs, keep };
    let outcome = campaign.run(|number| eprintln!("… {number}"));
    println!("{outcome}");
    if outcome.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
