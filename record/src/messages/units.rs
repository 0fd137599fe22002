//! Numbers as people read them.

/// Formats a number with commas between thousands: `6,992`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes in the largest unit that leaves one before the point: `388 KiB`,
/// `1.5 MiB`.
#[allow(clippy::cast_precision_loss, reason = "a rounded size")]
pub fn bytes(n: u64) -> String {
    const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match UNITS.iter().find(|(bits, _)| n >> bits > 0) {
        None => format!("{n} {}", if n == 1 { "byte" } else { "bytes" }),
        Some((bits, unit)) => {
            let size = n as f64 / (1u64 << bits) as f64;
            if size < 99.95 { format!("{size:.1} {unit}") } else { format!("{size:.0} {unit}") }
        }
    }
}

/// Formats a time: `2.0 s`, `0.4 ms`, `12 us`.
#[allow(clippy::cast_precision_loss, reason = "a rounded time")]
pub fn seconds(nanos: u64) -> String {
    match nanos {
        0..100_000 => format!("{} us", nanos.div_ceil(1000)),
        100_000..100_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.1} s", nanos as f64 / 1e9),
    }
}

/// Joins the names of set bits: `IP|TID`; `0` if there are none.
pub fn bit_names<T>(bits: impl Iterator<Item = (&'static str, T)>) -> String {
    let names: Vec<_> = bits.map(|(name, _)| name).collect();
    if names.is_empty() { "0".to_owned() } else { names.join("|") }
}

/// Lists numbers: `0, 1`.
pub fn list(numbers: &[u32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    numbers.join(", ")
}

/// Quotes a name for a shell, where that is needed.
pub fn quoted(name: &str) -> String {
    if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "/._-+,:@%=".contains(c)) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let sizes = [1, 1023, 1024, 397_348, 1 << 20, 3 << 29, 5 << 40];
        assert_eq!(
            sizes.map(bytes),
            ["1 byte", "1023 bytes", "1.0 KiB", "388 KiB", "1.0 MiB", "1.5 GiB", "5120 GiB"]
        );
        assert_eq!([list(&[]), list(&[0, 12])], ["", "0, 12"]);
        assert_eq!(bit_names([("IP", 1), ("TID", 2)].into_iter()), "IP|TID");
        assert_eq!(bit_names::<u8>([].into_iter()), "0");
        assert_eq!([7, 400_000, 2_000_000_000].map(seconds), ["1 us", "0.4 ms", "2.0 s"]);
        assert_eq!(
            ["a/b.data", "a b", "it's", ""].map(quoted),
            ["a/b.data", "'a b'", "'it'\\''s'", "''"]
        );
    }
}
