//! `rec man` and `rec completions`: the manual page and the shells' completions, generated from the
//! definition of the command line.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _, Parser, ValueEnum as _};
use clap_complete::{Shell, generate};
use jiff::Timestamp;

use super::flags::Flags;
use super::list::ListFlags;
use super::stat::StatFlags;
use super::tools::Tool;
use super::{Refusal, help};
use crate::messages::error::{Error, Result};

/// Print the manual page of rec, or of one of its commands, for man(1): rec man | man -l -
#[derive(Debug, Parser)]
#[command(
    name = "rec man",
    bin_name = "rec man",
    after_help = "To record a program named man: rec -- man"
)]
struct ManArgs {
    /// Command of rec
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Print completions of the command line, for the shell to load
#[derive(Debug, Parser)]
#[command(name = "rec completions", bin_name = "rec completions")]
#[command(after_help = "bash: source <(rec completions bash)\nzsh: rec completions zsh \
                  >DIRECTORY_IN_FPATH/_rec\n\
                  fish: rec completions fish >~/.config/fish/completions/rec.fish")]
struct CompletionsArgs {
    /// Shell that loads them
    #[arg(
        value_name = "SHELL",
        value_parser = clap::builder::PossibleValuesParser::new(["bash", "zsh", "fish"])
    )]
    shell: String,
}

/// Returns whether the command line, which begins with the program's name, is `rec man` or
/// `rec completions`.
pub fn is_asked_for(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|word| word == "man" || word == "completions")
}

/// Prints the page or the completions, and returns the exit status.
pub fn run(args: &[OsString]) -> Result<u8> {
    let words = args.iter().skip(1);
    let text = if args.get(1).is_some_and(|word| word == "man") {
        ManArgs::try_parse_from(words).and_then(|ManArgs { command }| page(command.as_deref()))
    } else {
        CompletionsArgs::try_parse_from(words)
            .and_then(|CompletionsArgs { shell }| completions(&shell))
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => return Ok(Refusal::Usage(error).print()),
    };
    match io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::unwritable("cannot print the text", error))
        }
        _ => Ok(0),
    }
}

/// Returns the definition of the whole command line: the options, and the commands.
fn whole() -> Command {
    let commands = [
        ("list", ListFlags::command()),
        ("stat", StatFlags::command()),
        ("mem", Tool::Mem.command()),
        ("c2c", Tool::C2c.command()),
        ("trace", Tool::Trace.command()),
        ("man", ManArgs::command()),
        ("completions", CompletionsArgs::command()),
    ];
    let mut rec = Flags::command().disable_help_subcommand(true);
    for (name, command) in commands {
        let display = format!("rec-{name}");
        rec = rec.subcommand(
            command.name(name).display_name(display).version(env!("CARGO_PKG_VERSION")),
        );
    }
    rec
}

fn completions(shell: &str) -> std::result::Result<Vec<u8>, clap::Error> {
    let shell = Shell::from_str(shell, false)
        .map_err(|why| CompletionsArgs::command().error(ErrorKind::InvalidValue, why))?;
    let mut text = Vec::new();
    generate(shell, &mut whole(), "rec", &mut text);
    Ok(text)
}

/// Returns the manual page of a command, or of rec: clap's, with what its help says after the
/// options.
fn page(name: Option<&str>) -> std::result::Result<Vec<u8>, clap::Error> {
    let rec = whole();
    let command = match name {
        None => rec,
        Some(name) => rec.find_subcommand(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = rec.get_subcommands().map(Command::get_name).collect();
            let why = format!(
                "rec has no command '{name}', only {}; to record man: rec -- man",
                names.join(", ")
            );
            ManArgs::command().error(ErrorKind::InvalidValue, why)
        })?,
    };
    Ok(rendered(command)?)
}

fn rendered(command: Command) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut clap = Vec::new();
    clap_mangen::Man::new(command.after_help(None::<&str>)).render(&mut clap)?;
    let mut out = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        out,
        ".TH {} 1 {} \"recrep {version}\" \"User Commands\"",
        name.to_uppercase(),
        day()
    )?;
    tidy(&String::from_utf8_lossy(&clap), &mut out)?;
    for paragraph in after.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let paragraph = paragraph.replace('\\', "\\e").replace('-', "\\-");
        match paragraph.strip_prefix(help::EXAMPLES) {
            Some(examples) => {
                writeln!(out, ".SH EXAMPLES\n.nf\n{}\n.fi", examples.trim_start_matches('\n'))?;
            }
            None => tidy(&format!(".SH NOTES\n{}", paragraph.replace('\n', "\n.br\n")), &mut out)?,
        }
    }
    Ok(out)
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
fn tidy(page: &str, out: &mut impl Write) -> io::Result<()> {
    const WIDTH: usize = 80;
    let mut lines =
        page.lines().map(str::trim_end).filter(|line| !line.starts_with(".TH ")).peekable();
    let mut was_gap = false;
    while let Some(line) = lines.next() {
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

fn is_gap(line: &str) -> bool {
    line.is_empty() || line == ".br"
}
