//! The tokens of a `print fmt`: the subset of C in which the kernel describes how it prints an
//! event.

use std::sync::LazyLock;

use regex_lite::Regex;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    /// A name or a keyword.
    Name(&'t str),
    /// A number or a character.
    Number(u64),
    /// A string with its escapes decoded; adjacent strings are joined.
    Text(String),
    /// An operator or a bracket.
    Sign(&'t str),
}

/// A token, as [`tokens`] parses it. Of operators, longer ones match first.
static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?xs)^(?:
        "(?<text>(?:[^"\\]|\\.)*)" | '(?<character>[^\\]|\\.)'
        | (?<number>[0-9][0-9A-Za-z]*) | (?<name>[0-9A-Za-z_]+)
        | (?<sign> << | >> | -> | [<>=!]= | && | \|\| | \+\+ | --
            | [-+*/%<>=!&|^~?:()\[\]{},;.]))"#,
    )
    .ok()
});

/// Splits a text into tokens. Returns `None` if part of it is not C.
pub(crate) fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut left = text.trim_start();
    let mut all: Vec<Token<'_>> = Vec::new();
    while !left.is_empty() {
        let found = TOKEN.as_ref()?.captures(left)?;
        let part = |name| found.name(name).map(|part| part.as_str());
        if let Some(text) = part("text") {
            match all.last_mut() {
                Some(Token::Text(before)) => before.push_str(&unescaped(text)),
                _ => all.push(Token::Text(unescaped(text))),
            }
        } else if let Some(character) = part("character") {
            all.push(Token::Number(u32::from(unescaped(character).chars().next()?).into()));
        } else if let Some(word) = part("number") {
            all.push(Token::Number(number(word)?));
        } else {
            all.push(part("name").map(Token::Name).or_else(|| part("sign").map(Token::Sign))?);
        }
        left = left.get(found.get(0)?.end()..)?.trim_start();
    }
    Some(all)
}

/// Decodes the escapes in a string or a character.
fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let next = || match chars.next()? {
        '\\' => Some(match chars.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            c => c,
        }),
        c => Some(c),
    };
    std::iter::from_fn(next).collect()
}

/// Parses a decimal, octal or hexadecimal number, with or without C's suffixes.
fn number(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    match (
        digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")),
        digits.strip_prefix('0'),
    ) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok(),
        (None, Some(octal)) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_c_into_tokens() {
        let all = tokens("\"a=%s\\n\" \"b\", REC->x<<0x10UL ? 'c' : 017").unwrap();
        use Token::{Name, Number, Sign};
        assert_eq!(
            all,
            [
                Token::Text("a=%s\nb".into()),
                Sign(","),
                Name("REC"),
                Sign("->"),
                Name("x"),
                Sign("<<"),
                Number(16),
                Sign("?"),
                Number(99),
                Sign(":"),
                Number(15),
            ]
        );
        for broken in ["\"open", "'a", "0xg", "@", "99999999999999999999"] {
            assert_eq!(tokens(broken), None, "{broken}");
        }
    }
}
