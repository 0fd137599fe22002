//! What a header feature says, as a tree that text and JSON are printed from.

use std::borrow::Cow;
use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::terminal::escape::escape;

/// A value with its form. JSON has numbers as numbers, and what is read in hexadecimal as a string (`0x…`).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A number with a sign.
    Signed(i64),
    /// A number that is read in hexadecimal.
    Hex(u64),
    /// Text from the file: escaped where it is printed, and only there.
    Text(String),
    /// The names of bits.
    Bits(Vec<String>),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Fields, and how they read in text.
    Fields(Vec<(Cow<'static, str>, Self)>, String),
    /// Several of a kind; text with spaces is quoted.
    List(Vec<Self>),
    /// Parts with names.
    Map(Vec<(&'static str, Self)>),
}

impl Value {
    /// Text that need not be UTF-8.
    #[must_use]
    pub fn text(bytes: &[u8]) -> Self {
        Self::Text(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The values as a list.
    pub fn list(values: impl IntoIterator<Item = Self>) -> Self {
        Self::List(values.into_iter().collect())
    }

    /// Whether it has a line to itself for each part.
    #[must_use]
    pub fn is_block(&self) -> bool {
        match self {
            Self::List(items) => items.iter().any(|item| matches!(item, Self::Map(_) | Self::List(_))),
            Self::Map(parts) => parts.iter().any(|(_, part)| part.is_block() || matches!(part, Self::List(_))),
            _ => false,
        }
    }
}

/// On one line, safe for a terminal.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::Signed(n) => n.fmt(f),
            Self::Hex(n) => write!(f, "{n:#x}"),
            Self::Text(text) => f.write_str(&escape(text)),
            Self::Bits(names) => f.write_str(&names.join("|")),
            Self::Bytes(bytes) => joined(f, bytes, " ", |f, byte| write!(f, "{byte:02x}")),
            Self::Fields(_, text) => f.write_str(text),
            Self::List(items) => joined(f, items, " ", |f, item| match item {
                Self::Text(text) if text.is_empty() || text.contains(' ') => write!(f, "'{}'", escape(text)),
                item => item.fmt(f),
            }),
            Self::Map(parts) => joined(f, parts, ", ", |f, (name, part)| write!(f, "{name}: {part}")),
        }
    }
}

fn joined<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    separator: &str,
    one: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            f.write_str(separator)?;
        }
        one(f, item)?;
    }
    Ok(())
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(n) => serializer.serialize_u64(*n),
            Self::Signed(n) => serializer.serialize_i64(*n),
            Self::Hex(_) | Self::Bytes(_) => serializer.collect_str(self),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bits(names) => names.serialize(serializer),
            Self::Fields(fields, _) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, field) in fields {
                    map.serialize_entry(name, field)?;
                }
                map.end()
            }
            Self::List(items) => items.serialize(serializer),
            Self::Map(parts) => {
                let mut map = serializer.serialize_map(Some(parts.len()))?;
                for (name, part) in parts {
                    map.serialize_entry(name, part)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_only_where_it_is_printed() {
        let value = Value::Map(vec![
            ("name", Value::Text("\x1b[2J".into())),
            ("list", Value::list([Value::Hex(16), Value::Text("a b".into()), Value::Text("c".into())])),
        ]);
        assert_eq!(value.to_string(), "name: \\x1b[2J, list: 0x10 'a b' c");
        assert_eq!(serde_json::to_string(&value).unwrap(), r#"{"name":"\u001b[2J","list":["0x10","a b","c"]}"#);
    }
}
