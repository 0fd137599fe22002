//! Numbers as text at the end of a buffer, for text with millions of them.

/// Appends `number` in decimal, right-aligned in `width` columns.
pub fn decimal(out: &mut Vec<u8>, number: u64, width: usize) {
    padded(out, itoa::Buffer::new().format(number).as_bytes(), b' ', width);
}

/// Appends a signed `number` in decimal, right-aligned in `width` columns.
pub fn signed(out: &mut Vec<u8>, number: i64, width: usize) {
    padded(out, itoa::Buffer::new().format(number).as_bytes(), b' ', width);
}

/// Appends `number` in decimal with leading zeros, at least `width` digits.
pub fn zeros(out: &mut Vec<u8>, number: u64, width: usize) {
    padded(out, itoa::Buffer::new().format(number).as_bytes(), b'0', width);
}

/// Appends `number` in hexadecimal, right-aligned in `width` columns.
pub fn hex(out: &mut Vec<u8>, number: u64, width: usize) {
    hexadecimal(out, number, b' ', width);
}

/// Appends `number` in hexadecimal with leading zeros, at least `width` digits.
pub fn hex_zeros(out: &mut Vec<u8>, number: u64, width: usize) {
    hexadecimal(out, number, b'0', width);
}

/// Returns the two hexadecimal digits of a byte.
#[must_use]
#[inline]
pub fn hex_byte(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(hex_digit)
}

#[inline]
fn hex_digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' - 10 + value }
}

#[inline]
fn hexadecimal(out: &mut Vec<u8>, number: u64, fill: u8, width: usize) {
    let (digits, zeros) = hex_digits(number);
    padded(out, digits.get(zeros..).unwrap_or_default(), fill, width);
}

/// Returns all hexadecimal digits of a number, and how many zeros to leave out.
#[inline]
fn hex_digits(number: u64) -> ([u8; 16], usize) {
    let mut digits = [0; 16];
    for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(number.to_be_bytes()) {
        *pair = hex_byte(byte);
    }
    (digits, (number.leading_zeros() as usize / 4).min(digits.len() - 1))
}

/// Appends `0x` and `number` in hexadecimal.
pub fn push_address(text: &mut String, number: u64) {
    let (digits, zeros) = hex_digits(number);
    text.push_str("0x");
    text.push_str(digits.get(zeros..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default());
}

/// Appends `text`, right-aligned in `width` columns that `fill` fills.
pub fn padded(out: &mut Vec<u8>, text: &[u8], fill: u8, width: usize) {
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
                signed(&mut out, number.cast_signed(), width);
                let mut text = String::from_utf8(out).unwrap();
                push_address(&mut text, number);
                let signed = number.cast_signed();
                prop_assert_eq!(text, format!("|{number:>width$}{number:0width$}{number:>width$x}{number:0width$x}{signed:>width$}{number:#x}"));
            }
        }
    }
}
