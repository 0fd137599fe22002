//! A field of a tracepoint: its C declaration, and where it lies in the raw bytes.

use crate::error::{Error, Result};

const FIELD: &str = "a field of a tracepoint";

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventField {
    /// Its C type without array bounds, such as `char` or `__data_loc char[]`.
    pub type_name: String,
    /// Its name.
    pub name: String,
    /// Offset in the raw bytes.
    pub offset: usize,
    /// Size there in bytes.
    pub size: usize,
    /// `true` if it is a signed number. Old kernels do not say.
    pub is_signed: bool,
    /// `true` if it is an array: in place, or elsewhere ([`EventField::is_dynamic`]).
    pub is_array: bool,
    /// Number of elements by the array's declaration; 0 if that gives none.
    pub array_len: usize,
}

impl EventField {
    /// Reads a line such as `field:char comm[16]; offset:8; size:16; signed:0;` at this byte of the
    /// file.
    pub(super) fn parse(line: &[u8], at: u64) -> Result<Self> {
        let wrong =
            |detail: &str| Error::invalid(at, FIELD, format!("{detail}: `{}`", shown(line)));
        let text = std::str::from_utf8(line).map_err(|_| wrong("it is no text"))?;
        let mut parts = text.split(';').map(str::trim);
        let declaration = parts
            .next()
            .and_then(|first| first.split_once(':'))
            .map(|(_, declaration)| declaration.trim());
        let declaration = declaration.ok_or_else(|| wrong("it has no declaration"))?;
        let (mut offset, mut size, mut is_signed) = (None, None, false);
        for (key, value) in parts.filter_map(|part| part.split_once(':')) {
            match key {
                "offset" => offset = value.parse().ok(),
                "size" => size = value.parse().ok(),
                "signed" => is_signed = value == "1",
                _ => {}
            }
        }
        let (Some(offset), Some(size)) = (offset, size) else {
            return Err(wrong("it does not say where it is or how long"));
        };
        let (type_name, name, bounds) =
            declared(declaration).ok_or_else(|| wrong("it has no name"))?;
        let is_elsewhere =
            type_name.starts_with("__data_loc") || type_name.starts_with("__rel_loc");
        Ok(Self {
            is_array: bounds.is_some() || is_elsewhere,
            array_len: bounds.and_then(number).unwrap_or(0),
            type_name: type_name.to_owned(),
            name: name.to_owned(),
            offset,
            size,
            is_signed,
        })
    }

    /// Returns whether it is a word that says where the bytes are: the place in the low 16 bits,
    /// their number above.
    pub fn is_dynamic(&self) -> bool {
        self.type_name.starts_with("__data_loc") || self.is_relative()
    }

    /// Returns whether that place counts from the end of the word itself.
    pub fn is_relative(&self) -> bool {
        self.type_name.starts_with("__rel_loc")
    }

    /// Returns whether it is an array of characters or bytes.
    pub fn is_string(&self) -> bool {
        self.is_array && ["char", "u8", "s8"].iter().any(|part| self.type_name.contains(part))
    }

    /// Returns whether it is an address.
    pub fn is_pointer(&self) -> bool {
        self.type_name.contains('*')
    }

    /// Returns whether its type is called `long`.
    pub fn is_long(&self) -> bool {
        self.type_name
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(|word| word == "long")
    }

    /// Returns the size of an element of an array in bytes, also of one that lies elsewhere; 0 if
    /// its type has no size here.
    pub fn array_element_size(&self) -> usize {
        let of_word = |word: &str| match word.trim_end_matches("[]") {
            "char" | "u8" | "s8" | "__u8" | "__s8" | "uint8_t" | "int8_t" | "bool" => Some(1),
            "short" | "u16" | "s16" | "__u16" | "__s16" | "uint16_t" | "int16_t" | "__be16"
            | "__le16" => Some(2),
            "int" | "u32" | "s32" | "__u32" | "__s32" | "uint32_t" | "int32_t" | "__be32"
            | "__le32" | "pid_t" => Some(4),
            "u64" | "s64" | "__u64" | "__s64" | "uint64_t" | "int64_t" | "__be64" | "__le64" => {
                Some(8)
            }
            _ => None,
        };
        let by_type =
            self.type_name.split_whitespace().find_map(of_word).filter(|_| !self.is_long());
        by_type.unwrap_or_else(|| if self.is_dynamic() { 0 } else { self.element_size() })
    }

