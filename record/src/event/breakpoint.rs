//! Breakpoints: `mem:ADDRESS[/LENGTH][:rwx][:MODIFIERS]`.

use recrep_format::abi::EventType;

use super::error::Problem;
use super::modifiers::Modifiers;
use super::spec::EventSpec;
use super::terms::number;
use super::text::{Span, Wrong};

/// `HW_BREAKPOINT_R`, `_W`, `_X` of `include/uapi/linux/hw_breakpoint.h`.
const READ: u32 = 1;
const WRITE: u32 = 2;
const EXECUTE: u32 = 4;
/// Default length of watched data.
const DATA_LENGTH: u64 = 4;
/// Required length of an instruction's breakpoint: that of a `long`, or of an instruction on
/// aarch64.
const CODE_LENGTH: u64 = if cfg!(target_arch = "aarch64") { 4 } else { (usize::BITS / 8) as u64 };

/// Parses a breakpoint. Also returns its modifiers.
pub(super) fn parse(text: Span<'_>) -> Result<(EventSpec, Option<Span<'_>>), Wrong> {
    let Some((_, rest)) = text.split_once(':') else {
        return Err(wrong(text.at, "no address".to_owned()));
    };
    let (place, after) =
        rest.split_once(':').map_or((rest, None), |(place, after)| (place, Some(after)));
    let (address, length) =
        place.split_once('/').map_or((place, None), |(address, length)| (address, Some(length)));
    let value = |piece: Span<'_>, what: &str| {
        number(piece.text)
            .ok_or_else(|| wrong(piece.at, format!("'{}' is not a valid {what}", piece.text)))
    };
    let (access, modifiers) = match after {
        None => (None, None),
        Some(after) => match after.split_once(':') {
            Some((access, modifiers)) => (Some(access), Some(modifiers)),
            None if after.text.bytes().all(|b| b"rwx".contains(&b)) => (Some(after), None),
            None => (None, Some(after)),
        },
    };
    let kind = access.map(self::access).transpose()?.unwrap_or(READ | WRITE);
    let length = length.map(|length| value(length, "length")).transpose()?;
    let usual = if kind == EXECUTE { CODE_LENGTH } else { DATA_LENGTH };
    let end = modifiers.map_or(text.text.len(), |modifiers| modifiers.at - text.at - 1);
    let name = text.text.get(..end).unwrap_or(text.text);
    let spec = EventSpec {
        config1: value(address, "address")?,
        config2: length.filter(|length| *length > 0).unwrap_or(usual),
        bp_type: kind,
        ..EventSpec::numbered(name, EventType::BREAKPOINT, 0)
    };
    Ok((spec, modifiers))
}

fn wrong(at: usize, why: String) -> Wrong {
    (at, Problem::Breakpoint(why))
}

fn access(letters: Span<'_>) -> Result<u32, Wrong> {
    let wrong =
        |at: usize, why: &str| (at, Problem::Breakpoint(format!("'{}' {why}", letters.text)));
    let mut kind = 0;
    for (at, letter) in letters.text.char_indices() {
        let bit = match letter {
            'r' => READ,
            'w' => WRITE,
            'x' => EXECUTE,
            _ if Modifiers::are(letters.text) => {
                return Err(wrong(letters.at, "are modifiers, which must follow rwx"));
            }
            _ => return Err(wrong(letters.at + at, "has a letter other than r, w and x")),
        };
        if kind & bit != 0 {
            return Err(wrong(letters.at + at, "has a letter twice"));
        }
        kind |= bit;
    }
    if kind == 0 { Err(wrong(letters.at, "has no r, w or x")) } else { Ok(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lengths_and_access() {
        for (text, address, length, kind, modifiers) in [
            ("mem:0x1000", 0x1000, 4, 3, None),
            ("mem:4096", 4096, 4, 3, None),
            ("mem:0x1000:x", 0x1000, CODE_LENGTH, 4, None),
            ("mem:0x1000/8:w", 0x1000, 8, 2, None),
            ("mem:0x1000/2:rw:u", 0x1000, 2, 3, Some("u")),
            ("mem:0x1000/1", 0x1000, 1, 3, None),
            ("mem:0x1000:u", 0x1000, 4, 3, Some("u")),
        ] {
            let (spec, found) = parse(Span { text, at: 0 }).unwrap();
            assert_eq!(
                (spec.config1, spec.config2, spec.bp_type),
                (address, length, kind),
                "{text}"
            );
            assert_eq!(found.map(|m| m.text), modifiers);
            assert_eq!((spec.kind, spec.default_period), (EventType::BREAKPOINT, Some(1)));
        }
        assert_eq!(parse(Span { text: "mem:0x10/2:w:uk", at: 0 }).unwrap().0.name, "mem:0x10/2:w");
    }

    #[test]
    fn what_is_no_breakpoint() {
        for (text, at) in [
            ("mem:x", 4),
            ("mem:0x10/x", 9),
            ("mem:0x10:rr", 10),
            ("mem:0x10:q:u", 9),
            ("mem:0x10::u", 9),
        ] {
            let (place, problem) = parse(Span { text, at: 0 }).unwrap_err();
            assert!(matches!(problem, Problem::Breakpoint(_)), "{text}");
            assert_eq!(place, at, "{text}: {problem}");
        }
    }
}
