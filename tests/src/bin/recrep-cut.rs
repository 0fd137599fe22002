//! Cuts a file short while `rep` reads it, very often, and holds `rep` to its rules.
//!
//!     cargo run --release -p recrep-tests --bin recrep-big -- branches big.data
//!     cargo run --release -p recrep-tests --bin recrep-cut -- --times 500 big.data
//!
//! The exit status is 1 if a rule was broken.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use recrep_tests::cutting::Cutting;
use recrep_tests::programs::programs;

/// Runs `rep`, in several views, on copies of a file that are cut short or rewritten meanwhile
#[derive(Debug, Parser)]
#[command(name = "recrep-cut")]
struct Args {
    /// The file
    file: PathBuf,

    /// Number of cuts
    #[arg(long, default_value_t = 100)]
    times: u64,

    /// The folder of the copies
    #[arg(long, value_name = "DIR", default_value = ".")]
    folder: PathBuf,

    /// The program to be tried, if not the one that is built for it
    #[arg(long, value_name = "FILE")]
    rep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Args { file: original, times, folder, rep } = Args::parse();
    let folder = match tempfile::tempdir_in(&folder) {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("recrep-cut: cannot make a folder in {}: {error}", folder.display());
            return ExitCode::from(2);
        }
    };
    let rep = rep.unwrap_or_else(|| programs().rep.clone());
    println!("{times} times, by {}", rep.display());
    let cutting = Cutting { rep, original, folder: folder.path().to_owned(), times };
    let outcome = cutting.run(|number| eprintln!("… {number}"));
    println!("{outcome}");
    if outcome.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
