//! Annotated functions as text.
//!
//! ```text
//!     Percent  Samples    Address
//!                                       x.c:12  while (left > 0) {
//!       3.10%       31        1139  ╭──►mov    (%rdi),%rax
//!   >  40.00%      400        113c  │   add    %rax,%rbx
//!       1.90%       19        1140  ╰───jne    1139 <sum+0x9>
//! ```
//!
//! Lines of jumps are beside the instructions, a lane for each target. Of many jumps the longest
//! have none: their targets are in the texts.

use std::fmt::Write as _;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::functions::{AnnotatedEvent, AnnotatedFunction, AnnotatedRow};
use crate::count::metrics::share;
use crate::terminal::escape::{columns, escape};
use crate::terminal::style::Screen;

/// Percentage of a function from which an instruction is hot; perf's.
const HOT: f64 = 5.0;
/// Percentage from which it is warm.
const WARM: f64 = 0.5;

/// Number of instructions without samples that are printed before and behind one with samples.
const AROUND: usize = 8;

/// Most lines of jumps side by side.
const LANES: usize = 8;

/// How text is printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextOptions {
    pub(super) screen: Screen,
    /// `true` if instructions far from samples are printed, too.
    pub(super) full: bool,
    /// `true` for whole paths of source files.
    pub(super) full_paths: bool,
}

pub(super) fn print(
    events: &[AnnotatedEvent],
    options: TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut is_first = true;
    for event in events.iter().filter(|event| event.total.samples > 0) {
        for function in &event.functions {
            if !is_first {
                writeln!(out)?;
            }
            is_first = false;
            heading(event, function, out)?;
            rows(function, options, out)?;
        }
    }
    Ok(())
}

fn heading(
    event: &AnnotatedEvent,
    function: &AnnotatedFunction,
    out: &mut dyn Write,
) -> io::Result<()> {
    let count = function.count;
    let percent = share(count.period, event.total.period);
    let letter = match function.cpu_mode.as_str() {
        "user" => '.',
        "kernel" => 'k',
        "guest_kernel" => 'g',
        "guest_user" => 'u',
        _ => 'H',
    };
    writeln!(
        out,
        "# {percent:.2}% of {}, {} samples: [{letter}] {} ({})",
        escape(&event.name),
        count.samples,
        escape(&function.symbol),
        escape(&function.dso),
    )?;
    match &function.code {
        Ok(path) => writeln!(out, "# code: {}", escape(path))?,
        Err(reason) => writeln!(out, "# no code: {}", escape(reason))?,
    }
    writeln!(out, "#")
}

/// A jump's line, or those of all jumps to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JumpLine {
    target: usize,
    sources: Vec<usize>,
    first: usize,
    last: usize,
    lane: usize,
}

/// Returns the lines of jumps beside rows, innermost lanes first; each row may jump to another one.
fn jump_lines(jumps: &[Option<usize>]) -> Vec<JumpLine> {
    let mut by_target: Vec<(usize, usize)> = Vec::new();
    for (source, target) in jumps.iter().enumerate() {
        by_target.extend(target.map(|target| (target, source)));
    }
    by_target.sort_unstable();
    let mut lines: Vec<JumpLine> = Vec::new();
    for of_target in by_target.chunk_by(|a, b| a.0 == b.0) {
        let Some((target, _)) = of_target.first() else { continue };
        let sources: Vec<usize> = of_target.iter().map(|(_, source)| *source).collect();
        let first = sources.iter().copied().min().unwrap_or(*target).min(*target);
        let last = sources.iter().copied().max().unwrap_or(*target).max(*target);
        lines.push(JumpLine { target: *target, sources, first, last, lane: 0 });
    }
    lines.sort_by_key(|line| (line.last - line.first, line.first, line.target));
    // Of each lane, the ranges of its lines.
    let mut lanes: Vec<Vec<(usize, usize)>> = Vec::new();
    lines.retain_mut(|line| {
        let is_free = |taken: &Vec<(usize, usize)>| {
            taken.iter().all(|(first, last)| line.last < *first || *last < line.first)
        };
        // What lies within the line is nearer to the instructions.
        let within = |taken: &Vec<(usize, usize)>| {
            taken.iter().any(|(first, last)| line.first <= *last && *first <= line.last)
        };
        let from = lanes.iter().rposition(within).map_or(0, |lane| lane + 1);
        let lane = (from..lanes.len()).find(|lane| lanes.get(*lane).is_some_and(is_free));
        line.lane = lane.unwrap_or(lanes.len());
        if line.lane >= LANES {
            return false;
        }
        if line.lane == lanes.len() {
            lanes.push(Vec::new());
        }
        if let Some(taken) = lanes.get_mut(line.lane) {
            taken.push((line.first, line.last));
        }
        true
    });
    lines
}

