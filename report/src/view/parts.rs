//! Lines that are formatted in parallel and written in order.

use std::io::{self, Write};

use rayon::prelude::*;

/// Number of lines in a part.
pub(super) const PART: usize = 4096;
/// Number of parts that are formatted before they are written.
const PARTS: usize = 64;

/// Writes `lines` lines. `part` formats [`PART`] of them, beginning with a given line; parts are formatted in parallel.
pub(super) fn in_parts(lines: usize, part: impl Fn(usize) -> String + Sync, out: &mut impl Write) -> io::Result<()> {
    let starts: Vec<usize> = (0..lines).step_by(PART).collect();
    for starts in starts.chunks(PARTS) {
        let parts: Vec<String> = starts.par_iter().map(|start| part(*start)).collect();
        parts.iter().try_for_each(|text| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}
