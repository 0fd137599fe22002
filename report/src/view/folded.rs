//! Folded stacks: `comm;outermost;…;innermost count`, what flame graphs are made of.

use std::io::{self, Write};

use rayon::prelude::*;

use crate::escape::escape;
use crate::profile::Profile;

/// How many lines a core makes at a time.
const PART: usize = 4096;
/// How many parts are made before they are written.
const PARTS: usize = 64;

/// Prints the lines of the first event that has any.
pub(super) fn print(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let folded = &profile.folded;
    let Some((event, ..)) = folded.line(0) else { return Ok(()) };
    let part = |start: usize| {
        let mut text = String::new();
        for index in start..(start + PART).min(folded.len()) {
            let Some((own, labels, count)) = folded.line(index).filter(|(own, ..)| *own == event) else { break };
            debug_assert!(own == event, "only one event is printed");
            for (place, label) in labels.enumerate() {
                text.push_str(if place > 0 { ";" } else { "" });
                text.push_str(&escape(label));
            }
            text.push(' ');
            text.push_str(&count.to_string());
            text.push('\n');
        }
        text
    };
    let starts: Vec<usize> = (0..folded.len()).step_by(PART).collect();
    for starts in starts.chunks(PARTS) {
        let parts: Vec<String> = starts.par_iter().map(|start| part(*start)).collect();
        parts.iter().try_for_each(|text| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}
