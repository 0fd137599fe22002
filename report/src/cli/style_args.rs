//! Arguments of display options that change neither samples nor rows.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{ArgAction, Args};

use crate::terminal::style::{Colour, Style};

/// Display options of a table.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct StyleArgs {
    /// Colour percentages: always, never, or auto (on a terminal, unless NO_COLOR is set)
    #[arg(
        long = "stdio-color", value_name = "auto|always|never", default_value = "auto",
        value_parser = colour
    )]
    colour: Colour,

    /// Print only rows: no headings, hints or warnings
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    header: HeaderArgs,

    /// Print only the header information of the files, as `rep info` does (JSON: `rep info --json`)
    #[arg(long, help_heading = "In place of a report")]
    pub(super) header_only: bool,

    /// Column widths, left to right; longer text is cut; 0: as wide as the contents
    #[arg(
        short = 'w', long = "column-widths", value_name = "WIDTH[,WIDTH…]", value_parser = widths
    )]
    widths: Option<Widths>,

    /// Sort the rows of --group by the column of event N; the first is 0
    #[arg(
        long = "group-sort-idx",
        value_name = "N",
        default_value_t = 0,
        requires = "group",
        help_heading = "Rows and columns"
    )]
    group_sort: usize,

    /// Show percentages of all samples (absolute) or of those that pass the filters (relative)
    #[arg(
        long = "percentage", value_name = "PERCENTAGE", default_value = "absolute",
        action = ArgAction::Set, help_heading = "Rows and columns",
        value_parser = PossibleValuesParser::new(["absolute", "relative"])
            .map(|word| word == "relative")
    )]
    is_relative: bool,

    /// Omit events without samples also from JSON (text and CSV never show them)
    #[arg(long)]
    skip_empty: bool,
}

impl StyleArgs {
    pub(super) fn style(self) -> Style {
        Style {
            colour: self.colour,
            quiet: self.quiet,
            header: self.header.is_asked(),
            widths: self.widths,
            group_sort: self.group_sort,
            is_relative: self.is_relative,
            skip_empty: self.skip_empty,
        }
    }
}

/// Options for the header information above the output.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct HeaderArgs {
    /// Print the text of `rep info` first, as comments
    #[arg(long)]
    header: bool,

    /// Same as --header (perf prints more with -I; rep always prints all)
    #[arg(short = 'I', long)]
    show_info: bool,
}

impl HeaderArgs {
    /// Returns whether the header information is printed above the output.
    pub(crate) fn is_asked(self) -> bool {
        self.header || self.show_info
    }
}

fn colour(word: &str) -> Result<Colour, String> {
    match word {
        "auto" => Ok(Colour::Auto),
        "always" => Ok(Colour::Always),
        "never" => Ok(Colour::Never),
        _ => Err(format!("`{word}` is not one of always, never, auto")),
    }
}

/// Column widths. To clap, a `Vec` by its own name is an option that may be repeated.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_numbers() {
        assert_eq!(widths("20,0, 8"), Ok(vec![20, 0, 8]));
        assert!(["20,", "-1", "5000"].iter().all(|list| widths(list).is_err()));
    }
}
