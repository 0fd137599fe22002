//! `/tmp/perf-PID.map`: the text file in which a JIT lists the functions it generated.
//!
//! ```text
//!   3ef414c0 398 RegExp:[{(]
//!   START SIZE NAME            hexadecimal; the name is the rest of the line
//! ```
//!
//! A JIT that reuses memory writes another line with the same start; the last one counts.

use std::collections::BTreeMap;

use super::bytes::hexadecimal;
use super::table::{SymbolTable, TableBuilder};

pub(super) fn parse(text: &[u8], demangle: bool) -> SymbolTable {
    // Of lines with equal starts the last one is kept.
    let symbols: BTreeMap<_, _> = text.split(|&byte| byte == b'\n').filter_map(split).collect();
    let mut table = TableBuilder::new(demangle);
    for (start, (end, name)) in symbols {
        table.add(name, start, end);
    }
    table.finish()
}

/// Returns the start, the end and the name in a line.
fn split(line: &[u8]) -> Option<(u64, (u64, &[u8]))> {
    let (start, rest) = hexadecimal(line)?;
    let (size, name) = hexadecimal(rest)?;
    let name = name.strip_suffix(b"\r").unwrap_or(name);
    (!name.is_empty() && !name.contains(&0)).then(|| (start, (start.saturating_add(size), name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_for_a_start_counts() {
        let table = parse(b"1000 40 old name\n2000 10 b\n\nzz 1 x\n1000 20 LazyCompile:~new a.js:1\n3000 8\n", true);
        let name = |address| table.lookup(address).map(|symbol| symbol.name);
        assert_eq!(name(0x1000), Some(&b"LazyCompile:~new a.js:1"[..]));
        assert_eq!(name(0x1020), None);
        assert_eq!(name(0x200f), Some(&b"b"[..]));
        assert_eq!(table.len(), 2);
    }
}
