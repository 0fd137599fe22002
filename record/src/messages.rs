//! What rec says on standard error: one line each, after `rec: `.
//!
//! Three levels: `-q` leaves only errors and losses, `-v` adds how the plan came about.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::Write;

use crate::tally::Counts;

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// `-q`: errors and losses.
    Quiet,
    /// Also what was changed from what was asked, and the last line.
    #[default]
    Normal,
    /// `-v`: also the plan.
    Verbose,
}

/// Where messages go.
pub struct Messages {
    verbosity: Verbosity,
    out: RefCell<Box<dyn Write>>,
}

impl Messages {
    /// Messages to standard error.
    #[must_use]
    pub fn stderr(verbosity: Verbosity) -> Self {
        Self::to(verbosity, Box::new(std::io::stderr()))
    }

    /// Messages to any writer.
    #[must_use]
    pub fn to(verbosity: Verbosity, out: Box<dyn Write>) -> Self {
        Self { verbosity, out: RefCell::new(out) }
    }

    /// Something failed: always said.
    pub fn error(&self, what: impl Display) {
        self.line(&format_args!("{what}"));
    }

    /// Something the user must know about the result: always said.
    pub fn warn(&self, what: impl Display) {
        self.line(&format_args!("{what}"));
    }

    /// Something was done otherwise than asked, or is done.
    pub fn note(&self, what: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            self.line(&format_args!("{what}"));
        }
    }

    /// How it is done.
    pub fn explain(&self, what: impl FnOnce() -> String) {
        if self.verbosity >= Verbosity::Verbose {
            self.line(&what());
        }
    }

    /// The last line: what is in the file, and what is not. `-q` keeps it only where something was lost.
    pub fn summary(&self, counts: &Counts, bytes: u64, name: &str) {
        let line = format!(
            "{}, {}, {}, {}: {name}",
            count(counts.samples, "sample"),
            count(bytes, "byte"),
            count(counts.lost_events, "lost event"),
            count(counts.lost_samples, "lost sample"),
        );
        if counts.lost_events + counts.lost_samples > 0 { self.warn(line) } else { self.note(line) }
    }

    fn line(&self, what: &dyn Display) {
        // In one piece, as the command writes there too. Nothing can be said about a standard error that takes nothing.
        let _ = self.out.borrow_mut().write_all(format!("rec: {what}\n").as_bytes());
    }
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Kept(Rc<RefCell<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn said(verbosity: Verbosity, say: impl FnOnce(&Messages)) -> String {
        let kept = Kept::default();
        say(&Messages::to(verbosity, Box::new(kept.clone())));
        String::from_utf8(kept.0.take()).unwrap()
    }

    #[test]
    fn the_last_line_tells_everything() {
        let tally = Counts { samples: 12, lost_events: 1, lost_samples: 3, ..Counts::default() };
        let all = said(Verbosity::Normal, |m| m.summary(&tally, 4096, "out.data"));
        assert_eq!(all, "rec: 12 samples, 4096 bytes, 1 lost event, 3 lost samples: out.data\n");
    }

    #[test]
    fn quiet_keeps_losses() {
        let clean = Counts { samples: 12, ..Counts::default() };
        assert_eq!(said(Verbosity::Quiet, |m| m.summary(&clean, 1, "x")), "");
        let lossy = Counts { lost_samples: 1, ..Counts::default() };
        assert!(said(Verbosity::Quiet, |m| m.summary(&lossy, 1, "x")).contains("1 lost sample: x"));
        assert_eq!(said(Verbosity::Quiet, |m| m.note("n")), "");
        assert_eq!(said(Verbosity::Normal, |m| m.explain(|| "n".into())), "");
        assert_eq!(said(Verbosity::Verbose, |m| m.explain(|| "n".into())), "rec: n\n");
    }
}