/// Draws the lines of jumps beside a row; all rows are equally wide. Between the rows before and
/// behind some that are left out, `row` is the first that is left out, and only lines that go on
/// behind `until` are drawn.
fn draw(lines: &[JumpLine], lanes: usize, row: usize, until: Option<usize>) -> String {
    if lanes == 0 {
        return String::new();
    }
    let mut cells = vec![' '; lanes + 2];
    // Innermost lanes are on the right.
    let place = |line: &JumpLine| lanes - 1 - line.lane;
    for line in lines {
        let goes_on = line.first < row && until.unwrap_or(row) < line.last;
        if let Some(cell) = cells.get_mut(place(line)).filter(|_| goes_on) {
            *cell = '│';
        }
    }
    if until.is_some() {
        return cells.into_iter().collect();
    }
    for line in lines {
        let is_target = line.target == row;
        if !is_target && !line.sources.contains(&row) {
            continue;
        }
        let at = place(line);
        for (number, cell) in cells.iter_mut().enumerate().skip(at) {
            let is_vertical = matches!(*cell, '│' | '╭' | '╰' | '├' | '┼');
            *cell = match *cell {
                _ if number == at && row == line.first && row == line.last => '○',
                _ if number == at && row == line.first => '╭',
                _ if number == at && row == line.last => '╰',
                _ if number == at => '├',
                other if other == '►' || is_vertical && other != '│' => other,
                '│' => '┼',
                _ if number == lanes + 1 && is_target => '►',
                _ => '─',
            };
        }
    }
    cells.into_iter().collect()
}

/// Returns which rows are printed: those near samples, and all of a function that has few others.
fn shown(function: &AnnotatedFunction, is_full: bool) -> Vec<bool> {
    let rows = &function.rows;
    let mut shown = vec![is_full || rows.len() <= 4 * AROUND; rows.len()];
    for (number, annotated) in rows.iter().enumerate() {
        if annotated.row.count.samples > 0 {
            let last = (number + AROUND + 1).min(rows.len());
            if let Some(near) = shown.get_mut(number.saturating_sub(AROUND)..last) {
                near.fill(true);
            }
        }
    }
    shown
}

/// Which columns a function has.
#[derive(Clone, Copy)]
struct RowLayout {
    branches: bool,
    lanes: usize,
    address: usize,
}

fn rows(function: &AnnotatedFunction, options: TextOptions, out: &mut dyn Write) -> io::Result<()> {
    let jumps: Vec<Option<usize>> = function.rows.iter().map(|row| row.row.jump).collect();
    let lines = jump_lines(&jumps);
    let addresses = function.rows.iter().map(|row| format!("{:x}", row.row.address).len());
    let layout = RowLayout {
        branches: function.rows.iter().any(|row| row.branches.is_some()),
        lanes: lines.iter().map(|line| line.lane + 1).max().unwrap_or(0),
        address: addresses.max().unwrap_or(0).max("Address".len()),
    };
    let branches = if layout.branches { "  Mispred.   Cycles" } else { "" };
    let width = layout.address;
    writeln!(out, "#  Percent   Samples {branches}  {:>width$}", "Address")?;
    let shown = shown(function, options.full);
    let mut left_out = 0;
    let mut inlined: &[String] = &[];
    for (number, (annotated, source)) in function.with_sources().enumerate() {
        if shown.get(number) == Some(&false) {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            let lines = draw(&lines, layout.lanes, number - left_out, Some(number - 1));
            let indent = layout.indent();
            writeln!(out, "{:indent$}{lines}… {left_out} instructions without samples", "")?;
        }
        // Behind a gap, and where other functions are inlined, the line is told again.
        let is_new = source.is_some() || left_out > 0 || inlined != annotated.row.inlined;
        left_out = 0;
        inlined = &annotated.row.inlined;
        if is_new && let Some((file, line)) = &annotated.row.source {
            let place = place(file, *line, options.full_paths);
            writeln!(out, "{}", source_line(annotated, &place, layout, options.screen))?;
        }
        let drawn = draw(&lines, layout.lanes, number, None);
        writeln!(out, "{}", instruction(function, annotated, &drawn, layout, options.screen))?;
    }
    if left_out > 0 {
        let indent = layout.indent();
        writeln!(out, "{:indent$}… {left_out} instructions without samples", "")?;
    }
    Ok(())
}

impl RowLayout {
    /// Returns the width of the columns before the lines of jumps.
    fn indent(self) -> usize {
        let branches = if self.branches { 19 } else { 0 };
        21 + branches + 2 + self.address + 2
    }
}

/// Returns `file:line`, with the directory if asked for.
fn place(file: &str, line: u32, whole: bool) -> String {
    let name = file.rsplit('/').next().filter(|_| !whole).unwrap_or(file);
    format!("{name}:{line}")
}

/// Returns the line above the instructions of a source line: functions inlined there, the outermost
/// first, then the line and its text.
fn source_line(annotated: &AnnotatedRow, place: &str, layout: RowLayout, screen: Screen) -> String {
    let mut text = String::new();
    if !annotated.row.inlined.is_empty() {
        let names = annotated.row.inlined.iter().rev().map(|name| escape(name));
        let names: Vec<_> = names.collect();
        let _ = write!(text, "[{}] ", names.join(" → "));
    }
    text.push_str(&escape(place));
    if let Some(line) = &annotated.source_text {
        let _ = write!(text, "  {}", escape(line));
    }
    let indent = layout.indent() + layout.lanes + if layout.lanes > 0 { 2 } else { 0 };
    let style = AnsiColor::Cyan.on_default();
    within(format!("{:indent$}{}", "", text.trim_end()), Some(style), screen)
}

