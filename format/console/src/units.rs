//! Numbers, sizes and times as people read them. JSON and CSV have raw numbers.

/// Formats a number with commas between thousands: `6,992`.
pub fn grouped(number: u64) -> String {
    grouped_digits(&number.to_string())
}

/// Puts commas between the thousands of a number that is a text: `6,992.25`. Other texts stay.
pub fn grouped_digits(number: &str) -> String {
    let point = number.find('.').unwrap_or(number.len());
    let (digits, fraction) = number.split_at(point);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let mut text = String::with_capacity(number.len() + number.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// Formats a number of bytes in the largest unit of which there is one: `388 KiB`, `1.5 MiB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(length, _)| number >= *length) {
        None => format!("{number} {}", if number == 1 { "byte" } else { "bytes" }),
        Some((length, unit)) => {
            let size = ratio(number, *length);
            let decimals = usize::from(size < 99.95);
            format!("{size:.decimals$} {unit}")
        }
    }
}

/// Formats a time in the largest of its units: `5.80 s`, `30 ms`, `12.5 us`, `7 ns`.
pub fn time(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => in_units(nanoseconds, 1_000, "us"),
        1_000_000..1_000_000_000 => in_units(nanoseconds, 1_000_000, "ms"),
        _ => format!("{:.2} s", ratio(nanoseconds, 1_000_000_000)),
    }
}

/// Formats a time of which only the magnitude matters: `2.0 s`, `0.4 ms`, `12 us`.
pub fn rough_time(nanoseconds: u64) -> String {
    match nanoseconds {
        0..100_000 => format!("{} us", nanoseconds.div_ceil(1000)),
        100_000..100_000_000 => format!("{:.1} ms", ratio(nanoseconds, 1_000_000)),
        _ => format!("{:.1} s", ratio(nanoseconds, 1_000_000_000)),
    }
}

/// Formats a number in units of `length`, with a decimal place unless it is a multiple of it.
fn in_units(number: u64, length: u64, unit: &str) -> String {
    let decimals = usize::from(!number.is_multiple_of(length));
    format!("{:.decimals$} {unit}", ratio(number, length))
}

#[allow(clippy::cast_precision_loss, reason = "a few decimal places are shown")]
fn ratio(number: u64, length: u64) -> f64 {
    number as f64 / length as f64
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
        let texts = ["1", "1234", "123456.78", "1234567", "-1234", "<not counted>", ""];
        let expected = ["1", "1,234", "123,456.78", "1,234,567", "-1234", "<not counted>", ""];
        assert_eq!(texts.map(grouped_digits), expected);
        assert_eq!([list(&[]), list(&[0, 12])], ["", "0, 12"]);
        assert_eq!(bit_names([("IP", 1), ("TID", 2)].into_iter()), "IP|TID");
        assert_eq!(bit_names::<u8>([].into_iter()), "0");
        assert_eq!(
            ["a/b.data", "a b", "it's", ""].map(quoted),
            ["a/b.data", "'a b'", "'it'\\''s'", "''"]
        );
    }

    #[test]
    fn sizes_are_binary() {
        let sizes = [0, 1, 1023, 1024, 1536, 397_348, 1 << 20, 5 << 20, 3 << 29, 5 << 40];
        let texts = [
            "0 bytes",
            "1 byte",
            "1023 bytes",
            "1.0 KiB",
            "1.5 KiB",
            "388 KiB",
            "1.0 MiB",
            "5.0 MiB",
            "1.5 GiB",
            "5120 GiB",
        ];
        assert_eq!(sizes.map(bytes), texts);
    }

    #[test]
    fn times_have_their_units() {
        let times = [0, 999, 1_000, 12_510, 30_000_000, 30_250_000, 5_798_266_569, 60_000_000_000];
        let texts = ["0 ns", "999 ns", "1 us", "12.5 us", "30 ms", "30.2 ms", "5.80 s", "60.00 s"];
        assert_eq!(times.map(time), texts);
        assert_eq!([7, 400_000, 2_000_000_000].map(rough_time), ["1 us", "0.4 ms", "2.0 s"]);
    }
}
