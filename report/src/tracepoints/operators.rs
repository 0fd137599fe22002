//! The binary operators of C.

/// Applies the operator `sign` to two numbers, with or without sign. Returns `None` if it is a division without a
/// result. Shift counts are taken modulo 64, as processors do.
pub(super) fn apply(sign: &str, left: u64, right: u64, is_signed: bool) -> Option<u64> {
    let (signed_left, signed_right) = (left.cast_signed(), right.cast_signed());
    let order = if is_signed { signed_left.cmp(&signed_right) } else { left.cmp(&right) };
    let shift = u32::try_from(right & 63).unwrap_or(0);
    Some(match sign {
        "||" => u64::from(left != 0 || right != 0),
        "&&" => u64::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => u64::from(order.is_eq()),
        "!=" => u64::from(order.is_ne()),
        "<=" => u64::from(order.is_le()),
        ">=" => u64::from(order.is_ge()),
        "<" => u64::from(order.is_lt()),
        ">" => u64::from(order.is_gt()),
        "<<" => left.wrapping_shl(shift),
        ">>" if is_signed => signed_left.wrapping_shr(shift).cast_unsigned(),
        ">>" => left.wrapping_shr(shift),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "/" if is_signed => signed_left.checked_div(signed_right)?.cast_unsigned(),
        "/" => left.checked_div(right)?,
        _ if is_signed => signed_left.checked_rem(signed_right)?.cast_unsigned(),
        _ => left.checked_rem(right)?,
    })
}
