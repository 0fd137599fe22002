//! Data that `rep modules` prints, in the shape of its JSON (`recrep-modules/1`).

use serde::Serialize;

use super::stacks::StackSummary;
use crate::count::metrics::{rounded, share};
use crate::query::warning::Warning;
use crate::symbols::{Attempt, Explanation, GUEST, Module};
use crate::table::module_use::ModuleUse;
use crate::table::profile::Profile;

/// Output of `rep modules`.
#[derive(Debug, Serialize)]
pub(super) struct Listing {
    schema: &'static str,
    pub(super) inputs: Vec<String>,
    /// Number of all samples.
    pub(super) samples: u64,
    /// Number of samples with a function.
    pub(super) resolved: u64,
    pub(super) modules: Vec<ModuleRow>,
    pub(super) stacks: StackSummary,
    /// Explanation, if stacks were truncated.
    pub(super) truncated_stacks: Option<Explanation>,
    warnings: Vec<Warning>,
}

/// Module and its samples.
#[derive(Debug, Default, Serialize)]
pub(super) struct ModuleRow {
    pub(super) name: String,
    pub(super) path: Option<String>,
    pub(super) build_id: Option<String>,
    pub(super) samples: u64,
    pub(super) period: u64,
    /// Percentage of all samples.
    pub(super) percent: f64,
    /// Number of its samples with a function.
    pub(super) resolved: u64,
    pub(super) resolved_percent: f64,
    /// Number of its known symbols.
    pub(super) symbols: usize,
    /// Reason why samples have no function; `None` if all have one.
    pub(super) reason: Option<Explanation>,
    pub(super) attempts: Vec<AttemptRow>,
}

/// Place that was searched for symbols.
#[derive(Debug, Serialize)]
pub(super) struct AttemptRow {
    pub(super) source: String,
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) symbols: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
}

const TRUNCATED: Explanation = Explanation {
    code: "truncated-stack",
    message: "the copies of these stacks were too small: their outer callers are missing",
    help: "record with larger copies (--call-graph dwarf,65528), or with frame pointers or LBR",
};

const AT_LIMIT: Explanation = Explanation {
    code: "truncated-stack",
    message: "these callchains reach the kernel's maximum depth: their outer callers may be missing",
    help: "raise kernel.perf_event_max_stack and record with --max-stack",
};

impl Listing {
    pub(super) fn of(profile: &Profile, stacks: StackSummary, unresolved: bool) -> Self {
        let uses = &profile.module_uses;
        let (all, resolved) = uses.total();
        let mut modules: Vec<ModuleRow> = uses
            .sorted(unresolved)
            .into_iter()
            .filter(|(_, uses)| !unresolved || uses.lacks() > 0)
            .map(|(module, uses)| ModuleRow::of(module, uses, all.samples))
            .collect();
        if uses.guest > 0 {
            modules.push(ModuleRow {
                name: "[guest]".into(),
                samples: uses.guest,
                percent: rounded(share(uses.guest, all.samples)),
                reason: Some(GUEST),
                ..ModuleRow::default()
            });
        }
        let truncated_stacks = match stacks {
            StackSummary { copies_truncated: 1.., .. } => Some(TRUNCATED),
            StackSummary { callchains_at_limit: 1.., .. } => Some(AT_LIMIT),
            _ => None,
        };
        Self {
            schema: "recrep-modules/1",
            inputs: profile.inputs.iter().map(|input| input.path.clone()).collect(),
            samples: all.samples,
            resolved: resolved.samples,
            modules,
            stacks,
            truncated_stacks,
            warnings: profile.warnings.clone(),
        }
    }
}

impl ModuleRow {
    fn of(module: Option<&Module>, uses: &ModuleUse, all: u64) -> Self {
        let outcome = uses.loaded.as_ref().map(|loaded| &loaded.outcome);
        Self {
            name: module.map_or_else(|| "[unknown]".into(), |module| module.name().into_owned()),
            path: module.map(|module| module.long_name().into_owned()),
            build_id: module.and_then(|module| module.build_id).map(|id| id.to_string()),
            samples: uses.all.samples,
            period: uses.all.period,
            percent: rounded(share(uses.all.samples, all)),
            resolved: uses.resolved.samples,
            resolved_percent: rounded(share(uses.resolved.samples, uses.all.samples)),
            symbols: uses.loaded.as_ref().map_or(0, |loaded| loaded.table.len()),
            reason: uses.explanation(module),
            attempts: outcome.map(|outcome| outcome.attempts.iter().map(attempt).collect()).unwrap_or_default(),
        }
    }
}

fn attempt(attempt: &Attempt) -> AttemptRow {
    AttemptRow {
        source: attempt.source.to_string(),
        path: attempt.path.display().to_string(),
        symbols: attempt.result.as_ref().ok().copied(),
        refused: attempt.result.as_ref().err().map(ToString::to_string),
    }
}
