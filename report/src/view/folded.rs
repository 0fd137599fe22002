//! Folded stacks for flame graphs: `comm;outermost;…;innermost count`. If several events have
//! samples, each line begins with the event's name. Limits leave the lines with the largest counts
//! of each event, in the usual order.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use super::parts::in_parts;
use crate::callchain::folded::{Folded, folded_root};
use crate::count::metrics::share;
use crate::query::Query;
use crate::table::profile::{EventTable, Profile};
use crate::terminal::escape::escape;

pub(super) fn print(profile: &Profile, query: &Query, out: &mut impl Write) -> io::Result<()> {
    let folded = &profile.folded;
    let tables = profile.tables(query);
    let is_alone = tables.iter().filter(|table| table.total.samples > 0).count() < 2;
    let root = |table: &EventTable<'_>| {
        if is_alone { String::new() } else { folded_root(table.name) + ";" }
    };
    let roots: Vec<String> = tables.iter().map(root).collect();
    let roots: Vec<_> = roots.iter().map(|root| escape(root)).collect();
    let texts: Vec<_> = profile.frames.iter().map(escape).collect();
    let is_limited = query.limit.is_some() || query.percent_limit.is_some();
    let limited = is_limited.then(|| within_limits(folded, query));
    let len = limited.as_ref().map_or(folded.counts().len(), Vec::len);
    let part = |lines: Range<usize>| {
        let (mut text, mut labels) = (String::new(), Vec::new());
        for index in lines {
            labels.clear();
            let line = limited.as_ref().map_or(Some(index), |lines| lines.get(index).copied());
            let Some((event, count)) = line.and_then(|line| folded.line(line, &mut labels)) else {
                break;
            };
            text.push_str(roots.get(event).map_or("", |root| root));
            for (place, label) in labels.iter().enumerate() {
                text.push_str(if place > 0 { ";" } else { "" });
                text.push_str(texts.get(*label as usize).map_or("", |text| text));
            }
            text.push(' ');
            text.push_str(&count.to_string());
            text.push('\n');
        }
        Ok(text)
    };
    in_parts(len, part, out)
}

/// Returns the indexes of the lines that pass `--percent-limit`, a share of all lines of their
/// event, and are the first `--limit` ones of their event by count.
fn within_limits(folded: &Folded, query: &Query) -> Vec<usize> {
    let mut of_events = BTreeMap::<usize, Vec<(Reverse<u64>, usize)>>::new();
    for (index, (event, count)) in folded.counts().enumerate() {
        of_events.entry(event).or_default().push((Reverse(count), index));
    }
    let mut found = Vec::new();
    for mut lines in of_events.into_values() {
        let total =
            lines.iter().fold(0, |sum: u64, (Reverse(count), _)| sum.saturating_add(*count));
        lines.retain(|(Reverse(count), _)| {
            query.percent_limit.is_none_or(|least| share(*count, total) >= least)
        });
        lines.sort_unstable();
        found.extend(
            lines.into_iter().map(|(_, index)| index).take(query.limit.unwrap_or(usize::MAX)),
        );
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args;

    #[test]
    fn limits_leave_the_largest_lines_of_each_event() {
        let mut profile = Profile::of_events(&["a".into(), "b".into()]);
        for (event, text, count) in [(0, "x", 1), (0, "y", 7), (0, "z", 2), (1, "x", 3)] {
            let [columns, frames] = ["ls", text].map(|text| {
                let label = profile.frames.intern(text.into());
                profile.folded.chain(0, label)
            });
            profile.folded.add(event, columns, frames, count);
        }
        profile.settle();
        let printed = |line: &str| {
            let query = args::parse(line.split(' ').map(Into::into)).unwrap();
            let mut out = Vec::new();
            print(&profile, &query, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(printed("rep --format folded f"), "ls;x 1\nls;y 7\nls;z 2\nls;x 3\n");
        assert_eq!(printed("rep --format folded --limit 2 f"), "ls;y 7\nls;z 2\nls;x 3\n");
        assert_eq!(printed("rep --format folded --percent-limit 20 f"), "ls;y 7\nls;z 2\nls;x 3\n");
        assert_eq!(
            printed("rep --format folded --percent-limit 20.1 --limit 9 f"),
            "ls;y 7\nls;x 3\n"
        );
    }
}
