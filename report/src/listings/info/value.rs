//! Contents of a header feature, as a tree from which text and JSON are printed.

use std::borrow::Cow;
use std::fmt;

use recrep_format::fields::{Fields, Value as Field};
use serde::ser::{Serialize, Serializer};

use crate::terminal::escape::escape;

/// A value for text and JSON.
#[derive(Debug)]
pub(crate) enum InfoValue {
    Number(i128),
    /// Text from the file, not escaped; printing escapes it. Hexadecimal numbers (`0x…`) are text,
    /// as in JSON.
    Text(String),
    /// List of values; text with spaces is quoted.
    List(Vec<Self>),
    Map(Vec<(Cow<'static, str>, Self)>),
    /// A value for JSON, and its text.
    Shown(Box<Self>, String),
}

impl InfoValue {
    /// Returns whether text output has separate lines for the parts.
    pub(crate) fn is_block(&self) -> bool {
        match self {
            Self::List(items) => {
                items.iter().any(|item| matches!(item, Self::Map(_) | Self::List(_)))
            }
            Self::Map(parts) => {
                parts.iter().any(|(_, part)| part.is_block() || matches!(part, Self::List(_)))
            }
            _ => false,
        }
    }
}

pub(crate) fn number(value: impl Into<i128>) -> InfoValue {
    InfoValue::Number(value.into())
}

pub(crate) fn hex(value: u64) -> InfoValue {
    InfoValue::Text(format!("{value:#x}"))
}

/// Returns named parts.
pub(crate) fn map(parts: impl IntoIterator<Item = (&'static str, InfoValue)>) -> InfoValue {
    InfoValue::Map(parts.into_iter().map(|(name, part)| (name.into(), part)).collect())
}

/// Returns a list with the named parts of each item.
pub(crate) fn maps<T, const N: usize>(
    items: impl IntoIterator<Item = T>,
    one: impl Fn(T) -> [(&'static str, InfoValue); N],
) -> InfoValue {
    InfoValue::List(items.into_iter().map(|item| map(one(item))).collect())
}

/// Returns the value of a field of the format, as JSON has it: numbers without their names, bytes as
/// their number.
pub(super) fn shown(value: &Field<'_>) -> InfoValue {
    match value {
        Field::Number(value) => InfoValue::Number(*value),
        Field::Named(value, _) => number(*value),
        Field::Hex(value) => hex(*value),
        Field::Text(bytes) => text(bytes),
        Field::Bytes(bytes) => number(bytes.len() as u64),
        Field::Words(words) => InfoValue::List(words.iter().map(number).collect()),
        Field::List(items) => InfoValue::List(items.iter().map(shown).collect()),
        Field::Fields(fields) => parts(*fields),
        other => InfoValue::Text(format!("{other:?}")),
    }
}

/// Returns the fields of a structure; for one that is only a list, the list.
fn parts(fields: &dyn Fields) -> InfoValue {
    let mut parts = Vec::new();
    fields.each(&mut |name, value| {
        if !matches!(value, Field::Absent) {
            parts.push((name.into(), shown(&value)));
        }
    });
    match parts.pop() {
        Some((_, InfoValue::List(list))) if parts.is_empty() => InfoValue::List(list),
        last => InfoValue::Map(parts.into_iter().chain(last).collect()),
    }
}

/// Returns text that need not be UTF-8.
pub(super) fn text(bytes: &[u8]) -> InfoValue {
    InfoValue::Text(String::from_utf8_lossy(bytes).into_owned())
}

/// Prints on one line, escaped for terminals.
impl fmt::Display for InfoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (separator, texts): (_, Vec<String>) = match self {
            Self::Number(number) => return number.fmt(f),
            Self::Text(text) => return f.write_str(&escape(text)),
            Self::Shown(_, text) => return f.write_str(text),
            Self::List(items) => {
                let texts = items.iter().map(|item| match item {
                    Self::Text(text) if text.is_empty() || text.contains(' ') => {
                        format!("'{}'", escape(text))
                    }
                    item => item.to_string(),
                });
                (" ", texts.collect())
            }
            Self::Map(parts) => {
                (", ", parts.iter().map(|(name, part)| format!("{name}: {part}")).collect())
            }
        };
        f.write_str(&texts.join(separator))
    }
}

impl Serialize for InfoValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i128(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => items.serialize(serializer),
            Self::Map(parts) => {
                serializer.collect_map(parts.iter().map(|(name, part)| (name, part)))
            }
            Self::Shown(value, _) => value.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_in_text_output_only() {
        let [name, spaced, short] =
            ["\x1b[2J", "a b", "c"].map(|text| InfoValue::Text(text.into()));
        let value = map([("name", name), ("list", InfoValue::List(vec![hex(16), spaced, short]))]);
        assert_eq!(value.to_string(), "name: \\x1b[2J, list: 0x10 'a b' c");
        assert_eq!(
            serde_json::to_string(&value).unwrap(),
            r#"{"name":"\u001b[2J","list":["0x10","a b","c"]}"#
        );
    }
}
