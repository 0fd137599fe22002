//! What a run would take if some code were faster: the CPU samples of that code are found, and the
//! recording is replayed.

use anyhow::bail;
use recrep_format::abi::CpuMode;
use recrep_format::record::Sample;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Labeller;
use super::counted::with_samples;
use crate::callchain::{CallSite, ChainOrigin, Frame, FrameWord};
use crate::input::split::Piece as FilePiece;
use crate::input::unpack::UnpackBuffer;
use crate::profile::critical_path::WhatIfAnswer;
use crate::query::{FasterCode, Query, Saving, WhatIf};
use crate::samples::{
    ChainReader, CriticalPath, PieceWorker, Session, TaskFinder, by_piece, for_each_sample,
    tells_of_wakes,
};
use crate::scan::{Naming as _, Scan};
use crate::symbols::Resolver;
use crate::timeline::{Barrier, PathShares, Role, SampleContext, Savings, Waits};

/// Answers each what-if of a query alone.
///
/// # Errors
/// Returns an error if no CPU sample has a function that was asked for.
pub(super) fn answers(
    query: &Query,
    session: &Session<'_>,
    resolver: &Resolver,
) -> anyhow::Result<Vec<WhatIfAnswer>> {
    let path = CriticalPath::find(session, &query.filters.samples);
    let Some(path) = path.filter(|_| !query.what_if.is_empty()) else { return Ok(Vec::new()) };
    let shares = PathShares::of(path.waits, &path.pieces);
    let found = with_samples(query, session, resolver, |scan, labeller| {
        let workers = by_piece(&session.split.pieces, |_| HitFinder::new(scan, labeller));
        let mut all = FoundSamples::default();
        for HitFinder { found, .. } in workers {
            all.hits.extend(found.hits);
            all.barrier_wakes.extend(found.barrier_wakes);
            all.barrier_switches.extend(found.barrier_switches);
        }
        all
    })?;
    let barriers = found.barriers(path.waits);
    let mut all = Vec::with_capacity(query.what_if.len());
    for (number, asked) in query.what_if.iter().enumerate() {
        let code = HitCode { asked, bit: 1 << number, hits: &found.hits };
        let Some(faster) = FasterThreads::of(path.waits, &code) else {
            bail!("--what-if: no CPU sample of the recorded threads is of `{}`", asked.name);
        };
        all.push(faster.answer(&path, &shares, &barriers, &code));
    }
    Ok(all)
}

/// Most what-ifs at once.
pub(crate) const MOST: usize = 64;

/// Samples of a file that matter.
#[derive(Default)]
struct FoundSamples {
    /// What-ifs that CPU samples are hits of, by their offsets.
    hits: FxHashMap<u64, u64>,
    /// Offsets of the samples of wakes by functions of barriers.
    barrier_wakes: FxHashSet<u64>,
    /// Threads and times of switches in functions of barriers.
    barrier_switches: FxHashSet<(i32, u64)>,
}

impl FoundSamples {
    /// Returns the openings of barriers: both the thread that waits and its waker are in a function
    /// of a barrier.
    fn barriers(&self, waits: &Waits) -> Vec<Barrier> {
        if self.barrier_wakes.is_empty() {
            return Vec::new();
        }
        waits.barriers(|thread, stretch, wake| {
            let waits_there = |time| self.barrier_switches.contains(&(thread.tid, time));
            wake.sample().is_some_and(|offset| self.barrier_wakes.contains(&offset))
                && stretch.sample().is_some_and(waits_there)
        })
    }
}

/// Code that is to be faster, and the CPU samples of each.
struct HitCode<'a> {
    asked: &'a WhatIf,
    bit: u64,
    hits: &'a FxHashMap<u64, u64>,
}

impl HitCode<'_> {
    /// Returns whether the CPU sample at this offset of the thread is of this code.
    fn has(&self, tid: i32, offset: u64) -> bool {
        match &self.asked.code {
            FasterCode::Thread(wanted) => *wanted == tid,
            FasterCode::Function(_) => {
                self.hits.get(&offset).is_some_and(|bits| bits & self.bit != 0)
            }
        }
    }
}

/// The part of each thread's running time that is saved.
struct FasterThreads {
    part: f64,
    /// For each thread, whether each of its CPU samples is of the code; empty if none is.
    hits: Vec<Vec<bool>>,
    /// Threads all of whose running time is of the code.
    all: Vec<bool>,
}

