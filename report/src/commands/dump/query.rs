//! What can be asked of `rep dump`.

use std::collections::BTreeSet;

use recrep_format::abi::RecordType;

use crate::query::Source;

/// What was asked of `rep dump`.
#[derive(Clone, Debug, PartialEq)]
pub struct DumpQuery {
    /// The input.
    pub source: Source,
    /// Whether the bytes of records are shown.
    pub raw: bool,
    /// How many bytes of what follows a record are shown.
    pub payload: usize,
    /// Only these types; all where nothing is here.
    pub types: Option<BTreeSet<RecordType>>,
    /// At most so many records.
    pub limit: u64,
}
