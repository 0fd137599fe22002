//! Manual pages and the shells' completions, generated from the definition of a command line.

use std::io::{self, Write};

use clap::{Command, ValueEnum as _};
use clap_complete::{Shell, generate};
use jiff::Timestamp;

/// Shells that have completions.
pub const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Section at the end of a page, with its text as the terminal shows it.
#[derive(Clone, Copy, Debug)]
pub enum Section<'a> {
    /// Command lines, printed line by line.
    Examples(&'a str),
    /// A paragraph.
    Notes(&'a str),
}

/// Returns the completions of a whole command line for a shell; `None` if it has none.
pub fn completions(shell: &str, mut command: Command, program: &str) -> Option<Vec<u8>> {
    let shell = Shell::from_str(shell, false).ok()?;
    let mut text = Vec::new();
    generate(shell, &mut command, program, &mut text);
    Some(text)
}

/// Returns the manual page of a command: clap's, with these sections in the place of what its help
/// says after the options.
///
/// # Errors
/// Returns the errors of clap's page.
pub fn page(command: Command, sections: &[Section<'_>]) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_uppercase();
    let mut clap = Vec::new();
    // clap leaves out the text of what the short help hides.
    let command = command.after_help(None::<&str>).mut_args(|arg| arg.hide_short_help(false));
    clap_mangen::Man::new(command).render(&mut clap)?;
    let (day, version) = (day(), env!("CARGO_PKG_VERSION"));
    let mut out = Vec::new();
    writeln!(out, ".TH {name} 1 {day} \"recrep {version}\" \"User Commands\"")?;
    tidy(&String::from_utf8_lossy(&clap), &mut out)?;
    for section in sections {
        match section {
            Section::Examples(lines) => {
                writeln!(out, ".SH EXAMPLES\n.nf\n{}\n.fi", escaped(lines.trim_matches('\n')))?;
            }
            Section::Notes(text) => {
                let text = escaped(text).replace('\n', "\n.br\n");
                tidy(&format!(".SH NOTES\n{text}"), &mut out)?;
            }
        }
    }
    Ok(out)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// Returns the day that the page names: today, or that of `SOURCE_DATE_EPOCH`, so that builds can
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
fn tidy(page: &str, out: &mut Vec<u8>) -> io::Result<()> {
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
        } else {
            fill(line, out)?;
        }
    }
    Ok(())
}

fn is_gap(line: &str) -> bool {
    line.is_empty() || line == ".br"
}

/// Writes the words of a line in lines of at most 80 bytes.
fn fill(line: &str, out: &mut Vec<u8>) -> io::Result<()> {
    const WIDTH: usize = 80;
    let mut used = 0;
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        // A word that begins a line must not look like a request.
        let fits = used > 0 && (used + 1 + word.len() <= WIDTH || word.starts_with(['.', '\'']));
        let before = if fits { " " } else { "\n" };
        write!(out, "{}{word}", if used == 0 { "" } else { before })?;
        used = if fits { used + 1 + word.len() } else { word.len() };
    }
    writeln!(out)
}
