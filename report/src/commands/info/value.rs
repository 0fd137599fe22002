//! Contents of a header feature, as a tree from which text and JSON are printed.

use std::borrow::Cow;
use std::fmt;

use serde::ser::{Serialize, Serializer};

use crate::terminal::escape::escape;

/// Value and its format. In JSON, hexadecimal numbers are strings (`0x…`), other numbers are numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(u64),
    Signed(i64),
    Hex(u64),
    /// Text from the file, not escaped; printing escapes it.
    Text(String),
    /// Names of set bits.
    Bits(Vec<String>),
    Bytes(Vec<u8>),
    /// Fields for JSON, and their text.
    Fields(Vec<(Cow<'static, str>, Self)>, String),
    /// List of values; text with spaces is quoted.
    List(Vec<Self>),
    Map(Vec<(&'static str, Self)>),
}

impl Value {
    /// Returns text from bytes that may be invalid UTF-8.
    pub(crate) fn text(bytes: &[u8]) -> Self {
        Self::Text(String::from_utf8_lossy(bytes).into_owned())
    }

    pub(crate) fn list(values: impl IntoIterator<Item = Self>) -> Self {
        Self::List(values.into_iter().collect())
    }

    /// Returns whether it is 0, or nothing is set.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Number(0) | Self::Signed(0) | Self::Hex(0) => true,
            Self::Bits(names) => names.is_empty(),
            Self::Bytes(bytes) => bytes.iter().all(|byte| *byte == 0),
            _ => false,
        }
    }

    /// Returns whether text output has separate lines for the parts.
    pub(crate) fn is_block(&self) -> bool {
        match self {
            Self::List(items) => items.iter().any(|item| matches!(item, Self::Map(_) | Self::List(_))),
            Self::Map(parts) => parts.iter().any(|(_, part)| part.is_block() || matches!(part, Self::List(_))),
            _ => false,
        }
    }
}

/// Prints on one line, escaped for terminals.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::Signed(n) => n.fmt(f),
            Self::Hex(n) => write!(f, "{n:#x}"),
            Self::Text(text) => f.write_str(&escape(text)),
            Self::Bits(names) => f.write_str(&names.join("|")),
            Self::Bytes(bytes) => f.write_str(&joined(" ", bytes.iter().map(|byte| format!("{byte:02x}")))),
            Self::Fields(_, text) => f.write_str(text),
            Self::List(items) => {
                let item = |item: &Self| match item {
                    Self::Text(text) if text.is_empty() || text.contains(' ') => format!("'{}'", escape(text)),
                    item => item.to_string(),
                };
                f.write_str(&joined(" ", items.iter().map(item)))
            }
            Self::Map(parts) => f.write_str(&joined(", ", parts.iter().map(|(name, part)| format!("{name}: {part}")))),
        }
    }
}

fn joined(separator: &str, texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(separator)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(n) => serializer.serialize_u64(*n),
            Self::Signed(n) => serializer.serialize_i64(*n),
            Self::Hex(_) | Self::Bytes(_) => serializer.collect_str(self),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bits(names) => names.serialize(serializer),
            Self::Fields(fields, _) => serializer.collect_map(fields.iter().map(|(name, field)| (name, field))),
            Self::List(items) => items.serialize(serializer),
            Self::Map(parts) => serializer.collect_map(parts.iter().map(|(name, part)| (name, part))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_in_text_output_only() {
        let value = Value::Map(vec![
            ("name", Value::Text("\x1b[2J".into())),
            ("list", Value::list([Value::Hex(16), Value::Text("a b".into()), Value::Text("c".into())])),
        ]);
        assert_eq!(value.to_string(), "name: \\x1b[2J, list: 0x10 'a b' c");
        assert_eq!(serde_json::to_string(&value).unwrap(), r#"{"name":"\u001b[2J","list":["0x10","a b","c"]}"#);
    }
}
