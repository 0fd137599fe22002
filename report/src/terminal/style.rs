//! Display options that change neither samples nor rows, under their names on the command line;
//! properties of the output device.

use std::io::{IsTerminal, Stdout};
use std::str::FromStr as _;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{ArgAction, Args, ColorChoice};

/// Display options of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Output")]
pub struct Style {
    /// Colour percentages: always, never, or auto (on a terminal, unless NO_COLOR is set)
    #[arg(
        long = "stdio-color",
        value_name = "auto|always|never",
        default_value = "auto",
        value_parser = colour
    )]
    pub colour: ColorChoice,

    /// Print only rows: no headings, hints or warnings
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub(crate) header: HeaderArgs,

    /// Print only the header information of the files, as `rep info` does (JSON: `rep info --json`)
    #[arg(long, help_heading = "In place of a report")]
    pub header_only: bool,

    /// Column widths, left to right; longer text is cut; 0: as wide as the contents
    #[arg(
        short = 'w', long = "column-widths", value_name = "WIDTH[,WIDTH…]", value_parser = widths
    )]
    pub widths: Option<Widths>,

    /// Sort the rows of --group by the column of event N; the first is 0
    #[arg(long = "group-sort-idx", value_name = "N", default_value_t = 0, requires = "group")]
    #[arg(help_heading = "Rows and columns")]
    pub group_sort: usize,

    /// Show percentages of all samples (absolute) or of those that pass the filters (relative)
    #[arg(
        long = "percentage", value_name = "PERCENTAGE", default_value = "absolute",
        action = ArgAction::Set
    )]
    #[arg(help_heading = "Rows and columns")]
    #[arg(
        value_parser = PossibleValuesParser::new(["absolute", "relative"]).map(|word| word == "relative")
    )]
    pub is_relative: bool,

    /// Omit events without samples also from JSON (text and CSV never show them)
    #[arg(long)]
    pub skip_empty: bool,
}

/// Options for the header information above the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Output")]
pub struct HeaderArgs {
    /// Print the text of `rep info` first, as comments
    #[arg(long)]
    header: bool,

    /// Same as --header (perf prints more with -I; rep always prints all)
    #[arg(short = 'I', long)]
    show_info: bool,
}

impl HeaderArgs {
    /// Returns whether the header information is printed above the output.
    pub fn is_asked(self) -> bool {
        self.header || self.show_info
    }
}

fn colour(word: &str) -> Result<ColorChoice, String> {
    ColorChoice::from_str(word).map_err(|_| format!("`{word}` is not one of always, never, auto"))
}

/// Column widths, left to right; 0 fits the contents.
type Widths = Vec<usize>;

/// Parses a list such as `20,0,8`.
fn widths(list: &str) -> Result<Widths, String> {
    /// A larger number is a typo.
    const MAX_WIDTH: usize = 4096;
    let all = list.split(',').map(|width| match width.trim().parse() {
        Ok(width) if width <= MAX_WIDTH => Ok(width),
        _ => Err(format!(
            "`{width}` is not a width; widths are comma-separated numbers up to {MAX_WIDTH}, 0 to \
             fit the contents"
        )),
    });
    all.collect()
}

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
    pub fn of(stdout: &Stdout, colour: ColorChoice) -> Self {
        let is_terminal = stdout.is_terminal();
        let width = if is_terminal { terminal_size::terminal_size() } else { None };
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
        let colour = match colour {
            ColorChoice::Auto => is_terminal && !is_refused && !is_dumb,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        Self { width: width.map(|(columns, _)| usize::from(columns.0)), colour }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_numbers() {
        assert_eq!(widths("20,0, 8"), Ok(vec![20, 0, 8]));
        assert!(["20,", "-1", "5000"].iter().all(|list| widths(list).is_err()));
    }
}
