//! `rec stat record`: the file with the counts, for `rep stat` and `perf stat report`.

use std::path::Path;
use std::time::Duration;

use super::Settings;
use super::table::Table;
use crate::messages::error::Result;

/// The data file.
pub(super) struct RecordFile {
    is_stdout: bool,
}

impl RecordFile {
    pub(super) fn create(path: &Path) -> Result<Self> {
        Ok(Self { is_stdout: path == Path::new("-") })
    }

    pub(super) fn is_stdout(&self) -> bool {
        self.is_stdout
    }

    pub(super) fn begin(&mut self, _: &Settings, _: &Table) -> Result<()> {
        Ok(())
    }

    pub(super) fn round(&mut self, _: &Table, _: Duration, _: bool) -> Result<()> {
        Ok(())
    }

    pub(super) fn finish(self, _: &Settings) -> Result<()> {
        Ok(())
    }
}
