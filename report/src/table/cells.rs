//! Cells of a table: one word each, interpreted by the kind of the column.
//!
//! A cell is a recorded number, or the number of an interned text. It becomes text only when it is printed. Cells of
//! one column are equal if and only if their texts are.

use std::borrow::Cow;
use std::cmp::Ordering;

use indexmap::IndexSet;
use recrep_format::abi::DataSrc;
use rustc_hash::FxBuildHasher;

use crate::count::Count;
use crate::query::Query;
use crate::query::sort_key::SortKey;
use crate::terminal::digits::push_address;

/// Interned texts.
#[derive(Debug, Default)]
pub struct Labels {
    texts: IndexSet<String, FxBuildHasher>,
}

impl Labels {
    /// Returns the number of a text, adding the text if it is new.
    pub fn intern(&mut self, text: String) -> u64 {
        self.texts.insert_full(text).0 as u64
    }

    /// Returns all texts in the order of their numbers.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// Returns the text with this number.
    #[must_use]
    pub fn text(&self, number: u64) -> &str {
        usize::try_from(number).ok().and_then(|number| self.texts.get_index(number)).map_or("", String::as_str)
    }
}

/// Rows of a file: each is the number of its event, then its cells.
#[derive(Debug)]
pub struct Labelled {
    /// Number of words per row.
    pub width: usize,
    /// The words of all rows.
    pub words: Vec<u64>,
}

impl Labelled {
    /// Returns the words of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u64] {
        self.words.get(row * self.width..(row + 1) * self.width).unwrap_or_default()
    }
}

/// Kind of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers of interned texts.
    Label,
    /// Addresses.
    Address,
    /// Numbers.
    Number,
    /// Numbers of one sample; printed multiplied by the samples of the row.
    PerSample,
    /// Data sources (`union perf_mem_data_src`).
    DataSrc,
    /// Nanoseconds; printed in seconds, to the microsecond.
    Micros,
    /// Nanoseconds; printed in seconds, to the nanosecond.
    Nanos,
    /// Cycles; 0 if unknown.
    Cycles,
    /// CPUs; all ones if not sampled.
    Cpu,
    /// Flags of a memory access: 1 if it has an address, 2 if its data is mapped, 4 if its code is mapped.
    Reach,
}

impl Kind {
    /// Returns the kinds of a query's columns.
    #[must_use]
    pub fn of_columns(query: &Query) -> Vec<Self> {
        query.columns.iter().map(|column| Self::of(column.key, query.nanosecs)).collect()
    }

    /// Returns the kind of a sort key's column.
    #[must_use]
    pub fn of(key: SortKey, nanosecs: bool) -> Self {
        match key {
            SortKey::Ip | SortKey::FromAddr | SortKey::ToAddr | SortKey::LineOffset => Self::Address,
            SortKey::LocalWeight | SortKey::LocalInsLat | SortKey::LocalStageCycles => Self::Number,
            SortKey::Weight | SortKey::InsLat | SortKey::StageCycles => Self::PerSample,
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

/// Formats and compares cells.
#[derive(Clone, Debug)]
pub struct Cells<'l> {
    kinds: Vec<Kind>,
    labels: &'l Labels,
}

impl<'l> Cells<'l> {
    /// Creates a formatter for the columns of a query.
    #[must_use]
    pub fn new(query: &Query, labels: &'l Labels) -> Self {
        Self { kinds: Kind::of_columns(query), labels }
    }

    /// Returns the text of a cell in this column, of a row with this count; `buffer` holds texts that must be made.
    pub fn text_in<'b>(&self, column: usize, cell: u64, count: &Count, buffer: &'b mut String) -> &'b str
    where
        'l: 'b,
    {
        match self.kinds.get(column) {
            Some(Kind::Label) => self.labels.text(cell),
            Some(Kind::Address) => {
                buffer.clear();
                push_address(buffer, cell);
                buffer
            }
            _ => {
                buffer.clear();
                buffer.push_str(&self.text(column, cell, count));
                buffer
            }
        }
    }

    /// Returns the text of a cell in this column, of a row with this count.
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

    /// Compares two rows by their texts, column by column.
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

    /// Returns a sort prefix: rows whose prefixes differ compare as the prefixes do.
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

/// Shifts a number left by its leading zero hexadecimal digits. The results compare as the numbers' texts do, except
/// that they are equal for numbers that differ only in trailing zeros; of these, the shorter text sorts first.
fn left_aligned(number: u64) -> u64 {
    number.checked_shl(number.leading_zeros() / 4 * 4).unwrap_or(0)
}

/// Formats an address like C's `%#llx`, but zero as `0x0`.
pub(crate) fn hex(address: u64) -> String {
    let mut text = String::new();
    push_address(&mut text, address);
    text
}

/// Formats a CPU as in perf: three digits, `-001` if it was not sampled.
pub(crate) fn cpu(number: u32) -> String {
    if number == u32::MAX { "-001".into() } else { format!("{number:03}") }
}

/// Formats a time in nanoseconds as seconds, to the microsecond or the nanosecond.
fn seconds(time: u64, nanosecs: bool) -> String {
    let (whole, below) = (time / 1_000_000_000, time % 1_000_000_000);
    if nanosecs { format!("{whole}.{below:09}") } else { format!("{whole}.{:06}", below / 1000) }
}

/// Formats the flags of [`Kind::Reach`] as letters.
fn reach(word: u64) -> String {
    let letters = ['a', 'd', 'c'].into_iter().zip([1, 2, 4]);
    letters.filter(|(_, bit)| word & bit != 0).map(|(letter, _)| letter).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cells_are_formatted_as_in_perf() {
        assert_eq!([1, 1234, u32::MAX].map(cpu), ["001", "1234", "-001"]);
        assert_eq!([false, true].map(|ns| seconds(12_345_678_901, ns)), ["12.345678", "12.345678901"]);
        assert_eq!([0, 3, 7].map(reach), ["", "ad", "adc"]);
    }

    proptest! {
        #[test]
        fn addresses_compare_as_their_texts(
            a in any::<u64>(),
            b in any::<u64>(),
            drop_a in 0u32..64,
            drop_b in 0u32..64,
        ) {
            let labels = Labels::default();
            let cells = Cells { kinds: vec![Kind::Address], labels: &labels };
            let count = Count::default();
            let shifted = a >> drop_a;
            for (a, b) in [(shifted, b >> drop_b), (shifted, a >> drop_b), (shifted << 8, shifted), (0, b)] {
                let (first, second) = (([a], &count), ([b], &count));
                let order = cells.compare((&first.0, first.1), (&second.0, second.1));
                prop_assert_eq!(order, hex(a).cmp(&hex(b)), "{:#x} {:#x}", a, b);
                let by_prefix = cells.prefix(&[a], &count).cmp(&cells.prefix(&[b], &count));
                prop_assert!(by_prefix.is_eq() || by_prefix == order);
            }
        }
    }
}
