//! Escaping of text from the file before it is printed to a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the text with control characters and bidirectional controls escaped, such as `\x1b` or `\u{202e}`, so that a
/// recording cannot control the reader's terminal.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
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

fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_control_characters() {
        assert_eq!(escape("\x1b[31mred\x07\n"), "\\x1b[31mred\\x07\\x0a");
        assert_eq!(escape("a\u{202e}b\u{9b}"), "a\\u{202e}b\\x9b");
        assert!(matches!(escape("plain ünïcode"), Cow::Borrowed(_)));
    }
}
