//! Build IDs: the identity of an ELF file, up to 20 bytes.

use std::fmt;

/// A build ID (the GNU note of an ELF file): 1 to 20 bytes. It prints as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl BuildId {
    /// The longest that the format has room for (SHA-1).
    pub const MAX: usize = 20;

    /// Returns a build ID of these bytes; longer ones are cut as perf cuts them. `None` when there
    /// are none.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let len = bytes.len().min(Self::MAX);
        let mut id = Self { bytes: [0; Self::MAX], len: u8::try_from(len).ok()? };
        id.bytes.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        (len > 0).then_some(id)
    }

    /// Returns the build ID in the note of a Go program, `ACTION/…/CONTENTS`: the hash of its contents,
    /// as its 20 characters. `None` if the text has another form: it may be the same for all builds.
    pub fn of_go_note(text: &[u8]) -> Option<Self> {
        let slash = text.iter().rposition(|byte| *byte == b'/')?;
        let contents = text.get(slash + 1..)?;
        let id = Self::new(contents).filter(Self::is_of_go);
        id.filter(|_| contents.len() == Self::MAX)
    }

    /// Returns whether this is the build ID of a Go program: no other one consists of letters and
    /// digits.
    pub fn is_of_go(&self) -> bool {
        let is_character = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        usize::from(self.len) == Self::MAX && self.bytes.iter().all(is_character)
    }

    /// Returns the bytes that count.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// Returns whether two build IDs are the same. A record has room for 20 bytes, and not every
    /// recorder stores how many of them count, so that zeroes at the end may be missing in either.
    pub fn is_same(&self, other: &Self) -> bool {
        self.bytes == other.bytes && !self.is_blank()
    }

    /// Returns whether all bytes are zero: a place that nobody filled, which identifies no file.
    pub fn is_blank(&self) -> bool {
        self.bytes == [0; Self::MAX]
    }

    /// Returns the build IDs under which files with this one may be stored, likely ones first: the
    /// same bytes without the zeroes that a recorder appended, or with those that an older one did.
    ///
    /// Build IDs have 20 bytes (SHA-1), 16 (MD5, UUID) or 8 (a fast hash of lld). One that really
    /// has 20 ends with four zeroes once in 2^32.
    pub fn spellings(&self) -> Vec<Self> {
        const WHOLE: u8 = 20;
        const SHORT: [u8; 2] = [16, 8];
        let counting = self.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let counting = u8::try_from(counting).unwrap_or(self.len);
        let with = |len: u8| Self { len, ..*self };
        if self.len == WHOLE && (1..=SHORT[0]).contains(&counting) {
            let mut lengths: Vec<u8> = SHORT.into_iter().filter(|len| *len >= counting).collect();
            lengths.extend((!lengths.contains(&counting)).then_some(counting));
            return lengths.into_iter().chain([self.len]).map(with).collect();
        }
        let padded = SHORT.contains(&self.len).then(|| with(WHOLE));
        [*self].into_iter().chain(padded).collect()
    }

    /// Returns all 20 bytes, zeroes after the ones that count.
    pub fn padded(&self) -> [u8; Self::MAX] {
        self.bytes
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_prints_in_hexadecimal() {
        let id = BuildId::new(&[0xab, 0x01]).unwrap();
        assert_eq!(id.to_string().as_str(), "ab01");
        assert_eq!(format!("{id:?}").as_str(), "BuildId(ab01)");
    }

    #[test]
    fn zeroes_at_the_end_do_not_count() {
        let of = |len: usize, counting: usize| {
            let bytes: Vec<u8> = (0..len).map(|at| if at < counting { 7 } else { 0 }).collect();
            BuildId::new(&bytes).unwrap()
        };
        assert!(of(16, 16).is_same(&of(20, 16)) && of(20, 8).is_same(&of(8, 8)));
        assert!(!of(16, 16).is_same(&of(20, 20)) && !of(20, 0).is_same(&of(8, 0)));
        for (id, lengths) in [
            (of(20, 20), &[20][..]),
            (of(20, 17), &[20]),
            (of(20, 16), &[16, 20]),
            (of(20, 15), &[16, 15, 20]),
            (of(20, 8), &[16, 8, 20]),
            (of(20, 3), &[16, 8, 3, 20]),
            (of(20, 0), &[20]),
            (of(16, 16), &[16, 20]),
            (of(8, 8), &[8, 20]),
            (of(3, 3), &[3]),
        ] {
            let spellings = id.spellings();
            assert_eq!(
                spellings.iter().map(|id| id.as_bytes().len()).collect::<Vec<_>>(),
                lengths,
                "{id}"
            );
            assert!(id.is_blank() || spellings.iter().all(|other| id.is_same(other)));
        }
    }

    #[test]
    fn go_programs_have_the_hash_of_their_contents() {
        let id = BuildId::of_go_note(b"a/bcd/efg/0123456789-_ABCDEfgh").unwrap();
        assert_eq!(id.as_bytes(), b"0123456789-_ABCDEfgh");
        assert!(id.is_of_go() && !BuildId::new(&[0xab; 20]).unwrap().is_of_go());
        for text in
            [&b"redacted"[..], b"0123456789abcdefghij", b"a/short", b"a/0123456789 bcdefghij"]
        {
            assert_eq!(BuildId::of_go_note(text), None);
        }
    }

    #[test]
    fn it_has_20_bytes_at_most_and_one_at_least() {
        assert_eq!(BuildId::new(&[7; 32]).unwrap().as_bytes(), [7; 20]);
        assert_eq!(BuildId::new(&[]), None);
        assert_eq!(BuildId::new(&[7]).unwrap().padded()[..2], [7, 0]);
    }
}