impl FasterThreads {
    /// Finds the samples of some code; `None` if it has none.
    fn of(waits: &Waits, code: &HitCode<'_>) -> Option<Self> {
        let (mut hits, mut all, mut time) = (Vec::new(), Vec::new(), 0_u64);
        for thread in &waits.threads {
            let mut own = Vec::with_capacity(thread.runs.len());
            for run in &thread.runs {
                let is_hit = code.has(thread.tid, run.offset);
                time += if is_hit { run.share } else { 0 };
                own.push(is_hit);
            }
            if !own.contains(&true) {
                own.clear();
            }
            hits.push(own);
            all.push(code.asked.code == FasterCode::Thread(thread.tid));
        }
        if !all.contains(&true) && hits.iter().all(Vec::is_empty) {
            return None;
        }
        let part = match code.asked.saving {
            Saving::Part(part) => part,
            Saving::Time(saved) => ratio(saved, time.max(1)).min(1.0),
        };
        Some(Self { part, hits, all })
    }

    fn answer(
        &self,
        path: &CriticalPath<'_>,
        shares: &PathShares,
        barriers: &[Barrier],
        code: &HitCode<'_>,
    ) -> WhatIfAnswer {
        let mut on_path = 0;
        for (index, thread) in (0..).zip(&path.waits.threads) {
            if self.touches(index) {
                let runs = thread.runs.iter();
                let hit = runs.filter(|run| code.has(thread.tid, run.offset));
                let own = hit.filter_map(|run| shares.run(thread.tid, run.time, run.offset));
                on_path += own.sum::<u64>();
            }
        }
        let end = path.waits.replay(path.span, self, barriers);
        WhatIfAnswer {
            name: code.asked.name.clone(),
            part: self.part,
            on_path,
            saved: path.span.to.saturating_sub(end),
            first_order: scaled(on_path, self.part),
            length: path.span.to - path.span.from,
        }
    }
}

impl Savings for FasterThreads {
    fn part(&self, thread: u32, run: Option<usize>) -> f64 {
        let of_run = || {
            let hits = self.hits.get(thread as usize);
            run.is_some_and(|run| hits.and_then(|hits| hits.get(run)) == Some(&true))
        };
        if self.all.get(thread as usize) == Some(&true) || of_run() { self.part } else { 0.0 }
    }

    fn touches(&self, thread: u32) -> bool {
        let has_hits = |hits: &Vec<bool>| !hits.is_empty();
        self.all.get(thread as usize) == Some(&true)
            || self.hits.get(thread as usize).is_some_and(has_hits)
    }
}

#[allow(clippy::cast_precision_loss, reason = "times of a recording")]
fn ratio(part: u64, total: u64) -> f64 {
    part as f64 / total as f64
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a time, which is no longer than that"
)]
fn scaled(time: u64, part: f64) -> u64 {
    (time as f64 * part).round() as u64
}

/// Uses of a function or a stack.
#[derive(Clone, Copy, Default)]
struct CodeUse {
    /// What-ifs that it is a hit of.
    what_ifs: u64,
    waits_at: WaitsAt,
}

/// What a function waits at, by its name.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum WaitsAt {
    #[default]
    Unknown,
    Barrier,
    Lock,
}

impl WaitsAt {
    /// Returns what a function is of: `pthread_barrier_wait`, `gomp_team_barrier_wait_end`,
    /// `__kmp_join_barrier`, `CyclicBarrier.dowait` are of barriers.
    fn from_function(name: &str) -> Self {
        const LOCKS: [&str; 5] = ["mutex", "lll_lock", "unlock", "::lock", ".lock"];
        let name = name.to_ascii_lowercase();
        if name.contains("barrier") {
            Self::Barrier
        } else if LOCKS.iter().any(|part| name.contains(part)) {
            Self::Lock
        } else {
            Self::Unknown
        }
    }
}

/// Finds the CPU samples of functions and of what they call, and the waits and wakes at barriers, in
/// the pieces of one worker.
struct HitFinder<'s> {
    scan: &'s Scan<'s>,
    labeller: &'s Labeller<'s>,
    reader: ChainReader<'s>,
    tasks: TaskFinder<'s>,
    frames: Vec<FrameWord>,
    /// By the number that the finder gives a frame.
    of_frames: Vec<Option<CodeUse>>,
    /// For each event, whether it tells of wakes.
    of_wakes: Vec<bool>,
    found: FoundSamples,
}

