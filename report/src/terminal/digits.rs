//! Numbers as text at the end of a buffer, for text with millions of them.

/// Appends `number` in decimal, right-aligned in `width` columns.
pub(crate) fn decimal(out: &mut Vec<u8>, number: impl itoa::Integer, width: usize) {
    padded(out, itoa::Buffer::new().format(number).as_bytes(), b' ', width);
}

/// Appends `number` in decimal with leading zeros, at least `width` digits.
pub(crate) fn zeros(out: &mut Vec<u8>, number: u64, width: usize) {
    padded(out, itoa::Buffer::new().format(number).as_bytes(), b'0', width);
}

/// Appends `number` in hexadecimal, right-aligned in `width` columns.
pub(crate) fn hex(out: &mut Vec<u8>, number: u64, width: usize) {
    hexadecimal(out, number, b' ', width);
}

/// Appends `number` in hexadecimal with leading zeros, at least `width` digits.
pub(crate) fn hex_zeros(out: &mut Vec<u8>, number: u64, width: usize) {
    hexadecimal(out, number, b'0', width);
}

/// Returns the two hexadecimal digits of a byte.
#[inline]
pub(crate) fn hex_byte(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|value| if value < 10 { b'0' + value } else { b'a' - 10 + value })
}

#[inline]
fn hexadecimal(out: &mut Vec<u8>, number: u64, fill: u8, width: usize) {
    let (digits, zeros) = hex_digits(number);
    let first = zeros.min(16usize.saturating_sub(width));
    out.resize(out.len() + width.saturating_sub(16), fill);
    // Leading zeros become `fill`; the first digit to print moves to the front, and all 16 bytes
    // are copied, which is faster than a copy of any other length.
    let end = out.len() + 16 - first;
    out.extend_from_slice(&((digits ^ leading(zeros, fill)) << (8 * first)).to_be_bytes());
    out.truncate(end);
}

/// Returns a number in hexadecimal, right-aligned in 16 columns.
#[inline]
pub(crate) fn hex_column(number: u64) -> [u8; 16] {
    let (digits, zeros) = hex_digits(number);
    (digits ^ leading(zeros, b' ')).to_be_bytes()
}

/// Returns what turns this many leading zeros among 16 digits into `fill`.
#[inline]
fn leading(zeros: usize, fill: u8) -> u128 {
    !(u128::MAX >> (8 * zeros)) & (u128::MAX / 0xff * u128::from(b'0' ^ fill))
}

/// Returns all hexadecimal digits of a number as the bytes of another, and how many zeros to leave
/// out.
#[inline]
fn hex_digits(number: u64) -> (u128, usize) {
    let digits = u128::from(eight_digits(number >> 32)) << 64
        | u128::from(eight_digits(number & 0xffff_ffff));
    (digits, (number.leading_zeros() as usize / 4).min(15))
}

/// Returns the eight hexadecimal digits of a number below 2^32 as the bytes of one number, all at
/// once.
#[inline]
fn eight_digits(number: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let pairs = (number | number << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff;
    let values = (bytes | bytes << 4) & (0x0f * ONES);
    let is_letter = (values + 6 * ONES) >> 4 & ONES;
    values + u64::from(b'0') * ONES + u64::from(b'a' - b'0' - 10) * is_letter
}

/// Returns `0x` and `number` in hexadecimal.
pub(crate) fn address(number: u64) -> String {
    let (digits, zeros) = hex_digits(number);
    let digits = digits.to_be_bytes();
    [
        "0x",
        digits.get(zeros..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default(),
    ]
    .concat()
}

/// Appends `text`, right-aligned in `width` columns that `fill` fills.
pub(crate) fn padded(out: &mut Vec<u8>, text: &[u8], fill: u8, width: usize) {
    out.resize(out.len() + width.saturating_sub(text.len()), fill);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_are_those_of_the_standard_library(number: u64, small in 0u64..300, width in 0usize..24) {
            for number in [number, small, 0, u64::MAX] {
                let mut out = b"|".to_vec();
                decimal(&mut out, number, width);
                zeros(&mut out, number, width);
                hex(&mut out, number, width);
                hex_zeros(&mut out, number, width);
                decimal(&mut out, number.cast_signed(), width);
                prop_assert_eq!(hex_column(number).to_vec(), format!("{number:>16x}").into_bytes());
                let mut text = String::from_utf8(out).unwrap();
                text.push_str(&address(number));
                let signed = number.cast_signed();
                prop_assert_eq!(text, format!("|{number:>width$}{number:0width$}{number:>width$x}{number:0width$x}{signed:>width$}{number:#x}"));
            }
        }
    }
}
