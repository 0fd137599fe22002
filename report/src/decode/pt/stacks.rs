//! Open calls and last branches at samples: what a thread did before, in other parts too.
//!
//! ```text
//!   read ahead   each part ─► runs, a thread each ─► calls that were closed and opened, last branches
//!   join         runs of a thread one behind the other ─► the calls in front of each
//!   decode       steps of a run, and what is in front of it ─► the stacks of samples
//! ```
//!
//! The calls of a thread go on where it goes on, on another CPU too, if the trace has times. Behind
//! a gap in the file they begin anew.

use recrep_format::abi::context;
use recrep_trace::pt::{
    Branch, CallBase, CallBases, CallChange, CallJoiner, Closing, OpenCall, OpenCalls, TakenStep,
};

use super::cut::Part;
use crate::decode::samples::{LastBranch, is_kernel};

/// Most entries of the stacks of samples; 0 if they have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StackSizes {
    /// Frames of callchains.
    pub frames: usize,
    /// Last branches.
    pub branches: usize,
}

impl StackSizes {
    /// Samples without stacks.
    pub(super) const NONE: Self = Self { frames: 0, branches: 0 };
}

/// The last branches of a thread, oldest first.
#[derive(Clone, Debug, Default)]
struct LastBranches(Vec<LastBranch>);

impl LastBranches {
    #[inline]
    fn push(&mut self, branch: &Branch, most: usize) {
        if most == 0 {
            return;
        }
        if self.0.len() >= 2 * most {
            self.0.drain(..most);
        }
        self.0.push(LastBranch { from: branch.from, to: branch.to });
    }

    /// Returns the last of them, newest first.
    fn newest(&self, most: usize) -> impl Iterator<Item = LastBranch> {
        self.0.iter().rev().take(most).copied()
    }
}

/// A thread that runs, up to the next thread or the end of the part.
#[derive(Debug)]
struct Run {
    thread: u32,
    /// Time stamp of its first step.
    start: u64,
    closed: Vec<(Vec<OpenCall>, Closing)>,
    open: OpenCalls,
    branches: LastBranches,
}

/// Finds the runs of a part.
#[derive(Debug)]
pub(super) struct RunRecorder {
    sizes: StackSizes,
    runs: Vec<Run>,
}

impl RunRecorder {
    pub(super) fn new(sizes: StackSizes) -> Self {
        Self { sizes, runs: Vec::new() }
    }

    /// Goes on with a thread at this time stamp.
    pub(super) fn enter(&mut self, thread: u32, now: u64) {
        if self.runs.last().is_none_or(|run| run.thread != thread) {
            self.runs.push(Run {
                thread,
                start: now,
                closed: Vec::new(),
                open: OpenCalls::default(),
                branches: LastBranches::default(),
            });
        }
    }

    /// Takes a step.
    pub(super) fn step(&mut self, step: &TakenStep<'_>) {
        let TakenStep { task, times, is_end, .. } = *step;
        let StackSizes { frames, branches } = self.sizes;
        self.enter(task.thread, times.now);
        let Some(Run { closed, open, branches: last, .. }) = self.runs.last_mut() else { return };
        step.branches(|branch, is_last| {
            last.push(&branch, branches);
            if frames > 0
                && let Some(change) = CallChange::of_branch(&branch, is_end && is_last)
                && let Some(closing) = open.apply(change)
            {
                closed.push((open.close(), closing));
            }
        });
    }

    /// Returns the runs.
    pub(super) fn into_runs(self) -> PartRuns {
        PartRuns(self.runs)
    }
}

/// The runs of a part.
#[derive(Debug, Default)]
pub(super) struct PartRuns(Vec<Run>);

/// Index of a part, and of a run in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RunId {
    part: usize,
    run: usize,
}

/// A run with what is in front of it.
#[derive(Debug, Default)]
struct JoinedRun {
    /// The run before of the same thread.
    before: Option<RunId>,
    /// The calls in front of the run, and behind each time that its calls were closed.
    bases: Vec<CallBase>,
    branches: LastBranches,
}

/// The runs of a trace.
#[derive(Debug, Default)]
pub(super) struct TracedStacks {
    sizes: StackSizes,
    parts: Vec<Vec<JoinedRun>>,
    bases: CallBases,
}

impl TracedStacks {
    /// Joins the runs of the parts.
    pub(super) fn join(
        sizes: StackSizes,
        parts: &[Part],
        mut found: Vec<PartRuns>,
        has_times: bool,
    ) -> Self {
        let mut order = Vec::new();
        for (at, (part, runs)) in parts.iter().zip(&found).enumerate() {
            for (run, Run { thread, start, .. }) in runs.0.iter().enumerate() {
                // Each CPU has an idle thread of its own.
                let owner = (*thread, if *thread == 0 { part.queue } else { 0 });
                let place = (part.queue, part.stretch);
                let start = if has_times { *start } else { 0 };
                order.push((owner, start, RunId { part: at, run }, place));
            }
        }
        order.sort_unstable_by_key(|(owner, start, id, _)| (*owner, *start, *id));
        let mut stacks = Self { sizes, parts: Vec::new(), bases: CallBases::default() };
        for runs in &found {
            stacks.parts.push(runs.0.iter().map(|_| JoinedRun::default()).collect());
        }
        let mut joiner = CallJoiner::default();
        let mut last = None;
        for (owner, _, id, place) in order {
            let before = last.filter(|(before, _, (queue, stretch))| {
                (*before, *stretch) == (owner, place.1) && (has_times || *queue == place.0)
            });
            if before.is_none() {
                joiner = CallJoiner::default();
            }
            last = Some((owner, id, place));
            let run = found.get_mut(id.part).and_then(|runs| runs.0.get_mut(id.run));
            if let Some(run) = run {
                stacks.add(id, before.map(|(_, id, _)| id), run, &mut joiner);
            }
        }
        stacks
    }

