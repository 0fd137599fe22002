//! `rec`: command line → [`Config`](recrep_record::config::Config) → session → exit status.

use std::process::ExitCode;

use recrep_record::{args, messages::Messages, session, sys::Perf};

fn main() -> ExitCode {
    let config = match args::parse(std::env::args_os()) {
        Ok(config) => config,
        Err(refusal) => return ExitCode::from(refusal.print()),
    };
    let messages = Messages::stderr(config.verbosity);
    match session::run(&config, &Perf, &messages) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            messages.error(&error);
            ExitCode::from(error.exit_status())
        }
    }
}
