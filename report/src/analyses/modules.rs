//! `rep modules`: for each module the number of samples with a function, the places searched for
//! symbols, the reason why symbols are missing, and what would help.
//!
//! ```text
//!   report (by dso, symbol) ─► Profile::module_uses ─► Listing ─► text, JSON
//!   Session of each input ───► StackSummary ─────────────┘
//! ```

use std::io::{self, Write};

use clap::Parser;
use recrep_format::abi::SampleType;
use recrep_format::attr::AttrTable;
use recrep_format::layout::UpTo;
use recrep_format::record::{RawRecord, SampleFields};
use serde::{Serialize, Serializer};

use crate::analyses::derived;
use crate::cli::{self, SourcesArgs, SymbolArgs};
use crate::count::metrics::{rounded, share};
use crate::exports::outputs::Output;
use crate::exports::sheet::{Analysis, Sheet, SheetCell, SheetColumn};
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::listings::info::{InfoValue, map, number};
use crate::profile::Profile;
use crate::profile::modules::ModuleUse;
use crate::query::{Column, MAX_STACK, Query, Warning};
use crate::samples::{PieceWorker, Session, by_piece, for_each_sample};
use crate::symbols::{Attempt, Explanation, Module, Refusal, Source};
use crate::terminal::escape::escape;

/// Show for each module how many samples have a function name, where symbols were searched, and how
/// to find more
#[derive(Debug, Parser)]
#[command(name = "rep modules", version, long_about = None)]
// These concern names, which the listing does not show.
#[command(mut_arg("source_paths", |arg| arg.hide(true)), mut_arg("demangle", |arg| arg.hide(true)))]
#[command(mut_arg("mangled", |arg| arg.hide(true)), mut_arg("demangle_kernel", |arg| arg.hide(true)))]
pub(crate) struct ModulesQuery {
    #[command(flatten)]
    sources: SourcesArgs,

    /// Only modules that have samples whose function is unknown
    #[arg(short, long)]
    unresolved: bool,

    /// Print JSON, schema recrep-modules/1
    #[arg(long)]
    json: bool,

    /// Output format
    #[arg(long, default_value = "text", value_parser = cli::tables_parser())]
    format: &'static Output,

    #[command(flatten)]
    symbols: SymbolArgs,

    /// Histogram from which modules are counted.
    #[arg(skip)]
    report: Query,
}

pub(crate) fn query(asked: ModulesQuery) -> Result<ModulesQuery, String> {
    let sources = asked.sources.sources();
    let symbol_sources = asked.symbols.clone().options(true)?;
    Ok(ModulesQuery { report: Query { sources, symbol_sources, ..Query::default() }, ..asked })
}

/// Lists the modules, and returns warnings.
pub(crate) fn run(query: &ModulesQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let columns = Column::list("dso,symbol", query.report.mode)?;
    let (profile, _, stacks) = derived::profile(&query.report, columns, StackSummary::of)?;
    let stacks = stacks.into_iter().fold(StackSummary::default(), StackSummary::and);
    let listing = ModuleListing::of(&profile, stacks, query.unresolved);
    let inputs: Vec<&str> = profile.inputs.iter().map(|input| input.path.as_str()).collect();
    let output = derived::output(query.json, query.format);
    derived::print(output, &inputs, &listing, &profile.warnings, out)
}

/// Output of `rep modules`.
#[derive(Serialize)]
struct ModuleListing<'p> {
    samples: u64,
    /// Number of samples with a function.
    resolved: u64,
    /// Number of samples in functions that have no name.
    inferred: u64,
    modules: Vec<ModuleRow<'p>>,
    stacks: StackSummary,
    /// Explanation, if stacks were truncated.
    truncated_stacks: Option<Explanation>,
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
    /// Number of its samples in functions that have no name.
    inferred: u64,
    symbols: usize,
    /// Condition under which the names are right.
    note: Option<&'p str>,
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
    message: "these callchains reach the kernel's maximum depth: their outer callers may be \
              missing",
    help: "raise kernel.perf_event_max_stack and record with --max-stack",
};

