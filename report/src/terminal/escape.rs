//! Escaping of text from the file before it is printed to a terminal, and its width there.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the text with control characters and bidirectional controls escaped, such as `\x1b` or
/// `\u{202e}`, so that a recording cannot control the reader's terminal.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    // Nearly all text is plain; looking at all bytes at once is faster than stopping at the first
    // other one.
    let is_plain =
        text.bytes().fold(true, |is_plain, byte| is_plain & (b' '..=b'~').contains(&byte));
    if is_plain || !text.chars().any(is_unsafe) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        let code = u32::from(c);
        let outcome = match c {
            _ if !is_unsafe(c) => safe.write_char(c),
            _ if code < 0x100 => write!(safe, "\\x{code:02x}"),
            _ => write!(safe, "\\u{{{code:x}}}"),
        };
        debug_assert!(outcome.is_ok(), "writing to a String cannot fail");
    }
    safe.into()
}

/// Returns the number of columns that escaped text takes.
pub(crate) fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// Returns the beginning of a line that fits in `width` columns.
pub(crate) fn cut(line: &str, width: usize) -> &str {
    if line.len() <= width {
        return line;
    }
    let mut used = 0;
    for (at, c) in line.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return line.get(..at).unwrap_or(line);
        }
    }
    line
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_control_characters() {
        assert_eq!(escape("\x1b[31mred\x07\n"), "\\x1b[31mred\\x07\\x0a");
        assert_eq!(escape("a\u{202e}b\u{9b}"), "a\\u{202e}b\\x9b");
        assert!(matches!(escape("plain ünïcode"), Cow::Borrowed(_)));
        assert!(matches!(escape(" ~"), Cow::Borrowed(_)));
        assert_eq!(escape("~\x7f"), "~\\x7f");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(["", "plain", "ünïcode", "日本"].map(columns), [0, 5, 7, 4]);
    }

    #[test]
    fn lines_are_cut_to_the_width_of_the_terminal() {
        assert_eq!(cut("abcdef", 4), "abcd");
        assert_eq!(cut("日本語", 5), "日本");
        assert_eq!(cut("abc", 4), "abc");
    }
}
