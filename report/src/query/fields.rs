//! The columns of a table: numbers of what was metrics, and sort keys. `-F` names both.

/// A column that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// The share of the period.
    Overhead,
    /// The same, with what was sampled in callees.
    Children,
    /// The same, of what was sampled in the kernel.
    OverheadSys,
    /// In user code.
    OverheadUs,
    /// In a guest's kernel.
    OverheadGuestSys,
    /// In a guest's user code.
    OverheadGuestUs,
    /// How many samples.
    Samples,
    /// The sum of their periods.
    Period,
    /// The mean weight.
    Weight1,
    /// The mean of its second part.
    Weight2,
    /// The mean of its third part.
    Weight3,
}

/// Names, headings, widths; perf's.
const ALL: [(Number, &str, &str, usize); 11] = [
    (Number::Overhead, "overhead", "Overhead", 8),
    (Number::Children, "overhead_children", "Children", 8),
    (Number::OverheadSys, "overhead_sys", "sys", 8),
    (Number::OverheadUs, "overhead_us", "usr", 8),
    (Number::OverheadGuestSys, "overhead_guest_sys", "guest sys", 9),
    (Number::OverheadGuestUs, "overhead_guest_us", "guest usr", 9),
    (Number::Samples, "sample", "Samples", 12),
    (Number::Period, "period", "Period", 12),
    (Number::Weight1, "weight1", "Weight1", 8),
    (Number::Weight2, "weight2", "Weight2", 8),
    (Number::Weight3, "weight3", "Weight3", 8),
];

impl Number {
    /// The number of this name; as in perf, case does not count.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|(_, have, ..)| have.eq_ignore_ascii_case(name)).map(|(number, ..)| *number)
    }

    /// All names, for a person to choose from.
    #[must_use]
    pub fn list() -> String {
        ALL.map(|(_, name, ..)| name).join(", ")
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.known().1
    }

    /// The heading of its column.
    #[must_use]
    pub fn heading(self) -> &'static str {
        self.known().2
    }

    /// How wide its column is at least.
    #[must_use]
    pub fn width(self) -> usize {
        self.known().3
    }

    /// Whether the key must have words for it that it has not otherwise.
    #[must_use]
    pub fn is_part(self) -> bool {
        !matches!(self, Self::Overhead | Self::Children | Self::Samples | Self::Period)
    }

    fn known(self) -> (Self, &'static str, &'static str, usize) {
        ALL.into_iter().find(|(number, ..)| *number == self).unwrap_or((self, "", "", 0))
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableColumn {
    /// A number.
    Number(Number),
    /// A sort key: a place among the query's columns.
    Key(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_know_themselves() {
        for (number, name, heading, _) in ALL {
            assert_eq!(Number::named(name), Some(number));
            assert_eq!((number.name(), number.heading()), (name, heading));
        }
        assert_eq!(Number::named("comm"), None);
    }
}
