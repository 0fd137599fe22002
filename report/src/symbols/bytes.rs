//! Names and numbers in files that may have symbols.

/// Returns the name at `offset` of a table of names, each ended by a zero byte.
pub(super) fn name_at(table: &[u8], offset: usize) -> &[u8] {
    let name = table.get(offset..).unwrap_or_default();
    memchr::memchr(0, name).and_then(|end| name.get(..end)).unwrap_or(name)
}

/// Returns the hexadecimal number at the start of a line, and the text after the space that follows
/// it.
pub(super) fn hexadecimal(line: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = line.split_at_checked(memchr::memchr(b' ', line)?)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    Some((u64::from_str_radix(digits, 16).ok()?, rest.get(1..)?))
}
