//! Common terms, which events of any kind can have: sampling rate, contents of samples.

use recrep_console::nearest::nearest;
use recrep_format::abi::BranchSampleType;

use super::error::Problem;
use super::spec::{EventSpec, Terms};
use super::text::{Span, Wrong};
use crate::event::sampling::{self, Callchain, Rate};

/// Common terms, as listed in error messages.
pub(super) const COMMON: &[&str] = &[
    "name",
    "period",
    "freq",
    "time",
    "call-graph",
    "stack-size",
    "max-stack",
    "branch_type",
    "inherit",
    "no-inherit",
    "overwrite",
    "no-overwrite",
    "aux-output",
    "aux-sample-size",
];
/// Names of the attr's words.
pub(super) const WORDS: &[&str] = &["config", "config1", "config2", "config3", "config4"];

/// A term, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term<'a> {
    /// Text before the `=`.
    pub(super) key: &'a str,
    /// Text after the `=`, without quotes.
    pub(super) value: Option<&'a str>,
    /// Byte position in the list.
    pub(super) at: usize,
}

/// Splits the text between two slashes into terms.
pub(super) fn split(terms: Span<'_>) -> Result<Vec<Term<'_>>, Wrong> {
    if terms.text.trim().is_empty() {
        return Ok(Vec::new());
    }
    terms.split(b',').into_iter().map(one).collect()
}

fn one(piece: Span<'_>) -> Result<Term<'_>, Wrong> {
    let (key, value) = piece
        .text
        .split_once('=')
        .map_or((piece.text, None), |(key, value)| (key, Some(value.trim())));
    let value = match value.and_then(|value| value.chars().next()) {
        Some(quote @ ('\'' | '"')) => {
            let inner = value.and_then(|value| value.strip_prefix(quote)?.strip_suffix(quote));
            Some(inner.ok_or((piece.at, Problem::Unclosed(quote)))?)
        }
        _ => value,
    };
    if key.trim().is_empty() {
        Err((piece.at, Problem::Empty))
    } else {
        Ok(Term { key: key.trim(), value, at: piece.at })
    }
}

impl Term<'_> {
    pub(super) fn wrong(&self, problem: Problem) -> Wrong {
        (self.at, problem)
    }

    fn no_value(&self, wanted: &'static str) -> Wrong {
        self.wrong(Problem::NoValue { term: self.key.to_owned(), wanted })
    }

    pub(super) fn bad_value(&self, wanted: impl Into<String>) -> Wrong {
        let value = self.value.unwrap_or("").to_owned();
        self.wrong(Problem::Value { term: self.key.to_owned(), value, wanted: wanted.into() })
    }

    /// Returns the value's text.
    pub(super) fn text(&self, wanted: &'static str) -> Result<&str, Wrong> {
        self.value.filter(|value| !value.is_empty()).ok_or_else(|| self.no_value(wanted))
    }

    /// Returns the value as a number, decimal or with `0x`.
    pub(super) fn number(&self) -> Result<u64, Wrong> {
        number(self.text("NUMBER")?).ok_or_else(|| self.bad_value("a number"))
    }

    fn at_most(&self, most: u64) -> Result<u64, Wrong> {
        let value = self.number()?;
        if value <= most {
            Ok(value)
        } else {
            Err(self.wrong(Problem::TooLarge { term: self.key.to_owned(), value, most }))
        }
    }

    /// Returns the value of a flag: the name alone, or 0 or 1.
    pub(super) fn flag(&self) -> Result<bool, Wrong> {
        match self.value {
            None | Some("1") => Ok(true),
            Some("0") => Ok(false),
            Some(_) => Err(self.bad_value("0 or 1")),
        }
    }

    /// Returns the error for a refused value, with the reason.
    fn refused(&self, why: String) -> Wrong {
        self.wrong(Problem::Refused { term: self.key.to_owned(), why })
    }

    /// Returns the error for a term that only another tool uses.
    fn others(&self, tool: &'static str) -> Wrong {
        self.wrong(Problem::OthersTerm { term: self.key.to_owned(), tool })
    }

    /// Returns the error for an unknown term of this kind of event.
    pub(super) fn unknown(&self, of: &str, own: &[String]) -> Wrong {
        let all = || own.iter().map(String::as_str).chain(COMMON.iter().copied());
        self.wrong(Problem::UnknownTerm {
            term: self.key.to_owned(),
            of: of.to_owned(),
            near: nearest(self.key, all()),
            known: all().collect::<Vec<_>>().join(" "),
        })
    }
}

/// Parses a number in perf's syntax: decimal, or hexadecimal with `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

/// Applies a common term; returns `false` if it is not one.
pub(super) fn take(term: &Term<'_>, spec: &mut EventSpec) -> Result<bool, Wrong> {
    let terms = &mut spec.terms;
    match term.key {
        "name" => (spec.name, spec.named) = (term.text("TEXT")?.to_owned(), true),
        "period" => terms.rate = Some(Rate::Period(positive(term)?)),
        "freq" if term.value == Some("max") => terms.rate = Some(Rate::Max),
        "freq" => terms.rate = Some(Rate::Hz(positive(term)?)),
        "time" => terms.time = Some(term.flag()?),
        "call-graph" => callchain(term, terms)?,
        "stack-size" => {
            let size =
                Callchain::stack_size(term.text("NUMBER")?).map_err(|why| term.refused(why))?;
            terms.stack_size = Some(size);
        }
        "max-stack" => terms.max_stack = u16::try_from(term.at_most(u16::MAX.into())?).ok(),
        "branch_type" => terms.branches = Some(branches(term)?),
        "inherit" => terms.inherit = Some(term.flag()?),
        "no-inherit" => terms.inherit = Some(!term.flag()?),
        "overwrite" => terms.overwrite = Some(term.flag()?),
        "no-overwrite" => terms.overwrite = Some(!term.flag()?),
        "aux-output" => terms.aux_output = term.flag()?,
        "aux-sample-size" => {
            terms.aux_sample_size = u32::try_from(term.at_most(u32::MAX.into())?).ok();
        }
        "percore" | "metric-id" => return Err(term.others("perf stat")),
        "nr" => return Err(term.others("perf trace")),
        _ => return Ok(false),
    }
    match (&mut terms.callchain, terms.stack_size) {
        (Some(Some(Callchain::Dwarf { stack_size })), Some(asked)) => *stack_size = asked,
        (Some(Some(Callchain::Unwind { stack_size })), asked @ Some(_)) => *stack_size = asked,
        _ => {}
    }
    Ok(true)
}

/// Applies a word of the attr; returns `false` if it is not one.
pub(super) fn take_word(term: &Term<'_>, spec: &mut EventSpec) -> Result<bool, Wrong> {
    let word = match term.key {
        "config" => &mut spec.config,
        "config1" => &mut spec.config1,
        "config2" => &mut spec.config2,
        "config3" => &mut spec.config3,
        "config4" => &mut spec.config4,
        _ => return Ok(false),
    };
    *word = term.number()?;
    Ok(true)
}

fn positive(term: &Term<'_>) -> Result<u64, Wrong> {
    Some(term.number()?)
        .filter(|n| *n > 0 && *n < 1 << 63)
        .ok_or_else(|| term.bad_value("a number from 1"))
}

/// Applies `no` or a mode of `--call-graph`.
fn callchain(term: &Term<'_>, terms: &mut Terms) -> Result<(), Wrong> {
    let text = term.text("unwind|fp|dwarf|lbr|no")?;
    if text == "no" {
        terms.callchain = Some(None);
        return Ok(());
    }
    let (callchain, depth) = Callchain::parse(text).map_err(|why| term.refused(why))?;
    terms.callchain = Some(Some(callchain));
    terms.max_stack = depth.or(terms.max_stack);
    Ok(())
}

/// Parses `no`, or one or more filters, separated by `|`, or by commas within quotes.
fn branches(term: &Term<'_>) -> Result<BranchSampleType, Wrong> {
    match term.text("FILTER")? {
        "no" => Ok(BranchSampleType::empty()),
        text => sampling::parse_branches(&text.replace('|', ",")).map_err(|why| term.refused(why)),
    }
}
