//! Lines made by all cores and written in their order.

use std::io::{self, Write};

use rayon::prelude::*;

/// How many lines a core makes at a time.
pub(super) const PART: usize = 4096;
/// How many parts are made before they are written.
const PARTS: usize = 64;

/// Writes so many lines, of which all cores make parts: [`PART`] each, from a line on.
pub(super) fn in_parts(lines: usize, part: impl Fn(usize) -> String + Sync, out: &mut impl Write) -> io::Result<()> {
    let starts: Vec<usize> = (0..lines).step_by(PART).collect();
    for starts in starts.chunks(PARTS) {
        let parts: Vec<String> = starts.par_iter().map(|start| part(*start)).collect();
        parts.iter().try_for_each(|text| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}
