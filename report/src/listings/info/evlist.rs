//! `rep evlist`: the events of a file, one per line, as in `perf evlist`.

use std::io::{self, Write};

use anyhow::Context as _;
use clap::Parser;
use recrep_format::abi::AttrFlags;
use recrep_format::attr::AttrEntry;
use recrep_format::feature::GroupDesc;
use recrep_format::read::File;

use super::attr;
use crate::cli::SourceArgs;
use crate::input::Input;
use crate::query::Warning;
use crate::terminal::escape::escape;
use crate::terminal::parts::CANNOT_WRITE;

/// Name that perf gives to groups without a name.
const ANONYMOUS: &[u8] = b"{anon_group}";

/// List the events of a file, like `perf evlist`
#[derive(Debug, Parser)]
#[command(name = "rep evlist", version, long_about = None)]
pub(crate) struct EvlistQuery {
    #[command(flatten)]
    source: SourceArgs,

    /// Show the non-zero attributes of the events
    #[arg(short, long)]
    verbose: bool,

    /// Show the sampling frequency or period
    #[arg(short = 'F', long, conflicts_with = "verbose")]
    freq: bool,

    /// Show each group of events on one line
    #[arg(short, long, conflicts_with_all = ["verbose", "freq"])]
    group: bool,
}

/// Lists the events, and returns warnings about the header. Of the records it reads only those that
/// hold the header in pipe mode.
pub(crate) fn run(query: &EvlistQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let input = Input::open(&query.source.source())?;
    input.unless_changed(list(query, &input, out))
}

fn list(query: &EvlistQuery, input: &Input, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let file = &input.parsed()?;
    let mut warnings: Vec<Warning> = file.warnings.iter().cloned().map(Warning::from).collect();
    if query.group {
        warnings.extend(groups(file, out).context(CANNOT_WRITE)?);
    } else {
        for entry in file.attrs.entries() {
            event(entry, query, out).context(CANNOT_WRITE)?;
        }
    }
    if file.attrs.entries().is_empty() {
        warnings.push(Warning::new("no-events", "the file describes no events"));
    }
    Ok(warnings)
}

fn name(entry: &AttrEntry) -> String {
    escape(&entry.event_name()).into_owned()
}

fn event(entry: &AttrEntry, query: &EvlistQuery, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{}", name(entry))?;
    let attr = &entry.attr;
    let text = if query.verbose { attr::text(attr) } else { String::new() };
    if !text.is_empty() {
        write!(out, ": {text}")?;
    }
    if query.freq {
        let term =
            if attr.flags.contains(AttrFlags::FREQ) { "sample_freq" } else { "sample_period" };
        write!(out, ": {term}={}", attr.sample_period)?;
    }
    writeln!(out)
}

/// Prints a line per group, and per event outside of groups. Returns a warning if GROUP_DESC cannot
/// be decoded.
fn groups(file: &File<'_>, out: &mut impl Write) -> io::Result<Option<Warning>> {
    let (groups, warning) = match file.feature::<GroupDesc<'_>>() {
        Some(Ok(desc)) => (desc.groups.0, None),
        Some(Err(error)) => (Vec::new(), Some(Warning::from(&error))),
        None => (Vec::new(), None),
    };
    let entries = file.attrs.entries();
    for (index, entry) in entries.iter().enumerate() {
        let group = groups.iter().find(|group| {
            let leader = group.leader as usize;
            (leader..leader.saturating_add(group.members as usize)).contains(&index)
        });
        match group.filter(|group| group.members > 1) {
            None => writeln!(out, "{}", name(entry))?,
            Some(group) if group.leader as usize == index => {
                let group_name = if group.name.as_bytes() == ANONYMOUS {
                    "".into()
                } else {
                    group.name.to_text()
                };
                let members = entries.iter().skip(index).take(group.members as usize);
                let names: Vec<String> = members.map(name).collect();
                writeln!(out, "{}{{{}}}", escape(&group_name), names.join(","))?;
            }
            Some(_) => {}
        }
    }
    Ok(warning)
}
