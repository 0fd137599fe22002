//! `rep report`, the default command: histograms of samples.

use std::io;
use std::process::ExitCode;

use crate::analyses::diff;
use crate::cli::args::{self, ReportQuery};
use crate::cli::outcome::{
    Out, end, failed, output, refused, say, say_default_input, stream, warn, written,
};
use crate::cli::{Asked, Line};
use crate::engine::report;
use crate::exports;
use crate::exports::outputs::RulesWriter;
use crate::input::{each, retry_if_changed};
use crate::listings::dump::{self, DumpOptions};
use crate::listings::stat::{self, StatQuery};
use crate::listings::{info, tasks};
use crate::profile::Profile;
use crate::query::{Inspection, Warning};
use crate::terminal::escape::escape;
use crate::terminal::progress::Bar;
use crate::terminal::style::Screen;

pub(super) fn main(line: &Line) -> ExitCode {
    let asked = match args::asked(line) {
        Ok(asked) => asked,
        Err(refusal) => return refused(&refusal),
    };
    match asked.query.query.inspection {
        Some(Inspection::Tasks | Inspection::Mmaps) => return stream(Ok(asked), tasks::run),
        Some(Inspection::Records) => {
            return stream(Ok(asked), print_records);
        }
        Some(Inspection::Header) => return stream(Ok(asked), print_headers),
        Some(Inspection::Stats) | None => {}
    }
    let has_heading = asked.query.export.is_for_people() && asked.query.query.inspection.is_none();
    if asked.is_default_input && !has_heading && !asked.query.query.style.quiet {
        say_default_input();
    }
    if let Some(write) = asked.query.rules {
        return rules(&asked, write);
    }
    let bar = Bar::start();
    let answer = report::answer(&asked.query.query);
    drop(bar);
    match answer {
        Ok((profile, query)) => {
            let asked = Asked { query: ReportQuery { query, ..asked.query }, ..asked };
            let status = gated(print(&profile, &asked), &asked.query);
            // The end of the process does not wait until all rows are freed.
            rayon::spawn(|| drop(profile));
            status
        }
        Err(error) => failed(&error),
    }
}

/// Returns the exit status after the rules were applied, if there are any, to that of the report.
fn gated(status: ExitCode, ReportQuery { query, gates, .. }: &ReportQuery) -> ExitCode {
    if !gates.is_asked() {
        return status;
    }
    match retry_if_changed(&query.sources, || diff::gates_of_profile(query, gates)) {
        Ok(report) => {
            let told = diff::report_gates(&report, gates.is_strict);
            // Without samples there is no answer, which no gate lets pass.
            if told == ExitCode::SUCCESS { status } else { told }
        }
        Err(error) => failed(&error),
    }
}

/// Prints what became of the rules alone, and returns the exit status.
fn rules(asked: &Asked<ReportQuery>, write: RulesWriter) -> ExitCode {
    let ReportQuery { query, gates, .. } = &asked.query;
    let report = retry_if_changed(&query.sources, || diff::gates_of_profile(query, gates));
    let report = match report {
        Ok(report) => report,
        Err(error) => return failed(&error),
    };
    let mut out = output(asked.no_pager);
    let rules = diff::RuleAnswer { report: &report, is_strict: gates.is_strict, command: "rep" };
    let printed = written(write(&rules, &mut out).and(end(out)));
    let told = diff::report_gates(&report, gates.is_strict);
    if printed == ExitCode::SUCCESS { told } else { printed }
}

/// Returns whether there are no samples, but counts that can be shown in their place.
fn shows_counts_alone(profile: &Profile, ReportQuery { query, export, .. }: &ReportQuery) -> bool {
    export.is_for_people()
        && query.inspection.is_none()
        && profile.samples() == 0
        && profile.has_counts()
}

fn print(profile: &Profile, asked: &Asked<ReportQuery>) -> ExitCode {
    let ReportQuery { query, export, .. } = &asked.query;
    if shows_counts_alone(profile, &asked.query) {
        say("rep: there are no samples in the recording; these are its counts (rep stat)");
        let Asked { no_pager, .. } = *asked;
        let query = StatQuery::whole(&query.sources);
        return stream(Ok(Asked { query, no_pager, is_default_input: false }), stat::run);
    }
    let mut status = ExitCode::SUCCESS;
    if !query.style.quiet {
        status = warn(&profile.warnings);
        if status == ExitCode::SUCCESS {
            profile.hints.iter().for_each(|hint| say(&format!("rep: hint: {}", escape(hint))));
        }
    } else if let Some(failure) = profile.warnings.iter().find(|warning| warning.is_failure()) {
        status = warn(std::slice::from_ref(failure));
    }
    // JSON has the numbers of other records, which are an answer, and the warning.
    let is_answered =
        |warning: &Warning| !warning.is_failure() || warning.code == Warning::NO_SAMPLES;
    if export.has_other_records() && profile.warnings.iter().all(is_answered) {
        status = ExitCode::SUCCESS;
    }
    if status != ExitCode::SUCCESS && !export.has_other_records() && query.inspection.is_none() {
        // A table without rows would look like an answer.
        return status;
    }
    let screen = Screen::of(&io::stdout(), query.style.colour);
    let mut out = output(asked.no_pager);
    if query.style.header
        && let Err(error) = each(&query.sources, |source| info::comment(source, &mut out))
    {
        return failed(&error);
    }
    let printed = exports::print(*export, profile, query, screen, &mut out);
    let written = written(printed.and(end(out)));
    if written == ExitCode::SUCCESS { status } else { written }
}

fn print_records(asked: &ReportQuery, out: &mut Out) -> anyhow::Result<Vec<Warning>> {
    let options = DumpOptions::default();
    each(&asked.query.sources, |source| dump::print(source, &options, out))
}

fn print_headers(asked: &ReportQuery, out: &mut Out) -> anyhow::Result<Vec<Warning>> {
    each(&asked.query.sources, |source| info::print(source, false, out))
}
