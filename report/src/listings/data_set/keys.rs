//! Keys of a data set: what divides it, and the columns of inputs.

use super::columns::Constant;

/// What divides a data set, and the columns that all its rows share.
#[derive(Clone, Debug)]
pub(super) struct DataSetKeys {
    /// Keys of the folders, outermost first.
    pub(super) partition: Vec<String>,
    pub(super) labels: Vec<Constant>,
}

/// Columns of inputs that are in all tables.
pub(super) const HOST: &str = "host";
pub(super) const RECORDING: &str = "recording";
/// A key that is no column.
pub(super) const DATE: &str = "date";
