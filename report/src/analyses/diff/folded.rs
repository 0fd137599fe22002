//! The callchains of both sides as folded stacks, with two sums each.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::answer::DiffAnswer;
use crate::terminal::escape::escape;

/// Prints a line for each callchain, with its sums on both sides: what programs for differential
/// flame graphs read. If several events have samples, lines begin with their event.
pub(super) fn print(answer: &DiffAnswer<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = Vec::new();
    for event in &answer.events {
        let root = match answer.events.len() {
            1 => String::new(),
            _ => format!("{};", event.name.replace(' ', "_").replace(';', ":")),
        };
        for (row, [base, new]) in event.labels.rows.iter().zip(&event.sums) {
            let text = row.cells.first().map_or("", String::as_str);
            lines.push((format!("{root}{text}"), *base, *new));
        }
    }
    lines.sort_by_key(|(_, base, new)| Reverse(base.saturating_add(*new)));
    lines.truncate(answer.asked.limit.unwrap_or(usize::MAX));
    lines.sort();
    for (text, base, new) in lines {
        writeln!(out, "{} {base} {new}", escape(&text))?;
    }
    Ok(())
}
