//! `rep stat`: the counts in a file, as `perf stat report` prints them.

use std::io::Write;

use anyhow::Context as _;
use clap::{Args, Parser};
use recrep_counts::{Aggregation, Format, Printer};

use crate::cli::{self, SourcesArgs};
use crate::engine::counts::RecordedCounts;
use crate::exports::outputs::{self, CountStyle, Output};
use crate::input::{Input, Keep, OpenedInput, each};
use crate::query::{Mode, Source, Warning};
use crate::samples::Session;
use crate::terminal::parts::CANNOT_WRITE;

/// Show the counts of events that perf stat record or rec stat record wrote, and those that threads
/// had when they exited (rec -s)
#[derive(Debug, Parser)]
#[command(name = "rep stat", version, long_about = None, args_override_self = true)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    places: PlaceArgs,

    /// Print lines of fields with SEP between them, as perf stat -x
    #[arg(short = 'x', long, value_name = "SEP", conflicts_with_all = ["json", "format"])]
    field_separator: Option<String>,

    /// Print numbers without thousands separators
    #[arg(long)]
    no_big_num: bool,

    /// Same as --format json
    #[arg(long)]
    json: bool,

    /// Output format; JSON has a line for each interval
    #[arg(
        long, default_value = "text",
        value_parser = cli::output_parser(|output| output.counts.is_some())
    )]
    format: &'static Output,

    #[command(flatten)]
    sources: SourcesArgs,
}

/// Places that counts are summed by; as they were recorded without any of these.
#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
struct PlaceArgs {
    /// Show each CPU
    #[arg(short = 'A', long)]
    no_aggr: bool,

    /// Sum by thread
    #[arg(long)]
    per_thread: bool,

    /// Sum by core
    #[arg(long)]
    per_core: bool,

    /// Sum by die
    #[arg(long)]
    per_die: bool,

    /// Sum by processor socket
    #[arg(long)]
    per_socket: bool,

    /// Sum by memory node
    #[arg(long)]
    per_node: bool,
}

impl PlaceArgs {
    fn aggregation(&self) -> Option<Aggregation> {
        let all = [
            (self.no_aggr, Aggregation::Cpu),
            (self.per_thread, Aggregation::Thread),
            (self.per_core, Aggregation::Core),
            (self.per_die, Aggregation::Die),
            (self.per_socket, Aggregation::Socket),
            (self.per_node, Aggregation::Node),
        ];
        all.into_iter().find_map(|(is_asked, by)| is_asked.then_some(by))
    }
}

/// Which counts are shown, and how.
#[derive(Clone, Debug)]
pub(crate) struct StatQuery {
    sources: Vec<Source>,
    by: Option<Aggregation>,
    format: Format,
}

pub(crate) fn query(args: StatArgs) -> Result<StatQuery, String> {
    cli::check(None, args.field_separator.as_deref())?;
    let output = if args.json { outputs::named("json") } else { args.format };
    let style = CountStyle { big_numbers: !args.no_big_num };
    let format = match (args.field_separator, output.counts) {
        (Some(separator), _) => Format::Csv { separator },
        (None, Some(format)) => format(style),
        (None, None) => return Err(format!("--format {} prints no counts", output.name)),
    };
    Ok(StatQuery { sources: args.sources.sources(), by: args.places.aggregation(), format })
}

impl StatQuery {
    /// Returns the query for all counts of these inputs, as text.
    pub(crate) fn whole(sources: &[Source]) -> Self {
        let format = Format::Text { big_numbers: true };
        Self { sources: sources.to_vec(), by: None, format }
    }
}

pub(crate) fn run(asked: &StatQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let mut has_counts = false;
    let mut warnings = each(&asked.sources, |source| {
        let input = Input::recording(source, "counts")?;
        let (has_own, warnings) = input.unless_changed(print_input(asked, &input, out))?;
        has_counts |= has_own;
        Ok(warnings)
    })?;
    if !has_counts {
        let message = "the recording has no counts: record with rec stat record, or with rec -s";
        warnings.push(Warning::new(Warning::NO_SAMPLES, message));
    }
    Ok(warnings)
}

/// Prints the counts of an input; returns whether there are any, and warnings.
fn print_input(
    asked: &StatQuery,
    input: &Input,
    out: &mut impl Write,
) -> anyhow::Result<(bool, Vec<Warning>)> {
    let opened = OpenedInput::new(input, Keep::Some)?;
    let session = Session::open(&opened, Mode::Samples, None);
    let mut warnings = session.warnings();
    let Some(counts) = RecordedCounts::of(&session) else { return Ok((false, warnings)) };
    warnings.extend(counts.warnings.iter().cloned());
    let mut by = asked.by;
    if let Some(places) = by.and_then(|by| counts.has_no(by)) {
        let message = format!("counts were not recorded for single {places}: all are shown");
        warnings.push(Warning::new("no-places", message));
        by = Some(Aggregation::Whole);
    }
    let mut printer = Printer::new(asked.format.clone());
    for report in counts.reports(by) {
        printer.print(&report, out).context(CANNOT_WRITE)?;
    }
    Ok((true, warnings))
}
