//! Numbers with their units, for people. JSON and CSV have raw numbers.

/// Formats a time in the largest of its units: `5.80 s`, `30 ms`, `12.5 us`, `7 ns`.
pub(crate) fn time(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => in_units(nanoseconds, 1_000, "us"),
        1_000_000..1_000_000_000 => in_units(nanoseconds, 1_000_000, "ms"),
        _ => format!("{:.2} s", ratio(nanoseconds, 1_000_000_000)),
    }
}

/// Formats a size in the largest unit of which it has one: `1.5 MiB`, `12 bytes`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = units.into_iter().find(|(_, length)| bytes >= *length);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(name, length)| format!("{:.1} {name}", ratio(bytes, length)),
    )
}

/// Formats a number in units of `length`, with a decimal place unless it is whole.
fn in_units(number: u64, length: u64, unit: &str) -> String {
    let decimals = usize::from(!number.is_multiple_of(length));
    format!("{:.decimals$} {unit}", ratio(number, length))
}

#[expect(clippy::cast_precision_loss, reason = "a few decimal places are shown")]
fn ratio(number: u64, length: u64) -> f64 {
    number as f64 / length as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_units() {
        let times = [0, 999, 1_000, 12_510, 30_000_000, 30_250_000, 5_798_266_569, 60_000_000_000];
        let texts = ["0 ns", "999 ns", "1 us", "12.5 us", "30 ms", "30.2 ms", "5.80 s", "60.00 s"];
        assert_eq!(times.map(time), texts);
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(
            [0, 1023, 1024, 1536, 5 << 20, 3 << 29].map(size),
            ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "5.0 MiB", "1.5 GiB"]
        );
    }
}
