//! How an answer style: what changes neither samples nor rows.

use std::str::FromStr;

/// How a table is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether shares are coloured by heat.
    pub colour: Colour,
    /// Only the rows: no heading above, no advice below, no warnings.
    pub quiet: bool,
    /// All that the files say of their recording, above the table.
    pub header: bool,
    /// How wide the columns are, from the first on; 0 for as wide as what is in them.
    pub widths: Vec<usize>,
    /// The event of a group by which rows are sorted.
    pub group_sort: usize,
    /// Whether shares are of what filters left, not of all.
    pub relative: bool,
    /// Events without samples: whether they are left out also where programs read the answer.
    pub skip_empty: bool,
}

/// When there are colours.
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
            _ => Err(format!("`{word}` is none of always, never and auto")),
        }
    }
}

/// Widths of columns, such as `20,0,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Widths(pub Vec<usize>);

impl FromStr for Widths {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        /// A wider column is a slip of the hand.
        const WIDEST: usize = 4096;
        let read = |width: &str| match width.trim().parse() {
            Ok(width) if width <= WIDEST => Ok(width),
            _ => Err(format!("`{width}` is no width; widths are numbers up to {WIDEST} apart by commas, 0 for any")),
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
