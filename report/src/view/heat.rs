//! Colours of shares: perf's, so that an eye used to them finds the same rows.

use anstyle::{AnsiColor, Style};

/// A share of at least this many percent is hot.
const HOT: f64 = 5.0;
/// And of this many, warm.
const WARM: f64 = 0.5;

/// The style of a share of so many percent; none for what is cold.
pub(super) fn style(percent: f64) -> Option<Style> {
    match percent {
        hot if hot >= HOT => Some(AnsiColor::Red.on_default()),
        warm if warm >= WARM => Some(AnsiColor::Green.on_default()),
        _ => None,
    }
}

/// Puts the styles around parts of a line, which lie one behind the other.
pub(super) fn paint(line: &mut String, start: usize, parts: &[(usize, usize, Style)]) {
    for (from, to, style) in parts.iter().rev() {
        let (from, to) = (start + from, (start + to).min(line.len()));
        if from < to && line.is_char_boundary(from) && line.is_char_boundary(to) {
            line.insert_str(to, &style.render_reset().to_string());
            line.insert_str(from, &style.render().to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_line_are_painted() {
        let (Some(hot), Some(warm)) = (style(5.0), style(0.5)) else { panic!("no style") };
        assert!(style(0.49).is_none() && hot != warm);
        let mut line = String::from("x\n 50.00% 1.00% f");
        paint(&mut line, 2, &[(1, 7, hot), (8, 13, warm)]);
        assert_eq!(line, "x\n \u{1b}[31m50.00%\u{1b}[0m \u{1b}[32m1.00%\u{1b}[0m f");
        let mut cut = String::from(" 50.");
        paint(&mut cut, 0, &[(1, 7, hot), (8, 13, warm)]);
        assert_eq!(cut, " \u{1b}[31m50.\u{1b}[0m");
    }
}
