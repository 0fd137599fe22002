//! Cells of rows, their texts, and what becomes of them.

use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use rustc_hash::FxHashMap;

/// Number of a text in [`DataTexts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextCode(u32);

/// Distinct texts.
#[derive(Default)]
pub(super) struct DataTexts {
    codes: FxHashMap<Box<str>, TextCode>,
    all: Vec<ByteArray>,
}

impl DataTexts {
    /// Returns the number of a text, adding the text if it is new.
    pub(super) fn code(&mut self, text: &str) -> TextCode {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        let code = TextCode(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push(ByteArray::from(text));
        self.codes.insert(text.into(), code);
        code
    }

    /// Returns the text with this number.
    pub(super) fn get(&self, code: TextCode) -> ByteArray {
        self.all.get(code.0 as usize).cloned().unwrap_or_default()
    }
}

/// Cell of a row.
pub(super) enum DataCell<'r> {
    Null,
    Text(TextCode),
    Bool(bool),
    Int(i32),
    Long(i64),
    Longs(&'r [i64]),
}

impl<'r> DataCell<'r> {
    /// Returns the cell of a value that may be missing.
    pub(super) fn of<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, cell)
    }

    /// Returns the cell of a number without a sign, in a column of addresses.
    pub(super) fn address(value: Option<u64>) -> Self {
        Self::of(value, |value| Self::Long(value.cast_signed()))
    }

    /// Returns the cell of a count, which is cut at the largest number with a sign.
    pub(super) fn count(value: u64) -> Self {
        Self::Long(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// Returns the cell of a small number.
    pub(super) fn int(value: Option<u32>) -> Self {
        Self::of(value, |value| Self::Int(value.cast_signed()))
    }
}

/// A column of a row group, encoded.
pub(super) struct EncodedColumn {
    pub(super) bytes: Bytes,
    pub(super) closed: ColumnCloseResult,
}
