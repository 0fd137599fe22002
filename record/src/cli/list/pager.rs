//! A pager in front of standard output: on a terminal, text that does not fit is shown in
//! `$REC_PAGER`, else `$PAGER`, else `less -FRX`.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGINT, SIGQUIT};

/// Prints a text; with `may_page`, in a pager if it does not fit on the terminal.
pub(super) fn print(text: &str, may_page: bool) -> io::Result<()> {
    let pager = if may_page && !fits(text) { command(|name| std::env::var_os(name)) } else { None };
    match pager.and_then(|pager| page(text, &pager)) {
        Some(done) => done,
        None => io::stdout().lock().write_all(text.as_bytes()),
    }
}

/// Returns whether there is no terminal, or one that has room for a text.
fn fits(text: &str) -> bool {
    let stdout = io::stdout();
    match tcgetwinsize(&stdout) {
        Ok(size) if stdout.is_terminal() && size.ws_row > 0 => {
            // The prompt takes a row.
            rows(text, usize::from(size.ws_col).max(1)) < usize::from(size.ws_row)
        }
        _ => true,
    }
}

/// Returns the number of rows that a text takes on a terminal.
fn rows(text: &str, width: usize) -> usize {
    text.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum()
}

/// Returns the words of the pager's command, given environment variables; `None` if the user or the
/// terminal wants none.
fn command(variable: impl Fn(&str) -> Option<OsString>) -> Option<Vec<OsString>> {
    variable("TERM").filter(|kind| !kind.is_empty() && kind != "dumb")?;
    match variable("REC_PAGER").or_else(|| variable("PAGER")) {
        None => Some(["less", "-FRX"].map(OsString::from).to_vec()),
        Some(line) if line.to_str().is_some_and(|line| matches!(line.trim(), "" | "cat")) => None,
        Some(line) => Some(vec!["sh".into(), "-c".into(), line]),
    }
}

/// Shows a text in a pager, until the user leaves it. `None`: it cannot be started.
fn page(text: &str, pager: &[OsString]) -> Option<io::Result<()>> {
    let (program, arguments) = pager.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    let mut child = command.spawn().ok()?;
    for signal in [SIGINT, SIGQUIT] {
        // These keys are the pager's. Without a handler, rec ends before it, which is no reason to
        // show nothing.
        let _registered = signal_hook::flag::register(signal, Arc::default());
    }
    if let Some(mut input) = child.stdin.take() {
        // The user may leave before the end of the text.
        let _ = input.write_all(text.as_bytes());
    }
    Some(child.wait().map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pager_is_the_users() {
        let of = |variables: &[(&str, &str)]| {
            let words = command(|name| {
                variables.iter().find(|(is, _)| *is == name).map(|(_, value)| value.into())
            })?;
            Some(words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(","))
        };
        let term = ("TERM", "xterm");
        assert_eq!(of(&[term]).as_deref(), Some("less,-FRX"));
        assert_eq!(
            of(&[term, ("PAGER", "most"), ("REC_PAGER", "more -d")]).as_deref(),
            Some("sh,-c,more -d")
        );
        for none in
            [&[][..], &[("TERM", "dumb")], &[term, ("PAGER", "")], &[term, ("REC_PAGER", "cat")]]
        {
            assert_eq!(of(none), None, "{none:?}");
        }
    }

    #[test]
    fn long_lines_take_several_rows() {
        assert_eq!([rows("", 4), rows("a\n\nb\n", 4), rows("äöüß\nabcde\n", 4)], [0, 3, 3]);
    }
}