impl PieceWorker for HitFinder<'_> {
    fn read(&mut self, _: usize, piece: &FilePiece<'_>, buffer: &mut UnpackBuffer) {
        let session = self.scan.session;
        let Some(off_cpu) = &session.off_cpu else { return };
        for_each_sample(piece, buffer, |raw| {
            let Some((event, sample)) = session.file.attrs.sample(raw) else { return };
            let Some(entry) = session.file.attrs.entries().get(event.0) else { return };
            let role = off_cpu.role(event);
            if role == Role::None && !self.of_wakes.get(event.0).is_some_and(|is| *is) {
                return;
            }
            let CodeUse { what_ifs, waits_at } = self.uses(&sample, ChainOrigin::of(&entry.attr));
            let is_barrier = waits_at == WaitsAt::Barrier;
            let (offset, found) = (sample.offset(), &mut self.found);
            match (role, sample.tid(), sample.time()) {
                (Role::Clock | Role::Cycles, ..) if what_ifs != 0 => {
                    found.hits.insert(offset, what_ifs);
                }
                (Role::Switch, Some(tid), Some(time)) if is_barrier => {
                    found.barrier_switches.insert((tid.cast_signed(), time));
                }
                (Role::None, ..) if is_barrier => {
                    found.barrier_wakes.insert(offset);
                }
                _ => {}
            }
        });
    }
}

impl<'s> HitFinder<'s> {
    fn new(scan: &'s Scan<'s>, labeller: &'s Labeller<'s>) -> Self {
        Self {
            scan,
            labeller,
            reader: scan.chains.reader(),
            tasks: TaskFinder::new(scan.threads.timeline, None),
            frames: Vec::new(),
            of_frames: Vec::new(),
            of_wakes: scan.session.file.attrs.entries().iter().map(tells_of_wakes).collect(),
            found: FoundSamples::default(),
        }
    }

    /// Returns the uses of the frames of a sample.
    fn uses(&mut self, sample: &Sample<'_, '_>, origin: ChainOrigin) -> CodeUse {
        let [pid, tid] = [sample.pid(), sample.tid()].map(|id| id.map_or(-1, u32::cast_signed));
        let moment = self.scan.session.clock.moment(sample.time(), sample.offset());
        let space = self.tasks.span(pid, tid, moment).0.task.space;
        let mut frames = std::mem::take(&mut self.frames);
        self.reader.frames(sample, origin, SampleContext { space, moment }, &mut frames);
        if frames.is_empty() {
            frames.push(FrameWord {
                mode: sample.cpu_mode(),
                ip: sample.ip().unwrap_or(0),
                site: CallSite::At,
                is_unwound: false,
            });
        }
        let epoch = self.reader.finder.epoch(space, moment);
        let mut all = CodeUse::default();
        for frame in frames.iter().filter(|frame| frame.site != CallSite::Nowhere) {
            let number = self.reader.finder.resolve_word(epoch, moment, frame);
            let CodeUse { what_ifs, waits_at } = self.uses_of_frame(number);
            all.what_ifs |= what_ifs;
            // The innermost function decides: barriers have locks of their own.
            if all.waits_at == WaitsAt::Unknown && frame.mode == CpuMode::User {
                all.waits_at = waits_at;
            }
        }
        self.frames = frames;
        all
    }

    fn uses_of_frame(&mut self, number: u32) -> CodeUse {
        let place = number as usize;
        if self.of_frames.len() <= place {
            self.of_frames.resize(place + 1, None);
        }
        if let Some(Some(known)) = self.of_frames.get(place) {
            return *known;
        }
        let mut named: Vec<Frame> = Vec::new();
        if let Some(frame) = self.reader.finder.stacks.frame(number) {
            self.labeller.frames(*frame, &mut named);
        }
        let mut waits = named.iter().map(|frame| self.waits_at(frame));
        let waits_at = waits.find(|at| *at != WaitsAt::Unknown).unwrap_or_default();
        let mut uses = CodeUse { what_ifs: 0, waits_at };
        for (what_if, asked) in self.scan.query.what_if.iter().enumerate() {
            if let FasterCode::Function(names) = &asked.code
                && named.iter().any(|frame| self.labeller.has_name(names, frame))
            {
                uses.what_ifs |= 1 << what_if;
            }
        }
        if let Some(slot) = self.of_frames.get_mut(place) {
            *slot = Some(uses);
        }
        uses
    }

    fn waits_at(&self, frame: &Frame) -> WaitsAt {
        self.labeller.function(frame).map_or(WaitsAt::Unknown, |name| WaitsAt::from_function(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_barriers_from_their_locks() {
        for name in ["pthread_barrier_wait", "CyclicBarrier.dowait", "std::sync::Barrier::wait"] {
            assert!(WaitsAt::from_function(name) == WaitsAt::Barrier, "{name}");
        }
        for name in ["pthread_mutex_lock", "__lll_lock_wait", "java.util.Lock.lock"] {
            assert!(WaitsAt::from_function(name) == WaitsAt::Lock, "{name}");
        }
        for name in ["clock_nanosleep", "pthread_cond_wait", "main"] {
            assert!(WaitsAt::from_function(name) == WaitsAt::Unknown, "{name}");
        }
    }
}
