//! Cells of a table: one word each, interpreted by the kind of the column.
//!
//! A cell is a recorded number, or the number of a label. It becomes text only when it is printed.
//! Cells of one column are equal if and only if their texts are, but for those of functions that
//! read alike.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use rayon::prelude::*;
use recrep_format::abi::DataSrc;

use crate::count::Count;
use crate::profile::names::{FileOffset, FunctionId, ProfileNames, Subject};
use crate::query::word_text::cpu;
use crate::query::{Kind, Query};
use crate::symbols::FunctionPlace;
use crate::terminal::digits::address;

/// Formats and compares cells.
#[derive(Clone, Debug)]
pub(crate) struct Cells<'l> {
    kinds: Vec<Kind>,
    names: &'l ProfileNames,
    /// Of tables, texts of the labels in their rows.
    texts: Arc<LabelTexts<'l>>,
}

/// Texts of labels by number; those that are not used may be left out.
#[derive(Debug, Default)]
pub(super) struct LabelTexts<'l> {
    texts: Vec<Option<Cow<'l, str>>>,
    /// Rank of each in sorted order; 0 if left out. Equal texts have equal ranks.
    ranks: Vec<u32>,
}

impl<'l> LabelTexts<'l> {
    /// Makes the texts of all labels, or only of those that are `used`, by number.
    pub(super) fn new(names: &'l ProfileNames, used: Option<&[bool]>) -> Self {
        let is_used = |number: usize| used.is_none_or(|used| used.get(number) == Some(&true));
        let text = |number: usize| is_used(number).then(|| names.label_text(number as u64));
        let texts: Vec<Option<Cow<'l, str>>> =
            (0..names.labels()).into_par_iter().map(text).collect();
        let ranks = ranks(&texts);
        Self { texts, ranks }
    }

    pub(super) fn get(&self, label: usize) -> Option<&str> {
        self.texts.get(label)?.as_deref()
    }
}

/// Returns the ranks of texts in sorted order.
fn ranks(texts: &[Option<Cow<'_, str>>]) -> Vec<u32> {
    let numbered = texts.iter().zip(0u32..);
    let mut order: Vec<(u128, u32)> = numbered
        .filter_map(|(text, number)| Some((first_bytes(text.as_deref()?), number)))
        .collect();
    let text = |number: u32| texts.get(number as usize).and_then(Option::as_deref);
    order.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| text(a.1).cmp(&text(b.1))));
    let mut ranks = vec![0; texts.len()];
    let (mut rank, mut before) = (0, None);
    for (first, number) in order {
        let is_equal = before.is_some_and(|(other, of)| other == first && text(of) == text(number));
        rank += u32::from(before.is_some() && !is_equal);
        before = Some((first, number));
        if let Some(slot) = ranks.get_mut(number as usize) {
            *slot = rank;
        }
    }
    ranks
}

impl<'l> Cells<'l> {
    pub(crate) fn new(query: &Query, names: &'l ProfileNames) -> Self {
        Self { kinds: query.kinds(), names, texts: Arc::default() }
    }

    pub(super) fn set_texts(&mut self, texts: &Arc<LabelTexts<'l>>) {
        self.texts = Arc::clone(texts);
    }

    /// Iterates over the numbers of the labels in a row.
    pub(super) fn labels_of(&self, cells: &[u64]) -> impl Iterator<Item = usize> {
        cells.iter().enumerate().filter_map(|(column, cell)| self.label(column, *cell))
    }

    /// Returns the number of the label in this column; `None` if its cells are no labels.
    pub(super) fn label(&self, column: usize, cell: u64) -> Option<usize> {
        (self.kinds.get(column) == Some(&Kind::Label)).then(|| usize::try_from(cell).ok()).flatten()
    }

    /// Returns the text of a label, if the table has it.
    pub(crate) fn label_text(&self, label: usize) -> Option<&str> {
        self.texts.get(label)
    }

    /// Returns the function in a cell of this column.
    pub(crate) fn function(&self, column: usize, cell: u64) -> Option<FunctionId> {
        self.names.label_function(self.label(column, cell)? as u64)
    }

    /// Returns the name of the function in a cell of this column as its file spells it, if it is
    /// shown otherwise.
    pub(crate) fn mangled(&self, column: usize, cell: u64) -> Option<String> {
        self.names.mangled(self.function(column, cell)?)
    }