impl<'p> ModuleListing<'p> {
    fn of(profile: &'p Profile, stacks: StackSummary, unresolved: bool) -> Self {
        let uses = &profile.module_uses;
        let (all, resolved) = uses.total();
        let modules: Vec<ModuleRow<'_>> = uses
            .sorted(unresolved)
            .into_iter()
            .filter(|(_, uses)| !unresolved || uses.lacks() > 0)
            .map(|(module, uses)| ModuleRow::of(module, uses, all.samples))
            .collect();
        let truncated_stacks = match stacks {
            StackSummary { copies_truncated: 1.., .. } => Some(TRUNCATED),
            StackSummary { callchains_at_limit: 1.., .. } => Some(AT_LIMIT),
            _ => None,
        };
        Self {
            samples: all.samples,
            resolved: resolved.samples,
            inferred: uses.inferred(),
            modules,
            stacks,
            truncated_stacks,
        }
    }
}

impl Analysis for ModuleListing<'_> {
    const SCHEMA: &'static str = "recrep-modules/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        let percent = share(self.resolved, self.samples);
        let mut title =
            format!("# {} samples, {percent:.2}% of them with a function", self.samples);
        if self.inferred > 0 {
            title += &format!(", {:.2}% in inferred ones", share(self.inferred, self.samples));
        }
        let columns = [
            RowColumn::number("samples", "Samples", 11, |row| row.samples.into()),
            RowColumn::number("percent", "Share", 8, |row| SheetCell::Percent(row.percent)),
            RowColumn::number("resolved_percent", "Resolved", 8, |row| {
                SheetCell::Percent(row.resolved_percent)
            }),
            RowColumn::shown("Module", 0, |row| {
                let path = row.path.as_deref().filter(|path| path.starts_with('/'));
                path.unwrap_or(&row.name).into()
            }),
            RowColumn::unshown("name", |row| (&row.name).into()),
            RowColumn::unshown("path", |row| row.path.as_ref().into()),
            RowColumn::unshown("build_id", |row| row.build_id.as_ref().into()),
            RowColumn::unshown("period", |row| row.period.into()),
            RowColumn::unshown("symbols", |row| (row.symbols as u64).into()),
            RowColumn::unshown("reason", |row| row.reason.as_ref().map(|why| why.code).into()),
            RowColumn::unshown("inferred", |row| row.inferred.into()),
        ];
        let mut sheet = Sheet::new(vec![title, "#".into()], &columns, &self.modules);
        for (shown, row) in sheet.rows.iter_mut().zip(&self.modules) {
            shown.below = row.lines_below();
        }
        vec![sheet]
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        self.sheets().iter().try_for_each(|sheet| sheet.print(out))?;
        let stacks = &self.stacks;
        if stacks.copies > 0 {
            let (cut, all, bytes) = (stacks.copies_truncated, stacks.copies, stacks.copy_bytes);
            let percent = share(cut, all);
            writeln!(
                out,
                "#\n# {cut} of {all} copied stacks ({percent:.2}%) are truncated at {bytes} bytes"
            )?;
        }
        if stacks.callchains_at_limit > 0 {
            let (cut, all) = (stacks.callchains_at_limit, stacks.callchains);
            writeln!(
                out,
                "#\n# {cut} of {all} callchains ({:.2}%) reach the kernel's maximum depth",
                share(cut, all)
            )?;
        }
        for line in self.truncated_stacks.iter().flat_map(explain) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// Returns the lines that explain why samples have no function.
fn explain(reason: &Explanation) -> [String; 2] {
    [
        format!("{:35}{}: {}", "", reason.code, reason.message),
        format!("{:35}what would help: {}", "", reason.help),
    ]
}

type RowColumn<'a> = SheetColumn<'a, &'a ModuleRow<'a>>;

impl ModuleRow<'_> {
    /// Returns the lines below it: where symbols were searched, and why they are missing.
    fn lines_below(&self) -> Vec<String> {
        let mut below = Vec::new();
        if self.inferred > 0 {
            below.push(format!(
                "{:35}inferred: {:.2}% of its samples are in functions without names, shown as \
                 {}+0xSTART",
                "",
                share(self.inferred, self.samples),
                self.name
            ));
        }
        below.extend(self.note.map(|note| format!("{:35}note: {note}", "")));
        below.extend(self.reason.iter().flat_map(explain));
        below.extend(tried(self.attempts).map(|tried| format!("{:35}tried {tried}", "")));
        below
    }
}

