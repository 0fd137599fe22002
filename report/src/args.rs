//! The command line. Letters and meanings are those of `perf report`; what is not known here is refused by name.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, Parser, ValueEnum};

use crate::query::{Column, Filters, Format, Query, Source};
use crate::sort_key::{Mode, SortKey};

/// Reads perf.data files and prints histograms.
#[derive(Debug, Parser)]
#[command(name = "rep", version, about, long_about = None, disable_help_subcommand = true)]
#[command(override_usage = "rep [report] [OPTIONS] [FILE…]\n       … | rep [OPTIONS] -")]
#[command(args_override_self = true, after_help = keys_help())]
struct Args {
    /// Files to read, `-` for standard input [default: out.data, else perf.data]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// A file to read (may be given several times)
    #[arg(short, long, value_name = "FILE", action = ArgAction::Append)]
    input: Vec<PathBuf>,

    /// Group by these keys [default: comm,dso,symbol; more for --mem-mode and -b]. All keys are listed below
    #[arg(short, long, value_name = "KEY[,KEY…]")]
    sort: Option<String>,

    /// Count branches: each branch of each sample's branch stack is one, with a period of 1
    #[arg(short, long, conflicts_with = "mem_mode")]
    branch_stack: bool,

    /// Count memory accesses: the period is the weight (of loads, usually the latency)
    #[arg(long)]
    mem_mode: bool,

    /// The form of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: FormatArg,

    /// The same as --format json
    #[arg(long)]
    json: bool,

    /// A table on standard output (what rep prints anyway)
    #[arg(long, conflicts_with = "json")]
    stdio: bool,

    /// At most N rows for each event
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Only rows with at least this share of their event, in percent
    #[arg(long, value_name = "PERCENT")]
    percent_limit: Option<f64>,

    /// Show the number of samples
    #[arg(short = 'n', long)]
    show_nr_samples: bool,

    /// Set fields apart by SEP, unpadded; SEP inside a field becomes a dot
    #[arg(short = 't', long, value_name = "SEP")]
    field_separator: Option<String>,

    /// Count each sample where it was taken, not in its callers too (what rep does)
    #[arg(long)]
    no_children: bool,

    /// Callchains: only `none` is known
    #[arg(short = 'g', long, value_name = "none", value_parser = ["none"])]
    call_graph: Option<String>,

    /// Only threads of these names
    #[arg(short = 'c', long, visible_alias = "comm", value_name = "NAME[,NAME…]")]
    comms: Option<String>,

    /// Only modules of these names or paths
    #[arg(short = 'd', long, visible_alias = "dso", value_name = "DSO[,DSO…]")]
    dsos: Option<String>,

    /// Only functions of these names
    #[arg(short = 'S', long, visible_alias = "symbol", value_name = "NAME[,NAME…]")]
    symbols: Option<String>,

    /// Only these processes
    #[arg(long, value_name = "PID[,PID…]")]
    pid: Option<String>,

    /// Only these threads
    #[arg(long, value_name = "TID[,TID…]")]
    tid: Option<String>,

    /// Only these CPUs, such as 0,2-4
    #[arg(short = 'C', long, value_name = "CPU[,CPU…]")]
    cpu: Option<String>,

    /// Only count the records of each type
    #[arg(long)]
    stats: bool,

    /// Only list the tasks, each below the one that it comes from
    #[arg(long, conflicts_with_all = ["stats", "sort", "limit", "percent_limit"])]
    tasks: bool,

    /// Only list the tasks, each with what it had mapped at its end
    #[arg(long, conflicts_with_all = ["stats", "sort", "limit", "percent_limit"])]
    mmaps: bool,
}

fn keys_help() -> String {
    format!("Sort keys: {}", SortKey::list())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Text,
    Json,
}

