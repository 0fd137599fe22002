//! What can be asked of `rep modules`.

use crate::query::Query;

/// What was asked of `rep modules`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModulesQuery {
    /// The histogram that modules are counted from.
    pub report: Query,
    /// Only modules with samples that have no function.
    pub unresolved: bool,
}
