//! The table of stacks, written as they are found: each once, in the order of the file.

use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashSet;

use super::cells::DataTexts;
use super::columns::{DataColumn, FileSchema};
use super::groups::GroupRows;
use super::parts::{FinishedPart, PartWriter};
use super::stacks::{STACKS, StackCells};

/// Number of frames in a row group.
const FRAMES: usize = 1 << 18;

/// Writes the table.
pub(super) struct StackTable<'w> {
    part: PartWriter,
    schema: &'w FileSchema,
    columns: Vec<&'static DataColumn<StackCells>>,
    written: &'w RwLock<FxHashSet<i64>>,
    rows: GroupRows,
    /// Number of frames in the rows.
    frames: usize,
}

impl<'w> StackTable<'w> {
    pub(super) fn new(
        part: PartWriter,
        schema: &'w FileSchema,
        written: &'w RwLock<FxHashSet<i64>>,
    ) -> Self {
        let (columns, rows) = (STACKS.iter().collect(), GroupRows::of(schema));
        Self { part, schema, columns, written, rows, frames: 0 }
    }

    /// Writes those of some stacks that were not written yet.
    pub(super) fn add(&mut self, stacks: &[StackCells]) -> anyhow::Result<()> {
        for stack in stacks {
            let mut written = self.written.write().unwrap_or_else(PoisonError::into_inner);
            if !written.insert(stack.id) {
                continue;
            }
            drop(written);
            self.rows.push(&self.columns, stack);
            self.frames += stack.frames.len();
            if self.frames >= FRAMES {
                self.append()?;
            }
        }
        Ok(())
    }

    /// Writes the rows as a row group.
    fn append(&mut self) -> anyhow::Result<()> {
        self.frames = 0;
        let rows = std::mem::replace(&mut self.rows, GroupRows::of(self.schema));
        self.part.append(rows.encoded(self.schema, &mut DataTexts::default())?)
    }

    /// Writes the rest, and the end of the file.
    pub(super) fn finish(mut self) -> anyhow::Result<FinishedPart> {
        self.append()?;
        self.part.finish()
    }
}
