//! `rep help`, `rep man` and `rep completions`: texts about the command line, generated from its
//! definition.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Command, Parser, ValueEnum};
use clap_complete::{Shell, generate};
use jiff::Timestamp;

use crate::cli::outcome::{end, output, refused, written};
use crate::cli::{Entry, Line, Refusal, args, help, lacking};
use crate::listings::script::field_names;
use crate::query::{Availability, SortKey};

/// Returns the words that `rep help` (`line`, the program first) means, or answers it.
pub(super) fn help(line: &Line) -> Result<Vec<OsString>, ExitCode> {
    let Line { words, commands } = line;
    let named: Vec<_> = words.iter().skip(2).map(|word| word.to_string_lossy()).collect();
    let named: Vec<&str> = named.iter().map(|word| &**word).collect();
    let text = match named[..] {
        ["keys"] => keys(),
        ["fields"] => format!("Fields of rep script, for -F: {}\n", field_names()),
        _ => {
            let command = lacking::named(&named, commands)
                .map_err(|message| refused(&Refusal::Usage(message)))?;
            let command = command.map(OsString::from);
            return Ok(words
                .iter()
                .take(1)
                .cloned()
                .chain(command)
                .chain(["--help".into()])
                .collect());
        }
    };
    Err(refused(&Refusal::Text(text)))
}

/// Returns the lists of sort keys.
fn keys() -> String {
    let lists = [
        ("Sort keys, for -s and -F", Availability::Always),
        ("only with --off-cpu or --wall", Availability::OfTime),
        ("only with -b", Availability::OfBranches),
    ];
    let lists =
        lists.map(|(what, availability)| format!("{what}: {}\n", SortKey::list_of(availability)));
    format!(
        "{}fields of tracepoints: [EVENT.]FIELD[/raw], trace_fields (all of them)\n",
        lists.concat()
    )
}

/// Print the manual page of rep, or of one of its commands, for man(1): rep man | man -l -
#[derive(Debug, Parser)]
#[command(name = "rep man", version, long_about = None)]
pub(super) struct ManArgs {
    /// Command of rep
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Print completions of the command line, for the shell to load
#[derive(Debug, Parser)]
#[command(name = "rep completions", version, long_about = None)]
#[command(after_help = "bash: source <(rep completions bash)\nzsh: rep completions zsh \
                  >DIRECTORY_IN_FPATH/_rep\n\
                  fish: rep completions fish >~/.config/fish/completions/rep.fish")]
pub(super) struct CompletionsArgs {
    /// Shell that loads them
    #[arg(
        value_name = "SHELL",
        value_parser = clap::builder::PossibleValuesParser::new(["bash", "zsh", "fish"])
    )]
    shell: String,
}

/// Returns the definition of the whole command line: the options of `rep report`, and the commands.
fn whole(commands: &[Entry]) -> Command {
    let mut rep = args::definition();
    for entry in commands {
        // Lists show one line of each command, pages all.
        let command = (entry.definition)();
        let long = command.get_about().map_or_else(|| entry.shows.to_owned(), ToString::to_string);
        let command = command.name(entry.name).display_name(format!("rep-{}", entry.name));
        rep = rep.subcommand(command.about(entry.shows).long_about(long));
    }
    rep
}

/// Prints a manual page: of the whole command line, or of a command in it.
pub(super) fn man(line: &Line) -> ExitCode {
    let commands = line.commands;
    let page = line.parse(|ManArgs { command }| match command {
        None => Ok(whole(commands)),
        Some(name) => {
            lacking::named(&[&name], commands)?;
            let found = whole(commands).find_subcommand(&name).cloned();
            found.ok_or_else(|| {
                format!("'{name}' has no page of its own; it is in the page of rep: rep man")
            })
        }
    });
    let page = match page {
        Ok(asked) => asked.query,
        Err(refusal) => return refused(&refusal),
    };
    let mut text = Vec::new();
    let rendered = manual_page(page, commands, &mut text);
    let mut out = output(true);
    written(rendered.and_then(|()| out.write_all(&text)).and(end(out)))
}

/// Writes the manual page of a command: clap's, with the examples of the help.
fn manual_page(
    command: Command,
    commands: &'static [Entry],
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let examples = help::examples(commands, &name.replacen('-', " ", 1));
    let mut rendered = Vec::new();
    clap_mangen::Man::new(command.after_help(None::<&str>)).render(&mut rendered)?;
    writeln!(
        out,
        ".TH {} 1 {} \"recrep {}\" \"User Commands\"",
        name.to_uppercase(),
        day(),
        env!("CARGO_PKG_VERSION")
    )?;
    tidy(&String::from_utf8_lossy(&rendered), out)?;
    if !examples.is_empty() {
        out.extend_from_slice(b".SH EXAMPLES\n.nf\n");
        out.extend_from_slice(examples.replace('\\', "\\e").replace('-', "\\-").as_bytes());
        out.extend_from_slice(b".fi\n");
    }
    Ok(())
}

/// Returns the day that the page names: today, or what `SOURCE_DATE_EPOCH` says, so that builds can
/// be repeated.
fn day() -> String {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let now = fixed
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .unwrap_or_else(Timestamp::now);
    now.strftime("%F").to_string()
}

/// Writes a page of clap without its title, in the form that `mandoc -T lint` wants: lines of at
/// most 80 bytes, no breaks beside empty lines, which become paragraphs.
fn tidy(page: &str, out: &mut impl Write) -> std::io::Result<()> {
    const WIDTH: usize = 80;
    let mut lines =
        page.lines().map(str::trim_end).filter(|line| !line.starts_with(".TH ")).peekable();
    let mut was_gap = false;
    while let Some(line) = lines.next() {
        let is_gap = |line: &str| line.is_empty() || line == ".br";
        if is_gap(line) && (was_gap || lines.peek().is_some_and(|next| is_gap(next))) {
            // Several of them are one.
            if !was_gap {
                writeln!(out, ".sp")?;
            }
            was_gap = true;
            continue;
        }
        was_gap = false;
        if line.is_empty() || line.starts_with(['.', '\'']) {
            writeln!(out, "{}", if line.is_empty() { ".sp" } else { line })?;
            continue;
        }
        let mut used = 0;
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            // A word that begins a line must not look like a request.
            let fits =
                used > 0 && (used + 1 + word.len() <= WIDTH || word.starts_with(['.', '\'']));
            let before = if fits { " " } else { "\n" };
            write!(out, "{}{word}", if used == 0 { "" } else { before })?;
            used = if fits { used + 1 + word.len() } else { word.len() };
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Prints completions of the whole command line.
pub(super) fn completions(line: &Line) -> ExitCode {
    let asked = line.parse(|CompletionsArgs { shell }| {
        Shell::from_str(&shell, false).map_err(|_| format!("unknown shell '{shell}'"))
    });
    let shell = match asked {
        Ok(asked) => asked.query,
        Err(refusal) => return refused(&refusal),
    };
    let mut text = Vec::new();
    generate(shell, &mut whole(line.commands), "rep", &mut text);
    let mut out = output(true);
    written(out.write_all(&text).and(end(out)))
}
