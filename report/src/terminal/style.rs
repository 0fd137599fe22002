//! Display options that change neither samples nor rows; properties of the output device.

use std::io::{IsTerminal, Stdout};

/// Display options of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// When percentages are coloured.
    pub colour: Colour,
    /// `true` if only rows are printed: no headings, hints or warnings.
    pub quiet: bool,
    /// `true` if the header information is printed above the output.
    pub header: bool,
    /// Column widths, left to right; 0 fits the contents.
    pub widths: Option<Vec<usize>>,
    /// Number of the event by which the rows of all events are sorted.
    pub group_sort: usize,
    /// `true` if percentages are of the samples that pass the filters.
    pub is_relative: bool,
    /// `true` if JSON omits events without samples; text and CSV never show them.
    pub skip_empty: bool,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colour {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Output device of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Number of columns, if it is a terminal.
    pub width: Option<usize>,
    /// `true` to print colours.
    pub colour: bool,
}

impl Screen {
    /// Returns the properties of standard output, with colours as requested.
    pub(crate) fn of(stdout: &Stdout, colour: Colour) -> Self {
        let is_terminal = stdout.is_terminal();
        let width = if is_terminal { terminal_size::terminal_size() } else { None };
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
        let colour = match colour {
            Colour::Auto => is_terminal && !is_refused && !is_dumb,
            Colour::Always => true,
            Colour::Never => false,
        };
        Self { width: width.map(|(columns, _)| usize::from(columns.0)), colour }
    }
}
