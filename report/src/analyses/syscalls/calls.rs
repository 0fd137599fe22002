//! The calls of the inputs, by what they are told apart by.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use rayon::prelude::*;
use recrep_format::abi::SampleType;
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::Serialize;

use super::crossings::{CollectedCrossings, CrossingThread, SyscallEvents};
use super::exec::{self, EnteredExec, ReturnedExec};
use super::key::CallsKey;
use super::names::{CallNumber, SyscallNames};
use super::pair::{Call, CallCounter, CallResult, Crossings, Untimed};
use super::{SplitBy, SyscallsQuery};
use crate::analyses::callers::Caller;
use crate::analyses::collected::Findings;
use crate::callchain::ChainLimit;
use crate::engine::fetching;
use crate::query::{ChainOptions, Column, MAX_STACK, Query, Warning};
use crate::samples::{ChainSetup, SampleFilter, Session};
use crate::symbols::Resolver;
use crate::timeline::ThreadRef;

/// Calls with one key.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) number: Option<i32>,
    /// Latency of each call that returned, in nanoseconds.
    pub(super) latencies: Vec<u64>,
    /// Number of calls that returned, and whose entry is unknown.
    pub(super) untimed: u64,
    /// Number of calls that failed, by the error's number and name.
    pub(super) errors: BTreeMap<(i32, Option<&'static str>), u64>,
    /// Number of calls that had not returned when the recording ended.
    pub(super) unfinished: u64,
    /// The longest time from the entry of such a call to the end of the recording.
    pub(super) longest_unfinished: u64,
}

impl Calls {
    /// Counts the error, if a call returned one.
    #[inline]
    fn fail(&mut self, result: CallResult) {
        if let Some(errno) = result.errno() {
            *self.errors.entry((errno, None)).or_default() += 1;
        }
    }

    /// Counts a call that did not return within a time.
    fn leave_unfinished(&mut self, since: u64) {
        self.unfinished += 1;
        self.longest_unfinished = self.longest_unfinished.max(since);
    }

    /// Gives the errors their names.
    fn name_errors(&mut self, names: &SyscallNames) {
        let errors = std::mem::take(&mut self.errors).into_iter();
        let named = errors.map(|((errno, _), calls)| ((errno, names.error(errno)), calls));
        self.errors = named.collect();
    }

    fn add(&mut self, mut other: Self) {
        self.number = self.number.or(other.number);
        if self.latencies.is_empty() {
            self.latencies = other.latencies;
        } else {
            self.latencies.append(&mut other.latencies);
        }
        for (error, calls) in other.errors {
            *self.errors.entry(error).or_default() += calls;
        }
        self.untimed += other.untimed;
        self.unfinished += other.unfinished;
        self.longest_unfinished = self.longest_unfinished.max(other.longest_unfinished);
    }
}

/// Numbers of calls of which one side was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct OneSided {
    /// Calls that were entered before the recording of their thread began.
    pub(super) entered_before: u64,
    /// Calls whose entry is missing.
    pub(super) without_entry: u64,
    /// Calls whose exit is missing.
    pub(super) without_exit: u64,
}

impl OneSided {
    /// Counts a call whose entry is unknown.
    fn count(&mut self, why: Untimed) {
        match why {
            Untimed::EnteredBefore => self.entered_before += 1,
            Untimed::LostEntry => self.without_entry += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.entered_before += other.entered_before;
        self.without_entry += other.without_entry;
        self.without_exit += other.without_exit;
    }
}

/// Calls of a thread, or of more.
#[derive(Debug, Default)]
pub(super) struct FoundCalls {
    pub(super) calls: IndexMap<CallsKey, Calls, FxBuildHasher>,
    pub(super) one_sided: OneSided,
    entered_execs: Vec<EnteredExec>,
    returned_execs: Vec<ReturnedExec>,
    pub(super) warnings: Vec<Warning>,
    /// `true` if system calls were recorded.
    pub(super) is_recorded: bool,
    /// `true` if a caller was asked for, and there are callchains.
    pub(super) has_callers: bool,
}

impl Findings for FoundCalls {
    const NOTHING: &'static str = "no thread called the system";

