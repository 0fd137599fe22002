//! Folded stacks for flame graphs: `comm;outermost;…;innermost count`. If several events have samples, each line
//! begins with the event's name.

use std::io::{self, Write};

use super::parts::{PART, in_parts};
use crate::callchain::folded::folded_root;
use crate::query::Query;
use crate::table::profile::{EventTable, Profile};
use crate::terminal::escape::escape;

/// Prints the folded stacks of all events.
pub(super) fn print(profile: &Profile, query: &Query, out: &mut impl Write) -> io::Result<()> {
    let folded = &profile.folded;
    let tables = profile.tables(query);
    let is_alone = tables.iter().filter(|table| table.total.samples > 0).count() < 2;
    let root = |table: &EventTable<'_>| if is_alone { String::new() } else { folded_root(table.name) + ";" };
    let roots: Vec<String> = tables.iter().map(root).collect();
    let roots: Vec<_> = roots.iter().map(|root| escape(root)).collect();
    let texts: Vec<_> = folded.labels().map(escape).collect();
    let part = |start: usize| {
        let (mut text, mut labels) = (String::new(), Vec::new());
        for index in start..(start + PART).min(folded.len()) {
            labels.clear();
            let Some((event, count)) = folded.line(index, &mut labels) else { break };
            text.push_str(roots.get(event).map_or("", |root| root));
            for (place, label) in labels.iter().enumerate() {
                text.push_str(if place > 0 { ";" } else { "" });
                text.push_str(texts.get(*label as usize).map_or("", |text| text));
            }
            text.push(' ');
            text.push_str(&count.to_string());
            text.push('\n');
        }
        text
    };
    in_parts(folded.len(), part, out)
}
