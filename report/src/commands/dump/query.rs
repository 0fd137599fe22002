//! The query of `rep dump`.

use std::collections::BTreeSet;

use recrep_format::abi::RecordType;

use crate::query::Source;

/// Query of `rep dump`.
#[derive(Clone, Debug, PartialEq)]
pub struct DumpQuery {
    /// Input.
    pub source: Source,
    /// `true` if the bytes of records are printed.
    pub raw: bool,
    /// Maximum number of bytes to print of the data that follows a record.
    pub payload: usize,
    /// Types of records to print; `None` for all.
    pub types: Option<BTreeSet<RecordType>>,
    /// Maximum number of records to print.
    pub limit: u64,
}

impl DumpQuery {
    /// Returns whether records of a type are printed.
    pub fn prints(&self, kind: RecordType) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&kind))
    }
}
