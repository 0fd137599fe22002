//! Tokens of an expression.

/// Part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(f64),
    /// Name of an event, a metric, a function or a word, without the backslashes in front of
    /// `-`, `,` and `=`.
    Name(String),
    /// Name after `#`, in small letters.
    Literal(String),
    /// Operator, parenthesis or comma.
    Sign(char),
}

/// A token, and where it begins, in bytes from the start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlacedToken {
    pub(super) token: Token,
    pub(super) at: usize,
}

/// Reason why an expression is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Place, in bytes from the start.
    pub(super) at: usize,
    pub(super) why: String,
}

const SIGNS: &str = "|^&<>+-*/%(),";

/// Splits an expression.
pub(super) fn split(text: &str) -> Result<Vec<PlacedToken>, Wrong> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let (token, length) = if first.is_whitespace() {
            (None, first.len_utf8())
        } else if let Some(literal) = rest.strip_prefix('#') {
            let end = literal.find(|c: char| !is_of_name(c)).unwrap_or(literal.len());
            let name = literal.get(..end).unwrap_or(literal);
            if name.is_empty() {
                return Err(Wrong { at, why: "there is no name after '#'".to_owned() });
            }
            (Some(Token::Literal(name.to_lowercase())), end + 1)
        } else if is_of_name(first) || first == '\\' {
            let (token, length) = word(rest).map_err(|why| Wrong { at, why })?;
            (Some(token), length)
        } else if SIGNS.contains(first) {
            (Some(Token::Sign(first)), 1)
        } else {
            return Err(Wrong { at, why: format!("'{first}' is no part of an expression") });
        };
        tokens.extend(token.map(|token| PlacedToken { token, at }));
        rest = rest.get(length..).unwrap_or("");
    }
    Ok(tokens)
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_.:@?".contains(letter)
}

/// Returns the name or number at the start, whichever is longer, and its length.
fn word(text: &str) -> Result<(Token, usize), String> {
    let mut name = String::new();
    let mut length = 0;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if is_of_name(letter) {
            name.push(letter);
        } else if letter == '\\' {
            // In the files two backslashes may stand for one.
            let escaped = letters.by_ref().find(|next| *next != '\\');
            let Some(escaped) = escaped.filter(|next| "-,=".contains(*next)) else {
                return Err("a backslash stands only before '-', ',' and '='".to_owned());
            };
            name.push(escaped);
        } else {
            break;
        }
        length = text.len() - letters.as_str().len();
    }
    let digits = number_length(text);
    let number = text.get(..digits).and_then(|digits| digits.parse().ok());
    match number {
        Some(number) if digits >= length => Ok((Token::Number(number), digits)),
        _ if name == "NaN" => Ok((Token::Number(f64::NAN), length)),
        _ => Ok((Token::Name(name), length)),
    }
}

fn digits_from(bytes: &[u8], from: usize) -> usize {
    bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the length of the number at the start: digits, a fraction, an exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let whole = digits_from(bytes, 0);
    let mut length = whole;
    if bytes.get(length) == Some(&b'.') {
        let fraction = digits_from(bytes, length + 1);
        if whole + fraction == 0 {
            return 0;
        }
        length += 1 + fraction;
    }
    if length > 0 && bytes.get(length).is_some_and(|byte| b"eE".contains(byte)) {
        let signed = bytes.get(length + 1).is_some_and(|byte| b"+-".contains(byte));
        let exponent = digits_from(bytes, length + 1 + usize::from(signed));
        if exponent > 0 {
            length += 1 + usize::from(signed) + exponent;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        split(text).unwrap().into_iter().map(|placed| placed.token).collect()
    }

    fn name(text: &str) -> Token {
        Token::Name(text.to_owned())
    }

    #[test]
    fn names_and_numbers() {
        use Token::{Literal, Number, Sign};
        for (text, number) in [("1e9", 1e9), ("1.5", 1.5), (".5", 0.5), ("3.", 3.0), ("1e-3", 1e-3)]
        {
            assert_eq!(tokens(text), [Number(number)], "{text}");
        }
        // The longer of both.
        for text in ["4_FLOPS", "0x410fd493", "1e9x", "r1a8"] {
            assert_eq!(tokens(text), [name(text)]);
        }
        assert_eq!(tokens("1-2"), [Number(1.0), Sign('-'), Number(2.0)]);
        assert_eq!(tokens("a-b"), [name("a"), Sign('-'), name("b")]);
        assert_eq!(tokens(r"l1d\-misses"), [name("l1d-misses")]);
        let raw = r"cpu@A.B\,cmask\=0x1@u / EV:u";
        assert_eq!(tokens(raw), [name("cpu@A.B,cmask=0x1@u"), Sign('/'), name("EV:u")]);
        assert_eq!(tokens(r"a\\=1"), [name("a=1")], "escaped twice");
        assert_eq!(tokens("#SMT_on"), [Literal("smt_on".to_owned())]);
    }

    #[test]
    fn strays_have_a_place() {
        for (text, at) in [("a ! b", 2), ("a + $", 4), ("1 + #", 4), (r"x + \a", 4), ("ä", 0)] {
            assert_eq!(split(text).unwrap_err().at, at, "{text}");
        }
        assert_eq!(split("a +\n b").unwrap()[2].at, 5);
    }
}