    /// Adds a run behind the one before.
    fn add(&mut self, id: RunId, before: Option<RunId>, run: &mut Run, joiner: &mut CallJoiner) {
        let mut bases = vec![joiner.base()];
        for (calls, closing) in run.closed.drain(..) {
            joiner.close(&mut self.bases, &calls, closing);
            bases.push(joiner.base());
        }
        joiner.add(&mut self.bases, &run.open.close());
        let branches = std::mem::take(&mut run.branches);
        if let Some(joined) = self.parts.get_mut(id.part).and_then(|runs| runs.get_mut(id.run)) {
            *joined = JoinedRun { before, bases, branches };
        }
    }

    fn get(&self, id: RunId) -> Option<&JoinedRun> {
        self.parts.get(id.part)?.get(id.run)
    }

    /// Returns the last branches in front of a run.
    fn branches_before(&self, id: RunId) -> LastBranches {
        let most = self.sizes.branches;
        let (mut newest, mut before) = (Vec::new(), self.get(id).and_then(|run| run.before));
        while newest.len() < most
            && let Some(run) = before.and_then(|id| self.get(id))
        {
            newest.extend(run.branches.newest(most - newest.len()));
            before = run.before;
        }
        newest.reverse();
        LastBranches(newest)
    }

    /// Returns the stacks at the begin of a part.
    pub(super) fn at_part(&self, part: usize) -> PartStacks<'_> {
        PartStacks {
            stacks: self,
            next: RunId { part, run: 0 },
            thread: None,
            bases: &[],
            open: OpenCalls::default(),
            last: LastBranches::default(),
            chain: Vec::new(),
            newest: Vec::new(),
        }
    }
}

/// The stacks of the thread that runs, while a part is decoded.
#[derive(Debug)]
pub(super) struct PartStacks<'a> {
    stacks: &'a TracedStacks,
    next: RunId,
    thread: Option<u32>,
    /// The calls below those that are open, and what they will be whenever those are closed.
    bases: &'a [CallBase],
    open: OpenCalls,
    last: LastBranches,
    /// Those of the sample that is written.
    chain: Vec<u64>,
    newest: Vec<LastBranch>,
}

impl PartStacks<'_> {
    /// Goes on with a thread.
    pub(super) fn enter(&mut self, thread: u32) {
        if self.thread == Some(thread) {
            return;
        }
        self.thread = Some(thread);
        self.open.clear();
        self.bases = self.stacks.get(self.next).map_or(&[], |run| &run.bases);
        self.last = self.stacks.branches_before(self.next);
        self.next.run += 1;
    }

    /// Takes a branch; `is_end` if tracing ended with it.
    #[inline]
    pub(super) fn pass(&mut self, branch: &Branch, is_end: bool) {
        let StackSizes { frames, branches } = self.stacks.sizes;
        self.last.push(branch, branches);
        if frames > 0
            && let Some(change) = CallChange::of_branch(branch, is_end)
            && self.open.apply(change).is_some()
        {
            self.open.clear();
            self.bases = self.bases.get(1..).unwrap_or_default();
        }
    }

    /// Returns the callchain of a sample at `ip`, as the kernel would record it, and the last
    /// branches, newest first.
    pub(super) fn at(&mut self, ip: u64) -> (&[u64], &[LastBranch]) {
        let StackSizes { frames, branches } = self.stacks.sizes;
        self.newest.clear();
        self.newest.extend(self.last.newest(branches));
        self.chain.clear();
        if frames > 0 {
            self.find_chain(ip, frames + 1);
        }
        (&self.chain, &self.newest)
    }

    /// Fills the callchain of a sample; `most` counts marks of contexts, too.
    fn find_chain(&mut self, ip: u64, most: usize) {
        let mut last = context_of(ip);
        self.chain.extend([last, ip]);
        let base = self.bases.first().copied().unwrap_or(CallBase::EMPTY);
        let below = self.stacks.bases.return_addresses(base);
        for address in self.open.return_addresses().chain(below) {
            let context = context_of(address);
            let added = 1 + usize::from(context != last);
            if self.chain.len() + added > most {
                break;
            }
            if context != last {
                self.chain.push(context);
                last = context;
            }
            self.chain.push(address);
        }
    }
}

/// Returns the mark in front of an address of user code or of the kernel.
fn context_of(address: u64) -> u64 {
    if is_kernel(address) { context::KERNEL } else { context::USER }
}
