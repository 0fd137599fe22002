//! Signs in the counted stacks that a recording shows less than it could: interpreters, code of
//! JITs without names, and user stacks that do not reach the start of their program. Each has a
//! remedy.
//!
//! All are computed once per file, from distinct rows and distinct stacks.

use std::collections::BTreeMap;

use recrep_format::abi::{AttrFlags, SampleType};
use recrep_format::attr::AttrEntry;
use rustc_hash::FxHashMap;

use super::described::recorded_causes;
use super::interpreters::{INTERPRETERS, Interpreter, RecordedCommand};
use super::labeller::{FunctionSums, Labeller, frame_at};
use crate::callchain::{ChainOrigin, ChainRef, Frame, Stacks, is_entry, largest};
use crate::count::Rows;
use crate::count::metrics::share;
use crate::profile::user_stacks::{
    BrokenStacks, ProgramStacks, StackKind, StackSource, UserStacks,
};
use crate::query::{Field, Key, KeyAddress, MAX_STACK, Meta, SortKey, Warning};
use crate::samples::{Session, are_hardware_calls};
use crate::symbols::{Module, ModuleKind};
use crate::timeline::{CommRef, ThreadRef};

/// Number of frames at which the kernel cuts callchains by default.
const CUT: u32 = 127;
/// Number of frames at which `rec` does.
const CUT_BY_REC: u32 = 1024;

/// The user parts of callchains in a file.
pub(crate) struct UserChains {
    source: StackSource,
    /// For each event whose samples have them, the number of frames at which chains were cut.
    limits: Vec<Option<u32>>,
}

impl UserChains {
    fn of(session: &Session<'_>) -> Self {
        let source = if are_hardware_calls(session) {
            StackSource::CallStack
        } else if let Some(causes) = recorded_causes(session) {
            StackSource::Unwound(causes.reasons())
        } else if session.samples_have(SampleType::STACK_USER) {
            StackSource::Copies
        } else {
            StackSource::FramePointers
        };
        let limit = |AttrEntry { attr, .. }: &AttrEntry| {
            let by_kernel = source == StackSource::FramePointers;
            let is_left_out = attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_USER) && by_kernel;
            let is_traced = ChainOrigin::of(attr) == ChainOrigin::Traced;
            let is_left_out = is_left_out || is_traced;
            let is_recorded = attr.sample_type.contains(SampleType::CALLCHAIN) && !is_left_out;
            let most = if by_kernel { CUT } else { CUT_BY_REC };
            let asked = u32::from(attr.sample_max_stack);
            let limit = if asked > 0 { asked.min(most) } else { most };
            is_recorded.then_some(limit)
        };
        let limits = session.file.attrs.entries().iter().map(limit).collect();
        Self { source, limits }
    }
}

/// The outer end of a chain.
#[derive(Clone, Copy, Default)]
struct Outer {
    /// Number of frames.
    depth: u32,
    /// Numbers of the outermost frame, and of the one that it called.
    frames: [Option<u32>; 2],
}

/// The innermost callers that a chain lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    None,
    /// It begins with them.
    First,
    /// Those of a function of this module, by its number in frames.
    After(u32),
}

