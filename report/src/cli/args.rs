//! Command line of `rep report`. Options that `perf report` has too have its letters and meanings.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser};

use super::chain_args::{ChainArgs, with_files_apart};
use super::style_args::StyleArgs;
use crate::cli::{
    self, Asked, FilterArgs, GateArgs, Gates, Line, ModeArgs, Refusal, SourcesArgs, SymbolArgs,
};
use crate::engine::what_if;
use crate::exports::Export;
use crate::exports::outputs::{self, Output, RulesWriter};
use crate::query::{
    By, Column, Inspection, Mode, Number, Query, SortKey, TableColumn, TimeSteps, times,
};
use crate::terminal::style::Colour;

/// Read perf.data files and report where samples were taken
#[derive(Debug, Parser)]
#[command(name = "rep", version, long_about = None, disable_help_subcommand = true)]
#[command(
    override_usage = "rep [OPTIONS] [FILE…]\n       rep COMMAND [OPTIONS] [FILE…]\n       … | rep \
                      [OPTIONS] -"
)]
#[command(args_override_self = true)]
pub(crate) struct Args {
    #[command(flatten)]
    sources: SourcesArgs,

    /// Group by these keys (`rep help keys`) [default: comm,dso,symbol]
    ///
    /// Other defaults: trace if all events are tracepoints; comm with --format folded;
    /// srcline,symbol,dso with --branch-history; comm,dso_from,symbol_from,symbol_to,cycles with
    /// -b; local_weight,mem,symbol,dso and seven more with --mem-mode
    #[arg(short, long, value_name = "KEY[,KEY…]", help_heading = TABLE)]
    sort: Option<String>,

    /// Show these columns, in this order: sort keys and numbers
    ///
    /// At least one sort key must be given, here or in -s. Numbers: overhead, overhead_children,
    /// overhead_sys, overhead_us, overhead_guest_sys, overhead_guest_us, sample, period, and
    /// averages: weight1, weight2, weight3. With --children, overhead as first column becomes two:
    /// Children and Self
    #[arg(short = 'F', long, value_name = "FIELD[,FIELD…]", help_heading = TABLE)]
    fields: Option<String>,

    /// Show the number of samples
    #[arg(short = 'n', long, help_heading = TABLE)]
    show_nr_samples: bool,

    /// Show the sum of the periods
    #[arg(long, help_heading = TABLE)]
    show_total_period: bool,

    /// Show the overhead of kernel and of user code
    #[arg(long, visible_alias = "showcpuutilization", help_heading = TABLE)]
    show_cpu_utilization: bool,

    /// Print only the first N rows per event
    ///
    /// With -H, of the top level; with --format folded, the N largest lines
    #[arg(long, value_name = "N", help_heading = TABLE)]
    limit: Option<usize>,

    /// Tell the input files apart: `file`, or NAME=REGEX for a part of their paths
    ///
    /// Each gives a column before those of --sort. NAME=REGEX shows the first capture of REGEX in a
    /// file's path, or what REGEX matches if it has none: --by 'run=/(\d+)/'
    #[arg(long, value_name = "file|NAME=REGEX", help_heading = TABLE)]
    by: Vec<String>,

    /// Leave out rows and call tree entries below PERCENT of their event's total
    ///
    /// With --group, of the first event's total; with -g fractal, entries below PERCENT of their
    /// parent (at the top of a tree: of their row)
    #[arg(long, value_name = "PERCENT", help_heading = TABLE)]
    percent_limit: Option<f64>,

    #[command(flatten)]
    mode: ModeArgs,

    /// Show a hierarchy of rows, one level per sort key
    #[arg(short = 'H', long, conflicts_with = "group", help_heading = TABLE)]
    hierarchy: bool,

    /// Show all events in one table, with one column per event
    #[arg(long, help_heading = TABLE)]
    group: bool,

    /// Show tracepoint fields raw, ignoring the kernel's print format
    #[arg(long, help_heading = TABLE)]
    raw_trace: bool,

