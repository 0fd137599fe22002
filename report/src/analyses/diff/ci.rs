//! The comparison for CI: tables in Markdown for the summary of a job, annotations of GitHub, and
//! the rules as JUnit's test cases.

use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::answer::{ComparedEvent, DiffAnswer};
use super::gate_text::{outcome_word, told};
use super::numbers::{percent, share, short_interval, signed};
use super::words::{self, Headline};
use crate::compare::RowChange;
use crate::compare::rules::{GateReport, RuleOutcome};
use crate::exports::markdown::{code, escape_marks};
use crate::exports::outputs::JudgedRules;

/// Most rows of a table that are not marked.
const UNMARKED: usize = 10;

/// Prints the verdict, a table of rows and one of rules.
pub(super) fn markdown(answer: &DiffAnswer<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (number, event) in answer.events.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let (comparison, options) = (&event.comparison, &answer.asked.options);
        let Headline { total, word, text, notes } = Headline::of(event, options);
        let total = total.map_or_else(String::new, |total| escape_marks(&total) + " ");
        writeln!(out, "{total}**{word}** ({}) {}", code(&event.name), escape_marks(&text))?;
        for note in &notes {
            writeln!(out, "\n{}", escape_marks(note))?;
        }
        writeln!(out, "\n| impact | change | interval | base | new | {} |  |", event.noun)?;
        writeln!(out, "| ---: | ---: | ---: | ---: | ---: | --- | --- |")?;
        let listed = event.listed();
        let marked = listed.iter().filter(|row| row.marked);
        let limit = answer.asked.limit.unwrap_or(usize::MAX);
        let marked: Vec<&RowChange> = marked.copied().take(limit).collect();
        let others =
            listed.iter().filter(|row| words::is_listed(row, comparison, options)).copied();
        let others = others.take(limit.saturating_sub(marked.len()).min(UNMARKED));
        for row in marked.iter().copied().chain(others) {
            markdown_row(event, row, out)?;
        }
    }
    let Some(gates) = &answer.gates else { return Ok(()) };
    writeln!(out, "\n| rule | outcome |\n| --- | --- |")?;
    for judgement in &gates.judgements {
        let word = outcome_word(judgement.outcome);
        let word = if judgement.outcome == RuleOutcome::Holds { word.into() } else { bold(word) };
        writeln!(out, "| {} | {word} |", code(&judgement.rule.text))?;
    }
    for doubt in &gates.doubts {
        writeln!(out, "\n**cannot be trusted**: {}", escape_marks(doubt))?;
    }
    Ok(())
}

fn markdown_row(event: &ComparedEvent, row: &RowChange, out: &mut dyn Write) -> io::Result<()> {
    let names = event.labels.rows.get(row.row).map_or_else(String::new, |texts| {
        let cells = texts.in_order(event.keys).map(|cell| code(cell).into_owned());
        cells.collect::<Vec<String>>().join(" ")
    });
    let seen = match row.marked {
        true => bold("changed"),
        false => format!("{} would have been seen", percent(row.resolution)),
    };
    writeln!(
        out,
        "| {} % | {} | {} | {} | {} | {names}{} | {seen} |",
        signed(row.impact, 2),
        words::relative(row),
        words::row_interval(row),
        share(row.base_share),
        share(row.new_share),
        escape_marks(&words::cause(event, row)),
    )
}

fn bold(text: &str) -> String {
    format!("**{text}**")
}

/// Prints annotations: errors for what fails the job, warnings for what does not, a notice for each
/// marked row, and the verdict.
pub(super) fn github(answer: &DiffAnswer<'_>, out: &mut dyn Write) -> io::Result<()> {
    for event in &answer.events {
        let marked = event.listed().into_iter().filter(|row| row.marked);
        for row in marked {
            let (name, change) = (words::name(event, row.row), words::relative(row));
            let text =
                format!("{name} {change} {}", short_interval(row.change.low, row.change.high));
            annotate(out, "notice", if row.log > 0.0 { "slower" } else { "faster" }, &text)?;
        }
        let Headline { total, word, text, .. } = Headline::of(event, &answer.asked.options);
        let text = total.map_or(text.clone(), |total| format!("{total} {text}"));
        annotate(out, "notice", &format!("rep diff: {word}"), &text)?;
    }
    match &answer.gates {
        Some(report) => {
            let is_strict = answer.asked.gates.is_strict;
            RuleAnswer { report, is_strict, command: "rep diff" }.print_github(out)
        }
        None => Ok(()),
    }
}

