//! Colours of percentages, with the thresholds of perf.

use anstyle::{AnsiColor, Style};

/// Percentage from which a row is hot (red).
const HOT: f64 = 5.0;
/// Percentage from which a row is warm (green).
const WARM: f64 = 0.5;

/// Returns the style of a percentage; `None` below [`WARM`].
pub(super) fn style(percent: f64) -> Option<Style> {
    match percent {
        hot if hot >= HOT => Some(AnsiColor::Red.on_default()),
        warm if warm >= WARM => Some(AnsiColor::Green.on_default()),
        _ => None,
    }
}

/// Inserts the styles around parts of a line that begins at `start`. The parts are in order and do
/// not overlap.
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
    fn paint_styles_the_parts_of_a_line() {
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
