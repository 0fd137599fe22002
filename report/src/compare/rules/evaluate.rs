//! Evaluation of rules.

use std::collections::BTreeMap;
use std::fmt;

use recrep_console::glob::Glob;

use super::rule::{Certainty, GateRule, RowKind, RuleSubject};
use crate::compare::comparison::Comparison;
use crate::compare::family::holm;
use crate::compare::result::{RowChange, Status};
use crate::compare::sides::to_float;

/// What rules are asked about: a comparison of one event, or a single profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleFacts<'f> {
    /// Rows of the kinds that the rules name.
    pub kinds: BTreeMap<RowKind, KindFacts<'f>>,
    /// Share of lost samples, of the side that lost more.
    pub lost: f64,
    /// Share of samples without a function; of new's side.
    pub unresolved: f64,
    /// Share of callchains that were cut short, of new's side; `None` without callchains.
    pub broken: Option<f64>,
    /// Number of samples of the smaller side.
    pub samples: u64,
    /// Number of runs of the smaller side.
    pub runs: usize,
    /// Reasons not to trust the inputs, each a sentence: files unreadable, truncated, damaged or
    /// empty, events or rates that differ.
    pub doubts: Vec<String>,
}

/// Rows of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindFacts<'f> {
    /// Rows that have samples on either side.
    pub rows: Vec<NamedRow>,
    /// The comparison of these rows; `None` without a second side.
    pub comparison: Option<&'f Comparison>,
}

/// A row, and all that users may call it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedRow {
    /// Number of the row in the comparison.
    pub row: usize,
    /// Its names, the printed one first.
    pub names: Vec<String>,
    /// Share of all samples; of new's side in a comparison.
    pub share: f64,
}

/// A rule that compares, and nothing to compare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` needs a second side to compare with")]
pub(crate) struct NoSecondSide {
    pub rule: String,
}

/// What became of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleOutcome {
    Holds,
    Violated,
    /// Violated or unanswered, but a rule that only warns.
    Warned,
    /// The samples do not answer it, which fails the job only if it is to be strict.
    Open,
    /// It cannot be answered, which fails the job.
    Closed,
}

impl RuleOutcome {
    pub(crate) fn fails(self, strict: bool) -> bool {
        match self {
            Self::Violated | Self::Closed => true,
            Self::Open => strict,
            Self::Holds | Self::Warned => false,
        }
    }
}

/// A row that violates a rule, or leaves it open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// Name of the row; `None` for the total, or if the rule is about no rows.
    pub name: Option<String>,
    /// The value, in the unit of the rule's limit; infinite for the change of a new row.
    pub value: f64,
    /// Interval of a change.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Least change that would have been seen; of changes only.
    pub resolution: Option<f64>,
}

/// Reason why a rule has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// No row has such a name on either side.
    NoMatch,
    /// Too few runs a side to tell a change from chance.
    FewRuns,
    /// Runs were ended from outside, so that their total tells nothing.
    CutRuns,
    /// The inputs have no callchains.
    NoCallchains,
    /// Changes beyond the limit are not significant, or would not have been.
    NotSignificant,
    /// Large rows could have changed unseen.
    Unseen,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMatch => "no row has this name on either side",
            Self::FewRuns => "changes need 3 runs a side (or `any` in the rule)",
            Self::CutRuns => "the runs were ended from outside: their total is their length",
            Self::NoCallchains => "the inputs have no callchains",
            Self::NotSignificant => {
                "not significant, and a change at the limit would not have been seen"
            }
            Self::Unseen => "too few samples: large functions could have changed unseen",
        })
    }
}

/// The answer to a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement<'r> {
    pub rule: &'r GateRule,
    pub outcome: RuleOutcome,
    /// The value that is nearest to violating the rule, or does most; `None` if there is none.
    pub value: Option<f64>,
    /// What violates the rule, or leaves it open: farthest beyond the limit first.
    pub findings: Vec<Finding>,
    pub reason: Option<Reason>,
}

/// Answers to all rules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GateReport<'r> {
    pub judgements: Vec<Judgement<'r>>,
    /// Reasons not to trust the inputs, whatever the rules say.
    pub doubts: Vec<String>,
    /// `true` if rules compare sides that were not recorded in turn.
    pub is_apart: bool,
}

impl GateReport<'_> {
    /// Returns whether the job fails. A strict one also fails if a rule is open.
    pub(crate) fn fails(&self, strict: bool) -> bool {
        !self.doubts.is_empty() || self.judgements.iter().any(|one| one.outcome.fails(strict))
    }
}

