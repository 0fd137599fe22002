//! Columns of tables, each stated once: its name, its type and the cell of a row.

use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType,
    ZstdLevel,
};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type, TypePtr};

use super::cells::DataCell;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Text,
    Bool,
    Int,
    Long,
    /// An address: 64 bits without a sign.
    Address,
    /// Microseconds since 1970, UTC.
    Timestamp,
    /// A list of numbers.
    Longs,
}

/// A column of a table with rows of type `R`.
pub(super) struct DataColumn<R> {
    pub(super) name: &'static str,
    pub(super) kind: ColumnType,
    pub(super) cell: for<'r> fn(&'r R) -> DataCell<'r>,
}

/// A text that is the same in all rows of an input.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// Columns of a file: those of its table, then texts that are the same in all rows.
pub(super) struct FileSchema {
    pub(super) root: TypePtr,
    pub(super) columns: SchemaDescriptor,
    pub(super) properties: WriterPropertiesPtr,
    pub(super) kinds: Vec<ColumnType>,
    /// Values of the last columns.
    pub(super) constants: Vec<Option<String>>,
}

/// Name of the tables' version among the metadata of a file.
const VERSION_KEY: &str = "recrep.schema";
const VERSION: &str = "recrep-samples/1";

impl FileSchema {
    /// Returns the schema of a table with these columns and constants.
    pub(super) fn of<R>(
        table: &str,
        columns: &[&DataColumn<R>],
        constants: &[Constant],
    ) -> Result<Self> {
        let own = columns.iter().map(|column| (column.name, column.kind));
        let all = own.chain(constants.iter().map(|one| (one.name.as_str(), ColumnType::Text)));
        let (mut fields, mut kinds) = (Vec::new(), Vec::new());
        for (name, kind) in all {
            fields.push(Arc::new(kind.field(name)?));
            kinds.push(kind);
        }
        let root = Arc::new(Type::group_type_builder(table).with_fields(fields).build()?);
        let columns = SchemaDescriptor::new(root.clone());
        let constants = constants.iter().map(|constant| constant.value.clone()).collect();
        Ok(Self { root, columns, properties: properties()?, kinds, constants })
    }
}

fn properties() -> Result<WriterPropertiesPtr> {
    // Times and addresses of data hardly repeat.
    let distinct = ["time", "addr", "phys_addr"].map(ColumnPath::from);
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("rep ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(
            VERSION_KEY.to_owned(),
            VERSION.to_owned(),
        )]));
    for column in distinct {
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(Arc::new(properties.build()))
}

impl ColumnType {
    /// Returns the type of a column with this name.
    fn field(self, name: &str) -> Result<Type> {
        let (physical, logical) = match self {
            Self::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Bool => (PhysicalType::BOOLEAN, None),
            Self::Int => (PhysicalType::INT32, None),
            Self::Long => (PhysicalType::INT64, None),
            Self::Address => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            Self::Timestamp => {
                (PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS)))
            }
            Self::Longs => return list(name),
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }
}

/// Returns the type of a column of lists.
fn list(name: &str) -> Result<Type> {
    let element = Type::primitive_type_builder("element", PhysicalType::INT64)
        .with_repetition(Repetition::REQUIRED)
        .build()?;
    let repeated = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    Type::group_type_builder(name)
        .with_repetition(Repetition::REQUIRED)
        .with_converted_type(ConvertedType::LIST)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(repeated)])
        .build()
}
