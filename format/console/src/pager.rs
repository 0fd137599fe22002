//! Standard output, or a pager in front of it: on a terminal, output that does not fit is shown in
//! the program's own pager (`$REP_PAGER`), else `$PAGER`, else `less -FRX`.
//!
//! ```text
//!   Held (up to a screen of text) ─► Paged (the pager's input)    the screen is full
//!                                 └► Direct (standard output)     the output ends before, or no pager can be started
//! ```

use std::ffi::OsString;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGQUIT};

/// Standard output, or the pager in front of it.
#[derive(Debug)]
pub struct Output {
    state: State,
    stdout: StdoutLock<'static>,
}

#[derive(Debug)]
enum State {
    /// To standard output.
    Direct,
    /// Nowhere yet: it may fit on the screen.
    Held { pager: Vec<OsString>, text: Vec<u8>, room: Room },
    /// To a pager.
    Paged(Child),
}

/// Free space on the screen.
#[derive(Clone, Copy, Debug)]
struct Room {
    rows: usize,
    width: usize,
    /// Columns used in the current row.
    column: usize,
}

impl Room {
    /// Takes the space of this text; returns whether there was enough.
    fn take(&mut self, text: &[u8]) -> bool {
        // Bytes that continue a character take no column.
        for byte in text.iter().filter(|byte| **byte & 0xc0 != 0x80) {
            let is_full = self.column >= self.width;
            if *byte == b'\n' || is_full {
                self.rows = self.rows.saturating_sub(1);
                self.column = usize::from(*byte != b'\n');
            } else {
                self.column += 1;
            }
        }
        self.rows > 0
    }
}

impl Output {
    /// Returns standard output; with `may_page`, output that does not fit on a terminal goes to a
    /// pager: the one that the environment variable `own` names, or the user's.
    pub fn new(own: &str, may_page: bool) -> Self {
        let stdout = io::stdout().lock();
        let mut state = State::Direct;
        if may_page
            && stdout.is_terminal()
            && let Some(pager) = pager(own, |name| std::env::var_os(name))
            && let Some((width, height)) = terminal_size::terminal_size()
        {
            let (rows, width) = (height.0.into(), usize::from(width.0).max(1));
            let room = Room { rows, width, column: 0 };
            state = State::Held { pager, text: Vec::new(), room };
        }
        Self { state, stdout }
    }

    /// Writes what is still held, and waits until the user leaves the pager.
    ///
    /// # Errors
    /// Returns I/O errors of standard output.
    pub fn finish(mut self) -> io::Result<()> {
        match &mut self.state {
            State::Direct => self.stdout.flush(),
            State::Held { text, .. } => {
                self.stdout.write_all(text)?;
                self.stdout.flush()
            }
            State::Paged(child) => {
                drop(child.stdin.take());
                child.wait().map(drop)
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Direct => self.stdout.write(bytes),
            State::Paged(child) => {
                child.stdin.as_mut().map_or(Ok(bytes.len()), |input| input.write(bytes))
            }
            State::Held { pager, text, room } => {
                text.extend_from_slice(bytes);
                if !room.take(bytes) {
                    let (text, pager) = (std::mem::take(text), std::mem::take(pager));
                    self.state = start(&pager).map_or(State::Direct, State::Paged);
                    match &mut self.state {
                        State::Paged(Child { stdin: Some(input), .. }) => input.write_all(&text)?,
                        _ => self.stdout.write_all(&text)?,
                    }
                }
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Direct => self.stdout.flush(),
            State::Held { .. } => Ok(()),
            State::Paged(child) => child.stdin.as_mut().map_or(Ok(()), Write::flush),
        }
    }
}

/// Returns the command of the pager, given environment variables; `None` if the user or the
/// terminal wants none.
fn pager(own: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<Vec<OsString>> {
    variable("TERM").filter(|kind| !kind.is_empty() && kind != "dumb")?;
    let Some(line) = variable(own).or_else(|| variable("PAGER")) else {
        return Some(words("less -FRX"));
    };
    match line.to_str() {
        Some(line) if line.trim().is_empty() || line.trim() == "cat" => None,
        Some(line) if !line.contains(|c: char| "|&;<>()$`\\\"'*?[#~=%".contains(c)) => {
            Some(words(line))
        }
        _ => Some(vec!["sh".into(), "-c".into(), line]),
    }
}

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// Starts the pager; returns `None` if that is impossible.
fn start(pager: &[OsString]) -> Option<Child> {
    let (program, args) = pager.split_first()?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    let child = command.spawn().ok()?;
    // The keys that end the program are the pager's now: the user leaves it by its own keys, and it
    // restores the terminal.
    for signal in [SIGINT, SIGQUIT] {
        // Without a handler, the program ends and leaves the pager alone, which is no reason to
        // show nothing.
        let _registered = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
    Some(child)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pager_is_the_users() {
        let of = |variables: &[(&str, &str)]| {
            let words = pager("REP_PAGER", |name| {
                variables.iter().find(|(is, _)| *is == name).map(|(_, value)| value.into())
            })?;
            Some(words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(","))
        };
        let term = ("TERM", "xterm");
        assert_eq!(of(&[term]).as_deref(), Some("less,-FRX"));
        assert_eq!(
            of(&[term, ("PAGER", "most"), ("REP_PAGER", "more -d")]).as_deref(),
            Some("more,-d")
        );
        assert_eq!(of(&[term, ("PAGER", "tr a b | less")]).as_deref(), Some("sh,-c,tr a b | less"));
        for none in
            [&[][..], &[("TERM", "dumb")], &[term, ("PAGER", "")], &[term, ("REP_PAGER", "cat")]]
        {
            assert_eq!(of(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_screen_has_room_for_its_rows() {
        let fits = |text: &str| Room { rows: 3, width: 4, column: 0 }.take(text.as_bytes());
        assert!(fits("a\nb\n") && fits("äöüß\nb\n") && fits("abcd\nefgh\n"));
        assert!(!fits("a\nb\nc\n") && !fits("abcde\nf\n\n") && !fits("abcdefghijklm"));
    }
}
