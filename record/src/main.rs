//! `rec`: command line → [`Config`](recrep_record::config::Config) → session → exit status.

use std::process::ExitCode;

use recrep_record::{args, dry_run, messages::Messages, session, sys::Perf};

fn main() -> ExitCode {
    let config = match args::parse(std::env::args_os()) {
        Ok(config) => config,
        Err(refusal) => return ExitCode::from(refusal.print()),
    };
    let messages = Messages::stderr(config.verbosity);
    let done = if config.dry_run { dry_run::run(&config).map(|()| 0) } else { session::run(&config, &Perf, &messages) };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            messages.error(&error);
            ExitCode::from(error.exit_status())
        }
    }
}
