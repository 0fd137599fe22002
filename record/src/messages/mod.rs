//! Messages to standard error: one line each, with the prefix `rec: `.
//!
//! Three levels: `-q` prints only errors and losses, `-v` adds details of the plan. On a terminal,
//! one more line shows the progress of the recording; the next message overwrites it.

pub mod error;
mod terminal;

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::io::Write;

/// Level of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// `-q`: errors and losses.
    Quiet,
    /// Also deviations from the request, and the summary line.
    #[default]
    Normal,
    /// `-v`: also the plan.
    Verbose,
}

pub struct Messages {
    verbosity: Verbosity,
    out: RefCell<Box<dyn Write>>,
    on_terminal: bool,
    /// `true` if the last line on the terminal is a status line.
    has_status: Cell<bool>,
}

/// Begins the line anew, empty.
const CLEARED: &str = "\r\x1b[K";

impl Messages {
    /// Creates messages to standard error.
    pub fn stderr(verbosity: Verbosity) -> Self {
        Self {
            on_terminal: terminal::is_there(),
            ..Self::to(verbosity, Box::new(std::io::stderr()))
        }
    }

    pub fn to(verbosity: Verbosity, out: Box<dyn Write>) -> Self {
        Self { verbosity, out: RefCell::new(out), on_terminal: false, has_status: Cell::new(false) }
    }

    /// Returns messages that are written as to a terminal.
    #[cfg(test)]
    pub(crate) fn on_a_terminal(self) -> Self {
        Self { on_terminal: true, ..self }
    }

    /// Returns whether a status line would be seen.
    pub fn shows_status(&self) -> bool {
        self.on_terminal && self.verbosity >= Verbosity::Normal
    }

    /// Writes a line, cut to the terminal's width, that the next one replaces.
    pub fn status(&self, text: &str) {
        if let Some(columns) = terminal::columns().filter(|_| self.shows_status()) {
            let line = format!("rec: {text}");
            // A full line would have the cursor on the next.
            let cut: String = line.chars().take(columns.saturating_sub(1)).collect();
            self.has_status.set(true);
            self.write(&format!("{CLEARED}{cut}"));
        }
    }

    /// Prints an error, at all levels.
    pub fn error(&self, what: impl Display) {
        self.line(&format_args!("{what}"));
    }

    /// Prints a warning about the result, at all levels.
    pub fn warn(&self, what: impl Display) {
        self.line(&format_args!("{what}"));
    }

    /// Prints a note about a deviation from the request, or the summary line, unless `-q`.
    pub fn note(&self, what: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            self.line(&format_args!("{what}"));
        }
    }

    /// Prints lines as they are, under the conditions of a status line.
    pub fn text(&self, lines: &str) {
        if self.shows_status() {
            let before = if self.has_status.take() { CLEARED } else { "" };
            self.write(&format!("{before}{lines}"));
        }
    }

    /// Prints details, with `-v` only.
    pub fn explain(&self, what: impl FnOnce() -> String) {
        if self.verbosity >= Verbosity::Verbose {
            self.line(&what());
        }
    }

    fn line(&self, what: &dyn Display) {
        let before = if self.has_status.take() { CLEARED } else { "" };
        self.write(&format!("{before}rec: {what}\n"));
    }

    fn write(&self, text: &str) {
        // One write per line, as the command writes there too. If standard error cannot be written,
        // that cannot be reported.
        let _ = self.out.borrow_mut().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Captured(Rc<RefCell<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn said(verbosity: Verbosity, say: impl FnOnce(&Messages)) -> String {
        let kept = Captured::default();
        say(&Messages::to(verbosity, Box::new(kept.clone())));
        String::from_utf8(kept.0.take()).unwrap()
    }

    #[test]
    fn quiet_keeps_losses() {
        assert_eq!(said(Verbosity::Quiet, |m| m.warn("w")), "rec: w\n");
        assert_eq!(said(Verbosity::Quiet, |m| m.note("n")), "");
        assert_eq!(said(Verbosity::Normal, |m| m.explain(|| "n".into())), "");
        assert_eq!(said(Verbosity::Verbose, |m| m.explain(|| "n".into())), "rec: n\n");
    }
}
