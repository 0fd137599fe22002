//! `cargo demo`: builds `rec`, `rep` and the bundled workload, records the one with the other,
//! prints the report.
//!
//! What a machine refuses, `rec` explains; its exit status is passed on.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]

use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use recrep_tests::programs::{programs, rec, rep, workload};

fn main() -> ExitCode {
    println!("Building rec, rep and the workload");
    let data = programs().dir.join("demo.data");
    let recorded = step(
        rec()
            .args(["-g", "-o"])
            .arg(&data)
            .arg("--")
            .args(workload("hot --ms 1500 --threads 2 --forks 1")),
    );
    if !recorded.is_some_and(|status| status.success()) {
        eprintln!("demo: nothing was recorded");
        return code(recorded);
    }
    code(step(
        rep()
            .args([
                "--no-children",
                "-g",
                "none",
                "--sort",
                "comm,dso,symbol",
                "--percent-limit",
                "0.5",
            ])
            .arg(&data),
    ))
}

/// Says the command as one would type it, and runs it.
fn step(command: &mut Command) -> Option<ExitStatus> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let names = words.map(|word| {
        let path = Path::new(word);
        if path.is_absolute() { path.file_name().unwrap_or(word) } else { word }.to_string_lossy()
    });
    println!("$ {}", names.collect::<Vec<_>>().join(" "));
    command.status().inspect_err(|error| eprintln!("demo: {error}")).ok()
}

fn code(status: Option<ExitStatus>) -> ExitCode {
    let code = status.and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