    /// Resolution of the sort key `time`: a whole number with s, ms, us or ns
    #[arg(
        long, value_name = "LENGTH", default_value = "100ms", value_parser = times::quantum,
        help_heading = TABLE
    )]
    time_quantum: u64,

    /// Show times to the nanosecond
    #[arg(long, help_heading = TABLE)]
    ns: bool,

    /// Separate fields with SEP, without padding; SEP inside a field becomes a dot
    #[arg(short = 't', long, value_name = "SEP", help_heading = "Output")]
    field_separator: Option<String>,

    #[command(flatten)]
    chains: ChainArgs,

    #[command(flatten)]
    filters: FilterArgs,

    #[command(flatten)]
    symbols: SymbolArgs,

    #[command(flatten)]
    style: StyleArgs,

    #[command(flatten)]
    gates: GateArgs,

    /// Leave out samples without a known function, also from the totals
    #[arg(short = 'U', long, help_heading = "Filters")]
    hide_unresolved: bool,

    #[arg(
        long, hide_possible_values = true, default_value = "text",
        value_parser = cli::output_parser(Output::is_of_reports), help = outputs::help(),
        help_heading = "Output"
    )]
    format: &'static Output,

    /// Same as --format json, but cannot be given with --stdio
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Print a table on standard output (default); --format overrides it
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    stdio: bool,

    /// Show also what the counters of each thread counted until its exit (recorded with -s)
    #[arg(short = 'T', long, help_heading = COUNTED)]
    threads: bool,

    /// List all records, raw and decoded, as `rep dump` does
    #[arg(
        short = 'D', long, conflicts_with_all = ["json", "stats", "sort", "limit", "percent_limit"],
        conflicts_with_all = OF_TIMES, help_heading = INSTEAD
    )]
    dump_raw_trace: bool,

    /// Print only the number of records of each type, and of samples of each event
    #[arg(long, conflicts_with_all = OF_TIMES, help_heading = INSTEAD)]
    stats: bool,

    /// Print the tree of tasks
    #[arg(
        long, conflicts_with_all = ["stats", "sort", "limit", "percent_limit"],
        conflicts_with_all = OF_TIMES, help_heading = INSTEAD
    )]
    tasks: bool,

    /// Print the tree of tasks, each with its final memory mappings
    #[arg(
        long, conflicts_with_all = ["stats", "sort", "limit", "percent_limit"],
        conflicts_with_all = OF_TIMES, help_heading = INSTEAD
    )]
    mmaps: bool,
}

const TABLE: &str = "Rows and columns";
const COUNTED: &str = "What is counted";
const INSTEAD: &str = "In place of a report";

/// Options of times, which have neither the file's events nor its records.
const OF_TIMES: [&str; 4] = ["off_cpu", "wall", "critical_path", "latency"];

/// Parses a command line, whose first word is the program's name.
///
/// # Errors
/// Returns an error if the command line is wrong (exit status 2), or asks for help or the version.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Query, Refusal> {
    let line = Line { words: args.into_iter().collect(), commands: &[] };
    asked(&line).map(|asked| asked.query.query)
}

/// Returns the definition of the options, for manual pages and completions.
pub(crate) fn definition() -> clap::Command {
    Args::command()
}

/// Like [`parse`], and returns what else the command line asks for.
///
/// # Errors
/// Returns the errors of [`parse`].
pub(crate) fn asked(line: &Line) -> Result<Asked<ReportQuery>, Refusal> {
    let mut words = line.words.clone();
    if words.get(1).is_some_and(|word| word == "report") {
        words.remove(1);
    }
    let words = with_files_apart(words);
    let mut asked = Line { words, ..*line }.parse(query)?;
    asked.query.query.is_default_input = asked.is_default_input;
    Ok(asked)
}

/// Query of `rep report`, and the format of its answer.
pub(crate) struct ReportQuery {
    pub(crate) query: Query,
    pub(crate) export: &'static dyn Export,
    /// Prints what became of rules, in place of a report.
    pub(crate) rules: Option<RulesWriter>,
    pub(crate) gates: Gates,
}

