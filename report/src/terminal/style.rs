//! Display options that change neither samples nor rows, under their names on the command line.

use std::str::FromStr;

use clap::{Args, ValueEnum};

/// Display options of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct Style {
    /// Colour percentages: always, never, or auto (on a terminal, unless NO_COLOR is set)
    #[arg(long = "stdio-color", value_name = "auto|always|never", default_value = "auto")]
    pub colour: Colour,

    /// Print only rows: no headings, hints or warnings
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    header: HeaderArgs,

    /// Print only the header information of the files, as `rep info` does; always as text (JSON: `rep info --json`)
    #[arg(long)]
    pub header_only: bool,

    /// Column widths, left to right; longer text is cut; 0: as wide as the contents
    #[arg(short = 'w', long = "column-widths", value_name = "WIDTH[,WIDTH…]")]
    widths: Option<Widths>,

    /// Sort the rows of --group by the column of event N; the first is 0
    #[arg(long = "group-sort-idx", value_name = "N", default_value_t = 0, requires = "group")]
    pub group_sort: usize,

    /// Show percentages of all samples (absolute) or of those that pass the filters (relative)
    #[arg(long, value_enum, default_value = "absolute")]
    percentage: Percentage,

    /// Omit events without samples from JSON and CSV too (text never shows them)
    #[arg(long)]
    pub skip_empty: bool,
}

/// Options for the header information above the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
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

/// Total that percentages refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Percentage {
    #[default]
    Absolute,
    Relative,
}

impl Style {
    /// Returns whether the files' headers are printed above the table.
    pub fn has_header(&self) -> bool {
        self.header.is_asked()
    }

    /// Returns the requested column widths, left to right; 0 fits the contents.
    pub fn widths(&self) -> &[usize] {
        self.widths.as_ref().map_or(&[], |widths| &widths.0)
    }

    /// Returns whether percentages are of the filtered samples, not of all.
    pub fn is_relative(&self) -> bool {
        self.percentage == Percentage::Relative
    }
}

/// The condition for colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl FromStr for Colour {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(format!("`{word}` is not one of always, never, auto")),
        }
    }
}

/// Column widths, such as `20,0,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Widths(Vec<usize>);

impl FromStr for Widths {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        /// A larger number is a typo.
        const MAX_WIDTH: usize = 4096;
        let read = |width: &str| match width.trim().parse() {
            Ok(width) if width <= MAX_WIDTH => Ok(width),
            _ => Err(format!(
                "`{width}` is not a width; widths are comma-separated numbers up to {MAX_WIDTH}, 0 to fit the contents"
            )),
        };
        list.split(',').map(read).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_numbers() {
        assert_eq!("20,0, 8".parse(), Ok(Widths(vec![20, 0, 8])));
        assert!(["20,", "-1", "5000"].iter().all(|list| list.parse::<Widths>().is_err()));
    }
}
