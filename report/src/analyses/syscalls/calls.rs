//! The calls of the inputs, by what they are told apart by.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use rayon::prelude::*;
use recrep_format::abi::SampleType;
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::Serialize;

use super::callers::Caller;
use super::crossings::{CollectedCrossings, CrossingThread, SyscallEvents};
use super::names::SyscallNames;
use super::pair::{Call, CallCounter, CallResult, Crossings, Untimed};
use super::{SplitBy, SyscallsQuery};
use crate::callchain::ChainLimit;
use crate::engine::fetching;
use crate::query::{ChainOptions, Column, MAX_STACK, Query, Warning};
use crate::samples::{ChainSetup, SampleFilter, Session};
use crate::symbols::Resolver;
use crate::timeline::ThreadRef;

/// What calls are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallsKey {
    pub(super) process: Option<String>,
    pub(super) thread: Option<String>,
    pub(super) caller: Option<Caller>,
    pub(super) syscall: String,
}

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
    pub(super) warnings: Vec<Warning>,
    /// `true` if system calls were recorded.
    pub(super) is_recorded: bool,
    /// `true` if a caller was asked for, and there are callchains.
    pub(super) has_callers: bool,
}

impl FoundCalls {
    pub(super) fn add(&mut self, other: Self) {
        for (key, calls) in other.calls {
            self.calls.entry(key).or_default().add(calls);
        }
        self.one_sided.add(other.one_sided);
        self.warnings.extend(other.warnings);
        self.is_recorded |= other.is_recorded;
        self.has_callers |= other.has_callers;
    }

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
        found
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
    calls: FxHashMap<(i32, u32), Calls>,
    one_sided: OneSided,
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
            Call::Unfinished { number, caller, since } => {
                let calls = self.calls.entry((number, caller)).or_default();
                calls.unfinished += 1;
                calls.longest_unfinished = calls.longest_unfinished.max(since);
            }
            Call::Untimed { number, result, why } => {
                let calls = self.calls.entry((number, 0)).or_default();
                calls.untimed += 1;
                calls.fail(result);
                match why {
                    Untimed::EnteredBefore => self.one_sided.entered_before += 1,
                    Untimed::LostEntry => self.one_sided.without_entry += 1,
                }
            }
            Call::LostExit => self.one_sided.without_exit += 1,
        }
    }
}

/// Texts of a thread, as far as calls are told apart by them.
struct ThreadTexts {
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
            process: by.contains(&SplitBy::Process).then(process),
            thread: by.contains(&SplitBy::Thread).then(of_thread),
            by_caller: by.contains(&SplitBy::Caller),
        }
    }

    /// Returns the calls of the thread.
    fn calls(
        self,
        crossings: &Crossings,
        end: u64,
        names: &SyscallNames,
        callers: &[Caller],
    ) -> FoundCalls {
        let mut counters = crossings.counted::<ThreadCalls>(end, names).into_iter();
        let ThreadCalls { mut calls, mut one_sided } = counters.next().unwrap_or_default();
        for other in counters {
            one_sided.add(other.one_sided);
            for (key, of_key) in other.calls {
                calls.entry(key).or_default().add(of_key);
            }
        }
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.sort_by_key(|(key, _)| *key);
        let mut found = FoundCalls { one_sided, ..FoundCalls::default() };
        for ((number, caller), calls) in calls {
            let caller = callers.get(caller as usize).filter(|_| self.by_caller);
            let key = CallsKey {
                process: self.process.clone(),
                thread: self.thread.clone(),
                caller: caller.cloned(),
                syscall: names.shown(number).into_owned(),
            };
            let errors = calls.errors.into_iter();
            let errors = errors.map(|((errno, _), calls)| ((errno, names.error(errno)), calls));
            let calls = Calls { number: Some(number), errors: errors.collect(), ..calls };
            found.calls.entry(key).or_default().add(calls);
        }
        found
    }
}