fn query(args: Args) -> Result<ReportQuery, String> {
    cli::check(args.percent_limit, args.field_separator.as_deref())?;
    let by_history = args.chains.branch_details;
    let mode = match args.mode.mode() {
        // As in perf, --branch-history counts samples.
        Mode::Branches if by_history => Mode::Samples,
        mode => mode,
    };
    let format = if args.json { outputs::named("json") } else { args.format };
    let Some(export) = format.report.or(outputs::named("text").report) else {
        return Err(format!("--format {} prints no reports", format.name));
    };
    let needs = export.needs();
    if needs.stacks && mode == Mode::Branches {
        return Err(format!(
            "--format {} prints callchains and -b counts branches: leave out one of them",
            format.name
        ));
    }
    let default_keys = export.default_keys().unwrap_or(match mode {
        Mode::Samples if by_history => "srcline,symbol,dso",
        _ => mode.default_keys(),
    });
    let by = by(&args.by)?;
    let (mut columns, mut shown) = columns(&args, mode, &by, default_keys)?;
    if mode.is_of_time() && export.is_for_people() && args.fields.is_none() {
        shown.insert(1, TableColumn::Number(Number::Seconds));
    }
    if args.chains.parent.is_some() && columns.iter().all(|column| column.key != SortKey::Parent) {
        shown.push(TableColumn::Key(columns.len()));
        columns.push(Column { typed: "parent".into(), key: SortKey::Parent });
    }
    let has_keys = args.sort.is_some() || args.fields.is_some();
    let mut query = Query {
        sources: args.sources.sources(),
        mode,
        columns: Column::with_companions(columns, needs),
        by,
        has_default_columns: !has_keys
            && mode == Mode::Samples
            && export.default_keys().is_none()
            && !by_history,
        shown,
        needs,
        limit: args.limit,
        percent_limit: args.percent_limit,
        inspection: inspection(&args),
        hierarchy: args.hierarchy,
        group: args.group,
        threads: args.threads,
        what_if: args.mode.what_if(),
        raw_trace: args.raw_trace,
        steps: TimeSteps::Length(args.time_quantum),
        nanosecs: args.ns,
        separator: args.field_separator,
        filters: args.filters.filters(args.hide_unresolved),
        style: args.style.style(),
        ..Query::default()
    };
    query.chains = args.chains.options(&query)?;
    check_format(&query, format.name, export)?;
    // Those who ask for either want what perf prints.
    let as_perf = query.separator.is_some() || query.filters.resolved;
    query.symbol_sources = args.symbols.options(!as_perf)?;
    let gates = args.gates.gates()?;
    gates.check_one_side()?;
    cli::refuse([(query.what_if.len() > what_if::MOST, "--what-if: at most 64 changes at once")])?;
    cli::refuse([(
        gates.is_asked() && query.inspection.is_some(),
        "--fail-if and --rules need a report (no --stats, --tasks, --header-only, …)",
    )])?;
    format.check_rules(gates.is_asked())?;
    Ok(ReportQuery { query, export, rules: format.rules, gates })
}

/// Returns what `--by` asks for.
fn by(all: &[String]) -> Result<Vec<By>, String> {
    all.iter().map(|text| By::parse(text).map_err(|error| format!("--by: {error}"))).collect()
}

/// Rejects options that the output format does not support.
fn check_format(query: &Query, name: &str, export: &dyn Export) -> Result<(), String> {
    let (style, is_other) = (&query.style, !export.is_for_people());
    let is_nested = query.hierarchy || query.group || query.inspection.is_some();
    cli::refuse([
        (
            query.threads && !export.has_threads(),
            "-T needs a format that has threads: text or json",
        ),
        (is_other && style.header, "--header needs text output (--format text)"),
        (is_other && style.widths.is_some(), "--column-widths needs text output (--format text)"),
        (
            is_other && style.colour == Colour::Always,
            "--stdio-color needs text output (--format text)",
        ),
        (
            is_other && query.separator.is_some(),
            "--field-separator needs text output (--format text)",
        ),
        (
            export.is_plain() && is_nested,
            &format!(
                "--format {name} prints plain tables only (no --hierarchy, --group, --stats, --tasks, …)"
            ),
        ),
    ])
}

/// Returns the output that was requested instead of a histogram.
fn inspection(args: &Args) -> Option<Inspection> {
    let all = [
        (args.stats, Inspection::Stats),
        (args.tasks, Inspection::Tasks),
        (args.mmaps, Inspection::Mmaps),
        (args.dump_raw_trace, Inspection::Records),
        (args.style.header_only, Inspection::Header),
    ];
    all.into_iter().find_map(|(is_asked, inspection)| is_asked.then_some(inspection))
}

