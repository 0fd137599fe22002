//! Answers to rules, as text and as JSON: all violations, then every rule with its value and limit.

use recrep_console::units::grouped;
use serde::Serialize;

use super::numbers::{percent, short_interval, signed};
use crate::compare::rules::{
    Finding, GateReport, GateRule, Judgement, Reason, RuleOutcome, RuleSubject,
};

/// Most findings of a rule that are printed one by one.
const MOST: usize = 10;

/// Returns the word of an outcome.
pub(super) fn outcome_word(outcome: RuleOutcome) -> &'static str {
    match outcome {
        RuleOutcome::Holds => "holds",
        RuleOutcome::Violated => "violated",
        RuleOutcome::Warned => "warned",
        RuleOutcome::Open => "open",
        RuleOutcome::Closed => "unanswered",
    }
}

/// Formats a value in the unit of a rule's limit.
fn value(rule: &GateRule, value: f64) -> String {
    match &rule.subject {
        RuleSubject::Delta(..) | RuleSubject::DeltaTotal if value.is_infinite() => "new".into(),
        RuleSubject::Delta(..) | RuleSubject::DeltaTotal => format!("{} %", signed(value, 1)),
        RuleSubject::Impact(..) => format!("{} %", signed(value, 2)),
        subject if subject.is_share() => format!("{:.2} %", value * 100.0),
        _ => grouped(to_count(value)),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count")]
fn to_count(value: f64) -> u64 {
    value.max(0.0) as u64
}

/// Returns a finding as a part of a line: name, value, interval.
fn finding(rule: &GateRule, found: &Finding) -> String {
    let mut text = found.name.as_ref().map_or_else(String::new, |name| format!("{name} "));
    text.push_str(&value(rule, found.value));
    if found.low.is_some() || found.high.is_some() {
        text.push_str(&format!(" {}", short_interval(found.low, found.high)));
    }
    text
}

/// Returns the lines of a report: doubts, violations, then all rules.
pub(crate) fn lines(report: &GateReport<'_>, is_strict: bool) -> Vec<String> {
    let mut lines: Vec<String> =
        report.doubts.iter().map(|doubt| format!("cannot be trusted: {doubt}")).collect();
    for judgement in &report.judgements {
        let is_told = match judgement.outcome {
            RuleOutcome::Holds => false,
            RuleOutcome::Open
            | RuleOutcome::Violated
            | RuleOutcome::Warned
            | RuleOutcome::Closed => true,
        };
        if is_told {
            lines.extend(told(judgement));
        }
    }
    if report.is_apart {
        lines.push(
            "warning: rules compare sides that were not recorded in turn: only changes of about 2x \
             are significant"
                .into(),
        );
    }
    let width = report.judgements.iter().map(|one| one.rule.text.chars().count()).max();
    let width = width.unwrap_or(0);
    for Judgement { rule, outcome, value: found, .. } in &report.judgements {
        let found = found.map_or_else(|| "-".into(), |found| value(rule, found));
        let limit = value(rule, rule.limit);
        let (word, sign) = (outcome_word(*outcome), rule.relation.sign());
        lines.push(format!("{word:<10}  {:<width$}  {found}, fails if {sign} {limit}", rule.text));
    }
    lines.push(format!("gates: {}", if report.fails(is_strict) { "FAILED" } else { "passed" }));
    lines
}

/// Returns the lines about a rule that does not hold.
pub(super) fn told(judgement: &Judgement<'_>) -> Vec<String> {
    let Judgement { rule, outcome, findings, reason, .. } = judgement;
    let is_open = *outcome == RuleOutcome::Open;
    let mut lines: Vec<String> = findings
        .iter()
        .take(MOST)
        .map(|found| {
            let mut line =
                format!("{}: {}: {}", outcome_word(*outcome), rule.text, finding(rule, found));
            if let Some(resolution) = found.resolution.filter(|_| is_open) {
                line.push_str(&format!(", {} would have been seen", percent(resolution)));
            }
            line
        })
        .collect();
    if findings.len() > MOST {
        lines.push(format!("  and {} more", findings.len() - MOST));
    }
    if let Some(reason) = reason {
        lines.push(format!("{}: {}: {reason}", outcome_word(*outcome), rule.text));
    }
    if lines.is_empty() {
        lines.push(format!("{}: {}", outcome_word(*outcome), rule.text));
    }
    lines.extend(rule.why.as_ref().map(|why| format!("  {why}")));
    lines
}

/// The answers as JSON.
#[derive(Serialize)]
pub(crate) struct GatesOut<'a> {
    failed: bool,
    doubts: &'a [String],
    rules: Vec<RuleOut<'a>>,
}

#[derive(Serialize)]
struct RuleOut<'a> {
    rule: &'a str,
    outcome: &'static str,
    value: Option<f64>,
    limit: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    findings: Vec<FindingOut<'a>>,
}

#[derive(Serialize)]
struct FindingOut<'a> {
    name: Option<&'a str>,
    /// `None` for the change of a new row.
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    resolution: Option<f64>,
}

impl<'a> FindingOut<'a> {
    fn of(found: &'a Finding) -> Self {
        Self {
            name: found.name.as_deref(),
            value: Some(found.value).filter(|value| value.is_finite()),
            low: found.low,
            high: found.high,
            resolution: found.resolution,
        }
    }
}

impl<'a> RuleOut<'a> {
    fn of(judgement: &'a Judgement<'_>) -> Self {
        Self {
            rule: &judgement.rule.text,
            outcome: outcome_word(judgement.outcome),
            value: judgement.value.filter(|value| value.is_finite()),
            limit: judgement.rule.limit,
            why: judgement.rule.why.as_deref(),
            reason: judgement.reason.as_ref().map(Reason::to_string),
            findings: judgement.findings.iter().map(FindingOut::of).collect(),
        }
    }
}

impl<'a> GatesOut<'a> {
    pub(crate) fn of(report: &'a GateReport<'_>, is_strict: bool) -> Self {
        Self {
            failed: report.fails(is_strict),
            doubts: &report.doubts,
            rules: report.judgements.iter().map(RuleOut::of).collect(),
        }
    }
}
