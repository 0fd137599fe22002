//! The binary operators of C, on numbers with and without sign.

macro_rules! operators {
    ($($(#[$meta:meta])* $name:ident: $number:ty;)*) => { $(
        $(#[$meta])*
        ///
        /// Returns `None` if it is a division without a result. Shift counts are taken modulo 64, as processors do.
        pub(super) fn $name(sign: &str, left: $number, right: $number) -> Option<$number> {
            let shift = u32::try_from(right & 63).unwrap_or(0);
            Some(match sign {
                "||" => <$number>::from(left != 0 || right != 0),
                "&&" => <$number>::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => <$number>::from(left == right),
                "!=" => <$number>::from(left != right),
                "<=" => <$number>::from(left <= right),
                ">=" => <$number>::from(left >= right),
                "<" => <$number>::from(left < right),
                ">" => <$number>::from(left > right),
                "<<" => left.wrapping_shl(shift),
                ">>" => left.wrapping_shr(shift),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            })
        }
    )* };
}

operators! {
    /// Applies the operator `sign` to signed numbers.
    signed: i64;
    /// Applies the operator `sign` to unsigned numbers.
    unsigned: u64;
}