impl Labeller<'_> {
    /// Returns hints at what the recording could show.
    pub(super) fn hints(
        &self,
        session: &Session<'_>,
        rows: &Rows,
        stacks: &Stacks,
    ) -> (Vec<Warning>, CountedStacks) {
        let (query, layout) = (self.query, rows.layout());
        let (mut hints, mut counted) = (Vec::new(), CountedStacks::default());
        if layout.has(Field::Address) && query.has(SortKey::Symbol) {
            hints = self.interpreters(rows, stacks, &RecordedCommand::of(session));
            hints.extend(self.nameless_jit(rows));
        }
        // Frames without a function must be there, and none of branches.
        let has_chains = layout.has(Field::Chain) && layout.cpu_mode;
        let is_whole = !query.chains.branches && !query.filters.resolved;
        if has_chains && is_whole && query.chains.frames() >= MAX_STACK {
            let broken;
            (counted, broken) = self.broken_stacks(rows, stacks, &UserChains::of(session));
            hints.extend(broken);
        }
        (hints, counted)
    }

    /// Returns a hint if an interpreter's function has at least 5 % of the samples.
    fn interpreters(
        &self,
        rows: &Rows,
        stacks: &Stacks,
        recorded: &RecordedCommand,
    ) -> Vec<Warning> {
        let FunctionSums { all, functions: sums } = FunctionSums::of(rows, |count| count.samples);
        let mut of_languages = vec![0_u64; INTERPRETERS.len()];
        // A function of less than a thousandth of the samples changes nothing.
        for (frame, count) in sums.iter().filter(|(_, count)| count.saturating_mul(1000) >= all) {
            let Some(name) = self.function_text(frame) else { continue };
            let bare = name.split(['.', '@']).next().unwrap_or_default();
            let is_of = |interpreter: &Interpreter| interpreter.functions.contains(&bare);
            if let Some(language) = INTERPRETERS.iter().position(is_of) {
                of_languages
                    .get_mut(language)
                    .into_iter()
                    .for_each(|sum| *sum = sum.saturating_add(*count));
            }
        }
        let found = INTERPRETERS
            .iter()
            .zip(of_languages)
            .filter(|(_, count)| count.saturating_mul(20) >= all.max(1));
        let mut hints = Vec::new();
        for (interpreter, count) in found {
            if self.has_names(interpreter.named, stacks) {
                continue;
            }
            let Some(remedy) = recorded.remedy(interpreter) else { continue };
            let Interpreter { language, functions, .. } = interpreter;
            let (percent, function) = (share(count, all), functions.first().unwrap_or(&""));
            let message = format!(
                "{percent:.1}% of the samples are in {function}, the interpreter of {language}, \
                 whose functions are not shown: {remedy}"
            );
            hints.push(Warning::new(Warning::INTERPRETER, message));
        }
        hints
    }

    /// Returns a hint if code of JITs without names has at least 5 % of the samples.
    fn nameless_jit(&self, rows: &Rows) -> Option<Warning> {
        let is_jit = |module: &&Module| matches!(module.kind, ModuleKind::PerfMap { .. });
        let are_jits: Vec<bool> = self.modules.iter().map(is_jit).collect();
        if !are_jits.contains(&true) {
            return None;
        }
        let (mut nameless, mut all) = (0_u64, 0_u64);
        for (key, count) in rows.iter() {
            all = all.saturating_add(count.samples);
            let frame = frame_at(&key, KeyAddress::At);
            let module = (frame.module as usize).checked_sub(1);
            let is_jit = module.and_then(|module| are_jits.get(module)) == Some(&true);
            if is_jit && (!frame.end.is_symbol || self.is_inferred(&frame)) {
                nameless = nameless.saturating_add(count.samples);
            }
        }
        let message = format!(
            "{:.1}% of the samples are in code that a JIT made, without names: run the program so \
             that it writes them down (java -XX:+DumpPerfMapAtExit, node --perf-basic-prof); \
             `rep modules` says what was looked for",
            share(nameless, all)
        );
        let is_much = nameless > 0 && nameless.saturating_mul(20) >= all;
        is_much.then(|| Warning::new(Warning::NAMELESS_JIT, message))
    }

    /// Returns whether a function that begins so is in any stack.
    fn has_names(&self, beginning: &str, stacks: &Stacks) -> bool {
        let begins = |frame: &Frame| {
            self.function_text(frame).is_some_and(|name| name.starts_with(beginning))
        };
        !beginning.is_empty() && stacks.frames.iter().any(begins)
    }

    /// Counts user stacks, and returns a hint if more than a hundredth of them lack callers for want
    /// of frame pointers, or more than a tenth do not reach the start of their program.
    fn broken_stacks(
        &self,
        rows: &Rows,
        stacks: &Stacks,
        recorded: &UserChains,
    ) -> (CountedStacks, Option<Warning>) {
        let (counted, lacking) = self.count_user_stacks(rows, stacks, recorded);
        let hint = self.hint_at_broken(&counted, &lacking, recorded);
        (counted, hint)
    }

    /// Counts user stacks, and the samples that lack callers by the number of the module whose
    /// callers they are.
    fn count_user_stacks(
        &self,
        rows: &Rows,
        stacks: &Stacks,
        recorded: &UserChains,
    ) -> (CountedStacks, BTreeMap<u32, u64>) {
        let (outer, gaps) = (outer_ends(stacks), gaps(stacks));
        // Few frames are outermost ones.
        let mut known = FxHashMap::<u32, SignEntry>::default();
        let mut entry = |number: Option<u32>| {
            let frame = stacks.frame(number?)?;
            Some(*known.entry(number?).or_insert_with(|| self.entry(frame)))
        };
        let mut lacking = BTreeMap::<u32, u64>::new();
        let mut counted = CountedStacks::default();
        let mut programs = FxHashMap::<(Option<CommRef>, u32), UserStacks>::default();
        for (key, count) in rows.iter() {
            let event = usize::from(Meta::unpack(Field::Meta.of(&key)).event);
            let Some(limit) = recorded.limits.get(event).copied().flatten() else { continue };
            let ChainRef { callers, own } = ChainRef::unpack(Field::Chain.of(&key));
            let Outer { depth, frames } = outer.get(callers as usize).copied().unwrap_or_default();
            // The sampled instruction is the innermost frame, where it is none of the chain's.
            let sampled = || self.entry(&frame_at(&key, KeyAddress::At));
            let (first, second) = match depth {
                0 => (own.then(sampled), None),
                1 => (entry(frames[0]), own.then(sampled)),
                _ => (entry(frames[0]), entry(frames[1])),
            };
            let Some(is_whole) = is_whole(first, second) else { continue };
            let samples = count.samples;
            let broken = if is_whole { 0 } else { samples };
            let cut = if depth.saturating_add(u32::from(own)) >= limit { broken } else { 0 };
            let of_row = UserStacks { all: samples, broken, cut };
            counted.all.add(of_row);
            let module = match gaps.get(callers as usize) {
                Some(Gap::First) => Some(frame_at(&key, KeyAddress::At).module),
                Some(Gap::After(module)) => Some(*module),
                _ => None,
            };
            if let Some(module) = module {
                let sum = lacking.entry(module).or_default();
                *sum = sum.saturating_add(samples);
            }
            programs.entry((self.program(rows, &key), limit)).or_default().add(of_row);
        }
        for ((program, limit), stacks) in programs {
            let program = program.map(|comm| self.timeline.comm(comm).into_owned());
            let kind = StackKind { program, source: recorded.source.clone(), limit };
            counted.of_programs.add(kind, stacks);
        }
        (counted, lacking)
    }

    /// Returns a hint if too many of the counted stacks lack callers.
    fn hint_at_broken(
        &self,
        counted: &CountedStacks,
        lacking: &BTreeMap<u32, u64>,
        recorded: &UserChains,
    ) -> Option<Warning> {
        /// Least number of user stacks that tell anything.
        const LEAST: u64 = 20;
        let all = counted.all;
        if all.all < LEAST {
            return None;
        }
        let are_broken = all.broken.saturating_mul(10) > all.all;
        if recorded.source == StackSource::FramePointers
            && let Some(message) = self.lacking_callers(lacking, all)
        {
            let code = if are_broken { Warning::BROKEN_STACKS } else { Warning::MISSING_CALLERS };
            return Some(Warning::new(code, message));
        }
        if !are_broken {
            return None;
        }
        let programs = heaviest(&counted.of_programs, all);
        let percent = share(all.broken, all.all);
        let limit = recorded.limits.iter().flatten().max().copied().unwrap_or(CUT);
        let remedy = all.remedy(&recorded.source, limit);
        let message = format!(
            "{percent:.1}% of the user stacks do not reach the start of their program{programs}, \
             so callers are missing: {remedy}"
        );
        Some(Warning::new(Warning::BROKEN_STACKS, message))
    }

    /// Returns the comm of the program that a row is of, or of its thread; `None` if rows have
    /// neither.
    fn program(&self, rows: &Rows, key: &Key) -> Option<CommRef> {
        let layout = rows.layout();
        if layout.has(Field::Comm) {
            return Some(CommRef::unpack(Field::Comm.of(key)));
        }
        let thread = layout.has(Field::Thread).then(|| ThreadRef::unpack(Field::Thread.of(key)));
        Some(self.timeline.thread_label(thread?).1)
    }

    /// Returns a sentence if more than a hundredth of the stacks lack callers: those of functions of
    /// these modules, with the numbers of samples.
    fn lacking_callers(&self, modules: &BTreeMap<u32, u64>, all: UserStacks) -> Option<String> {
        let lacking = modules.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if lacking.saturating_mul(100) <= all.all {
            return None;
        }
        let mut named = BTreeMap::<String, u64>::new();
        for (module, count) in modules {
            let module = self.module((*module).into());
            let name = module.map_or_else(|| "[unknown]".into(), Module::name).into_owned();
            *named.entry(name).or_default() += count;
        }
        Some(format!(
            "{:.1}% of callchains lack callers ({}: no frame pointers); record with rec -g",
            share(lacking, all.all),
            largest(&named, all.all)
        ))
    }

    /// Returns what a frame is for a stack that begins with it.
    fn entry(&self, frame: &Frame) -> SignEntry {
        /// CPU mode of user code.
        const USER: u8 = 2;
        if frame.end.cpu_mode != USER {
            return SignEntry::NotUser;
        }
        match self.function_text(frame).filter(|_| !self.is_inferred(frame)) {
            Some(name) if is_entry(&name) => SignEntry::Named,
            Some(_) => SignEntry::No,
            None => match self.module(frame.module.into()) {
                Some(module) if is_of_runtime(&module.name()) => SignEntry::OfRuntime,
                _ => SignEntry::No,
            },
        }
    }
}

