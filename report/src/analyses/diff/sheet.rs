//! The rows of a comparison as a table, which is its CSV.

use super::answer::{ComparedEvent, DiffAnswer};
use super::json::{listed, samples};
use crate::compare::RowChange;
use crate::exports::sheet::{Sheet, SheetCell, SheetColumn};

/// A changed row, and the event that it is of.
#[derive(Clone, Copy)]
struct ChangeOfEvent<'a> {
    event: &'a ComparedEvent,
    row: &'a RowChange,
}

type RowColumn<'a> = SheetColumn<'a, ChangeOfEvent<'a>>;

impl<'a> ChangeOfEvent<'a> {
    fn samples(self) -> [u64; 2] {
        samples(self.event, self.row.row)
    }

    /// Returns the text of a column.
    fn text(self, column: usize) -> SheetCell<'a> {
        let cells = self.event.labels.rows.get(self.row.row).map(|row| row.cells.as_slice());
        cells.and_then(|cells| cells.get(column)).into()
    }
}

/// Returns the rows of all events, which have the same columns.
pub(super) fn rows<'a>(answer: &'a DiffAnswer<'_>) -> Sheet<'a> {
    let names = answer.events.first().map_or(&[][..], |event| event.columns.as_slice());
    let mut columns = vec![RowColumn::unshown("event", |of| (&of.event.name).into())];
    for (number, name) in names.iter().enumerate() {
        columns.push(RowColumn::unshown(name, move |of| of.text(number)));
    }
    columns.extend([
        RowColumn::unshown("status", |of| of.row.status.word().into()),
        RowColumn::unshown("significant", |of| of.row.marked.to_string().into()),
        RowColumn::unshown("base_samples", |of| {
            let [base, _] = of.samples();
            base.into()
        }),
        RowColumn::unshown("base_share", |of| SheetCell::float(Some(of.row.base_share * 100.0))),
        RowColumn::unshown("new_samples", |of| {
            let [_, new] = of.samples();
            new.into()
        }),
        RowColumn::unshown("new_share", |of| SheetCell::float(Some(of.row.new_share * 100.0))),
        RowColumn::unshown("relative", |of| SheetCell::float(of.row.change.relative)),
        RowColumn::unshown("low", |of| SheetCell::float(of.row.change.low)),
        RowColumn::unshown("high", |of| SheetCell::float(of.row.change.high)),
        RowColumn::unshown("p", |of| SheetCell::float(Some(of.row.change.p))),
        RowColumn::unshown("adjusted_p", |of| SheetCell::float(of.row.adjusted_p)),
        RowColumn::unshown("impact", |of| SheetCell::float(Some(of.row.impact))),
        RowColumn::unshown("resolution", |of| SheetCell::float(Some(of.row.resolution))),
        RowColumn::unshown("beyond", |of| SheetCell::float(of.row.beyond)),
    ]);
    let mut all = Vec::new();
    for event in &answer.events {
        all.extend(listed(event, answer).into_iter().map(|row| ChangeOfEvent { event, row }));
    }
    Sheet::new(Vec::new(), &columns, all)
}
