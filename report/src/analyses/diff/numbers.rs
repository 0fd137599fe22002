//! Numbers as the text of comparisons has them: signed, with a true minus.

/// Formats a part as a signed percentage with these decimals, without its sign `%`.
pub(super) fn signed(part: f64, decimals: usize) -> String {
    let text = format!("{:+.decimals$}", part * 100.0);
    let is_zero = text.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0');
    if is_zero { text.replace('-', "+") } else { text.replace('-', "−") }
}

/// Factor from which on a change is printed as one.
const TENFOLD: f64 = 10.0;

/// Formats a change as a factor, `×12.5`, if it is past one of ten.
fn factor(part: f64) -> Option<String> {
    let factor = part + 1.0;
    let decimals = usize::from(factor < 100.0);
    (factor >= TENFOLD).then(|| format!("×{factor:.decimals$}"))
}

/// Formats a change in a sentence: `+2.7 %`, `−27 %`, `×12.5`.
pub(super) fn change(part: f64) -> String {
    let decimals = usize::from(part.abs() < 0.1);
    factor(part).unwrap_or_else(|| format!("{} %", signed(part, decimals)))
}

/// Formats a change of a column: `+2.7 %`, `−27.0 %`, `×12.5`.
pub(super) fn change_cell(part: f64) -> String {
    factor(part).unwrap_or_else(|| format!("{} %", signed(part, 1)))
}

/// Formats a positive change in a sentence: `25 %`, `0.5 %`, `×12.5`.
pub(super) fn percent(part: f64) -> String {
    match part {
        part if !part.is_finite() => "∞".into(),
        part if part + 1.0 >= TENFOLD => factor(part).unwrap_or_default(),
        part if part < 0.1 => {
            let text = format!("{:.1}", part * 100.0);
            format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
        }
        part => format!("{:.0} %", part * 100.0),
    }
}

/// Formats a share of a column: `6.3 %`.
pub(super) fn share(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Formats the interval of a change, `[+0.1, +5.4]`; an end that does not exist is `…`.
pub(super) fn interval(low: Option<f64>, high: Option<f64>) -> String {
    let end = |end: f64| factor(end).unwrap_or_else(|| signed(end, 1));
    let ends = [low, high].map(|found| found.map_or_else(|| "…".to_owned(), end));
    let [low, high] = ends;
    format!("[{low:>5}, {high:>5}]")
}

/// Formats an interval in a sentence, without padding.
pub(super) fn short_interval(low: Option<f64>, high: Option<f64>) -> String {
    interval(low, high).replace(' ', "").replace(',', ", ")
}

/// Formats a length of time in seconds as one unit: `14 min`, `3 h`, `0.3 s`, `40 ms`.
pub(super) fn length(seconds: f64) -> String {
    match seconds {
        short if short < 0.1 => format!("{:.0} ms", short * 1e3),
        short if short < 10.0 => format!("{short:.1} s"),
        short if short < 120.0 => format!("{short:.0} s"),
        long if long < 7200.0 => format!("{:.0} min", long / 60.0),
        long if long < 172_800.0 => format!("{:.0} h", long / 3600.0),
        long => format!("{:.0} days", long / 86_400.0),
    }
}

/// Returns a noun with its number: `1 function`, `24 functions`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_signs() {
        assert_eq!(
            [0.027, -0.27, -0.0001, 0.17].map(change),
            ["+2.7 %", "−27 %", "+0.0 %", "+17 %"]
        );
        assert_eq!([0.25, 0.005, 0.05].map(percent), ["25 %", "0.5 %", "5 %"]);
        assert_eq!(interval(Some(-0.029), Some(0.021)), "[ −2.9,  +2.1]");
        assert_eq!(short_interval(Some(0.001), None), "[+0.1, …]");
        // Past a factor of ten it is printed as one.
        assert_eq!([8.99, 9.0, 1025.3].map(change_cell), ["+899.0 %", "×10.0", "×1026"]);
        assert_eq!([11.0, 119.0].map(change), ["×12.0", "×120"]);
        assert_eq!(short_interval(Some(2.788), Some(9842.0)), "[+278.8, ×9843]");
        assert_eq!([0.25, 370.0].map(percent), ["25 %", "×371"]);
    }

    #[test]
    fn numbers_and_lengths_are_for_people() {
        let lengths = [0.04, 0.3, 40.0, 840.0, 9000.0, 864_000.0].map(length);
        assert_eq!(lengths, ["40 ms", "0.3 s", "40 s", "14 min", "2 h", "10 days"]);
        assert_eq!([1, 2].map(|count| counted(count, "run")), ["1 run", "2 runs"]);
    }
}
