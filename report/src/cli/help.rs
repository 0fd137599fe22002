//! The help: the list of commands, and the layout of `-h` (what most users need) and `--help`
//! (everything).

use clap::{Arg, Command};

/// A command: what is run, for `match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Report,
    Script,
    Timeline,
    Modules,
    Mem,
    C2c,
    Branches,
    Bundle,
    Info,
    Evlist,
    Dump,
    Help,
    Man,
    Completions,
}

/// A command, by which it is found and listed.
#[derive(Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) id: Id,
    pub(crate) name: &'static str,
    /// What it shows, for its line in lists.
    pub(crate) shows: &'static str,
    /// Lines of examples.
    examples: &'static [&'static str],
    /// How much `-h` says of it.
    place: Place,
}

/// Place of a command in `-h`; `--help` lists all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A line of its own.
    Line,
    /// Its name, in the line of the others.
    Name,
    Nowhere,
}

const fn command(
    id: Id,
    name: &'static str,
    shows: &'static str,
    examples: &'static [&'static str],
) -> Listed {
    Listed { id, name, shows, examples, place: Place::Line }
}

impl Listed {
    const fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }
}

/// The commands, in the order of the help.
pub(crate) static COMMANDS: [Listed; 14] = [
    command(
        Id::Report,
        "report",
        "histograms of samples (the default)",
        &[
            "rep                            the hottest functions of out.data or perf.data",
            "rep -s dso,symbol --limit 20   the 20 hottest functions of all threads together",
            "rep --comm nginx -g caller     call trees of one program, from main on",
        ],
    ),
    command(
        Id::Script,
        "script",
        "samples, in time order",
        &["rep script -F comm,tid,time,ip,sym", "rep script --comm nginx --time 0%-10%"],
    ),
    command(
        Id::Timeline,
        "timeline",
        "when threads ran: samples per time slice",
        &["rep timeline --time-quantum 10ms"],
    ),
    command(
        Id::Modules,
        "modules",
        "where symbols were found, or why not",
        &["rep modules --unresolved"],
    ),
    command(
        Id::Mem,
        "mem",
        "cost of memory accesses",
        &[
            "rep mem                     latencies by memory level",
            "rep mem -s symbol -t load   by function",
        ],
    )
    .at(Place::Name),
    command(Id::C2c, "c2c", "contended cache lines", &["rep c2c -c pid,iaddr"]).at(Place::Name),
    command(
        Id::Branches,
        "branches",
        "jumps, loops, and the code between branches",
        &["rep branches --limit 20"],
    )
    .at(Place::Name),
    command(
        Id::Bundle,
        "bundle",
        "a recording with its names, in one file, for other machines",
        &["rep bundle -o named.data"],
    )
    .at(Place::Name),
    command(
        Id::Info,
        "info",
        "header, events and record counts of a file",
        &["rep info --json out.data"],
    )
    .at(Place::Name),
    command(Id::Evlist, "evlist", "events of a file", &["rep evlist -v"]).at(Place::Name),
    command(
        Id::Dump,
        "dump",
        "all records, raw and decoded",
        &["rep dump --type MMAP2,COMM --no-raw"],
    )
    .at(Place::Name),
    command(Id::Help, "help", "help of a command, or of a topic: keys, fields", &[])
        .at(Place::Name),
    command(Id::Man, "man", "the manual page, as roff: rep man [COMMAND]", &["rep man | man -l -"])
        .at(Place::Nowhere),
    command(
        Id::Completions,
        "completions",
        "completions for bash, zsh or fish: rep completions SHELL",
        &[],
    )
    .at(Place::Nowhere),
];

/// Options of `rep report` that `-h` shows, without a heading.
const COMMON: [&str; 10] = [
    "sort",
    "limit",
    "off_cpu",
    "call_graph",
    "comms",
    "dsos",
    "symbols",
    "pids",
    "times",
    "format",
];

/// Headings of options that the `-h` of other commands leaves out, but for those in [`COMMON`].
const RARE_HEADINGS: [&str; 4] = ["Symbols", "Filters", "Other records", "Output"];

/// Other options that the `-h` of these commands leaves out.
const RARE: [&str; 18] = [
    "data_page_size",
    "dump_raw_trace",
    "field_separator",
    "full_symbols",
    "header_only",
    "help",
    "hide_unresolved",
    "input",
    "latency",
    "no_inline",
    "no_source",
    "ns",
    "per_event_dump",
    "phys_data",
    "show_kernel_path",
    "stdio",
    "stop_bt",
    "version",
];

