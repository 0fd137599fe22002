//! `rep diff`: what changed between two sides of recordings, and gates.
//!
//! ```text
//!   args    command line ─► DiffQuery
//!   runs    each recording: start, length, machine, rates
//!   rows    counted rows of each run, matched across builds, compared; what callchains say of them
//!   stacks  rows of whole callchains
//!   answer  recordings, a comparison for each event, warnings
//!   gates   what rules ask about (gate_keys: columns) ─► compare's GateReport (gate_text: as text, JSON)
//!   text, json, sheet, folded, ci   output: text (words: its sentences), JSON, CSV, folded stacks,
//!           Markdown, annotations, test cases; page: what a page of two sides says
//! ```

mod answer;
mod args;
mod ci;
mod folded;
mod gate_keys;
mod gate_text;
mod gates;
mod json;
mod numbers;
mod page;
mod rows;
mod runs;
mod sheet;
mod stacks;
mod text;
mod words;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context as _;

use answer::DiffAnswer;
pub(crate) use args::DiffArgs;
use args::DiffQuery;
pub(crate) use ci::RuleAnswer;
pub(crate) use gates::of_profile as gates_of_profile;
pub(crate) use page::{EventVerdict, MarkedChange, verdicts};

use crate::cli::outcome::{GATE, end, failed, output, refused, say, warn, written};
use crate::cli::{Asked, Line};
use crate::compare::rules::GateReport;
use crate::exports::outputs::{ComparedSides, JudgedRules as _};
use crate::exports::sheet::{Sheet, Tables};
use crate::input::retry_if_changed;
use crate::terminal::escape::escape;
use crate::terminal::parts::CANNOT_WRITE;
use crate::terminal::progress::Bar;
use crate::terminal::style::Screen;

/// Runs the command, and returns its exit status.
pub(crate) fn main(line: &Line) -> ExitCode {
    let line = Line { words: args::with_sides(line.words.clone()), ..*line };
    let asked = match line.parse(args::query) {
        Ok(asked) => asked,
        Err(refusal) => return refused(&refusal),
    };
    let bar = Bar::start();
    let answer = retry_if_changed(&asked.query.query.sources, || answer::answer(&asked.query));
    drop(bar);
    match answer.and_then(|answer| print(&answer, &asked)) {
        Ok(status) => status,
        Err(error) => failed(&error),
    }
}

fn print(answer: &DiffAnswer<'_>, asked: &Asked<DiffQuery>) -> anyhow::Result<ExitCode> {
    warn(&answer.warnings);
    let mut out = output(asked.no_pager);
    let printed = match asked.query.output.comparison {
        Some(printer) => (printer.write)(answer, &mut out),
        None => Ok(()),
    };
    printed.and(end(out)).context(CANNOT_WRITE)?;
    Ok(match &answer.gates {
        Some(report) => report_gates(report, asked.query.gates.is_strict),
        None => written(Ok(())),
    })
}

impl Tables for DiffAnswer<'_> {
    fn print_text(&self, out: &mut dyn Write) -> io::Result<()> {
        text::print(self, Screen::of(&io::stdout(), self.asked.colour), out)
    }

    fn print_json(&self, out: &mut dyn Write) -> io::Result<()> {
        json::print(self, out)
    }

    fn sheets(&self) -> Vec<Sheet<'_>> {
        vec![sheet::rows(self)]
    }
}

impl ComparedSides for DiffAnswer<'_> {
    fn print_folded(&self, out: &mut dyn Write) -> io::Result<()> {
        folded::print(self, out)
    }

    fn print_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        ci::markdown(self, out)
    }

    fn print_github(&self, out: &mut dyn Write) -> io::Result<()> {
        ci::github(self, out)
    }

    fn print_junit(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.gates {
            Some(report) => {
                let is_strict = self.asked.gates.is_strict;
                RuleAnswer { report, is_strict, command: "rep diff" }.print_junit(out)
            }
            None => Ok(()),
        }
    }
}

/// Says what became of the rules, and returns the exit status.
pub(crate) fn report_gates(report: &GateReport<'_>, is_strict: bool) -> ExitCode {
    for line in gate_text::lines(report, is_strict) {
        say(&format!("rep: {}", escape(&line)));
    }
    if report.fails(is_strict) { ExitCode::from(GATE) } else { ExitCode::SUCCESS }
}
