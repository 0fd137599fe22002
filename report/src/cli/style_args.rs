//! Options for the appearance of the output.

use clap::{ArgAction, Args, ValueEnum};

use crate::terminal::style::{Colour, Style, Widths};

/// Total that percentages refer to.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PercentageArg {
    #[default]
    Absolute,
    Relative,
}

/// Options for the header information above the output.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct HeaderArgs {
    /// Print what `rep info` prints above the output, as comments
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

/// Options for the appearance of the output.
#[derive(Clone, Debug, Default, Args)]
pub struct StyleArgs {
    /// Colour percentages: always, never, or auto (on a terminal, unless NO_COLOR is set)
    #[arg(long, value_name = "auto|always|never", default_value = "auto")]
    stdio_color: Colour,

    /// Print only rows: no headings, hints or warnings
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    header: HeaderArgs,

    /// Print only the header information of the files, as `rep info` does; always as text (JSON: `rep info --json`)
    #[arg(long)]
    pub(super) header_only: bool,

    /// Column widths, left to right; longer text is cut; 0: as wide as the contents
    #[arg(short = 'w', long, value_name = "WIDTH[,WIDTH…]")]
    column_widths: Option<Widths>,

    /// Sort the rows of --group by the column of event N; the first is 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "group")]
    group_sort_idx: usize,

    /// Show percentages of all samples (absolute) or of those that pass the filters (relative)
    #[arg(long, value_enum, default_value = "absolute")]
    percentage: PercentageArg,

    /// Leave events without samples out of JSON and CSV too (text never shows them)
    #[arg(long, action = ArgAction::SetTrue)]
    skip_empty: bool,
}

impl StyleArgs {
    /// Returns the appearance that these options describe.
    pub fn style(self) -> Style {
        Style {
            colour: self.stdio_color,
            quiet: self.quiet,
            header: self.header.is_asked(),
            widths: self.column_widths.unwrap_or_default().0,
            group_sort: self.group_sort_idx,
            relative: matches!(self.percentage, PercentageArg::Relative),
            skip_empty: self.skip_empty,
        }
    }
}
