//! `rec`: command line → `Config` → session → exit status;
//! `rec list`: events; `rec stat`: counts; `rec man`, `rec completions`: texts.

use std::ffi::OsString;
use std::process::ExitCode;

use recrep_record::cli::{self, list, manual, stat};
use recrep_record::messages::error::Result;
use recrep_record::messages::{Messages, Verbosity};
use recrep_record::session::page::PageMaker;
use recrep_record::session::{self, dry_run};
use recrep_record::{Perf, guard};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if guard::is_meant(&words) {
        return ExitCode::from(guard::run());
    }
    if list::is_asked_for(&words) {
        return exit(list::run(&words, &Perf), &Messages::stderr(Verbosity::Normal));
    }
    if stat::is_asked_for(&words) {
        return exit(stat::run(&words, &Perf), &Messages::stderr(Verbosity::Normal));
    }
    if manual::is_asked_for(&words) {
        return exit(manual::run(&words), &Messages::stderr(Verbosity::Normal));
    }
    let config = match cli::parse(words) {
        Ok(config) => config,
        Err(refusal) => return ExitCode::from(refusal.print()),
    };
    let messages = Messages::stderr(config.verbosity);
    let done = if config.dry_run {
        dry_run::run(&config).map(|()| 0)
    } else {
        PageMaker::of(&config).and_then(|page| {
            let status = session::run(&config, &Perf, &messages)?;
            page.map_or(Ok(()), |page| page.make())?;
            Ok(status)
        })
    };
    exit(done, &messages)
}

fn exit(status: Result<u8>, messages: &Messages) -> ExitCode {
    match status {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            messages.error(&error);
            ExitCode::from(error.exit_status())
        }
    }
}