    /// Returns the size of an element of an array in bytes; of anything else, the size of all of
    /// it.
    pub fn element_size(&self) -> usize {
        if !self.is_array || self.is_dynamic() {
            return self.size;
        }
        self.size.checked_div(self.array_len).filter(|size| *size > 0).unwrap_or(self.size)
    }
}

/// Returns type, name and the first array bound of a declaration.
fn declared(text: &str) -> Option<(&str, &str, Option<&str>)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // A pointer to a function has its name in its own parentheses.
    if let Some((type_name, rest)) = text.split_once("(*") {
        return Some((type_name.trim(), rest.split(')').next()?.trim(), None))
            .filter(|(_, name, _)| !name.is_empty());
    }
    let (mut head, mut bounds) = (text.trim_end(), None);
    while let Some(open) = head.strip_suffix(']').and_then(|head| head.rfind('[')) {
        bounds = Some(head.get(open + 1..head.len() - 1)?.trim());
        head = head.get(..open)?.trim_end();
    }
    let begin = head.rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
    let name = head.get(begin..)?;
    let type_name = head.get(..begin)?.trim();
    (!name.is_empty()).then_some((type_name, name, bounds))
}

fn number(text: &str) -> Option<usize> {
    match text.strip_prefix("0x") {
        Some(hex) => usize::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the beginning of a line, for a message.
pub(super) fn shown(line: &[u8]) -> String {
    const MOST: usize = 60;
    line.get(..MOST).unwrap_or(line).escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(declaration: &str) -> EventField {
        let line = format!("field:{declaration};\toffset:8;\tsize:16;\tsigned:1;");
        EventField::parse(line.as_bytes(), 0).unwrap()
    }

    #[test]
    fn declarations() {
        let parts = |text: &str| {
            let f = field(text);
            (f.type_name.clone(), f.name.clone(), f.is_array, f.array_len)
        };
        let own = |(t, n, a, l): (&str, &str, bool, usize)| (t.to_owned(), n.to_owned(), a, l);
        for (text, expected) in [
            ("unsigned short common_type", ("unsigned short", "common_type", false, 0)),
            ("char prev_comm[16]", ("char", "prev_comm", true, 16)),
            ("unsigned long args[ 0x6 ]", ("unsigned long", "args", true, 6)),
            ("__data_loc char[] name", ("__data_loc char[]", "name", true, 0)),
            ("__rel_loc char[] name", ("__rel_loc char[]", "name", true, 0)),
            ("const char * fmt", ("const char *", "fmt", false, 0)),
            ("char *fmt", ("char *", "fmt", false, 0)),
            ("u8 addr[ETH_ALEN]", ("u8", "addr", true, 0)),
            ("u8 grid[2][8]", ("u8", "grid", true, 2)),
            ("int (*fn)(void)", ("int", "fn", false, 0)),
        ] {
            assert_eq!(parts(text), own(expected), "{text}");
        }
    }

    #[test]
    fn what_a_field_is_follows_from_its_type() {
        assert!(field("char a[16]").is_string() && field("__data_loc u8[] a").is_string());
        assert!(!field("int a[4]").is_string() && !field("char a").is_string());
        assert!(
            field("void * a").is_pointer()
                && field("unsigned long a").is_long()
                && !field("longer_t a").is_long()
        );
        assert!(
            field("__rel_loc char[] a").is_relative() && field("__data_loc char[] a").is_dynamic()
        );
        assert_eq!([field("int a[4]").element_size(), field("int a").element_size()], [4, 16]);
        assert!(EventField::parse(b"field:int a;\toffset:1;", 0).is_err());
        assert!(EventField::parse(b"field:;\toffset:1;\tsize:1;", 0).is_err());
        assert!(!EventField::parse(b"field:int a;\toffset:1;\tsize:4;", 0).unwrap().is_signed);
    }
}
