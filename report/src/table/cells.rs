//! The cells of a table: one word each, of the kind of their column.
//!
//! A cell is a number that was recorded, or the number of a text. It becomes text only where it is printed; cells of one column are
//! equal if, and only if, their texts are.

use std::borrow::Cow;
use std::cmp::Ordering;

use indexmap::IndexSet;
use recrep_format::abi::DataSrc;

use crate::count::Count;
use crate::query::Query;
use crate::query::sort_key::SortKey;

/// Texts, each once.
#[derive(Debug, Default)]
pub struct Labels {
    texts: IndexSet<String>,
}

impl Labels {
    /// The number of this text.
    pub fn intern(&mut self, text: String) -> u64 {
        self.texts.insert_full(text).0 as u64
    }

    /// The text of a number.
    #[must_use]
    pub fn text(&self, number: u64) -> &str {
        usize::try_from(number).ok().and_then(|number| self.texts.get_index(number)).map_or("", String::as_str)
    }
}

/// The rows of a file: the number of the event, then the cells.
#[derive(Debug)]
pub struct Labelled {
    width: usize,
    words: Vec<u64>,
}

impl Labelled {
    /// Rows of so many words each.
    #[must_use]
    pub fn new(width: usize, words: Vec<u64>) -> Self {
        Self { width, words }
    }

    /// How many words a row has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// A row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u64] {
        self.words.get(row * self.width..(row + 1) * self.width).unwrap_or_default()
    }

    /// Puts these numbers in the place of the events'.
    pub fn renumber_events(&mut self, numbers: &[usize]) {
        for event in self.words.iter_mut().step_by(self.width) {
            let number = usize::try_from(*event).ok().and_then(|event| numbers.get(event));
            *event = number.map_or(u64::MAX, |number| *number as u64);
        }
    }
}

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers of texts.
    Label,
    /// Addresses.
    Address,
    /// Numbers.
    Number,
    /// Numbers that each sample has; what is shown is what all samples of the row have together.
    PerSample,
    /// Where data came from (`union perf_mem_data_src`).
    DataSrc,
    /// Nanoseconds; shown in seconds, to the microsecond.
    Micros,
    /// The same, to the nanosecond.
    Nanos,
    /// Cycles; 0 where they are not known.
    Cycles,
    /// CPUs; all ones where it was not sampled.
    Cpu,
    /// What is known of a memory access's addresses: 1 that there is one, 2 that its data is mapped, 4 that its code is.
    Reach,
}

impl Kind {
    /// The kind of a sort key's column.
    #[must_use]
    pub fn of(key: SortKey, nanosecs: bool) -> Self {
        match key {
            SortKey::Ip | SortKey::FromAddr | SortKey::ToAddr | SortKey::LineOffset => Self::Address,
            SortKey::LocalWeight | SortKey::LocalInsLat | SortKey::LocalStage => Self::Number,
            SortKey::Weight | SortKey::InsLat | SortKey::Session => Self::PerSample,
            SortKey::DataSrc => Self::DataSrc,
            SortKey::Time if nanosecs => Self::Nanos,
            SortKey::Time => Self::Micros,
            SortKey::Cycles => Self::Cycles,
            SortKey::Cpu => Self::Cpu,
            SortKey::Reach => Self::Reach,
            _ => Self::Label,
        }
    }
}

/// What is needed to make text of cells.
#[derive(Clone, Debug)]
pub struct Cells<'l> {
    kinds: Vec<Kind>,
    labels: &'l Labels,
}

impl<'l> Cells<'l> {
    /// The columns of a query.
    #[must_use]
    pub fn new(query: &Query, labels: &'l Labels) -> Self {
        Self { kinds: query.columns.iter().map(|column| Kind::of(column.key, query.nanosecs)).collect(), labels }
    }