fn instruction(
    function: &AnnotatedFunction,
    annotated: &AnnotatedRow,
    drawn: &str,
    layout: RowLayout,
    screen: Screen,
) -> String {
    let row = &annotated.row;
    let percent = function.percent(annotated);
    let is_sampled = row.count.samples > 0;
    let mut line = String::new();
    let mark = if is_sampled && percent >= HOT { '>' } else { ' ' };
    match is_sampled {
        true => {
            let _ = write!(line, "{mark} {percent:>7.2}%  {:>8}", row.count.samples);
        }
        false => {
            let _ = write!(line, "{:20}", "");
        }
    }
    line.push(' ');
    if layout.branches {
        let totals = annotated.branches;
        let missed = totals.and_then(super::branches::BranchTotals::mispredict_percent);
        let missed = missed.map_or_else(String::new, |percent| format!("{percent:.2}%"));
        let cycles = totals.and_then(super::branches::BranchTotals::mean_cycles);
        let cycles = cycles.map_or_else(String::new, |cycles| format!("{cycles:.1}"));
        let _ = write!(line, " {missed:>9} {cycles:>8}");
    }
    let width = layout.address;
    let address = format!("{:x}", row.address);
    let _ = write!(line, "  {address:>width$}  {drawn}{}", escape(&aligned(&row.text)));
    let style = match percent {
        _ if !is_sampled => None,
        hot if hot >= HOT => Some(AnsiColor::Red.on_default()),
        warm if warm >= WARM => Some(AnsiColor::Green.on_default()),
        _ => None,
    };
    within(line.trim_end().to_owned(), style, screen)
}

/// Returns the text of an instruction with its operands in a column of their own.
fn aligned(text: &str) -> String {
    match text.split_once(' ') {
        Some((mnemonic, operands)) => format!("{mnemonic:<6} {operands}"),
        None => text.to_owned(),
    }
}

/// Returns a line as wide as the terminal, if it is one, with its style.
fn within(text: String, style: Option<Style>, screen: Screen) -> String {
    let mut text = text;
    if let Some(width) = screen.width {
        while columns(&text) > width {
            text.pop();
        }
    }
    match style.filter(|_| screen.colour) {
        Some(style) => format!("{}{text}{}", style.render(), style.render_reset()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::CodeRow;
    use crate::count::Count;

    fn drawn(jumps: &[Option<usize>]) -> Vec<String> {
        let lines = jump_lines(jumps);
        let lanes = lines.iter().map(|line| line.lane + 1).max().unwrap_or(0);
        (0..jumps.len()).map(|row| draw(&lines, lanes, row, None)).collect()
    }

    #[test]
    fn a_loop_and_a_jump_out_of_it() {
        let jumps = [None, None, Some(4), Some(1), None];
        assert_eq!(drawn(&jumps), ["    ", " ╭─►", "╭┼──", "│╰──", "╰──►"]);
        let lines = jump_lines(&jumps);
        // Between rows 1 and 3, then between 2 and 4, something is left out.
        assert_eq!(draw(&lines, 2, 2, Some(2)), " │  ");
        assert_eq!(draw(&lines, 2, 3, Some(3)), "│   ");
    }

    #[test]
    fn jumps_to_one_target_share_a_lane_and_the_longest_have_none() {
        assert_eq!(drawn(&[Some(2), Some(2), None]), ["╭──", "├──", "╰─►"]);
        assert_eq!(drawn(&[Some(0), None]), ["○─►", "   "]);
        // Each jump lies within the next one.
        let rows = 4 * LANES;
        let nested: Vec<Option<usize>> =
            (0..rows).map(|row| (row < rows / 2).then(|| rows - 1 - row)).collect();
        let drawn = drawn(&nested);
        assert!(drawn.iter().all(|row| row.chars().count() == LANES + 2));
        assert!(drawn[0].trim().is_empty() && drawn[rows / 2].ends_with("╰─►"), "{drawn:#?}");
    }

    #[test]
    fn few_instructions_around_samples_are_shown() {
        let row = |samples| AnnotatedRow {
            row: CodeRow { count: Count { samples, period: samples }, ..CodeRow::default() },
            source_text: None,
            branches: None,
        };
        let function = AnnotatedFunction {
            dso: String::new(),
            symbol: String::new(),
            cpu_mode: "user".into(),
            mangled: None,
            path: String::new(),
            count: Count { samples: 1, period: 1 },
            code: Ok(String::new()),
            rows: (0..100).map(|number| row(u64::from(number == 50))).collect(),
        };
        let number = |is_full| shown(&function, is_full).iter().filter(|shown| **shown).count();
        assert_eq!((number(false), number(true)), (2 * AROUND + 1, 100));
    }
}