/// Returns the outer end of each chain.
fn outer_ends(stacks: &Stacks) -> Vec<Outer> {
    stacks.chains.fold_callers(Outer::default(), |node, callers: Outer| Outer {
        depth: callers.depth.saturating_add(1),
        frames: match callers.depth {
            0 => [Some(node.frame), None],
            1 => [callers.frames[0], Some(node.frame)],
            _ => callers.frames,
        },
    })
}

/// Returns the gap of each chain.
fn gaps(stacks: &Stacks) -> Vec<Gap> {
    stacks.chains.fold_callers(Gap::None, |node, callers| match stacks.frame(node.frame) {
        Some(frame) if frame.is_missing() => Gap::First,
        Some(frame) if callers == Gap::First => Gap::After(frame.module),
        _ => callers,
    })
}

/// Returns whether a stack reaches the start of its program, given its outermost frame and the one
/// that this called; `None` if it is not a user stack.
fn is_whole(first: Option<SignEntry>, second: Option<SignEntry>) -> Option<bool> {
    match (first, second) {
        (None | Some(SignEntry::NotUser), _) => None,
        (Some(SignEntry::Named), _) | (_, Some(SignEntry::Named)) => Some(true),
        (Some(SignEntry::OfRuntime), Some(_)) => Some(true),
        _ => Some(false),
    }
}

