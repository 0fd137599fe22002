//! Query of `rep modules`.

use crate::query::Query;

/// Query of `rep modules`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModulesQuery {
    /// Histogram from which modules are counted.
    pub report: Query,
    /// `true` if only modules with samples without a function are listed.
    pub unresolved: bool,
}
