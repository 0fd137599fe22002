//! The `rep` command.

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::ExitCode;

use recrep_report::args;
use recrep_report::branches;
use recrep_report::c2c;
use recrep_report::dump;
use recrep_report::info;
use recrep_report::inputs;
use recrep_report::latency;
use recrep_report::looks::Colour;
use recrep_report::modules;
use recrep_report::profile::Profile;
use recrep_report::progress::Bar;
use recrep_report::query::{KeyError, Only, Query, Source};
use recrep_report::report;
use recrep_report::script;
use recrep_report::slices;
use recrep_report::tasks;
use recrep_report::view::{self, Screen, escape};
use recrep_report::warning::Warning;

/// The input cannot be answered.
const FAILED: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next();
    match words.next().and_then(|word| word.into_string().ok()).as_deref() {
        Some("script") => return listing(script::parse(named("rep script", words)), script::run),
        Some("info") => return listing(info::parse(named("rep info", words)), info::run),
        Some("modules") => return listing(modules::parse(named("rep modules", words)), modules::run),
        Some("evlist") => {
            return listing(info::parse_evlist(named("rep evlist", words)), info::run_evlist);
        }
        Some("dump") => return listing(dump::parse(named("rep dump", words)), dump::run),
        Some("mem") => return listing(latency::parse(named("rep mem", words)), latency::run),
        Some("c2c") => return listing(c2c::parse(named("rep c2c", words)), c2c::run),
        Some("branches") => return listing(branches::parse(named("rep branches", words)), branches::run),
        Some("timeline") => return listing(slices::parse(named("rep timeline", words)), slices::run),
        _ => drop(program),
    }
    let query = match args::parse(std::env::args_os()) {
        Ok(query) => query,
        Err(error) => return refuse(&error),
    };
    match query.only {
        Some(Only::Tasks | Only::Mmaps) => return listing(Ok(query), tasks::run),
        Some(Only::Records) => return listing(Ok(query), each(dump::whole, dump::run)),
        Some(Only::Header) => return listing(Ok(query), each(info::whole, info::run)),
        Some(Only::Stats) | None => {}
    }
    let _bar = Bar::start();
    match report::answer(&query) {
        Ok((profile, query)) => finish(&profile, &query),
        Err(error) => failed(&error),
    }
}

/// The words of a command, its name first as one word.
fn named(name: &str, words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    std::iter::once(name.into()).chain(words).collect()
}

fn refuse(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    ExitCode::from(if printed.is_ok() && !error.use_stderr() { 0 } else { USAGE })
}

/// What a command prints as it goes.
type Out = BufWriter<StdoutLock<'static>>;

/// Answers a command whose answer is printed as it is found.
fn listing<Q>(
    query: Result<Q, clap::Error>,
    run: impl FnOnce(&Q, &mut Out) -> anyhow::Result<Vec<Warning>>,
) -> ExitCode {
    let query = match query {
        Ok(query) => query,
        Err(error) => return refuse(&error),
    };
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let outcome = run(&query, &mut out).and_then(|warnings| {
        out.flush().map_err(script::ScriptError::Write)?;
        Ok(warnings)
    });
    match outcome {
        Ok(warnings) => {
            warn(&warnings);
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

/// Says why there is no answer; that nobody reads it any more is no failure.
fn failed(error: &anyhow::Error) -> ExitCode {
    let broken = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    if error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(broken) {
        return ExitCode::SUCCESS;
    }
    say(&format!("rep: {}", escape(&format!("{error:#}"))));
    // Of some names only the file can say that they mean nothing.
    ExitCode::from(if error.is::<KeyError>() { USAGE } else { FAILED })
}

fn warn(warnings: &[Warning]) {
    for warning in warnings {
        let at = warning.offset.map(|offset| format!(" (at byte {offset})")).unwrap_or_default();
        say(&format!("rep: warning: {}{at}", escape(&warning.message)));
    }
}

fn finish(profile: &Profile, query: &Query) -> ExitCode {
    if !query.looks.quiet {
        warn(&profile.warnings);
        profile.hints.iter().for_each(|hint| say(&format!("rep: hint: {}", escape(hint))));
    }
    let stdout = io::stdout();
    let screen = screen(&stdout, query);
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    if query.looks.header
        && let Err(error) = each(info::whole, info::comment)(query, &mut out)
    {
        return failed(&error);
    }
    let written = view::print(profile, query, screen, &mut out).and_then(|()| out.flush());
    match written {
        // Who reads the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("rep: cannot write the answer: {error}"));
            ExitCode::from(FAILED)
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// What standard output is.
fn screen(stdout: &io::Stdout, query: &Query) -> Screen {
    let is_terminal = stdout.is_terminal();
    let width = if is_terminal { terminal_size::terminal_size() } else { None };
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    let colour = match query.looks.colour {
        Colour::Auto => is_terminal && !is_set("NO_COLOR") && !is_dumb,
        Colour::Always => true,
        Colour::Never => false,
    };
    Screen { width: width.map(|(columns, _)| usize::from(columns.0)), colour }
}

/// Answers for each input by itself, one after the other.
fn each<Q>(
    of: fn(&Source) -> Q,
    run: fn(&Q, &mut Out) -> anyhow::Result<Vec<Warning>>,
) -> impl Fn(&Query, &mut Out) -> anyhow::Result<Vec<Warning>> {
    move |query, out| {
        let mut warnings = Vec::new();
        let unreadable = inputs::each(&query.sources, |source| {
            warnings.extend(run(&of(source), out)?);
            Ok(())
        })?;
        warnings.extend(unreadable);
        Ok(warnings)
    }
}

/// A line on standard error; where nobody listens there is nobody to tell.
fn say(line: &str) {
    let _unheard = writeln!(io::stderr(), "{line}");
}