/// User stacks that were counted.
#[derive(Debug, Default)]
pub(crate) struct CountedStacks {
    pub(crate) all: UserStacks,
    pub(crate) of_programs: ProgramStacks,
}

/// Returns the programs with the most broken stacks, with their shares of all user stacks, in
/// parentheses.
fn heaviest(programs: &ProgramStacks, all: UserStacks) -> String {
    const SHOWN: usize = 3;
    let mut named: Vec<(&str, u64)> = Vec::new();
    for BrokenStacks { program, broken, .. } in programs.broken() {
        let is_shown = broken.saturating_mul(100) >= all.all;
        named.extend(program.filter(|_| is_shown).map(|program| (program, broken)));
    }
    let more = if named.len() > SHOWN { ", …" } else { "" };
    let shown = named.iter().take(SHOWN);
    let shown: Vec<String> =
        shown.map(|(name, broken)| format!("{name} {:.1}%", share(*broken, all.all))).collect();
    if shown.is_empty() { String::new() } else { format!(" ({}{more})", shown.join(", ")) }
}

/// Whether a stack can begin with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignEntry {
    /// It is not in user code.
    NotUser,
    /// A function at which stacks begin.
    Named,
    /// A function without a name of the C library or the loader.
    OfRuntime,
    No,
}

/// Returns whether a file is the C library or the loader, which start programs and threads.
fn is_of_runtime(name: &str) -> bool {
    ["libc.so", "libc-", "libc.musl", "ld-linux", "ld-musl", "ld-2.", "ld.so", "libpthread"]
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_begin_at_entries() {
        let entries = [
            "main",
            "_start",
            "__libc_start_call_main",
            "__libc_start_main@@GLIBC_2.34",
            "runtime.goexit.abi0",
        ];
        assert!(entries.into_iter().all(is_entry));
        assert!(!["domain", "main::run", "start", "cc1_main"].into_iter().any(is_entry));
        assert!(
            is_of_runtime("libc.so.6")
                && is_of_runtime("ld-linux-x86-64.so.2")
                && is_of_runtime("libc-2.31.so")
        );
        assert!(!is_of_runtime("libcrypto.so.3") && !is_of_runtime("app"));
    }
}