/// Answers to rules, of a command.
pub(crate) struct RuleAnswer<'a> {
    pub(crate) report: &'a GateReport<'a>,
    pub(crate) is_strict: bool,
    pub(crate) command: &'static str,
}

impl JudgedRules for RuleAnswer<'_> {
    fn print_github(&self, out: &mut dyn Write) -> io::Result<()> {
        for doubt in &self.report.doubts {
            annotate(out, "error", &format!("{}: cannot be trusted", self.command), doubt)?;
        }
        for judgement in &self.report.judgements {
            let kind = match judgement.outcome {
                RuleOutcome::Holds => continue,
                outcome if outcome.fails(self.is_strict) => "error",
                _ => "warning",
            };
            annotate(out, kind, &judgement.rule.text, &told(judgement).join("\n"))?;
        }
        Ok(())
    }

    /// Prints a test case for each rule, and one for the inputs.
    fn print_junit(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { report, is_strict, command } = *self;
        let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
        xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        let broken = report.judgements.iter().filter(|one| one.outcome.fails(is_strict)).count();
        let failures = broken + usize::from(!report.doubts.is_empty());
        xml.create_element("testsuite")
            .with_attribute(("name", command))
            .with_attribute(("tests", (report.judgements.len() + 1).to_string().as_str()))
            .with_attribute(("failures", failures.to_string().as_str()))
            .write_inner_content(|xml| {
                let doubts = report.doubts.join("\n");
                let doubts = Some(doubts).filter(|doubts| !doubts.is_empty());
                let result = doubts.as_deref().map(|text| ("failure", text));
                test_case(xml, "inputs can be trusted", result)?;
                for judgement in &report.judgements {
                    let text = told(judgement).join("\n");
                    let result = match judgement.outcome {
                        RuleOutcome::Holds => None,
                        outcome if outcome.fails(is_strict) => Some(("failure", text.as_str())),
                        _ => Some(("system-out", text.as_str())),
                    };
                    test_case(xml, &judgement.rule.text, result)?;
                }
                Ok(())
            })?;
        writeln!(out)
    }
}

/// Writes a command of GitHub's runner, which ends at the line.
fn annotate(out: &mut dyn Write, kind: &str, title: &str, text: &str) -> io::Result<()> {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = title.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = title.replace(':', "%3A").replace(',', "%2C");
    writeln!(out, "::{kind} title={title}::{text}")
}

/// Writes a test case with an element that tells its result; none if it passed.
fn test_case<W: Write>(
    xml: &mut Writer<W>,
    name: &str,
    result: Option<(&str, &str)>,
) -> io::Result<()> {
    let case = xml
        .create_element("testcase")
        .with_attribute(("classname", "gates"))
        .with_attribute(("name", name));
    let Some((element, text)) = result else {
        case.write_empty()?;
        return Ok(());
    };
    case.write_inner_content(|xml| {
        let first = text.lines().next().unwrap_or_default();
        let element = match element {
            "failure" => xml.create_element(element).with_attribute(("message", first)),
            _ => xml.create_element(element),
        };
        element.write_text_content(BytesText::new(text))?;
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_other_languages_are_texts() {
        assert_eq!(escape_marks("a_b <c> 5 %"), r"a\_b \<c\> 5 %");
        let mut out = Vec::new();
        annotate(&mut out, "error", "self(a::b) > 5%", "50 %\nof it").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "::error title=self(a%3A%3Ab) > 5%25::50 %25%0Aof it\n");
    }
}