    /// The text of a cell in this column, of a row with this count.
    #[must_use]
    pub fn text(&self, column: usize, cell: u64, count: &Count) -> Cow<'l, str> {
        let Some(kind) = self.kinds.get(column) else { return "".into() };
        match kind {
            Kind::Label => self.labels.text(cell).into(),
            Kind::Address => hex(cell).into(),
            Kind::Cycles if cell == 0 => "-".into(),
            Kind::Number | Kind::Cycles => cell.to_string().into(),
            Kind::PerSample => cell.saturating_mul(count.samples).to_string().into(),
            Kind::DataSrc => format!("{cell:x} {}", DataSrc(cell)).into(),
            Kind::Micros => seconds(cell, false).into(),
            Kind::Nanos => seconds(cell, true).into(),
            Kind::Cpu => cpu(u32::try_from(cell).unwrap_or(u32::MAX)).into(),
            Kind::Reach => reach(cell).into(),
        }
    }

    /// How the texts of two rows compare, column by column.
    #[must_use]
    pub fn compare(&self, (a, a_count): (&[u64], &Count), (b, b_count): (&[u64], &Count)) -> Ordering {
        let pairs = self.kinds.iter().zip(a.iter().zip(b)).enumerate();
        let compare = |(column, (kind, (a, b))): (usize, (&Kind, (&u64, &u64)))| match kind {
            Kind::Label | Kind::Address | Kind::Number if a == b => Ordering::Equal,
            Kind::Address => left_aligned(*a).cmp(&left_aligned(*b)).then(a.cmp(b)),
            _ => self.text(column, *a, a_count).cmp(&self.text(column, *b, b_count)),
        };
        pairs.map(compare).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The beginning of a row's text: rows of which this differs compare as it does.
    #[must_use]
    pub fn prefix(&self, cells: &[u64], count: &Count) -> u64 {
        match (self.kinds.first(), cells.first()) {
            (Some(Kind::Address), Some(cell)) => left_aligned(*cell),
            (Some(_), Some(cell)) => {
                let mut first = [0; 8];
                let text = self.text(0, *cell, count);
                first.iter_mut().zip(text.bytes()).for_each(|(into, byte)| *into = byte);
                u64::from_be_bytes(first)
            }
            _ => 0,
        }
    }
}

/// A number whose hexadecimal digits begin at the left: as texts without zeros before them compare, but that of two with the same
/// digits and more zeros behind them, the shorter goes first.
fn left_aligned(number: u64) -> u64 {
    number.checked_shl(number.leading_zeros() / 4 * 4).unwrap_or(0)
}

/// As C's `%#llx`.
pub(crate) fn hex(address: u64) -> String {
    format!("{address:#x}")
}

/// A CPU as the column has it: three digits; where none was sampled, perf's -1.
pub(crate) fn cpu(number: u32) -> String {
    if number == u32::MAX { "-001".into() } else { format!("{number:03}") }
}

/// Seconds of the perf clock, to the microsecond or the nanosecond.
fn seconds(time: u64, nanosecs: bool) -> String {
    let (whole, below) = (time / 1_000_000_000, time % 1_000_000_000);
    if nanosecs { format!("{whole}.{below:09}") } else { format!("{whole}.{:06}", below / 1000) }
}

/// What is known of a memory access's addresses, as letters.
fn reach(word: u64) -> String {
    let letters = ['a', 'd', 'c'].into_iter().zip([1, 2, 4]);
    letters.filter(|(_, bit)| word & bit != 0).map(|(letter, _)| letter).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cells_read_as_in_perfs_columns() {
        assert_eq!([1, 1234, u32::MAX].map(cpu), ["001", "1234", "-001"]);
        assert_eq!([false, true].map(|ns| seconds(12_345_678_901, ns)), ["12.345678", "12.345678901"]);
        assert_eq!([0, 3, 7].map(reach), ["", "ad", "adc"]);
    }

    proptest! {
        #[test]
        fn addresses_compare_as_their_texts(a in any::<u64>(), b in any::<u64>(), drop_a in 0u32..64, drop_b in 0u32..64) {
            let labels = Labels::default();
            let cells = Cells { kinds: vec![Kind::Address], labels: &labels };
            let count = Count::default();
            for (a, b) in [(a >> drop_a, b >> drop_b), (a >> drop_a, a >> drop_b), (a >> drop_a << 8, a >> drop_a), (0, b)] {
                let (first, second) = (([a], &count), ([b], &count));
                let order = cells.compare((&first.0, first.1), (&second.0, second.1));
                prop_assert_eq!(order, hex(a).cmp(&hex(b)), "{:#x} {:#x}", a, b);
                let by_prefix = cells.prefix(&[a], &count).cmp(&cells.prefix(&[b], &count));
                prop_assert!(by_prefix.is_eq() || by_prefix == order);
            }
        }
    }
}