/// Losses beyond this are not trusted, unless a rule is about them.
const TRUSTED_LOSS: f64 = 0.001;

/// Evaluates all rules; `level` is the rate of errors that one asked for.
///
/// # Errors
///
/// Returns an error if a rule compares and there is no second side.
pub(crate) fn evaluate<'r>(
    rules: &'r [GateRule],
    facts: &RuleFacts<'_>,
    level: f64,
) -> Result<GateReport<'r>, NoSecondSide> {
    let adjusted = adjusted(rules, facts);
    let judge = Judge { facts, level, adjusted };
    let judgements = rules.iter().map(|rule| judge.rule(rule)).collect::<Result<Vec<_>, _>>()?;
    let mut doubts = facts.doubts.clone();
    let asks_for_losses = rules.iter().any(|rule| rule.subject == RuleSubject::Lost);
    if facts.lost > TRUSTED_LOSS && !asks_for_losses {
        let percent = facts.lost * 100.0;
        doubts.push(format!("{percent:.1} % of the samples were lost (allow it: `lost > 5%`)"));
    }
    let compares = rules.iter().any(|rule| rule.subject.needs_two_sides());
    let mut comparisons = facts.kinds.values().filter_map(|kind| kind.comparison);
    let is_apart = compares && comparisons.any(|comparison| !comparison.turns.in_turn);
    Ok(GateReport { judgements, doubts, is_apart })
}

/// A question of a rule that names one row, or the total.
type Question = Option<(RowKind, usize)>;

/// Returns the corrected probabilities of what rules name without wild cards. These questions were
/// asked beforehand, and an error in any of them fails the job: they are a family of their own.
fn adjusted(rules: &[GateRule], facts: &RuleFacts<'_>) -> BTreeMap<Question, f64> {
    let mut asked: BTreeMap<Question, f64> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.certainty != Certainty::Any) {
        match &rule.subject {
            RuleSubject::Delta(kind, glob) | RuleSubject::Impact(kind, glob) if !glob.is_wild() => {
                let rows = facts.changes(*kind, glob);
                asked.extend(rows.map(|(_, row)| (Some((*kind, row.row)), row.change.p)));
            }
            RuleSubject::DeltaTotal => {
                asked.extend(facts.main().map(|comparison| (None, comparison.total.p)));
            }
            _ => {}
        }
    }
    let p: Vec<f64> = asked.values().copied().collect();
    asked.into_keys().zip(holm(&p)).collect()
}

impl RuleFacts<'_> {
    /// Returns the rows of a kind with such a name.
    fn named<'s>(&'s self, kind: RowKind, glob: &'s Glob) -> impl Iterator<Item = &'s NamedRow> {
        let rows = self.kinds.get(&kind).map(|kind| kind.rows.as_slice()).unwrap_or_default();
        rows.iter().filter(|row| row.names.iter().any(|name| glob.matches(name)))
    }

    /// Returns the changes of rows with such a name.
    fn changes<'s>(
        &'s self,
        kind: RowKind,
        glob: &'s Glob,
    ) -> impl Iterator<Item = (&'s NamedRow, &'s RowChange)> {
        let comparison = self.kinds.get(&kind).and_then(|kind| kind.comparison);
        let rows = comparison.map(|comparison| comparison.rows.as_slice()).unwrap_or_default();
        self.named(kind, glob).filter_map(move |named| {
            // Rows are in the order of their numbers.
            let place = rows.binary_search_by_key(&named.row, |row| row.row).ok()?;
            Some((named, rows.get(place)?))
        })
    }

    /// Returns the comparison of functions, or of whatever was compared.
    fn main(&self) -> Option<&Comparison> {
        self.kinds.values().find_map(|kind| kind.comparison)
    }

    /// Returns the name of a row of the comparison of functions.
    fn name(&self, row: usize) -> Option<String> {
        let kind = self.kinds.values().find(|kind| kind.comparison.is_some())?;
        kind.rows.iter().find(|named| named.row == row)?.names.first().cloned()
    }
}

struct Judge<'f> {
    facts: &'f RuleFacts<'f>,
    level: f64,
    adjusted: BTreeMap<Question, f64>,
}

/// A change that a rule asks about.
struct AskedChange {
    finding: Finding,
    is_significant: bool,
    /// `true` if it was asked for by name, or is one that could be marked.
    is_expected: bool,
}

