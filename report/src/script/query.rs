//! What can be asked of `rep script`.

use super::fields::Fields;
use crate::query::Source;
use crate::resolve::SymbolOptions;

/// What was asked of `rep script`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptQuery {
    /// The input.
    pub source: Source,
    /// The columns; perf's own choice for each event where none were named.
    pub fields: Option<Fields>,
    /// Where symbols come from.
    pub symbol_sources: SymbolOptions,
    /// Nanoseconds in times.
    pub nanoseconds: bool,
    /// Only so many samples.
    pub limit: Option<usize>,
}
