//! The kernel's `%p` extensions: functions, network addresses, UUIDs, bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::eval::FieldValues;
use super::expr::Expr;
use super::printf::{Spec, hex, list, words};

impl FieldValues<'_> {
    /// Writes the argument of a `%p` that is followed by `letters`.
    pub(super) fn pointer(
        &self,
        expr: &Expr,
        letters: &str,
        spec: &Spec,
        len: Option<u64>,
        out: &mut Vec<u8>,
    ) {
        let bytes = || self.bytes(expr);
        let mac = |separator| hex(bytes().get(..6).unwrap_or_default(), separator);
        let buffer = |separator| {
            let len = len.and_then(|len| usize::try_from(len).ok());
            hex(len.and_then(|len| bytes().get(..len)).unwrap_or(bytes()), separator)
        };
        let text = match letters.as_bytes() {
            [b'F' | b'S', ..] => self.function(self.number(expr), true),
            [b'f' | b's', ..] => self.function(self.number(expr), false),
            [b'm', ..] => mac(""),
            [b'M', b'F', ..] => mac("-"),
            [b'M', ..] => mac(":"),
            [b'I' | b'i', b'4', ..] => v4(bytes(), letters),
            [b'I' | b'i', b'6', ..] => v6(bytes(), letters),
            [b'I' | b'i', b'S', ..] => socket(bytes(), letters),
            [b'I' | b'i', ..] => String::new(),
            [b'b', b'l', ..] => list(&self.longs(bytes())),
            [b'b', ..] => words(&self.longs(bytes())),
            [b'U', order @ ..] => uuid(bytes(), order),
            [b'h', b'C', ..] => buffer(":"),
            [b'h', b'D', ..] => buffer("-"),
            [b'h', b'N', ..] => buffer(""),
            [b'h', ..] => buffer(" "),
            _ => {
                let value = self.number(expr);
                let text = if value == 0 { "(nil)".into() } else { format!("{value:#x}") };
                return Spec { precision: None, ..spec.clone() }.text(text.as_bytes(), out);
            }
        };
        out.extend_from_slice(text.as_bytes());
    }

    fn function(&self, address: u64, with_offset: bool) -> String {
        match self.kernel.function(address) {
            Some((name, offset)) if with_offset => format!("{name}+{offset:#x}"),
            Some((name, _)) => name,
            None => format!("0x{address:x}"),
        }
    }
}

/// Returns an IPv4 address: with three digits per byte after `i`.
fn v4(bytes: &[u8], letters: &str) -> String {
    let Some(parts) = bytes.first_chunk::<4>() else { return String::new() };
    let [a, b, c, d] = parts;
    if letters.starts_with('i') {
        format!("{a:03}.{b:03}.{c:03}.{d:03}")
    } else {
        Ipv4Addr::from(*parts).to_string()
    }
}

/// Returns an IPv6 address: without colons after `i`, and short with `c`.
fn v6(bytes: &[u8], letters: &str) -> String {
    let Some(parts) = bytes.first_chunk::<16>() else { return String::new() };
    let address = Ipv6Addr::from(*parts);
    let separator = if letters.starts_with('I') { ":" } else { "" };
    if letters.contains('c') {
        return address.to_string();
    }
    address.segments().map(|part| format!("{part:04x}")).join(separator)
}

/// Returns a `struct sockaddr`: the family in host byte order (either is accepted), the port (with
/// `p`), the address.
fn socket(bytes: &[u8], letters: &str) -> String {
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    let family = bytes
        .first_chunk::<2>()
        .map(|pair| u16::from_le_bytes(*pair).min(u16::from_be_bytes(*pair)));
    let port = bytes
        .get(2..)
        .and_then(|bytes| bytes.first_chunk::<2>())
        .map_or(0, |pair| u16::from_be_bytes(*pair));
    let has_port = letters.contains('p');
    let address = match family {
        Some(AF_INET) => v4(bytes.get(4..).unwrap_or_default(), letters),
        Some(AF_INET6) => v6(bytes.get(8..).unwrap_or_default(), letters),
        _ => return String::new(),
    };
    match family {
        Some(AF_INET6) if has_port => format!("[{address}]:{port}"),
        _ if has_port => format!("{address}:{port}"),
        _ => address,
    }
}

/// Returns a UUID: big-endian (`%pUb`), or with its first three parts little-endian (`%pUl`); after
/// `B` and `L` in upper case.
fn uuid(bytes: &[u8], order: &[u8]) -> String {
    let Some(mut bytes) = bytes.first_chunk::<16>().copied() else { return String::new() };
    if matches!(order, [b'l' | b'L', ..]) {
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
    }
    let parts = [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]];
    let text = parts.map(|part| hex(part, "")).join("-");
    if matches!(order, [b'B' | b'L', ..]) { text.to_uppercase() } else { text }
}
