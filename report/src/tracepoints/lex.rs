//! The tokens of a `print fmt`: the subset of C in which the kernel describes how it prints an event.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or a keyword.
    Name(String),
    /// A number or a character.
    Number(u64),
    /// A string with its escapes decoded; adjacent strings are joined.
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// Operators and brackets, longer ones first, so that they match first.
const SIGNS: [&str; 35] = [
    "<<", ">>", "->", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+", "-", "*", "/", "%", "<", ">", "=", "!", "&",
    "|", "^", "~", "?", ":", "(", ")", "[", "]", "{", "}", ",", ";", ".",
];

/// Splits a text into tokens. Returns `None` if part of it is not C.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut left = text.trim_start();
    let mut all: Vec<Token> = Vec::new();
    while let Some(first) = left.chars().next() {
        let (token, rest) = match first {
            '"' => string(left)?,
            '\'' => character(left)?,
            '0'..='9' => number(left)?,
            c if is_name(c) => {
                let (name, rest) = split_while(left, is_name);
                (Token::Name(name.to_owned()), rest)
            }
            _ => {
                let sign = SIGNS.into_iter().find(|sign| left.starts_with(sign))?;
                (Token::Sign(sign), left.get(sign.len()..)?)
            }
        };
        match (all.last_mut(), token) {
            (Some(Token::Text(before)), Token::Text(more)) => before.push_str(&more),
            (_, token) => all.push(token),
        }
        left = rest.trim_start();
    }
    Some(all)
}

/// Splits a text before the first character that is not of this kind.
fn split_while(text: &str, is: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is(c)).unwrap_or(text.len()))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn string(text: &str) -> Option<(Token, &str)> {
    let mut taken = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Token::Text(taken), text.get(at + 1..)?)),
            '\\' => taken.push(escaped(chars.next()?.1)),
            c => taken.push(c),
        }
    }
    None
}

fn character(text: &str) -> Option<(Token, &str)> {
    let mut chars = text.char_indices().skip(1);
    let value = match chars.next()?.1 {
        '\\' => escaped(chars.next()?.1),
        c => c,
    };
    let (at, end) = chars.next()?;
    (end == '\'').then_some((Token::Number(u64::from(u32::from(value))), text.get(at + 1..)?))
}

fn escaped(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        c => c,
    }
}

/// Parses a decimal, octal or hexadecimal number, with or without C's suffixes.
fn number(text: &str) -> Option<(Token, &str)> {
    let (word, rest) = split_while(text, |c| c.is_ascii_alphanumeric());
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match (digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")), digits.strip_prefix('0')) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok()?,
        (None, Some(octal)) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok()?,
        _ => digits.parse().ok()?,
    };
    Some((Token::Number(value), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_c_into_tokens() {
        let all = tokens("\"a=%s\\n\" \"b\", REC->x<<0x10UL ? 'c' : 017").unwrap();
        let name = |name: &str| Token::Name(name.into());
        use Token::{Number, Sign};
        assert_eq!(
            all,
            [
                Token::Text("a=%s\nb".into()),
                Sign(","),
                name("REC"),
                Sign("->"),
                name("x"),
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
