//! Display options that change neither samples nor rows.

use std::str::FromStr;

/// Display options of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Colouring of percentages by size.
    pub colour: Colour,
    /// `true` if only rows are printed: no heading, no advice, no warnings.
    pub quiet: bool,
    /// `true` if the files' headers are printed above the table.
    pub header: bool,
    /// Column widths, left to right; 0 fits the contents.
    pub widths: Vec<usize>,
    /// Index of the group's event by which rows are sorted.
    pub group_sort: usize,
    /// `true` if percentages are of the filtered samples, not of all.
    pub relative: bool,
    /// `true` if events without samples are left out of JSON and CSV too.
    pub skip_empty: bool,
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
pub struct Widths(pub Vec<usize>);

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
