//! Data that `rep modules` prints, in the shape of its JSON (`recrep-modules/1`), and as text.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::stacks::StackSummary;
use crate::commands::info::Value;
use crate::count::metrics::{rounded, share};
use crate::query::warning::Warning;
use crate::symbols::{Attempt, Explanation, GUEST, Module};
use crate::table::module_use::ModuleUse;
use crate::table::profile::Profile;
use crate::terminal::escape::escape;

/// Output of `rep modules`.
#[derive(Serialize)]
pub(super) struct Listing<'p> {
    schema: &'static str,
    inputs: Vec<&'p str>,
    /// Number of all samples.
    samples: u64,
    /// Number of samples with a function.
    resolved: u64,
    modules: Vec<ModuleRow<'p>>,
    stacks: StackSummary,
    /// Explanation, if stacks were truncated.
    truncated_stacks: Option<Explanation>,
    warnings: &'p [Warning],
}

/// Module and its samples.
#[derive(Default, Serialize)]
struct ModuleRow<'p> {
    name: String,
    path: Option<String>,
    build_id: Option<String>,
    samples: u64,
    period: u64,
    /// Percentage of all samples.
    percent: f64,
    /// Number of its samples with a function.
    resolved: u64,
    resolved_percent: f64,
    /// Number of its known symbols.
    symbols: usize,
    /// Reason why samples have no function; `None` if all have one.
    reason: Option<Explanation>,
    #[serde(serialize_with = "attempts")]
    attempts: &'p [Attempt],
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

impl<'p> Listing<'p> {
    pub(super) fn of(profile: &'p Profile, stacks: StackSummary, unresolved: bool) -> Self {
        let uses = &profile.module_uses;
        let (all, resolved) = uses.total();
        let mut modules: Vec<ModuleRow<'_>> = uses
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
            inputs: profile.inputs.iter().map(|input| input.path.as_str()).collect(),
            samples: all.samples,
            resolved: resolved.samples,
            modules,
            stacks,
            truncated_stacks,
            warnings: &profile.warnings,
        }
    }

    /// Prints the listing as text.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let percent = share(self.resolved, self.samples);
        writeln!(out, "# {} samples, {percent:.2}% of them with a function", self.samples)?;
        writeln!(out, "#\n# {:>9}  {:>8}  {:>8}  Module", "Samples", "Share", "Resolved")?;
        for module in &self.modules {
            let (samples, share, resolved) = (module.samples, module.percent, module.resolved_percent);
            let name = module.path.as_deref().filter(|path| path.starts_with('/')).unwrap_or(&module.name);
            writeln!(out, "{samples:>11}  {share:>7.2}%  {resolved:>7.2}%  {}", escape(name))?;
            if let Some(reason) = &module.reason {
                explain(reason, out)?;
            }
            for Attempt { source, path, result } in module.attempts {
                let result = result.as_ref().map_or_else(ToString::to_string, |symbols| format!("{symbols} symbols"));
                let path = path.to_string_lossy();
                writeln!(out, "{:35}tried {} ({source}): {}", "", escape(&path), escape(&result))?;
            }
        }
        let stacks = &self.stacks;
        if stacks.copies > 0 {
            let (cut, all, bytes) = (stacks.copies_truncated, stacks.copies, stacks.copy_bytes);
            let percent = share(cut, all);
            writeln!(out, "#\n# {cut} of {all} copied stacks ({percent:.2}%) are truncated at {bytes} bytes")?;
        }
        if stacks.callchains_at_limit > 0 {
            let (cut, all) = (stacks.callchains_at_limit, stacks.callchains);
            writeln!(out, "#\n# {cut} of {all} callchains ({:.2}%) reach the kernel's maximum depth", share(cut, all))?;
        }
        if let Some(reason) = &self.truncated_stacks {
            explain(reason, out)?;
        }
        Ok(())
    }
}

fn explain(reason: &Explanation, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:35}{}: {}", "", reason.code, reason.message)?;
    writeln!(out, "{:35}what would help: {}", "", reason.help)
}

impl<'p> ModuleRow<'p> {
    fn of(module: Option<&Module>, uses: &'p ModuleUse, all: u64) -> Self {
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
            attempts: uses.loaded.as_ref().map_or(&[], |loaded| &loaded.outcome.attempts),
        }
    }
}

/// Serializes the places that were searched for symbols.
fn attempts<S: Serializer>(attempts: &&[Attempt], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(attempts.iter().map(|Attempt { source, path, result }| {
        let result = match result {
            Ok(symbols) => ("symbols", Value::Number(*symbols as u64)),
            Err(refusal) => ("refused", Value::Text(refusal.to_string())),
        };
        let path = path.to_string_lossy().into_owned();
        Value::Map(vec![("source", Value::Text(source.to_string())), ("path", Value::Text(path)), result])
    }))
}
