//! The columns of a table: numbers and sort keys. `-F` takes both.

/// A numeric column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// Share of the event's period.
    Overhead,
    /// Share including callees.
    Children,
    /// Share of the samples in the kernel.
    OverheadSys,
    /// Share of the samples in user code.
    OverheadUs,
    /// Share of the samples in guest kernels.
    OverheadGuestSys,
    /// Share of the samples in guest user code.
    OverheadGuestUs,
    Samples,
    Period,
    /// Mean weight.
    Weight1,
    /// Mean of the second part of the weight.
    Weight2,
    /// Mean of the third part of the weight.
    Weight3,
}

/// Names, headings and minimum widths, as in perf.
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
    /// Returns the number with this name. As in perf, case is ignored.
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|(_, have, ..)| have.eq_ignore_ascii_case(name)).map(|(number, ..)| *number)
    }

    pub fn name(self) -> &'static str {
        self.known().1
    }

    pub fn heading(self) -> &'static str {
        self.known().2
    }

    pub fn width(self) -> usize {
        self.known().3
    }

    /// Returns whether it needs extra fields in the packed keys (CPU mode, weights).
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
    Number(Number),
    /// A sort key: index among the query's columns.
    Key(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_headings_match() {
        for (number, name, heading, _) in ALL {
            assert_eq!(Number::named(name), Some(number));
            assert_eq!((number.name(), number.heading()), (name, heading));
        }
        assert_eq!(Number::named("comm"), None);
    }
}