    /// Returns the full name of the function in a cell of this column, if more than its short name
    /// is known.
    pub(crate) fn full_name(&self, column: usize, cell: u64) -> Option<Cow<'l, str>> {
        self.names.full_name(self.function(column, cell)?)
    }

    /// Returns whether the function in a cell of this column has no name.
    pub(crate) fn is_inferred(&self, column: usize, cell: u64) -> bool {
        self.function(column, cell).is_some_and(|function| self.names.is_inferred(function))
    }

    fn subject(&self, column: usize, cell: u64) -> Option<&'l Subject> {
        self.names.label_subject(self.label(column, cell)? as u64)
    }

    /// Returns the number of the thread or process in a cell of this column.
    pub(crate) fn task(&self, column: usize, cell: u64) -> Option<i32> {
        match self.subject(column, cell)? {
            Subject::Task(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the word of a key that the text of a cell in this column was made of.
    pub(crate) fn word(&self, column: usize, cell: u64) -> Option<u64> {
        match self.subject(column, cell)? {
            Subject::Word(word) => Some(*word),
            _ => None,
        }
    }

    /// Returns the address without a function in a cell of this column, in its module's terms.
    pub(crate) fn address(&self, column: usize, cell: u64) -> Option<u64> {
        match self.subject(column, cell)? {
            Subject::Address(address) => Some(*address),
            _ => None,
        }
    }

    /// Returns the offset in a file in a cell of this column.
    pub(crate) fn file_offset(&self, column: usize, cell: u64) -> Option<FileOffset> {
        match self.subject(column, cell)? {
            Subject::FileOffset(offset) => Some(*offset),
            _ => None,
        }
    }

    /// Returns the function by its place in a cell of this column.
    pub(crate) fn function_place(&self, column: usize, cell: u64) -> Option<&'l FunctionPlace> {
        match self.subject(column, cell)? {
            Subject::FunctionPlace(function) => Some(function),
            _ => None,
        }
    }

    /// Returns the text of a cell in this column, of a row with this count.
    pub(crate) fn text(&self, column: usize, cell: u64, count: &Count) -> Cow<'_, str> {
        let text = match self.kinds.get(column) {
            Some(Kind::Label) => {
                let known = self.label(column, cell).and_then(|label| self.texts.get(label));
                return known.map_or_else(|| self.names.label_text(cell), Cow::Borrowed);
            }
            Some(Kind::Address) => address(cell),
            Some(Kind::Cycles) if cell == 0 => "-".into(),
            Some(Kind::Number | Kind::Cycles) => cell.to_string(),
            Some(Kind::PerSample) => cell.saturating_mul(count.samples).to_string(),
            Some(Kind::DataSrc) => format!("{cell:x} {}", DataSrc(cell)),
            Some(Kind::Micros) => seconds(cell, false),
            Some(Kind::Nanos) => seconds(cell, true),
            Some(Kind::Cpu) => cpu(u32::try_from(cell).unwrap_or(u32::MAX)),
            Some(Kind::Reach) => reach(cell),
            None => return "".into(),
        };
        text.into()
    }

    /// Compares two rows by their texts, column by column.
    pub(super) fn compare(
        &self,
        a: &[u64],
        a_count: &Count,
        b: &[u64],
        b_count: &Count,
    ) -> Ordering {
        for (column, (kind, (a, b))) in self.kinds.iter().zip(a.iter().zip(b)).enumerate() {
            let order = match kind {
                Kind::Label | Kind::Address | Kind::Number if a == b => Ordering::Equal,
                Kind::Label => self.rank(*a).cmp(&self.rank(*b)),
                Kind::Address => address_order(*a).cmp(&address_order(*b)),
                Kind::Number => itoa::Buffer::new().format(*a).cmp(itoa::Buffer::new().format(*b)),
                _ => self.text(column, *a, a_count).cmp(&self.text(column, *b, b_count)),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Compares two rows with equal texts by the functions that they name.
    pub(super) fn compare_functions(&self, a: &[u64], b: &[u64]) -> Ordering {
        let pairs = self
            .kinds
            .iter()
            .zip(a.iter().zip(b))
            .filter(|(kind, (a, b))| **kind == Kind::Label && a != b);
        pairs
            .map(|(_, (a, b))| self.names.compare_labels(*a, *b))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Returns a sort prefix: rows whose prefixes differ compare as the prefixes do.
    pub(super) fn prefix(&self, cells: &[u64], count: &Count) -> [u64; 2] {
        let rank_bits = usize::BITS - self.texts.ranks.len().leading_zeros();
        let (mut prefix, mut free) = (0u128, u128::BITS);
        for (column, (kind, cell)) in self.kinds.iter().zip(cells).enumerate() {
            // A column decides only if the prefix has all of the ones before.
            let (value, bits, is_whole) = match kind {
                Kind::Label => (self.rank(*cell).into(), rank_bits, true),
                Kind::Address => (address_order(*cell), 68, true),
                Kind::Number => text_order(itoa::Buffer::new().format(*cell)),
                _ => text_order(&self.text(column, *cell, count)),
            };
            let taken = bits.min(free);
            prefix = prefix.checked_shl(taken).unwrap_or(0) | value >> (bits - taken);
            free -= taken;
            if free == 0 || !is_whole {
                break;
            }
        }
        let [high, low] = [64, 0].map(|shift| prefix.checked_shl(free).unwrap_or(0) >> shift);
        #[allow(clippy::cast_possible_truncation, reason = "these are the two halves")]
        [high as u64, low as u64]
    }

    fn rank(&self, label: u64) -> u32 {
        let label = usize::try_from(label).ok();
        label.and_then(|label| self.texts.ranks.get(label)).copied().unwrap_or(0)
    }
}

/// Returns the first 16 bytes of a text, and zeros after its end, as a number by which texts are
/// sorted.
fn first_bytes(text: &str) -> u128 {
    let mut first = [0; 16];
    first.iter_mut().zip(text.bytes()).for_each(|(into, byte)| *into = byte);
    u128::from_be_bytes(first)
}

/// Returns the first eight bytes of a text as a number, the size of that in bits, and whether no
/// other text begins so.
fn text_order(text: &str) -> (u128, u32, bool) {
    (first_bytes(text) >> 64, u64::BITS, text.len() < 8)
}

/// Returns a number of 68 bits by which addresses compare as their texts do: the hexadecimal
/// digits, left-aligned, then their number, since of texts that differ only in trailing zeros the
/// shorter one sorts first.
fn address_order(address: u64) -> u128 {
    let zeros = (address | 1).leading_zeros() / 4;
    u128::from(address << (4 * zeros)) << 4 | u128::from(15 - zeros)
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
        assert_eq!(
            [false, true].map(|ns| seconds(12_345_678_901, ns)),
            ["12.345678", "12.345678901"]
        );
        assert_eq!([0, 3, 7].map(reach), ["", "ad", "adc"]);
    }

    #[test]
    fn a_number_of_which_another_is_the_beginning_sorts_first() {
        let mut names = ProfileNames::default();
        let [a, b] = ["a", "b"].map(|text| names.add_text(text));
        let texts = LabelTexts::new(&names, None).into();
        let cells = Cells { kinds: vec![Kind::Number, Kind::Label], names: &names, texts };
        let count = Count::default();
        for (short, long) in [([12_345_678, b], [123_456_780, a]), ([1, b], [10, a])] {
            assert!(cells.compare(&short, &count, &long, &count).is_lt());
            assert!(cells.prefix(&short, &count) <= cells.prefix(&long, &count));
        }
    }

    proptest! {
        #[test]
        fn rows_compare_as_their_texts(
            rows in prop::collection::vec((0u64..6, any::<u64>(), 0u32..64, any::<u64>(), 0u32..64), 2..12),
            kinds in prop::sample::subsequence(vec![0usize, 1, 2, 3], 1..4).prop_shuffle(),
        ) {
            let mut names = ProfileNames::default();
            for text in ["b", "a", "ab", "", "long text that differs at its end, 1", "long text \
                that differs at its end, 2"] {
                names.add_text(text);
            }
            let label_texts = LabelTexts::new(&names, None).into();
            let of = |kind: usize| [Kind::Label, Kind::Address, Kind::Number, Kind::PerSample][kind];
            let cells = Cells { kinds: kinds.iter().map(|kind| of(*kind)).collect(), names: &names, texts: label_texts };
            let count = Count { samples: 3, period: 1 };
            let rows: Vec<Vec<u64>> = rows
                .iter()
                .map(|(label, a, by, b, down)| {
                    let all = [*label, a >> by, b >> down, (b >> down) % 1000];
                    kinds.iter().map(|kind| all[*kind]).collect()
                })
                .collect();
            let texts = |row: &[u64]| -> Vec<String> {
                row.iter().enumerate().map(|(column, cell)| cells.text(column, *cell, &count).into_owned()).collect()
            };
            for (a, b) in rows.iter().flat_map(|a| rows.iter().map(move |b| (a, b))) {
                let order = texts(a).cmp(&texts(b));
                prop_assert_eq!(cells.compare(a, &count, b, &count), order);
                let by_prefix = cells.prefix(a, &count).cmp(&cells.prefix(b, &count));
                prop_assert!(by_prefix.is_eq() || by_prefix == order, "{:?} {:?}", texts(a), texts(b));
            }
        }

        #[test]
        fn addresses_compare_as_their_texts(a in any::<u64>(), b in any::<u64>(), drop_a in 0u32..64, drop_b in 0u32..64) {
            let (shifted, text) = (a >> drop_a, |address: u64| format!("{address:#x}"));
            for (a, b) in [(shifted, b >> drop_b), (shifted, a >> drop_b), (shifted << 8, shifted), (0, b)] {
                prop_assert_eq!(address_order(a).cmp(&address_order(b)), text(a).cmp(&text(b)), "{:#x} {:#x}", a, b);
            }
        }
    }
}
