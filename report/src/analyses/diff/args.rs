//! Command line of `rep diff`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::slice::from_ref;

use clap::{ArgAction, Args, Parser, ValueEnum, ValueHint};

use super::gate_keys::add_columns;
use super::rows::add_module;
use crate::cli::{self, FilterArgs, GateArgs, Gates, ModeArgs, PagerArgs, SymbolArgs};
use crate::compare::{Normalize, Options};
use crate::exports::outputs::{self, Output};
use crate::query::{
    ChainOptions, Column, Needs, Query, SortKey, Source, SymbolOptions, TimeSteps, is_named, times,
};
use crate::terminal::style::Colour;

/// Compare two sides of recordings: what changed, by how much, and what cannot be told
///
/// Record both programs in turn, at least 3 runs of each, better 5: then the machine's drift is no
/// change. docs/diff.md explains the output
#[derive(Debug, Parser)]
#[command(name = "rep diff", version, args_override_self = true)]
#[command(
    override_usage = "rep diff [OPTIONS] BASE… -- NEW…\n       rep diff [OPTIONS] BASE NEW\n       \
                      rep diff [OPTIONS] --baseline FILE… NEW…"
)]
pub(crate) struct DiffArgs {
    /// Recordings of the base side; directories stand for the files in them
    #[arg(value_name = "BASE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// Recordings of the new side: what follows `--` (see [`with_sides`])
    #[arg(long, hide = true, num_args = 0.., value_name = "NEW", value_hint = ValueHint::FilePath)]
    new: Vec<PathBuf>,

    /// Recording of the base side; all other files are of the new one
    ///
    /// May be given several times
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    baseline: Vec<PathBuf>,

    /// Keys of rows, or stack: whole callchains [default: dso,symbol]
    ///
    /// The default with -b is symbol_from,symbol_to. `rep help keys` lists the keys
    #[arg(short, long, value_name = "KEY[,KEY…]")]
    sort: Option<String>,

    /// Count samples in their callers too
    #[arg(long)]
    children: bool,

    /// Show inlined functions as frames of callchains (needs debug information of both sides)
    #[arg(long, hide_short_help = true)]
    inline: bool,

    /// Resolution of the sort key `time`: a whole number with s, ms, us or ns
    #[arg(
        long, value_name = "LENGTH", default_value = "100ms", value_parser = times::quantum,
        hide_short_help = true
    )]
    time_quantum: u64,

    #[command(flatten)]
    mode: ModeArgs,

    #[command(flatten)]
    statistics: StatisticsArgs,

    /// Print only the first N rows per event
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Output format
    ///
    /// folded: a line for each callchain, with its sums on both sides. For CI: markdown for the
    /// summary of a job, github for annotations, junit for the rules as test cases
    #[arg(
        long, default_value = "text", help_heading = "Output",
        value_parser = cli::output_parser(|output| output.comparison.is_some())
    )]
    format: &'static Output,

    /// Same as --format json
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Colour rows: always, never, or auto (on a terminal, unless NO_COLOR is set)
    #[arg(
        long = "stdio-color", value_enum, value_name = "auto|always|never", default_value = "auto",
        action = ArgAction::Set, help_heading = "Output"
    )]
    colour: DiffColour,

    #[command(flatten)]
    pager: PagerArgs,

    #[command(flatten)]
    filters: FilterArgs,

    /// Leave out samples without a known function
    #[arg(short = 'U', long, help_heading = "Filters")]
    hide_unresolved: bool,

    #[command(flatten)]
    symbols: SymbolArgs,

    #[command(flatten)]
    gates: GateArgs,
}

/// Options of the statistics.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Statistics")]
struct StatisticsArgs {
    /// Rate of false alarms and of missed intervals [default: 0.05]
    ///
    /// Of marked rows, at most this part are false alarms; of intervals, this part miss the truth
    #[arg(long, value_name = "RATE", value_parser = rate, hide_short_help = true)]
    level: Option<f64>,

    /// Mark rows that changed by PERCENT of all time [default: 0.5]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    min_impact: Option<f64>,

    /// Change that must have been visible to say `same` [default: 25]
    #[arg(long, value_name = "PERCENT", value_parser = percentage, hide_short_help = true)]
    resolve: Option<f64>,

    /// What to take out: none, common, share, time [default: by rule]
    ///
    /// common: what all functions share; share: the number of samples; time: the length of runs. The
    /// rule says what it chose
    #[arg(long, value_name = "WHAT", value_parser = normalize, hide_short_help = true)]
    normalize: Option<Normalize>,