/// Returns the sort keys, and the columns in the order shown. Sort keys that `-F` does not name
/// come last.
fn columns(
    args: &Args,
    mode: Mode,
    by: &[By],
    default_keys: &str,
) -> Result<(Vec<Column>, Vec<TableColumn>), String> {
    let (mut named, mut fields) = (Vec::new(), Vec::<String>::new());
    let mut take = |flag: &str, list: &str| {
        let mut keys = Vec::new();
        for name in list.split(',').map(str::trim) {
            match Number::named(name) {
                Some(number) => named.push(Ok(number)),
                None => {
                    let mut column =
                        Column::parse(name, mode).map_err(|error| format!("{flag}: {error}"))?;
                    if let SortKey::TraceField(number) = &mut column.key {
                        let place =
                            fields.iter().position(|have| have == name).unwrap_or(fields.len());
                        fields.resize(fields.len().max(place + 1), name.to_owned());
                        *number =
                            u8::try_from(place).map_err(|_| format!("{flag}: too many fields"))?;
                    }
                    named.push(Err(column.key));
                    keys.push(column);
                }
            }
        }
        Ok::<_, String>(keys)
    };
    let shown_keys = args.fields.as_deref().map(|list| take("--fields", list)).transpose()?;
    let sort = match (&args.sort, &shown_keys) {
        (Some(sort), _) => take("--sort", sort)?,
        (None, Some(_)) => Vec::new(),
        (None, None) => take("--sort", default_keys)?,
    };
    let mut columns: Vec<Column> = By::columns(by).collect();
    let of_inputs = columns.clone().into_iter().map(|column| Err(column.key));
    for column in sort.into_iter().chain(shown_keys.into_iter().flatten()) {
        if columns.iter().all(|have| have.key != column.key) {
            columns.push(column);
        }
    }
    if columns.is_empty() {
        return Err("--fields: the list has no sort key, so there is nothing to group by".into());
    }
    let extra = [
        (args.fields.is_none(), Number::Overhead),
        (args.show_cpu_utilization, Number::OverheadSys),
        (args.show_cpu_utilization, Number::OverheadUs),
        (args.show_nr_samples, Number::Samples),
        (args.show_total_period, Number::Period),
    ];
    let extra = extra.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, number)| Ok(number));
    let mut shown: Vec<TableColumn> = Vec::new();
    for one in extra.chain(of_inputs).chain(named) {
        let one = match one {
            Ok(number) => Some(TableColumn::Number(number)),
            Err(key) => columns.iter().position(|column| column.key == key).map(TableColumn::Key),
        };
        shown.extend(one.filter(|one| !shown.contains(one)));
    }
    Ok((columns, shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Source;

    fn read(line: &str) -> Result<Query, Refusal> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn report_is_the_default_command() {
        let of = |line: &str| format!("{:?}", read(line).unwrap());
        assert_eq!(of("rep report a.data"), of("rep a.data"));
        assert_eq!(of("rep -i a.data"), of("rep a.data"));
        assert_eq!(read("rep a b -").unwrap().sources.len(), 3);
        assert_eq!(read("rep -").unwrap().sources, [Source::Stdin]);
    }

    #[test]
    fn default_keys_are_those_of_perf() {
        let keys: Vec<_> = read("rep x").unwrap().columns.iter().map(|c| c.key).collect();
        assert_eq!(keys, [SortKey::Comm, SortKey::Dso, SortKey::Symbol]);
    }

    #[test]
    fn numbers_are_asked_for_in_words() {
        for (line, want) in [
            ("rep --limit -3 x", "--limit takes a whole number from 0 on, not `-3`"),
            ("rep --limit x", "--limit takes a whole number from 0 on, not `x`"),
            ("rep --percent-limit x", "--percent-limit takes a number, not `x`"),
            ("rep --percent-limit 5% x", "--percent-limit takes a number, not `5%`"),
            ("rep --percent-limit -1 x", "--percent-limit takes a number from 0 to 100, not `-1`"),
            ("rep --max-stack -1 x", "--max-stack takes a whole number from 0 on, not `-1`"),
            (
                "rep --format html",
                "--format has no `html`; another command writes it: rep html FILE",
            ),
        ] {
            assert_eq!(read(line).unwrap_err().to_string(), want, "{line}");
        }
    }

    #[test]
    fn usage_errors_name_the_argument() {
        for (line, word) in [
            ("rep --sort no-pe x", "no-pe"),
            ("rep --sort comm,dso_from x", "needs -b"),
            ("rep -b --mem-mode x", "--mem-mode"),
            ("rep --off-cpu --wall x", "--wall"),
            ("rep --wall --event cycles x", "--event"),
            ("rep --sort comm,switch x", "--off-cpu"),
            ("rep -g srcfile x", "srcfile"),
            ("rep --pid one x", "one"),
            ("rep --cpu 4-2 x", "4-2"),
            ("rep --percent-limit 101 x", "--percent-limit"),
            ("rep --json --stdio x", "--stdio"),
        ] {
            let error = read(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(word), "{line}: {error}");
        }
    }

    #[test]
    fn filters_are_lists() {
        let query = read("rep --comm a,b --cpu 0,2-4 --pid 1,-1 x").unwrap();
        assert_eq!(query.filters.samples.comms.unwrap().len(), 2);
        assert_eq!(query.filters.samples.cpus.unwrap(), [0, 2, 3, 4].into());
        assert_eq!(query.filters.samples.pids.unwrap(), [1, -1].into());
    }
}
