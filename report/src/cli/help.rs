//! The layout of `-h` (what most users need) and `--help` (everything).

use clap::{Arg, Command};

use super::line::{CommandEntry, HelpPlace, named};

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
const RARE_HEADINGS: [&str; 5] =
    ["What is counted", "Symbols", "Filters", "Other records", "Output"];

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

/// Returns the examples of a command (`rep`, `rep mem`), one per line.
pub(crate) fn examples(commands: &'static [CommandEntry], command: &str) -> String {
    let name = command.strip_prefix("rep ").unwrap_or("report");
    let lines = named(commands, name).map_or(&[][..], |command| command.examples);
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// Returns the text of a command's `-h`, or of its `--help`.
pub(super) fn text(
    mut command: Command,
    is_long: bool,
    commands: &'static [CommandEntry],
) -> String {
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
        command = command.before_help(if is_long { list(commands) } else { short_list(commands) });
    }
    let examples = examples(commands, &name);
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

fn line(command: &CommandEntry) -> String {
    format!("  {:<11}  {}\n", command.name, command.shows)
}

/// Returns the list of all commands.
fn list(commands: &[CommandEntry]) -> String {
    format!("\nCommands (`rep help COMMAND`):\n{}", commands.iter().map(line).collect::<String>())
}

/// Returns the list of commands for `-h`: the most common ones, and the names of others.
fn short_list(commands: &[CommandEntry]) -> String {
    let at = |place| commands.iter().filter(move |command| command.place == place);
    let names: Vec<&str> = at(HelpPlace::Name).map(|command| command.name).collect();
    let lines: String = at(HelpPlace::Line).map(line).collect();
    format!("\nCommands:\n{lines}  {} (see `rep help COMMAND`)\n", names.join(", "))
}
