//! Gates: rules that fail a job.
//!
//! ```text
//!   text, TOML file ─► parse, file ─► GateRule: subject, comparison, limit
//!                                       │
//!   RuleFacts: shares, comparisons, losses ─┴─► evaluate ─► RuleOutcome of each rule ─► GateReport
//!
//!   rule    = subject, ( ">" | ">=" | "<" | "<=" ), number, [ "%" ], [ "any" | "surely" ] ;
//!   subject = ( "self" | "children" | "dso" | "comm" ), "(", name, ")"
//!           | ( "delta" | "impact" ), "(", kind, ",", name, ")" | "delta", "(", "total", ")"
//!           | "new" | "gone" | "lost" | "unresolved" | "broken"
//!           | "samples" | "runs" | "slower" | "faster" ;
//! ```
//!
//! A rule says what fails: `self(malloc) > 5%` is violated at 6 %. What cannot be answered fails
//! the job, too, but for noise: a change that is not significant never does.

mod evaluate;
mod file;
mod parse;
mod rule;

pub(crate) use evaluate::{
    Finding, GateReport, Judgement, KindFacts, NamedRow, NoSecondSide, Reason, RuleFacts,
    RuleOutcome, evaluate,
};
pub(crate) use file::Rules;
pub(crate) use rule::{GateRule, RowKind, RuleSubject};

#[cfg(test)]
mod tests;