    /// Compare sides even if events, frequencies or periods differ
    #[arg(long, hide_short_help = true)]
    allow_different: bool,
}

impl StatisticsArgs {
    /// Returns the options; what is not given here may be in a file of rules.
    fn options(&self, gates: &Gates) -> Options {
        let default = Options::default();
        Options {
            level: self.level.or(gates.rules.level).unwrap_or(default.level),
            min_impact: self.min_impact.or(gates.rules.min_impact).unwrap_or(default.min_impact),
            resolve: self.resolve.unwrap_or(default.resolve),
            normalize: self.normalize,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DiffColour {
    Auto,
    Always,
    Never,
}

impl DiffColour {
    fn colour(self) -> Colour {
        match self {
            Self::Auto => Colour::Auto,
            Self::Always => Colour::Always,
            Self::Never => Colour::Never,
        }
    }
}

/// Query of `rep diff`.
#[derive(Debug)]
pub(crate) struct DiffQuery {
    /// The rows to count. Columns: those of the keys, then those that gates need.
    pub(super) query: Query,
    pub(super) base: Vec<Source>,
    pub(super) new: Vec<Source>,
    /// Rows are whole callchains.
    pub(super) by_stack: bool,
    /// Number of columns that are shown.
    pub(super) shown: usize,
    pub(super) options: Options,
    pub(super) allow_different: bool,
    pub(super) limit: Option<usize>,
    pub(super) output: &'static Output,
    pub(super) colour: Colour,
    pub(super) gates: Gates,
}

impl DiffQuery {
    /// Creates the comparison of what a picture is made of.
    ///
    /// # Errors
    /// Returns an error if the mode lacks a column.
    pub(super) fn of_picture(
        picture: &Query,
        base: &[Source],
        new: &[Source],
        children: bool,
    ) -> Result<Self, String> {
        let output = outputs::named("json");
        let needs = output.comparison.map_or(Needs::NONE, |printer| printer.needs);
        let columns =
            Column::list("dso,symbol", picture.mode).map_err(|error| error.to_string())?;
        let mut columns = Column::with_companions(columns, needs);
        let shown = columns.len();
        add_module(&mut columns);
        let chains =
            ChainOptions { children, children_requested: children, ..ChainOptions::default() };
        let chains = ChainOptions { inlined: picture.chains.inlined, ..chains };
        let query = Query {
            sources: [base, new].concat(),
            mode: picture.mode,
            columns,
            needs,
            chains,
            filters: picture.filters.clone(),
            symbol_sources: SymbolOptions { inferred: false, ..picture.symbol_sources.clone() },
            ..Query::default()
        };
        Ok(Self {
            query,
            base: base.to_vec(),
            new: new.to_vec(),
            by_stack: false,
            shown,
            options: Options::default(),
            allow_different: false,
            limit: None,
            output,
            colour: Colour::Never,
            gates: Gates::default(),
        })
    }

    /// Returns whether samples of this event are compared.
    pub(super) fn takes(&self, event: &str) -> bool {
        let asked = self.query.filters.events.as_ref();
        asked.is_none_or(|all| all.iter().any(|wanted| is_named(event, wanted)))
    }

    /// Returns whether rows are printed as folded stacks.
    pub(super) fn is_folded(&self) -> bool {
        self.output.comparison.is_some_and(|printer| printer.needs.stacks)
    }

    /// Returns what a row is.
    pub(super) fn noun(&self) -> &'static str {
        let has = |key| self.query.columns.iter().take(self.shown).any(|column| column.key == key);
        match () {
            () if has(SortKey::Symbol) => "function",
            () if has(SortKey::Dso) || has(SortKey::DsoPath) => "module",
            () if has(SortKey::Comm) => "command",
            () => "row",
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    let number = number.ok().filter(|number| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| "a rate between 0 and 1 is expected".into())
}

/// Parses a percentage, with or without its sign.
fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>().ok();
    let number = number.filter(|number| *number >= 0.0 && number.is_finite());
    number.map(|number| number / 100.0).ok_or_else(|| "a percentage is expected".into())
}

fn normalize(word: &str) -> Result<Normalize, String> {
    let found = Normalize::ALL.into_iter().find(|normalize| normalize.word() == word);
    found.ok_or_else(|| {
        let words: Vec<&str> = Normalize::ALL.map(Normalize::word).to_vec();
        format!("`{word}` is not one of {}", words.join(", "))
    })
}

/// Returns the words of a command line with an option in place of the `--` between the sides: other
/// options may follow.
pub(super) fn with_sides(mut words: Vec<OsString>) -> Vec<OsString> {
    if let Some(between) = words.iter_mut().find(|word| *word == "--") {
        *between = "--new".into();
    }
    words
}

fn sources(paths: &[PathBuf]) -> Vec<Source> {
    paths.iter().map(|path| Source::or_default(Some(path.clone()))).collect()
}

/// Returns the files of both sides.
fn sides(args: &DiffArgs) -> Result<[Vec<Source>; 2], String> {
    let (files, new) = (args.files.as_slice(), args.new.as_slice());
    let (base, new) = match (args.baseline.as_slice(), files, new) {
        ([], [base, new], []) => (sources(from_ref(base)), sources(from_ref(new))),
        ([], _, []) => {
            return Err("two sides are expected: rep diff BASE… -- NEW… (or two files)".into());
        }
        ([], base, new) => (sources(base), sources(new)),
        (baseline, files, new) => (sources(baseline), [sources(files), sources(new)].concat()),
    };
    let is_twice = base.contains(&Source::Stdin) && new.contains(&Source::Stdin);
    cli::refuse([
        (base.is_empty(), "the base side has no file: rep diff BASE… -- NEW…"),
        (new.is_empty(), "the new side has no file: rep diff --baseline FILE NEW…"),
        (is_twice, "standard input can be one run only"),
    ])?;
    Ok([base, new])
}

pub(crate) fn query(args: DiffArgs) -> Result<DiffQuery, String> {
    let [base, new] = sides(&args)?;
    let output = if args.json { outputs::named("json") } else { args.format };
    let needs = output.comparison.map_or(Needs::NONE, |printer| printer.needs);
    let is_folded = needs.stacks;
    let sort = args.sort.as_deref().map(str::trim);
    let by_stack = sort == Some("stack");
    let mode = args.mode.mode();
    let has_chains = args.children || by_stack || is_folded;
    cli::refuse([
        (
            by_stack && args.children,
            "--sort stack compares whole callchains, which have no callers",
        ),
        (
            is_folded && (args.children || !by_stack && sort.is_some()),
            "--format folded prints whole callchains: leave --sort and --children out",
        ),
        (has_chains && mode.is_of_branches(), "-b counts branches, which have no callchains"),
    ])?;
    let stacks = by_stack || is_folded;
    let default = if mode.is_of_branches() { "symbol_from,symbol_to" } else { "dso,symbol" };
    let keys = match (is_folded, by_stack) {
        (true, _) => Column::list("comm", mode),
        (_, true) => Ok(Vec::new()),
        _ => Column::list(sort.unwrap_or(default), mode),
    };
    let needs = Needs { stacks, unmapped: needs.unmapped && !stacks, ..needs };
    let mut columns =
        Column::with_companions(keys.map_err(|error| format!("--sort: {error}"))?, needs);
    let shown = columns.len();
    let gates = args.gates.gates()?;
    if output.is_of_rules {
        output.check_rules(gates.is_asked())?;
    }
    let allow_different = args.statistics.allow_different;
    let options = args.statistics.options(&gates);
    if !args.children {
        // Counts with callees cannot be added up to rows of fewer columns.
        add_columns(&mut columns, &gates);
    }
    add_module(&mut columns);
    let chains = ChainOptions {
        counted: stacks,
        children: args.children,
        children_requested: args.children,
        inlined: args.inline.then_some(true),
        is_asked: args.children || by_stack || args.inline,
        ..ChainOptions::default()
    };
    // The starts of functions differ between two builds: without names, nothing matches them.
    let symbol_sources = args.symbols.options(false)?;
    let query = Query {
        sources: [base.as_slice(), new.as_slice()].concat(),
        mode,
        columns,
        needs,
        steps: TimeSteps::Length(args.time_quantum),
        chains,
        filters: args.filters.filters(args.hide_unresolved),
        symbol_sources,
        ..Query::default()
    };
    Ok(DiffQuery {
        query,
        base,
        new,
        by_stack: stacks,
        shown,
        options,
        allow_different,
        limit: args.limit,
        output,
        colour: args.colour.colour(),
        gates,
    })
}
