//! Terms that events of any kind can have: how often to sample, what samples carry.

use recrep_format::abi::BranchSampleType;

use super::error::Problem;
use super::nearest::nearest;
use super::spec::EventSpec;
use super::text::{Piece, Wrong};
use crate::sampling::{Callchain, Rate};

/// The terms that this module knows, as a refusal lists them.
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
/// The attr's words by name.
pub(super) const WORDS: &[&str] = &["config", "config1", "config2", "config3"];
/// perf's size of the copy of the stack.
const STACK_SIZE: u32 = 8192;
/// The largest multiple of 8 that fits the record's 16 bits.
const MOST_STACK: u64 = 65528;

/// One term, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term<'a> {
    /// What is before the `=`.
    pub(super) key: &'a str,
    /// What is after it, without quotes.
    pub(super) value: Option<&'a str>,
    /// The byte of the list that it begins at.
    pub(super) at: usize,
}

/// The terms between two slashes.
pub(super) fn split(terms: Piece<'_>) -> Result<Vec<Term<'_>>, Wrong> {
    if terms.text.trim().is_empty() {
        return Ok(Vec::new());
    }
    terms.split(b',').into_iter().map(one).collect()
}

fn one(piece: Piece<'_>) -> Result<Term<'_>, Wrong> {
    let (key, value) = piece.text.split_once('=').map_or((piece.text, None), |(key, value)| (key, Some(value.trim())));
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

    /// The value's text.
    pub(super) fn text(&self, wanted: &'static str) -> Result<&str, Wrong> {
        self.value.filter(|value| !value.is_empty()).ok_or_else(|| self.no_value(wanted))
    }

    /// The value as a number, decimal or with `0x`.
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

    /// A flag: the name alone, or with 0 or 1.
    pub(super) fn flag(&self) -> Result<bool, Wrong> {
        match self.value {
            None | Some("1") => Ok(true),
            Some("0") => Ok(false),
            Some(_) => Err(self.bad_value("0 or 1")),
        }
    }

    /// A term that only another tool has a use for.
    fn others(&self, tool: &'static str) -> Wrong {
        self.wrong(Problem::OthersTerm { term: self.key.to_owned(), tool })
    }

    /// A term that no event of this kind has.
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

/// A number as perf's users write it.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

/// Takes a term that any event can have; `false`: it is none of these.
pub(super) fn take(term: &Term<'_>, spec: &mut EventSpec) -> Result<bool, Wrong> {
    let terms = &mut spec.terms;
    match term.key {
        "name" => (spec.name, spec.named) = (term.text("TEXT")?.to_owned(), true),
        "period" => terms.rate = Some(Rate::Period(positive(term)?)),
        "freq" if term.value == Some("max") => terms.rate = Some(Rate::Max),
        "freq" => terms.rate = Some(Rate::Hz(positive(term)?)),
        "time" => terms.time = Some(term.flag()?),
        "call-graph" => terms.callchain = Some(callchain(term)?),
        "stack-size" => {
            let size = term.at_most(MOST_STACK)?.next_multiple_of(8);
            terms.stack_size = u32::try_from(size).ok();
        }
        "max-stack" => terms.max_stack = u16::try_from(term.at_most(u16::MAX.into())?).ok(),
        "branch_type" => terms.branches = Some(branches(term)?),
        "inherit" => terms.inherit = Some(term.flag()?),
        "no-inherit" => terms.inherit = Some(!term.flag()?),
        "overwrite" => terms.overwrite = Some(term.flag()?),
        "no-overwrite" => terms.overwrite = Some(!term.flag()?),
        "aux-output" => terms.aux_output = term.flag()?,
        "aux-sample-size" => terms.aux_sample_size = u32::try_from(term.at_most(u32::MAX.into())?).ok(),
        "percore" | "metric-id" => return Err(term.others("perf stat")),
        "nr" => return Err(term.others("perf trace")),
        _ => return Ok(false),
    }
    if let (Some(Some(Callchain::Dwarf { stack_size })), Some(asked)) = (&mut terms.callchain, terms.stack_size) {
        *stack_size = asked;
    }
    Ok(true)
}

/// Takes one of the attr's words by name.
pub(super) fn take_word(term: &Term<'_>, spec: &mut EventSpec) -> Result<bool, Wrong> {
    let word = match term.key {
        "config" => &mut spec.config,
        "config1" => &mut spec.config1,
        "config2" => &mut spec.config2,
        "config3" => &mut spec.config3,
        _ => return Ok(false),
    };
    *word = term.number()?;
    Ok(true)
}

fn positive(term: &Term<'_>) -> Result<u64, Wrong> {
    Some(term.number()?).filter(|n| *n > 0 && *n < 1 << 63).ok_or_else(|| term.bad_value("a number from 1"))
}

fn callchain(term: &Term<'_>) -> Result<Option<Callchain>, Wrong> {
    Ok(match term.text("fp|dwarf|lbr|no")? {
        "no" => None,
        "fp" => Some(Callchain::Fp),
        "dwarf" => Some(Callchain::Dwarf { stack_size: STACK_SIZE }),
        "lbr" => Some(Callchain::Lbr),
        _ => return Err(term.bad_value("fp, dwarf, lbr or no")),
    })
}

/// The filters of branch stacks by perf's names: one for each bit.
const BRANCHES: &[(&str, BranchSampleType)] = &[
    ("u", BranchSampleType::USER),
    ("k", BranchSampleType::KERNEL),
    ("hv", BranchSampleType::HV),
    ("any", BranchSampleType::ANY),
    ("any_call", BranchSampleType::ANY_CALL),
    ("any_ret", BranchSampleType::ANY_RETURN),
    ("ind_call", BranchSampleType::IND_CALL),
    ("abort_tx", BranchSampleType::ABORT_TX),
    ("in_tx", BranchSampleType::IN_TX),
    ("no_tx", BranchSampleType::NO_TX),
    ("cond", BranchSampleType::COND),
    ("ind_jmp", BranchSampleType::IND_JUMP),
    ("call", BranchSampleType::CALL),
    ("no_flags", BranchSampleType::NO_FLAGS),
    ("no_cycles", BranchSampleType::NO_CYCLES),
    ("save_type", BranchSampleType::TYPE_SAVE),
    ("stack", BranchSampleType::CALL_STACK),
    ("hw_index", BranchSampleType::HW_INDEX),
    ("priv", BranchSampleType::PRIV_SAVE),
    ("counter", BranchSampleType::COUNTERS),
];

/// `no`, or one filter (a comma would end the term) or several with `|`; levels alone mean any branch, as perf has it.
fn branches(term: &Term<'_>) -> Result<BranchSampleType, Wrong> {
    let text = term.text("FILTER")?;
    if text == "no" {
        return Ok(BranchSampleType::empty());
    }
    let mut all = BranchSampleType::empty();
    for name in text.split(['|', ',']) {
        let (_, bit) = BRANCHES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names: Vec<_> = BRANCHES.iter().map(|(name, _)| *name).collect();
            term.bad_value(format!("no or one of {}", names.join(" ")))
        })?;
        all |= *bit;
    }
    let levels = BranchSampleType::USER | BranchSampleType::KERNEL | BranchSampleType::HV;
    Ok(if (all - levels).is_empty() { BranchSampleType::ANY } else { all })
}
