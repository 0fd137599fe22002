//! Row groups: cells by column, and their encoding, which cores do beside each other.

use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::cells::{DataCell, DataTexts, EncodedColumn, TextCode};
use super::columns::{ColumnType, DataColumn, FileSchema};

/// Values of a column, without those that are missing.
enum ColumnValues {
    Texts(Vec<TextCode>),
    Bools(Vec<bool>),
    Ints(Vec<i32>),
    Longs(Vec<i64>),
}

/// Cells of a column.
struct ColumnCells {
    values: ColumnValues,
    /// 1 for each value, and 0 for each one that is missing.
    levels: Vec<i16>,
    /// Of a column of lists, 0 for the first value of each row, and 1 for the others.
    repeats: Option<Vec<i16>>,
}

impl ColumnCells {
    fn of(kind: ColumnType) -> Self {
        let values = match kind {
            ColumnType::Text => ColumnValues::Texts(Vec::new()),
            ColumnType::Bool => ColumnValues::Bools(Vec::new()),
            ColumnType::Int => ColumnValues::Ints(Vec::new()),
            _ => ColumnValues::Longs(Vec::new()),
        };
        let repeats = (kind == ColumnType::Longs).then(Vec::new);
        Self { values, levels: Vec::new(), repeats }
    }

    #[inline]
    fn push(&mut self, cell: &DataCell<'_>) {
        let Self { values, levels, repeats } = self;
        match (values, cell) {
            (ColumnValues::Longs(values), DataCell::Longs(all)) => {
                values.extend_from_slice(all);
                levels.extend(all.iter().map(|_| 1));
                levels.extend(all.is_empty().then_some(0));
                if let Some(repeats) = repeats {
                    repeats.push(0);
                    repeats.extend(all.iter().skip(1).map(|_| 1));
                }
                return;
            }
            (ColumnValues::Texts(values), DataCell::Text(text)) => values.push(*text),
            (ColumnValues::Bools(values), DataCell::Bool(value)) => values.push(*value),
            (ColumnValues::Ints(values), DataCell::Int(value)) => values.push(*value),
            (ColumnValues::Longs(values), DataCell::Long(value)) => values.push(*value),
            (_, cell) => {
                debug_assert!(matches!(cell, DataCell::Null), "a cell of another type");
                return levels.push(0);
            }
        }
        levels.push(1);
    }

    /// Returns the column as a file has it, and what the file says of it.
    fn encoded(
        &self,
        column: ColumnDescPtr,
        schema: &FileSchema,
        texts: &DataTexts,
    ) -> Result<EncodedColumn> {
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(column, schema.properties.clone(), pages);
        let (levels, repeats) = (Some(self.levels.as_slice()), self.repeats.as_deref());
        match (&mut writer, &self.values) {
            (ColumnWriter::ByteArrayColumnWriter(writer), ColumnValues::Texts(codes)) => {
                let all: Vec<ByteArray> = codes.iter().map(|code| texts.get(*code)).collect();
                writer.write_batch(&all, levels, repeats)?;
            }
            (ColumnWriter::BoolColumnWriter(writer), ColumnValues::Bools(values)) => {
                writer.write_batch(values, levels, repeats)?;
            }
            (ColumnWriter::Int32ColumnWriter(writer), ColumnValues::Ints(values)) => {
                writer.write_batch(values, levels, repeats)?;
            }
            (ColumnWriter::Int64ColumnWriter(writer), ColumnValues::Longs(values)) => {
                writer.write_batch(values, levels, repeats)?;
            }
            _ => debug_assert!(false, "a column of another type"),
        }
        let closed = writer.close()?;
        Ok(EncodedColumn { bytes: sink.into_inner()?.into(), closed })
    }
}

/// Rows that become a row group.
pub(super) struct GroupRows {
    columns: Vec<ColumnCells>,
    rows: usize,
}

impl GroupRows {
    pub(super) fn of(schema: &FileSchema) -> Self {
        let columns = schema.kinds.iter().map(|kind| ColumnCells::of(*kind)).collect();
        Self { columns, rows: 0 }
    }

    /// Adds a row.
    #[inline]
    pub(super) fn push<R>(&mut self, columns: &[&DataColumn<R>], row: &R) {
        self.rows += 1;
        for (cells, column) in self.columns.iter_mut().zip(columns) {
            cells.push(&(column.cell)(row));
        }
    }

    /// Encodes the columns.
    pub(super) fn encoded(
        mut self,
        schema: &FileSchema,
        texts: &mut DataTexts,
    ) -> Result<Vec<EncodedColumn>> {
        for (cells, constant) in self.columns.iter_mut().rev().zip(schema.constants.iter().rev()) {
            let code = constant.as_ref().map(|text| texts.code(text));
            cells.values =
                ColumnValues::Texts(code.map_or_else(Vec::new, |code| vec![code; self.rows]));
            cells.levels = vec![i16::from(code.is_some()); self.rows];
        }
        let all = self.columns.iter().zip(schema.columns.columns());
        all.map(|(cells, column)| cells.encoded(column.clone(), schema, texts)).collect()
    }
}