impl Judge<'_> {
    fn rule<'r>(&self, rule: &'r GateRule) -> Result<Judgement<'r>, NoSecondSide> {
        let facts = self.facts;
        if rule.subject.needs_two_sides() {
            let answer = facts.main().and_then(|main| self.change(rule, main));
            return answer.ok_or_else(|| NoSecondSide { rule: rule.text.clone() });
        }
        Ok(match &rule.subject {
            RuleSubject::Share(kind, glob) => {
                let rows = facts.named(*kind, glob);
                let found: Vec<_> =
                    rows.map(|row| Finding::of(row.names.first().cloned(), row.share)).collect();
                match found.is_empty() {
                    true => closed(rule, Reason::NoMatch),
                    false => values(rule, found),
                }
            }
            RuleSubject::Lost => number(rule, facts.lost),
            RuleSubject::Unresolved => number(rule, facts.unresolved),
            RuleSubject::Broken => match facts.broken {
                Some(broken) => number(rule, broken),
                None => closed(rule, Reason::NoCallchains),
            },
            RuleSubject::Samples => number(rule, to_float(facts.samples)),
            _ => number(rule, to_float(facts.runs)),
        })
    }

    /// Judges a rule about changes; `None` if the rule's kind was not compared.
    fn change<'r>(&self, rule: &'r GateRule, main: &Comparison) -> Option<Judgement<'r>> {
        let facts = self.facts;
        if rule.certainty != Certainty::Any && !main.has_enough_runs() {
            return Some(closed(rule, Reason::FewRuns));
        }
        let marked = main.rows.iter().filter(|row| row.marked);
        let count = |is_slower: bool| {
            let rows = marked.clone().filter(|row| (row.log > 0.0) == is_slower).count();
            let is_total = main.total.relative.is_some_and(|total| (total > 0.0) == is_slower);
            to_float(rows + usize::from(main.total_marked && is_total))
        };
        let shares = |status| {
            let rows = marked.clone().filter(|row| row.status == status);
            let found = rows.map(|row| {
                let share = if status == Status::New { row.new_share } else { row.base_share };
                Finding::of(facts.name(row.row), share)
            });
            let mut found: Vec<_> = found.collect();
            if found.is_empty() {
                found.push(Finding::of(None, 0.0));
            }
            found
        };
        Some(match &rule.subject {
            RuleSubject::Slower => counted(rule, main, count(true)),
            RuleSubject::Faster => counted(rule, main, count(false)),
            RuleSubject::New => values(rule, shares(Status::New)),
            RuleSubject::Gone => values(rule, shares(Status::Gone)),
            RuleSubject::DeltaTotal if main.is_cut => closed(rule, Reason::CutRuns),
            RuleSubject::DeltaTotal => self.changes(rule, &[self.total(main)]),
            RuleSubject::Delta(kind, glob) | RuleSubject::Impact(kind, glob) => {
                facts.kinds.get(kind)?.comparison?;
                let asked = facts
                    .changes(*kind, glob)
                    .map(|(named, row)| self.asked(rule, *kind, glob.is_wild(), named, row));
                let asked: Vec<AskedChange> = asked.collect();
                match asked.is_empty() {
                    true => closed(rule, Reason::NoMatch),
                    false => self.changes(rule, &asked),
                }
            }
            _ => return None,
        })
    }

    fn is_significant(&self, question: Question) -> bool {
        self.adjusted.get(&question).is_some_and(|p| *p < self.level)
    }

    fn total(&self, main: &Comparison) -> AskedChange {
        let total = main.total;
        let value = total.relative.unwrap_or_default();
        let (low, high) = (total.low, total.high);
        // What would have been seen is about the half of the interval.
        let resolution = high.map(|high| (high - value).abs());
        AskedChange {
            finding: Finding { name: None, value, low, high, resolution },
            is_significant: self.is_significant(None),
            is_expected: true,
        }
    }

    fn asked(
        &self,
        rule: &GateRule,
        kind: RowKind,
        is_wild: bool,
        named: &NamedRow,
        row: &RowChange,
    ) -> AskedChange {
        let change = row.change;
        let (value, low, high, resolution) = match rule.subject {
            RuleSubject::Impact(..) if row.base > 0.0 => {
                let part = |relative: f64| relative * row.base_share;
                (row.impact, change.low.map(part), change.high.map(part), part(row.resolution))
            }
            // Of a new row's time, the part beyond what base may have had.
            RuleSubject::Impact(..) => {
                let low = change.low.map(|low| row.impact * low / (1.0 + low));
                (row.impact, low, None, row.impact)
            }
            _ => {
                let value = change.relative.unwrap_or(f64::INFINITY);
                (value, change.low, change.high, row.resolution)
            }
        };
        let is_significant = match is_wild {
            true => row.marked,
            false => self.is_significant(Some((kind, row.row))),
        };
        let name = named.names.first().cloned();
        AskedChange {
            finding: Finding { name, value, low, high, resolution: Some(resolution) },
            is_significant,
            is_expected: !is_wild,
        }
    }

    /// Judges changes: those that are significant violate, the others may leave the rule open.
    fn changes<'r>(&self, rule: &'r GateRule, asked: &[AskedChange]) -> Judgement<'r> {
        let (relation, limit) = (rule.relation, rule.limit);
        let is_violated = |asked: &AskedChange| {
            let near = if relation.is_upward() { asked.finding.low } else { asked.finding.high };
            let value = match rule.certainty {
                Certainty::Surely => near,
                Certainty::Significant | Certainty::Any => Some(asked.finding.value),
            };
            let counts = rule.certainty == Certainty::Any || asked.is_significant;
            counts && value.is_some_and(|value| relation.holds(value, limit))
        };
        let is_open = |asked: &AskedChange| {
            let is_unseen = asked.finding.resolution.is_some_and(|least| least > limit.abs());
            // Of many rows, those that did not move are no question.
            let is_asked = asked.is_expected || relation.holds(asked.finding.value, limit);
            rule.certainty != Certainty::Any && !asked.is_significant && is_unseen && is_asked
        };
        let all = asked.iter().map(|asked| asked.finding.clone()).collect();
        let found = |is: &dyn Fn(&AskedChange) -> bool| -> Vec<Finding> {
            asked.iter().filter(|asked| is(asked)).map(|asked| asked.finding.clone()).collect()
        };
        let (violated, open) = (found(&is_violated), found(&is_open));
        if violated.is_empty() && !open.is_empty() {
            let judgement = judgement(rule, RuleOutcome::Open, all, open);
            return Judgement { reason: Some(Reason::NotSignificant), ..judgement };
        }
        let outcome = if violated.is_empty() { RuleOutcome::Holds } else { RuleOutcome::Violated };
        judgement(rule, outcome, all, violated)
    }
}

