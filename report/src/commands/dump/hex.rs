//! Hex dump: sixteen bytes per line, with their characters.

use crate::terminal::digits;

const BYTES_PER_LINE: usize = 16;

/// Prints at most `most` of the bytes.
pub(super) fn print(bytes: &[u8], most: usize, out: &mut Vec<u8>) {
    let shown = bytes.get(..most).unwrap_or(bytes);
    for (place, line) in (0u64..).zip(shown.chunks(BYTES_PER_LINE)) {
        out.extend_from_slice(b"  ");
        digits::hex_zeros(out, place * BYTES_PER_LINE as u64, 4);
        out.push(b' ');
        for byte in line {
            out.push(b' ');
            out.extend_from_slice(&digits::hex_byte(*byte));
        }
        out.resize(out.len() + 3 * (BYTES_PER_LINE - line.len()) + 2, b' ');
        out.extend(line.iter().map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { *byte } else { b'.' }));
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_keeps_its_columns() {
        let mut out = Vec::new();
        print(b"0123456789abcdef\x1b[", usize::MAX, &mut out);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  0000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef");
        assert_eq!(lines[1], format!("  0010  1b 5b{:42}  .[", ""));
        let mut cut = Vec::new();
        print(&[0; 40], 3, &mut cut);
        assert_eq!(cut.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}