/// Returns where symbols were searched, in a line: files with what they gave, and the number of
/// places without a file. JSON has all places.
fn tried(attempts: &[Attempt]) -> Option<String> {
    let is_missing = |attempt: &&Attempt| matches!(attempt.result, Err(Refusal::Missing));
    let mut shown: Vec<&Attempt> = attempts.iter().filter(|one| !is_missing(one)).collect();
    if shown.is_empty() {
        let of_path = attempts.iter().find(|attempt| attempt.source == Source::Path);
        shown.extend(of_path.or(attempts.first()));
    }
    let mut parts: Vec<String> =
        shown.iter().map(|attempt| escape(&attempt.to_string()).into_owned()).collect();
    match attempts.len() - shown.len() {
        0 => {}
        1 => parts.push("no file in 1 other place".into()),
        others => parts.push(format!("no file in {others} other places")),
    }
    (!parts.is_empty()).then(|| parts.join("; "))
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
            inferred: uses.inferred.samples,
            symbols: uses.loaded.as_ref().map_or(0, |loaded| loaded.table.len()),
            note: uses.loaded.as_ref().and_then(|loaded| loaded.outcome.note.as_deref()),
            reason: uses.explanation(module),
            attempts: uses.loaded.as_ref().map_or(&[], |loaded| &loaded.outcome.attempts),
        }
    }
}

/// Serializes the places that were searched for symbols.
fn attempts<S: Serializer>(attempts: &&[Attempt], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(attempts.iter().map(|Attempt { source, path, result }| {
        let result = match result {
            Ok(symbols) => ("symbols", number(*symbols as u64)),
            Err(refusal) => ("refused", InfoValue::Text(refusal.to_string())),
        };
        let path = path.to_string_lossy().into_owned();
        map([
            ("source", InfoValue::Text(source.to_string())),
            ("path", InfoValue::Text(path)),
            result,
        ])
    }))
}

/// Numbers of recorded stacks, and of those that were truncated, so that outer callers are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct StackSummary {
    /// Number of samples with a callchain.
    callchains: u64,
    /// Number of callchains of the kernel's maximum depth.
    callchains_at_limit: u64,
    /// Number of samples with a copy of the user stack.
    copies: u64,
    /// Number of copies that are full, so that the rest of the stack is missing.
    copies_truncated: u64,
    /// Size of the largest copy in bytes.
    copy_bytes: u64,
}

impl StackSummary {
    fn of(session: &Session<'_>) -> Self {
        let wanted = SampleType::CALLCHAIN | SampleType::STACK_USER;
        if !session.samples_have(wanted) {
            return Self::default();
        }
        let new = |_| StackWorker { attrs: &session.file.attrs, summary: Self::default() };
        let workers = by_piece(&session.split.pieces, new).into_iter();
        workers.map(|worker| worker.summary).fold(Self::default(), Self::and)
    }

    fn add(&mut self, attrs: &AttrTable, raw: RawRecord<'_>) {
        let Some((event, sample)) = attrs.sample(raw) else { return };
        let mut fields = SampleFields::default();
        if sample.walk(const { UpTo::field(SampleType::STACK_USER) }, &mut fields).is_err() {
            return;
        }
        if let Some(chain) = &fields.callchain {
            let asked =
                attrs.get(event).map_or(0, |entry| usize::from(entry.attr.sample_max_stack));
            let most = if asked == 0 { MAX_STACK } else { asked };
            self.callchains += 1;
            self.callchains_at_limit += u64::from(chain.len() >= most);
        }
        if let Some(stack) = fields.stack_user.filter(|stack| !stack.bytes.is_empty()) {
            let size = stack.bytes.len() as u64;
            self.copies += 1;
            self.copies_truncated += u64::from(stack.dyn_size.is_some_and(|filled| filled >= size));
            self.copy_bytes = self.copy_bytes.max(size);
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            callchains: self.callchains + other.callchains,
            callchains_at_limit: self.callchains_at_limit + other.callchains_at_limit,
            copies: self.copies + other.copies,
            copies_truncated: self.copies_truncated + other.copies_truncated,
            copy_bytes: self.copy_bytes.max(other.copy_bytes),
        }
    }
}

/// Summarizes the stacks of one worker's samples.
struct StackWorker<'a> {
    attrs: &'a AttrTable,
    summary: StackSummary,
}

impl PieceWorker for StackWorker<'_> {
    fn read(&mut self, _: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        for_each_sample(piece, buffer, |raw| self.summary.add(self.attrs, raw));
    }
}