/// Judges a value that no row has.
fn number(rule: &GateRule, value: f64) -> Judgement<'_> {
    values(rule, vec![Finding::of(None, value)])
}

/// Judges a number of rows that changed: those that could have changed unseen may break the rule.
fn counted<'r>(rule: &'r GateRule, main: &Comparison, count: f64) -> Judgement<'r> {
    let judgement = number(rule, count);
    let most = count + to_float(main.unresolved.len());
    let is_open = judgement.outcome == RuleOutcome::Holds && rule.relation.holds(most, rule.limit);
    match is_open {
        true => Judgement { outcome: RuleOutcome::Open, reason: Some(Reason::Unseen), ..judgement },
        false => judgement,
    }
}

/// Judges values that are what they are.
fn values(rule: &GateRule, all: Vec<Finding>) -> Judgement<'_> {
    let is_violated = |found: &&Finding| rule.relation.holds(found.value, rule.limit);
    let violated: Vec<Finding> = all.iter().filter(is_violated).cloned().collect();
    let outcome = if violated.is_empty() { RuleOutcome::Holds } else { RuleOutcome::Violated };
    judgement(rule, outcome, all, violated)
}

impl Finding {
    fn of(name: Option<String>, value: f64) -> Self {
        Self { name, value, low: None, high: None, resolution: None }
    }
}

fn closed(rule: &GateRule, reason: Reason) -> Judgement<'_> {
    Judgement {
        reason: Some(reason),
        ..judgement(rule, RuleOutcome::Closed, Vec::new(), Vec::new())
    }
}

/// Returns the judgement with the most extreme of all values, and findings in order.
fn judgement(
    rule: &GateRule,
    outcome: RuleOutcome,
    mut all: Vec<Finding>,
    mut findings: Vec<Finding>,
) -> Judgement<'_> {
    for found in [&mut all, &mut findings] {
        found.sort_by(|a, b| {
            let ascending = a.value.total_cmp(&b.value);
            let by_value = if rule.relation.is_upward() { ascending.reverse() } else { ascending };
            by_value.then_with(|| a.name.cmp(&b.name))
        });
    }
    let only_warns = rule.warn && matches!(outcome, RuleOutcome::Violated | RuleOutcome::Closed);
    Judgement {
        rule,
        outcome: if only_warns { RuleOutcome::Warned } else { outcome },
        value: all.first().map(|found| found.value),
        findings,
        reason: None,
    }
}
