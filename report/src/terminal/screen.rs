//! Properties of the output device.

use std::io::{IsTerminal, Stdout};

use super::style::Colour;

/// Output device of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Number of columns, if it is a terminal.
    pub width: Option<usize>,
    /// `true` to print colours.
    pub colour: bool,
}

impl Screen {
    /// Returns the properties of standard output, with colours as requested.
    pub fn of(stdout: &Stdout, colour: Colour) -> Self {
        let is_terminal = stdout.is_terminal();
        let width = if is_terminal { terminal_size::terminal_size() } else { None };
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
        let colour = match colour {
            Colour::Auto => is_terminal && !is_set("NO_COLOR") && !is_dumb,
            Colour::Always => true,
            Colour::Never => false,
        };
        Self { width: width.map(|(columns, _)| usize::from(columns.0)), colour }
    }
}
