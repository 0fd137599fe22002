//! The `rep` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    recrep_report::main(std::env::args_os().collect())
}
