//! Command line and query of `rep script`. Letters and meanings are those of `perf script`; unknown
//! options are refused by name.

use std::collections::{BTreeSet, HashSet};
use std::convert::Infallible;

use clap::{Args, Parser};
use recrep_format::abi::RecordType;

use super::fields::Rule;
use super::style::ScriptStyle;
use crate::cli::{self, HeaderArgs, SampleFilterArgs, SourceArgs, SymbolArgs};
use crate::exports::outputs::{self, Output, SampleForm};
use crate::query::{SampleFilters, Source, SymbolOptions, UsageError};

/// Print samples as text, in time order
#[derive(Clone, Debug, Parser)]
#[command(name = "rep script", version, long_about = None, mut_arg("dsos", |arg| arg.short(None)))]
pub struct ScriptQuery {
    #[command(flatten)]
    pub(super) source: SourceArgs,

    /// Print these fields (`rep help fields`); +FIELD adds to the defaults, -FIELD removes
    ///
    /// The most common ones: comm, pid, tid, cpu, time, event, trace, period, addr, ip, sym,
    /// symoff, dso, srcline, brstack. A prefix hw:, sw:, trace:, raw: or break: applies the list to
    /// events of that type only. May be repeated
    #[arg(
        short = 'F', long, value_name = "[TYPE:]FIELD[,FIELD…]", allow_hyphen_values = true,
        value_parser = rule
    )]
    pub(super) fields: Vec<Rule>,

    /// Same as --format json
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Same as --format csv
    #[arg(long, hide_short_help = true)]
    csv: bool,

    /// Output format; JSON is an object for each sample, schema recrep-script/1
    #[arg(
        long, default_value = "text", hide_short_help = true,
        value_parser = cli::output_parser(|output| output.samples.is_some())
    )]
    format: &'static Output,

    /// Print only the header information, as comments
    #[arg(long)]
    pub(super) header_only: bool,

    /// Write the samples of each event to its own file, FILE.EVENT.dump
    #[arg(long)]
    pub(super) per_event_dump: bool,

    /// Print all records, raw and decoded, as `rep dump` does
    #[arg(short = 'D', long, visible_alias = "dump-unsorted-raw-trace")]
    pub(super) dump_raw_trace: bool,

    /// Print at most N samples
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<usize>,

    #[command(flatten)]
    pub(super) header: HeaderArgs,

    // Those with headings come last: options without one would stand below them.
    #[command(flatten)]
    pub(super) look: ScriptStyle,

    #[command(flatten)]
    pub(super) filters: ScriptFilters,

    #[command(flatten)]
    symbols: SymbolArgs,

    /// What `symbols` ask for.
    #[arg(skip)]
    pub(super) symbol_sources: SymbolOptions,

    #[command(flatten)]
    pub(super) records: RecordArgs,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(super) struct ScriptFilters {
    #[command(flatten)]
    of_samples: SampleFilterArgs,

    /// What `of_samples` ask for.
    #[arg(skip)]
    pub(super) samples: SampleFilters,

    /// Only these functions, by name or by address (0x…)
    #[arg(
        short = 'S', long, visible_alias = "symbol", value_name = "NAME[,NAME…]",
        value_parser = Symbols::parse
    )]
    pub(super) symbols: Option<Symbols>,

    /// Each address in -S selects BYTES bytes, beginning at that address [default: 1]
    #[arg(long, value_name = "BYTES", requires = "symbols")]
    pub(super) addr_range: Option<u64>,

    #[command(flatten)]
    pub(super) switches: Switches,
}

/// Events whose samples start and stop printing.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Switches {
    /// Start printing after a sample of this event
    #[arg(long, value_name = "EVENT")]
    pub(super) switch_on: Option<String>,

    /// Stop printing at a sample of this event; a --switch-on event starts it again
    #[arg(long, value_name = "EVENT")]
    pub(super) switch_off: Option<String>,

    /// Also print the samples of --switch-on and --switch-off
    #[arg(long)]
    pub(super) show_on_off_events: bool,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Other records")]
pub(super) struct RecordArgs {
    /// Print COMM, FORK and EXIT records
    #[arg(long)]
    show_task_events: bool,

    /// Print MMAP and MMAP2 records
    #[arg(long)]
    show_mmap_events: bool,

    /// Print context switches: SWITCH and SWITCH_CPU_WIDE records
    #[arg(long)]
    show_switch_events: bool,

    /// Print NAMESPACES records
    #[arg(long)]
    show_namespace_events: bool,

    /// Print CGROUP records
    #[arg(long)]
    show_cgroup_events: bool,

    /// Print LOST records
    #[arg(long)]
    show_lost_events: bool,

    /// Print FINISHED_ROUND records; all output is then in file order
    #[arg(long)]
    show_round_events: bool,

    /// Print BPF_EVENT and KSYMBOL records
    #[arg(long)]
    show_bpf_events: bool,

    /// Print TEXT_POKE and KSYMBOL records
    #[arg(long)]
    show_text_poke_events: bool,
}

/// Checks the query and completes it.
pub fn query(mut asked: ScriptQuery) -> Result<ScriptQuery, String> {
    if asked.per_event_dump && asked.source.source() == Source::Stdin {
        return Err("--per-event-dump needs an input file to name its output files after".into());
    }
    if let (form @ (SampleForm::Json | SampleForm::Csv), Some(flag)) =
        (asked.form(), asked.text_only())
    {
        return Err(format!("{flag} prints text, not {}", form.name()));
    }
    asked.filters.samples = asked.filters.of_samples.clone().filters();
    asked.symbol_sources = asked.symbols.clone().options(false)?;
    Ok(asked)
}

