//! Formatting of numbers and strings as by C's `printf`.

/// Maximum width of a field and maximum number of digits. Only damaged data asks for more.
const MAX_WIDTH: usize = 4096;

/// A conversion specification, such as `%-8lx`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spec {
    /// `-`: left-justified; `+`: a plus sign before numbers that are not negative, space: a space in its place; `#`: the
    /// prefix `0x` or `0`; `0`: padded with zeroes.
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

#[cfg(test)]
mod tests {
    use super::*;

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
            (Spec { width: usize::MAX, ..spec("", 'u', 4) }, 7, format!("{:>MAX_WIDTH$}", 7).as_str()),
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
        assert_eq!(written(&Spec { precision: Some(1), width: 3, ..spec("", 's', 0) }, b"ab"), "  a");
    }
}