/// Reads a command line (with the program's name first).
///
/// # Errors
/// What the user must be told: a mistake (exit status 2), or the help that was asked for.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Query, clap::Error> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|arg| arg == "report") {
        args.remove(1);
    }
    let args = Args::try_parse_from(args)?;
    let wrong = |message: String| Args::command().error(ErrorKind::InvalidValue, message);
    let percent_limit = args.percent_limit;
    if percent_limit.is_some_and(|p| !(0.0..=100.0).contains(&p)) {
        return Err(wrong("--percent-limit takes a number from 0 to 100".into()));
    }
    if args.field_separator.as_deref() == Some("") {
        return Err(wrong("--field-separator takes at least one character".into()));
    }
    let mode = match (args.branch_stack, args.mem_mode) {
        (true, _) => Mode::Branches,
        (_, true) => Mode::Memory,
        _ => Mode::Samples,
    };
    let sort = args.sort.as_deref().unwrap_or(mode.default_keys());
    let json = args.json || matches!(args.format, FormatArg::Json);
    Ok(Query {
        mode,
        columns: Column::parse_list(sort, mode).map_err(|e| wrong(format!("--sort: {e}")))?,
        filters: Filters {
            comms: args.comms.as_deref().map(names),
            dsos: args.dsos.as_deref().map(names),
            symbols: args.symbols.as_deref().map(names),
            pids: numbers("--pid", args.pid.as_deref()).map_err(wrong)?,
            tids: numbers("--tid", args.tid.as_deref()).map_err(wrong)?,
            cpus: args.cpu.as_deref().map(cpus).transpose().map_err(wrong)?,
        },
        format: if json { Format::Json } else { Format::Text },
        limit: args.limit,
        percent_limit,
        show_samples: args.show_nr_samples,
        separator: args.field_separator,
        stats: args.stats,
        tasks: args.tasks,
        mmaps: args.mmaps,
        sources: sources(args.input.into_iter().chain(args.files).collect()),
    })
}

fn sources(paths: Vec<PathBuf>) -> Vec<Source> {
    if paths.is_empty() {
        let ours = Path::new("out.data");
        return vec![Source::Path(if ours.exists() { ours.into() } else { "perf.data".into() })];
    }
    paths.into_iter().map(|path| if path == Path::new("-") { Source::Stdin } else { Source::Path(path) }).collect()
}

fn names(list: &str) -> HashSet<String> {
    list.split(',').map(str::to_owned).collect()
}

fn numbers<N: FromStr + Eq + std::hash::Hash>(flag: &str, list: Option<&str>) -> Result<Option<HashSet<N>>, String> {
    let read = |n: &str| n.trim().parse().map_err(|_| format!("{flag} takes numbers apart by commas, not `{n}`"));
    list.map(|list| list.split(',').map(read).collect()).transpose()
}

/// A list of CPUs and ranges of them, such as `0,2-4`.
fn cpus(list: &str) -> Result<HashSet<u32>, String> {
    /// More than any machine has; a longer range is a slip of the hand.
    const MOST: u32 = 1 << 16;
    let mut all = HashSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return Err(format!("--cpu takes CPUs and ranges such as 0,2-4, not `{part}`"));
        };
        if first > last || last >= MOST {
            return Err(format!("--cpu: `{part}` is not a range of CPUs"));
        }
        all.extend(first..=last);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Query, clap::Error> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_command_and_its_absence_mean_the_same() {
        assert_eq!(read("rep report a.data").unwrap(), read("rep a.data").unwrap());
        assert_eq!(read("rep -i a.data").unwrap(), read("rep a.data").unwrap());
        assert_eq!(read("rep a b -").unwrap().sources.len(), 3);
        assert_eq!(read("rep -").unwrap().sources, [Source::Stdin]);
    }

    #[test]
    fn the_default_is_perfs() {
        let keys: Vec<_> = read("rep x").unwrap().columns.iter().map(|c| c.key).collect();
        assert_eq!(keys, [SortKey::Comm, SortKey::Dso, SortKey::Symbol]);
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (line, word) in [
            ("rep --children x", "--children"),
            ("rep --sort nope x", "nope"),
            ("rep --sort comm,dso_from x", "needs -b"),
            ("rep -b --mem-mode x", "--mem-mode"),
            ("rep -g fractal x", "fractal"),
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
        assert_eq!(query.filters.comms.unwrap().len(), 2);
        assert_eq!(query.filters.cpus.unwrap(), [0, 2, 3, 4].into());
        assert_eq!(query.filters.pids.unwrap(), [1, -1].into());
    }
}
