//! `rep report`, the default command: histograms of samples.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use super::dump::{self, DumpOptions};
use super::{info, tasks};
use crate::cli::args;
use crate::cli::outcome::{Out, failed, output, refused, say, stream, warn, written};
use crate::input::several;
use crate::pipeline::report;
use crate::query::{Inspection, Query, Source, Warning};
use crate::table::profile::Profile;
use crate::terminal::escape::escape;
use crate::terminal::progress::Bar;
use crate::terminal::style::Screen;
use crate::view;

pub(crate) fn main(words: Vec<OsString>) -> ExitCode {
    let query = match args::parse(words) {
        Ok(query) => query,
        Err(error) => return refused(&error),
    };
    match query.inspection {
        Some(Inspection::Tasks | Inspection::Mmaps) => return stream(Ok(query), tasks::run),
        Some(Inspection::Records) => {
            return stream(Ok(query), each(|source, out| dump::print(source, &DumpOptions::default(), out)));
        }
        Some(Inspection::Header) => return stream(Ok(query), each(|source, out| info::print(source, false, out))),
        Some(Inspection::Stats) | None => {}
    }
    let _bar = Bar::start();
    match report::answer(&query) {
        Ok((profile, query)) => {
            let status = print(&profile, &query);
            // The end of the process does not wait until all rows are freed.
            rayon::spawn(|| drop(profile));
            status
        }
        Err(error) => failed(&error),
    }
}

fn print(profile: &Profile, query: &Query) -> ExitCode {
    if !query.style.quiet {
        warn(&profile.warnings);
        profile.hints.iter().for_each(|hint| say(&format!("rep: hint: {}", escape(hint))));
    }
    let screen = Screen::of(&io::stdout(), query.style.colour);
    let mut out = output();
    if query.style.header.is_asked()
        && let Err(error) = each(info::comment)(query, &mut out)
    {
        return failed(&error);
    }
    written(view::print(profile, query, screen, &mut out).and_then(|()| out.flush()))
}

/// Returns a function that calls `run` for each input of a query in turn.
fn each(
    run: impl Fn(&Source, &mut Out) -> anyhow::Result<Vec<Warning>>,
) -> impl Fn(&Query, &mut Out) -> anyhow::Result<Vec<Warning>> {
    move |query, out| several::each(&query.sources, |source| run(source, out))
}