impl ScriptQuery {
    /// Returns the form of samples; `--json` and `--csv` take precedence over `--format`.
    pub(super) fn form(&self) -> SampleForm {
        let output = match (self.json, self.csv) {
            (true, _) => outputs::named("json"),
            (_, true) => outputs::named("csv"),
            _ => self.format,
        };
        output.samples.unwrap_or_default()
    }

    /// Returns a flag that asks for what is printed as text only.
    fn text_only(&self) -> Option<&'static str> {
        let flags = [
            (self.per_event_dump, "--per-event-dump"),
            (self.dump_raw_trace, "-D"),
            (self.header_only, "--header-only"),
            (self.header.is_asked(), "--header"),
            (!self.records.kinds().is_empty(), "--show-…-events"),
        ];
        flags.into_iter().find(|(is_set, _)| *is_set).map(|(_, flag)| flag)
    }
}

fn rule(list: &str) -> Result<Rule, UsageError> {
    Rule::parse(list).map_err(|message| UsageError(format!("--fields: {message}")))
}

impl RecordArgs {
    /// Returns the types of other records to print among the samples.
    pub(super) fn kinds(&self) -> BTreeSet<RecordType> {
        type T = RecordType;
        let options: [(bool, &[T]); 9] = [
            (self.show_task_events, &[T::COMM, T::FORK, T::EXIT]),
            (self.show_mmap_events, &[T::MMAP, T::MMAP2]),
            (self.show_switch_events, &[T::SWITCH, T::SWITCH_CPU_WIDE]),
            (self.show_namespace_events, &[T::NAMESPACES]),
            (self.show_cgroup_events, &[T::CGROUP]),
            (self.show_lost_events, &[T::LOST]),
            (self.show_round_events, &[T::FINISHED_ROUND]),
            (self.show_bpf_events, &[T::KSYMBOL, T::BPF_EVENT]),
            (self.show_text_poke_events, &[T::KSYMBOL, T::TEXT_POKE]),
        ];
        options
            .into_iter()
            .filter(|(is_set, _)| *is_set)
            .flat_map(|(_, kinds)| kinds)
            .copied()
            .collect()
    }
}

/// Functions by name and by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    pub(super) names: HashSet<String>,
    /// Start addresses of functions, or sampled addresses.
    addresses: Vec<u64>,
}

impl Symbols {
    /// Parses a list such as `main,0x401000`.
    fn parse(list: &str) -> Result<Self, Infallible> {
        let mut found = Self::default();
        for name in list.split(',').map(str::trim) {
            let address =
                name.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
            match address {
                Some(address) => found.addresses.push(address),
                None => drop(found.names.insert(name.to_owned())),
            }
        }
        Ok(found)
    }

    /// Returns whether all are given by name.
    pub(super) fn are_names(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Returns whether a sampled address is one of the `range` bytes from one of the addresses on,
    /// or the start of its function is one of the addresses.
    pub(super) fn has_address(&self, ip: u64, start: Option<u64>, range: u64) -> bool {
        self.addresses.iter().any(|address| {
            let is_near = ip.checked_sub(*address).is_some_and(|past| past < range.max(1));
            is_near || start == Some(*address)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::{self, Refusal};

    fn read(line: &str) -> Result<ScriptQuery, Refusal> {
        let words =
            std::iter::once("rep script").chain(line.split_whitespace()).map(OsString::from);
        cli::parse(words, query).map(|asked| asked.query)
    }

    #[test]
    fn options_have_perfs_letters() {
        let query =
            read("-F comm,ip -F -comm -G -c a,b -C 0-1 -S f,0x10 --addr-range 8 x").unwrap();
        assert!(query.look.hide_call_graph && query.filters.samples.comms.unwrap().len() == 2);
        assert_eq!(query.filters.addr_range, Some(8));
        let query = read("--show-task-events --show-bpf-events -I x").unwrap();
        assert_eq!(
            (query.records.kinds().len(), query.header.is_asked(), query.header_only),
            (5, true, false)
        );
        assert_eq!(read("--inline --no-inline x").unwrap().look.inlined(), Some(false));
        assert_eq!(read("--no-inline --inline x").unwrap().look.inlined(), Some(true));
    }

    #[test]
    fn unsupported_words_are_refused_by_name() {
        for (line, word) in [
            ("-F insn x", "insn"),
            ("--xed x", "--xed"),
            ("--addr-range 1 x", "--symbols"),
            ("--per-event-dump -", "--per-event-dump"),
            ("--reltime --deltatime x", "--deltatime"),
            ("--pid one x", "one"),
            ("--json --csv x", "--csv"),
            ("--json -D x", "-D"),
            ("--csv --show-task-events x", "events"),
            ("--format folded x", "folded"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.to_string().contains(word) && error.exit_code() == 2, "{line}: {error}");
        }
    }
    #[test]
    fn functions_go_by_name_and_address() {
        let Ok(symbols) = Symbols::parse("main, 0x1000,add");
        assert_eq!(symbols.names, ["main".to_owned(), "add".to_owned()].into());
        let has = |ip, start| symbols.has_address(ip, start, 16);
        assert!(has(0x1000, None) && has(0x100f, None) && has(0x2000, Some(0x1000)));
        assert!(!has(0x1010, None) && !has(0xfff, Some(0xff0)));
        let Ok(one) = Symbols::parse("0x1000");
        assert!(!one.has_address(0x1001, None, 0));
    }
}
