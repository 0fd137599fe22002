//! The kernel's `%p` extensions: functions, network addresses, UUIDs, bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::bitmap::{list, words};
use super::eval::{Values, hex};
use super::expr::Expr;
use super::printf::Spec;

impl Values<'_> {
    /// Writes the argument of a `%p` that is followed by `letters`.
    pub(super) fn pointer(&self, expr: &Expr, letters: &str, spec: &Spec, len: Option<u64>, out: &mut Vec<u8>) {
        let bytes = || self.bytes(expr);
        let mut rest = letters.chars();
        match rest.next() {
            Some(letter @ ('F' | 'f' | 'S' | 's')) => self.function(self.number(expr), letter, out),
            Some('M' | 'm') => {
                let separator = match (letters.starts_with('m'), rest.next()) {
                    (true, _) => "",
                    (_, Some('F')) => "-",
                    _ => ":",
                };
                hex(bytes().get(..6).unwrap_or_default(), separator, out);
            }
            Some(letter @ ('I' | 'i')) => ip(bytes(), letter, rest.as_str(), out),
            Some('b') => {
                let longs = self.longs(bytes());
                if rest.next() == Some('l') { list(&longs, out) } else { words(&longs, out) }
            }
            Some('U') => uuid(bytes(), rest.next(), out),
            Some('h') => {
                let separator = match rest.next() {
                    Some('C') => ":",
                    Some('D') => "-",
                    Some('N') => "",
                    _ => " ",
                };
                let all = bytes();
                let len = len.and_then(|len| usize::try_from(len).ok()).unwrap_or(all.len());
                hex(all.get(..len).unwrap_or(all), separator, out);
            }
            _ => {
                let value = self.number(expr);
                let text = if value == 0 { "(nil)".into() } else { format!("{value:#x}") };
                Spec { precision: None, ..spec.clone() }.text(text.as_bytes(), out);
            }
        }
    }

    fn function(&self, address: u64, letter: char, out: &mut Vec<u8>) {
        let text = match self.kernel.function(address) {
            Some((name, offset)) if matches!(letter, 'F' | 'S') => format!("{name}+{offset:#x}"),
            Some((name, _)) => name,
            None => format!("0x{address:x}"),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

/// Writes the argument of `%pI4`, `%pi4`, `%pI6`, `%pi6`, `%pI6c` or `%pIS…`.
fn ip(bytes: &[u8], letter: char, rest: &str, out: &mut Vec<u8>) {
    match (rest.chars().next(), rest.contains('c')) {
        (Some('4'), _) => v4(bytes, letter, out),
        (Some('6'), is_short) => v6(bytes, letter, is_short, out),
        (Some('S'), is_short) => socket(bytes, letter, is_short, rest.contains('p'), out),
        _ => {}
    }
}

fn v4(bytes: &[u8], letter: char, out: &mut Vec<u8>) {
    let Some(parts) = bytes.first_chunk::<4>() else { return };
    let [a, b, c, d] = parts;
    let text = if letter == 'i' { format!("{a:03}.{b:03}.{c:03}.{d:03}") } else { Ipv4Addr::from(*parts).to_string() };
    out.extend_from_slice(text.as_bytes());
}

fn v6(bytes: &[u8], letter: char, is_short: bool, out: &mut Vec<u8>) {
    let Some(parts) = bytes.first_chunk::<16>() else { return };
    let address = Ipv6Addr::from(*parts);
    let all_digits = || address.segments().map(|part| format!("{part:04x}")).join(if letter == 'I' { ":" } else { "" });
    let text = if is_short { address.to_string() } else { all_digits() };
    out.extend_from_slice(text.as_bytes());
}

/// Writes a `struct sockaddr`: the family in host byte order (either is accepted), the port, the address.
fn socket(bytes: &[u8], letter: char, is_short: bool, has_port: bool, out: &mut Vec<u8>) {
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    let family = bytes.first_chunk::<2>().map(|pair| u16::from_le_bytes(*pair).min(u16::from_be_bytes(*pair)));
    let port = bytes.get(2..).and_then(|bytes| bytes.first_chunk::<2>()).map_or(0, |pair| u16::from_be_bytes(*pair));
    match family {
        Some(AF_INET) => v4(bytes.get(4..).unwrap_or_default(), letter, out),
        Some(AF_INET6) => {
            if has_port {
                out.push(b'[');
            }
            v6(bytes.get(8..).unwrap_or_default(), letter, is_short, out);
            if has_port {
                out.push(b']');
            }
        }
        _ => return,
    }
    if has_port {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
}

/// Writes a UUID: big-endian (`%pUb`), or with its first three parts little-endian (`%pUl`); `B` and `L` in upper case.
fn uuid(bytes: &[u8], letter: Option<char>, out: &mut Vec<u8>) {
    let Some(parts) = bytes.first_chunk::<16>() else { return };
    let order: [usize; 16] = match letter {
        Some('l' | 'L') => [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15],
        _ => std::array::from_fn(|place| place),
    };
    let mut text = String::new();
    for (place, from) in order.into_iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text += &format!("{:02x}", parts.get(from).copied().unwrap_or(0));
    }
    if matches!(letter, Some('B' | 'L')) {
        text.make_ascii_uppercase();
    }
    out.extend_from_slice(text.as_bytes());
}