    fn add(&mut self, other: Self) {
        for (key, calls) in other.calls {
            self.calls.entry(key).or_default().add(calls);
        }
        self.one_sided.add(other.one_sided);
        self.entered_execs.extend(other.entered_execs);
        self.returned_execs.extend(other.returned_execs);
        self.warnings.extend(other.warnings);
        self.is_recorded |= other.is_recorded;
        self.has_callers |= other.has_callers;
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

impl FoundCalls {
    /// Finds the calls of an input.
    pub(super) fn of(session: &Session<'_>, asked: &SyscallsQuery, resolver: &Resolver) -> Self {
        let Some(events) = SyscallEvents::of(session.file) else { return Self::default() };
        let has_chains = session.samples_have(SampleType::CALLCHAIN);
        let mut found = Self {
            is_recorded: true,
            has_callers: asked.by.contains(&SplitBy::Caller) && has_chains,
            ..Self::default()
        };
        if !events.have_both_sides() {
            let message = "entries or exits of system calls were not recorded, so no call is whole";
            found.warnings.push(Warning::new("one-sided", message));
        }
        let filter = SampleFilter::new(session, &asked.query.filters.samples, None, None);
        let functions = session.functions(resolver);
        let mut chains = None;
        if found.has_callers {
            found.warnings.extend(fetch(session, asked, resolver));
            let most = ChainLimit { frames: MAX_STACK, outermost: false };
            chains = Some(ChainSetup {
                unwinding: session.unwinding(resolver),
                as_recorded: false,
                functions: Some(&functions),
                names_callers: true,
                ..ChainSetup::new(session, &session.timeline, most)
            });
        }
        let collected = CollectedCrossings::read(session, &events, &filter, chains.as_ref());
        let CollectedCrossings { threads, callers, names, end, unusable } = collected;
        let message = [
            "sample of a system call lacks its thread, time or fields, and is left out",
            "samples of system calls lack their thread, time or fields, and are left out",
        ];
        found.warnings.extend(Warning::counted(unusable, "bad-sample", message));
        let names = SyscallNames::new(session.file, names);
        let of_thread = |CrossingThread { thread, pid, crossings }| {
            ThreadTexts::new(session, thread, pid, &asked.by)
                .calls(&crossings, end, &names, &callers)
        };
        let threads: Vec<Self> = threads.into_par_iter().map(of_thread).collect();
        for thread in threads {
            found.add(thread);
        }
        found.pair_execs(&names);
        found
    }

    /// Counts the execs whose sides are in different threads, and those that lack one.
    fn pair_execs(&mut self, names: &SyscallNames) {
        let (mut entered, mut returned) =
            (std::mem::take(&mut self.entered_execs), std::mem::take(&mut self.returned_execs));
        for (entry, exit) in exec::paired(&mut entered, &mut returned) {
            let calls = self.calls_of(entry.key, entry.number);
            calls.latencies.push(exit.time.saturating_sub(entry.time));
        }
        for EnteredExec { key, number, time, end, .. } in entered {
            self.calls_of(key, number).leave_unfinished(end.saturating_sub(time));
        }
        for ReturnedExec { key, number, result, why, .. } in returned {
            let calls = self.calls_of(key, number);
            calls.untimed += 1;
            calls.fail(result);
            calls.name_errors(names);
            self.one_sided.count(why);
        }
    }

    fn calls_of(&mut self, key: CallsKey, number: CallNumber) -> &mut Calls {
        let calls = self.calls.entry(key).or_default();
        calls.number = Some(number.value());
        calls
    }
}

/// Fetches debug files for the functions that call the system.
fn fetch(session: &Session<'_>, asked: &SyscallsQuery, resolver: &Resolver) -> Vec<Warning> {
    let Ok(columns) = Column::list("symbol", asked.query.mode) else { return Vec::new() };
    let chains = ChainOptions { children: true, ..ChainOptions::default() };
    let query = Query { columns, chains, ..asked.query.clone() };
    fetching::fetch(&query, session, resolver).unwrap_or_default()
}

/// Calls of a thread, by number and caller.
#[derive(Default)]
struct ThreadCalls {
    calls: FxHashMap<(CallNumber, u32), Calls>,
    one_sided: OneSided,
    /// Calls that lack a side, which another thread may have.
    open: Vec<Call>,
}

impl CallCounter for ThreadCalls {
    #[inline]
    fn add(&mut self, call: Call) {
        match call {
            Call::Returned { number, caller, result, duration } => {
                let calls = self.calls.entry((number, caller)).or_default();
                calls.latencies.push(duration);
                calls.fail(result);
            }
            Call::Unfinished { .. } | Call::Untimed { .. } => self.open.push(call),
            Call::LostExit => self.one_sided.without_exit += 1,
        }
    }
}

/// Texts of a thread, as far as calls are told apart by them.
struct ThreadTexts {
    pid: i32,
    process: Option<String>,
    thread: Option<String>,
    by_caller: bool,
}

impl ThreadTexts {
    fn new(session: &Session<'_>, thread: ThreadRef, pid: i32, by: &[SplitBy]) -> Self {
        let timeline = &session.timeline;
        let process = || format!("{pid}:{}", timeline.comm(timeline.process_comm(pid)));
        let of_thread = || {
            let (tid, comm) = timeline.thread_label(thread);
            format!("{tid}:{}", timeline.comm(comm))
        };
        Self {
            pid,
            process: by.contains(&SplitBy::Process).then(process),
            thread: by.contains(&SplitBy::Thread).then(of_thread),
            by_caller: by.contains(&SplitBy::Caller),
        }
    }

    /// Returns the calls of the thread.
    fn calls(
        &self,
        crossings: &Crossings,
        end: u64,
        names: &SyscallNames,
        callers: &[Caller],
    ) -> FoundCalls {
        let mut counters = crossings.counted::<ThreadCalls>(end, names).into_iter();
        let ThreadCalls { mut calls, one_sided, mut open } = counters.next().unwrap_or_default();
        let mut found = FoundCalls { one_sided, ..FoundCalls::default() };
        for other in counters {
            found.one_sided.add(other.one_sided);
            open.extend(other.open);
            for (key, of_key) in other.calls {
                calls.entry(key).or_default().add(of_key);
            }
        }
        for call in open {
            match call {
                Call::Unfinished { number, caller, time, end } => {
                    let key = self.key(number, caller, names, callers);
                    if names.is_exec(number) {
                        let entry = EnteredExec { pid: self.pid, key, number, time, end };
                        found.entered_execs.push(entry);
                    } else {
                        let calls = calls.entry((number, caller)).or_default();
                        calls.leave_unfinished(end.saturating_sub(time));
                    }
                }
                Call::Untimed { number, result, why, time } if names.is_exec(number) => {
                    let key = self.key(number, 0, names, callers);
                    let exit = ReturnedExec { pid: self.pid, key, number, result, time, why };
                    found.returned_execs.push(exit);
                }
                Call::Untimed { number, result, why, .. } => {
                    let calls = calls.entry((number, 0)).or_default();
                    calls.untimed += 1;
                    calls.fail(result);
                    found.one_sided.count(why);
                }
                Call::Returned { .. } | Call::LostExit => {}
            }
        }
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.sort_by_key(|(key, _)| *key);
        for ((number, caller), mut calls) in calls {
            let key = self.key(number, caller, names, callers);
            calls.number = Some(number.value());
            calls.name_errors(names);
            found.calls.entry(key).or_default().add(calls);
        }
        found
    }

    fn key(
        &self,
        number: CallNumber,
        caller: u32,
        names: &SyscallNames,
        callers: &[Caller],
    ) -> CallsKey {
        let caller = callers.get(caller as usize).filter(|_| self.by_caller);
        CallsKey {
            process: self.process.clone(),
            thread: self.thread.clone(),
            caller: caller.cloned(),
            syscall: names.shown(number).into_owned(),
        }
    }
}
