//! Comma-separated values: one line per row of each event, texts uncut.
//!
//! ```text
//!   event,comm,symbol,cpumode,samples,period,percent
//!   cycles:u,ls,strlen,user,2,123,14.29
//! ```
//!
//! The columns are the sort keys as typed by the user, the CPU modes of functions, then the numbers
//! of the query.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use super::export::{Answer, Export};
use crate::query::{Needs, Number};
use crate::table;
use crate::terminal::parts::in_parts;

pub(super) struct Csv;

impl Export for Csv {
    fn needs(&self) -> Needs {
        Needs { companions: true, unmapped: true, ..Needs::default() }
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn write(&self, answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
        print(answer, out)
    }
}

fn print(answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Answer { profile, query, .. } = *answer;
    let parts: Vec<Number> = query.numbers().filter(|number| number.is_part()).collect();
    let keys = query.columns.iter().map(|column| column.typed.as_str());
    let children: &[&str] = if profile.children {
        &["children_samples", "children_period", "children_percent"]
    } else {
        &[]
    };
    let own = ["samples", "period", "percent"].iter().chain(children).copied();
    let numbers = own.chain(parts.iter().map(|number| number.name()));
    let mut head = csv::Writer::from_writer(&mut *out);
    head.write_record(["event"].into_iter().chain(keys).chain(numbers))?;
    head.flush()?;
    drop(head);
    for table in &table::tables(profile, query) {
        let lines = |rows: Range<usize>| {
            let mut csv = csv::Writer::from_writer(Vec::new());
            for row in table.rows_in(rows) {
                let own = (row.count(), row.percent());
                let numbers =
                    [own].into_iter().chain(row.children()).flat_map(|(count, percent)| {
                        [
                            count.samples.to_string(),
                            count.period.to_string(),
                            format!("{percent:.2}"),
                        ]
                    });
                let parts = parts
                    .iter()
                    .map(|part| row.metrics.value(*part, table.total.period).to_string());
                let numbers =
                    numbers.chain(parts.map(|part| part.trim().to_owned())).map(Cow::Owned);
                let mut cells =
                    [Cow::Borrowed(table.name)].into_iter().chain(row.texts()).chain(numbers);
                cells.try_for_each(|cell| csv.write_field(&*cell))?;
                csv.write_record(None::<&[u8]>)?;
            }
            csv.into_inner().map_err(csv::IntoInnerError::into_error)
        };
        in_parts(table.len(), lines, out)?;
    }
    Ok(())
}
