//! Views that are made of a histogram: their command lines are `rep report`'s without what only its tables have.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::error::ErrorKind;

use crate::args;
use crate::fields::{Number, Shown};
use crate::looks::Looks;
use crate::profile::Profile;
use crate::query::{Chains, Column, Format, Only, Query};
use crate::report;
use crate::sort_key::{Mode, SortKey};

/// Reads the command line of a view, its name first as one word.
///
/// # Errors
/// What the user must be told.
pub fn parse(words: impl IntoIterator<Item = OsString>, mode: Mode) -> Result<Query, clap::Error> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let flag = match mode {
        Mode::Samples => None,
        Mode::Memory => Some("--mem-mode"),
        Mode::Branches | Mode::FallThroughs => Some("-b"),
    };
    let mut query = args::parse(match flag {
        Some(flag) => {
            words.insert(1.min(words.len()), flag.into());
            words
        }
        None => words,
    })?;
    let is_default = |(place, shown): (usize, &Shown)| match place {
        0 => *shown == Shown::Number(Number::Overhead),
        _ => matches!(shown, Shown::Key(_)),
    };
    let refused = [
        (query.only == Some(Only::Stats), "--stats"),
        (query.only == Some(Only::Tasks), "--tasks"),
        (query.only == Some(Only::Mmaps), "--mmaps"),
        (query.only == Some(Only::Records), "--dump-raw-trace"),
        (query.only == Some(Only::Header), "--header-only"),
        (query.format == Format::Csv, "--format csv"),
        (query.looks != Looks::default(), "what says how a table looks"),
        (query.hierarchy, "--hierarchy"),
        (query.group, "--group"),
        (query.separator.is_some(), "--field-separator"),
        (query.chains.is_asked, "--children, -g and -G"),
        (query.format == Format::Folded, "--format folded"),
        (!query.shown.iter().enumerate().all(is_default), "--fields and what adds to them"),
    ];
    if let Some((_, flag)) = refused.into_iter().find(|(is_asked, _)| *is_asked) {
        let message = format!("{flag}: there only in tables of rep report");
        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, message + "\n"));
    }
    query.mode = mode;
    query.chains = Chains::default();
    Ok(query)
}

/// Whether the keys are those that are taken where none are named.
#[must_use]
pub fn has_default_keys(query: &Query) -> bool {
    let keys = query.columns.iter().map(|column| column.typed.as_str()).collect::<Vec<_>>();
    keys.join(",") == query.mode.default_keys()
}

/// Columns under their own names.
#[must_use]
pub fn columns(keys: &[(&str, SortKey)]) -> Vec<Column> {
    keys.iter().map(|(typed, key)| Column { typed: (*typed).into(), key: *key }).collect()
}

/// The histogram by these columns, whole.
///
/// # Errors
/// As [`report::run`].
pub fn profile(query: &Query, columns: Vec<Column>) -> anyhow::Result<(Profile, Query)> {
    let query = Query { columns, limit: None, percent_limit: None, ..query.clone() };
    Ok((report::run(&query)?, query))
}

/// Writes a value as JSON on one line.
///
/// # Errors
/// The output cannot be written.
pub fn json(value: &impl serde::Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// How many percent, to two decimals.
#[must_use]
pub fn percent(part: u64, whole: u64) -> f64 {
    (crate::gathered::share(part, whole) * 100.0).round() / 100.0
}
