//! Formatting of numbers and strings as by C's `printf`, and of bytes and bitmaps as by the
//! kernel's.

/// Maximum width of a field and maximum number of digits. Only damaged data asks for more.
const MAX_WIDTH: usize = 4096;

/// A conversion specification, such as `%-8lx`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spec {
    /// `-`: left-justified; `+`: a plus sign before numbers that are not negative, space: a space
    /// in its place; `#`: the prefix `0x` or `0`; `0`: padded with zeroes.
    pub(super) flags: String,
    pub(super) width: usize,
    /// Minimum number of digits, or maximum number of bytes of a string.
    pub(super) precision: Option<usize>,
    /// Size of the number in bytes.
    pub(super) size: usize,
    /// The conversion: `d`, `x`, `s`, `p` and so on.
    pub(super) letter: char,
}

impl Spec {
    pub(super) fn number(&self, value: u64, out: &mut Vec<u8>) {
        let bits = 8 * u32::try_from(self.size.clamp(1, 8)).unwrap_or(8);
        let shift = 64 - bits;
        let (plain, signed) = (value << shift >> shift, (value << shift).cast_signed() >> shift);
        let has = |flag| self.flags.contains(flag);
        let sign = match self.letter {
            'd' | 'i' if signed < 0 => "-",
            'd' | 'i' if has('+') => "+",
            'd' | 'i' if has(' ') => " ",
            'x' if has('#') && plain != 0 => "0x",
            'X' if has('#') && plain != 0 => "0X",
            'o' if has('#') && plain != 0 => "0",
            _ => "",
        };
        let digits = match self.letter {
            'd' | 'i' => signed.unsigned_abs().to_string(),
            'x' => format!("{plain:x}"),
            'X' => format!("{plain:X}"),
            'o' => format!("{plain:o}"),
            'c' => return self.pad(&plain.to_le_bytes()[..1], out),
            _ => plain.to_string(),
        };
        let least = match self.precision {
            Some(precision) => precision.min(MAX_WIDTH),
            None if has('0') && !has('-') => self.width.min(MAX_WIDTH).saturating_sub(sign.len()),
            None => 0,
        };
        let digits = if self.precision == Some(0) && plain == 0 { String::new() } else { digits };
        self.pad(format!("{sign}{digits:0>least$}").as_bytes(), out);
    }

    /// Writes a string up to its first NUL or the precision.
    pub(super) fn text(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let most = self.precision.unwrap_or(usize::MAX);
        let len = bytes.iter().take(most).take_while(|byte| **byte != 0).count();
        self.pad(bytes.get(..len).unwrap_or_default(), out);
    }

    fn pad(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let fill = self.width.min(MAX_WIDTH).saturating_sub(bytes.len());
        let blanks = std::iter::repeat_n(b' ', fill);
        if self.flags.contains('-') {
            out.extend_from_slice(bytes);
            out.extend(blanks);
        } else {
            out.extend(blanks);
            out.extend_from_slice(bytes);
        }
    }
}

/// Returns bytes as pairs of hexadecimal digits.
pub(crate) fn hex(bytes: &[u8], separator: &str) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(separator)
}

/// Returns a bitmap (`%*pb`) as 32-bit words separated by commas, from the highest nonzero one
/// down.
pub(super) fn words(longs: &[u64]) -> String {
    let halves: Vec<u64> = longs.iter().flat_map(|long| [long & 0xffff_ffff, long >> 32]).collect();
    let used = halves.iter().rposition(|word| *word != 0).map_or(1, |last| last + 1);
    let words = halves.iter().take(used).rev().enumerate();
    words
        .map(|(place, word)| if place == 0 { format!("{word:x}") } else { format!(",{word:08x}") })
        .collect()
}

/// Returns the set bits of a bitmap (`%*pbl`) as a list of ranges, such as `0,2-4`.
pub(super) fn list(longs: &[u64]) -> String {
    let all = longs.iter().enumerate().flat_map(|(place, long)| {
        (0..64).filter(move |bit| long >> bit & 1 == 1).map(move |bit| 64 * place + bit)
    });
    let bits: Vec<usize> = all.collect();
    let ranges = bits.chunk_by(|bit, next| bit + 1 == *next).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_are_words_or_ranges() {
        assert_eq!(words(&[0x1_0000_000f, 0]), "1,0000000f");
        assert_eq!(words(&[0]), "0");
        assert_eq!(list(&[0b1_1101, 1]), "0,2-4,64");
        assert_eq!(list(&[1 << 63, 1]), "63-64");
        assert_eq!(list(&[]), "");
    }

    fn spec(flags: &str, letter: char, size: usize) -> Spec {
        Spec { flags: flags.into(), letter, size, ..Spec::default() }
    }

    #[test]
    fn formats_numbers_like_c() {
        for (spec, value, written) in [
            (spec("", 'd', 4), 0xffff_ffff, "-1"),
            (spec("", 'd', 8), 0xffff_ffff, "4294967295"),
            (spec("", 'u', 2), 0x1_0001, "1"),
            (spec("#", 'x', 8), 255, "0xff"),
            (spec("#", 'x', 8), 0, "0"),
            (Spec { width: 8, ..spec("0", 'x', 8) }, 255, "000000ff"),
            (Spec { width: 5, ..spec("0", 'd', 4) }, 0xffff_fffe, "-0002"),
            (Spec { width: 8, ..spec("#0", 'x', 8) }, 255, "0x0000ff"),
            (Spec { width: 4, ..spec("-", 'd', 4) }, 7, "7   "),
            (Spec { precision: Some(3), width: 5, ..spec("", 'u', 4) }, 7, "  007"),
            (
                Spec { width: usize::MAX, ..spec("", 'u', 4) },
                7,
                format!("{:>MAX_WIDTH$}", 7).as_str(),
            ),
        ] {
            let mut out = Vec::new();
            spec.number(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }

    #[test]
    fn strings_end_at_nul_or_precision() {
        let written = |spec: &Spec, text: &[u8]| {
            let mut out = Vec::new();
            spec.text(text, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&spec("", 's', 0), b"ab\0cd"), "ab");
        assert_eq!(
            written(&Spec { precision: Some(1), width: 3, ..spec("", 's', 0) }, b"ab"),
            "  a"
        );
    }
}
