//! Text for people, laid out like `perf report --stdio`: tables with call trees, cut to the width of
//! the terminal.

mod heading;
mod heat;
mod nested;
mod stats;
mod table;
mod threads;
mod tree;

use std::io::{self, Write};

use super::export::{Answer, Export};
use crate::query::{Inspection, Needs};

pub(super) struct TextReport;

impl Export for TextReport {
    fn needs(&self) -> Needs {
        Needs { callers: true, marks: true, ..Needs::default() }
    }

    fn is_for_people(&self) -> bool {
        true
    }

    fn write(&self, answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
        let Answer { profile, query, screen } = *answer;
        if query.inspection == Some(Inspection::Stats) {
            return stats::print(profile, query, out);
        }
        table::print(profile, query, screen, out)
    }
}
