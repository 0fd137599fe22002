//! The options that say how an answer style.

use clap::{ArgAction, Args, ValueEnum};

use crate::terminal::style::{Colour, Style, Widths};

/// What shares are of.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PercentageArg {
    #[default]
    Absolute,
    Relative,
}

/// How an answer style.
#[derive(Clone, Debug, Default, Args)]
pub struct StyleArgs {
    /// Colour shares by heat: always, never, or on a terminal unless NO_COLOR is set
    #[arg(long, value_name = "auto|always|never", default_value = "auto")]
    stdio_color: Colour,

    /// Only the rows: no heading, no advice, no warnings
    #[arg(short, long)]
    quiet: bool,

    /// Show what the files say of their recording above the table
    #[arg(long)]
    header: bool,

    /// Show only what the files say of their recording: what `rep info` prints
    #[arg(long)]
    header_only: bool,

    /// The same as --header
    #[arg(short = 'I', long)]
    show_info: bool,

    /// Make the columns so wide, from the first on, cutting what is longer; 0 for as wide as what is in them
    #[arg(short = 'w', long, value_name = "WIDTH[,WIDTH…]")]
    column_widths: Option<Widths>,

    /// Sort the rows of --group by this event, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "group")]
    group_sort_idx: usize,

    /// Shares of all samples, or of those that filters left
    #[arg(long, value_enum, default_value = "absolute")]
    percentage: PercentageArg,

    /// Leave events without samples out of JSON and CSV, too
    #[arg(long, action = ArgAction::SetTrue)]
    skip_empty: bool,
}

impl StyleArgs {
    /// Whether only the header is asked for.
    #[must_use]
    pub fn is_header_only(&self) -> bool {
        self.header_only
    }

    /// What they mean.
    #[must_use]
    pub fn style(self) -> Style {
        Style {
            colour: self.stdio_color,
            quiet: self.quiet,
            header: self.header || self.show_info,
            widths: self.column_widths.unwrap_or_default().0,
            group_sort: self.group_sort_idx,
            relative: matches!(self.percentage, PercentageArg::Relative),
            skip_empty: self.skip_empty,
        }
    }
}