/// Returns the names of all commands.
pub(crate) fn command_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|command| command.name)
}

/// Returns the examples of a command (`rep`, `rep mem`), one per line.
pub(crate) fn examples(command: &str) -> String {
    let name = command.strip_prefix("rep ").unwrap_or("report");
    let lines = listed(name).map_or(&[][..], |command| command.examples);
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

pub(super) fn is_command(name: &str) -> bool {
    listed(name).is_some()
}

/// Returns the command with this name.
pub(crate) fn listed(name: &str) -> Option<&'static Listed> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Returns the text of a command's `-h`, or of its `--help`.
pub(super) fn text(mut command: Command, is_long: bool) -> String {
    let name = command.get_name().to_owned();
    let is_report = name == "rep";
    // Arguments that are hidden stay in it.
    let usage = command.render_usage().to_string();
    let usage = if is_report && !is_long {
        usage.lines().take(2).collect::<Vec<_>>().join("\n")
    } else {
        usage
    };
    let command = command.override_usage(usage.trim_start_matches("Usage: ").trim_end().to_owned());
    let command = if is_long {
        command.mut_args(whole)
    } else {
        command.mut_args(|arg| short(arg, is_report))
    };
    let template =
        "{about-with-newline}\n{usage-heading} {usage}\n{before-help}\n{all-args}{after-help}";
    let mut command = command.help_template(template).next_line_help(false);
    if is_report {
        command = command.before_help(if is_long { list() } else { short_list() });
    }
    let examples = examples(&name);
    let mut end = command.get_after_help().map(|text| format!("\n{text}\n")).unwrap_or_default();
    if !examples.is_empty() {
        end.push_str(&format!("\nExamples:\n{examples}"));
    }
    if !is_long {
        let default =
            if is_report { "Without FILE: out.data or perf.data, the newer one. " } else { "" };
        end.push_str(&format!("\n{default}All options: {name} --help\n"));
    }
    let text = command.after_help(end.trim_end().to_owned()).render_help().to_string();
    // The template leaves two empty lines where a part is absent.
    text.replace("\n\n\n", "\n\n")
}

/// Returns an option as `--help` shows it: with all details, in one paragraph.
fn whole(arg: Arg) -> Arg {
    match arg.get_long_help().map(ToString::to_string) {
        Some(details) => arg.help(joined(&details)),
        None => arg,
    }
}

/// Returns an option as `-h` shows it: in a line, or not at all.
fn short(arg: Arg, is_report: bool) -> Arg {
    let id = arg.get_id().as_str();
    let is_common = COMMON.contains(&id);
    let is_rare = arg.get_help_heading().is_some_and(|heading| RARE_HEADINGS.contains(&heading));
    if (is_report || is_rare || arg.is_positional() || RARE.contains(&id)) && !is_common {
        return arg.hide(true);
    }
    let names = arg.get_value_names().unwrap_or_default().iter();
    let names: Vec<String> =
        names.map(|name| name.split('[').next().unwrap_or_default().to_owned()).collect();
    let has_names = !names.is_empty() && names.iter().all(|name| !name.is_empty());
    let arg = if has_names { arg.value_names(names) } else { arg };
    // The help of these names all that is needed.
    let arg = arg.hide_default_value(is_report).hide_possible_values(is_report);
    arg.help_heading(None)
}

/// Returns one paragraph of a short text and its details.
fn joined(details: &str) -> String {
    match details.split_once("\n\n") {
        Some((short, more)) => format!("{short}. {}", more.replace("\n\n", ". ")),
        None => details.to_owned(),
    }
}

fn line(command: &Listed) -> String {
    format!("  {:<11}  {}\n", command.name, command.shows)
}

/// Returns the list of all commands.
fn list() -> String {
    format!("\nCommands (`rep help COMMAND`):\n{}", COMMANDS.iter().map(line).collect::<String>())
}

/// Returns the list of commands for `-h`: the most common ones, and the names of others.
fn short_list() -> String {
    let at = |place| COMMANDS.iter().filter(move |command| command.place == place);
    let names: Vec<&str> = at(Place::Name).map(|command| command.name).collect();
    let lines: String = at(Place::Line).map(line).collect();
    format!("\nCommands:\n{lines}  {} (see `rep help COMMAND`)\n", names.join(", "))
}
