//! The waits of an input, by what they are told apart by.

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use serde::Serialize;

use super::places::{WaitObject, WaitPlace, WaitPlaces};
use super::{WaitsBy, WaitsQuery};
use crate::analyses::callers::Caller;
use crate::analyses::collected::Findings;
use crate::callchain::ChainLimit;
use crate::query::{MAX_STACK, Query};
use crate::samples::{ChainSetup, SampleFilter, Session, TaskFinder};
use crate::symbols::{FileSegments, Functions, Resolver};
use crate::timeline::{
    Activity, ModuleId, SpaceId, Stretch, StretchKind, Timeline, WaitKind, WaitingThread, Waits,
    Wake, Waker as WakingTask,
};

/// What waits are told apart by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WaitKey {
    pub(super) kind: Option<WaitKind>,
    /// With a page fault, what it waits for.
    pub(super) behind_fault: Option<WaitKind>,
    pub(super) object: Option<String>,
    pub(super) site: Option<Caller>,
    pub(super) thread: Option<String>,
    pub(super) waker: Option<WakerKey>,
}

/// Who ended a wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WakerKey {
    pub(super) kind: WakerKind,
    /// Thread, or device of an interrupt.
    pub(super) name: Option<String>,
    /// Function of the thread, if it is known.
    pub(super) site: Option<String>,
}

/// Kind of a waker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WakerKind {
    Thread,
    /// A thread that is not recorded.
    Stranger,
    Interrupt,
    #[default]
    Unknown,
}

impl WakerKind {
    /// Returns the name, as JSON has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Stranger => "stranger",
            Self::Interrupt => "interrupt",
            Self::Unknown => "unknown",
        }
    }
}

/// Waits with one key.
#[derive(Debug, Default)]
pub(super) struct FoundWait {
    /// Time of each wait until the wake, in nanoseconds.
    pub(super) waited: Vec<u64>,
    /// Time from the wakes until the threads ran.
    pub(super) runnable: u64,
    pub(super) wakers: IndexMap<WakerKey, WakerCount, FxBuildHasher>,
}

/// Waits that a waker ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WakerCount {
    pub(super) count: u64,
    pub(super) waited: u64,
}

/// Waits of one input, or of more.
#[derive(Debug, Default)]
pub(super) struct FoundWaits {
    pub(super) waits: IndexMap<WaitKey, FoundWait, FxBuildHasher>,
    /// Number of threads that waited.
    pub(super) threads: u64,
    /// Number of waits whose end was recorded, without a waker.
    pub(super) without_waker: u64,
    /// Number of waits that lasted until the end of the recording.
    pub(super) unfinished: u64,
    /// `true` if switches were recorded.
    pub(super) is_recorded: bool,
    /// `true` if wakes were recorded.
    pub(super) has_wakes: bool,
}

impl Findings for FoundWaits {
    const NOTHING: &'static str = "no thread waited";

    fn add(&mut self, other: Self) {
        for (key, found) in other.waits {
            let own = self.waits.entry(key).or_default();
            own.waited.extend(found.waited);
            own.runnable += found.runnable;
            for (waker, count) in found.wakers {
                let sum = own.wakers.entry(waker).or_default();
                sum.count += count.count;
                sum.waited += count.waited;
            }
        }
        self.threads += other.threads;
        self.without_waker += other.without_waker;
        self.unfinished += other.unfinished;
        self.is_recorded |= other.is_recorded;
        self.has_wakes |= other.has_wakes;
    }

    fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }
}

impl FoundWaits {
    /// Finds the waits of an input.
    pub(super) fn of(session: &Session<'_>, asked: &WaitsQuery, resolver: &Resolver) -> Self {
        let Some(waits) = &session.waits else { return Self::default() };
        let mut found = Self {
            is_recorded: waits.threads.iter().any(|thread| !thread.stretches.is_empty()),
            has_wakes: waits.has_wakes,
            ..Self::default()
        };
        let mut threads = FxHashSet::default();
        let functions = session.functions(resolver);
        let chains = chains(session, resolver, &functions);
        for_waits(session, waits, &asked.query, &chains, |finder, wait| {
            threads.insert(wait.thread);
            found.count(finder, wait, &asked.by);
        });
        found.threads = threads.len() as u64;
        found
    }

    /// Counts a wait.
    fn count(&mut self, finder: &mut WaitFinder<'_>, wait: ChosenWait<'_>, by: &[WaitsBy]) {
        if wait.is_unfinished {
            self.unfinished += 1;
        } else if !wait.has_wake {
            self.without_waker += 1;
        }
        let key = finder.key(&wait, by);
        let ChosenWait { stretch, until, waker, .. } = wait;
        let waited = until - stretch.off;
        let found = self.waits.entry(key).or_default();
        found.waited.push(waited);
        found.runnable += stretch.on - until;
        let count = found.wakers.entry(waker).or_default();
        count.count += 1;
        count.waited += waited;
    }
}

/// A wait of a thread.
pub(super) struct ChosenWait<'w> {
    /// Index of the thread.
    pub(super) thread: u32,
    pub(super) stretch: &'w Stretch,
    /// Time of the wake; that of its end if there is none.
    pub(super) until: u64,
    has_wake: bool,
    /// `true` if it lasted until the end of the recording.
    is_unfinished: bool,
    pub(super) place: WaitPlace,
    pub(super) object: Option<String>,
    pub(super) waker: WakerKey,
}

/// Returns how the callchains of switches and wakes are read.
pub(super) fn chains<'s>(
    session: &'s Session<'_>,
    resolver: &'s Resolver,
    functions: &'s Functions<'s>,
) -> ChainSetup<'s> {
    let most = ChainLimit { frames: MAX_STACK, outermost: false };
    ChainSetup {
        unwinding: session.unwinding(resolver),
        as_recorded: false,
        functions: Some(functions),
        names_callers: true,
        ..ChainSetup::new(session, &session.timeline, most)
    }
}

/// Calls `act` with each wait that the filters of a query choose.
pub(super) fn for_waits<'w>(
    session: &'w Session<'_>,
    waits: &'w Waits,
    query: &Query,
    chains: &ChainSetup<'_>,
    mut act: impl FnMut(&mut WaitFinder<'_>, ChosenWait<'w>),
) {
    let filter = SampleFilter::new(session, &query.filters.samples, None, None);
    let places = WaitPlaces::read(session, waits, chains);
    let mut finder = WaitFinder {
        session,
        waits,
        places: &places,
        filter: &filter,
        tasks: TaskFinder::new(&session.timeline, Some(&filter)),
        objects: FutexNames {
            functions: chains.functions,
            timeline: &session.timeline,
            segments: FxHashMap::default(),
            known: FxHashMap::default(),
        },
        shows_idle: query.shows_idle(),
        labels: FxHashMap::default(),
    };
    for (index, thread) in (0..).zip(&waits.threads) {
        for stretch in &thread.stretches {
            if let Some(wait) = finder.wait(index, thread, stretch) {
                act(&mut finder, wait);
            }
        }
    }
}

/// Finds the waits of the threads of a file.
pub(super) struct WaitFinder<'s> {
    session: &'s Session<'s>,
    waits: &'s Waits,
    places: &'s WaitPlaces,
    filter: &'s SampleFilter<'s>,
    tasks: TaskFinder<'s>,
    objects: FutexNames<'s>,
    /// `true` if waits of threads count that have nothing to do.
    shows_idle: bool,
    /// Texts of threads, by number and time of the first life.
    labels: FxHashMap<u32, String>,
}

impl WaitFinder<'_> {
    /// Returns a wait of a thread, if the filters choose it.
    fn wait<'w>(
        &mut self,
        index: u32,
        thread: &'w WaitingThread,
        stretch: &'w Stretch,
    ) -> Option<ChosenWait<'w>> {
        if stretch.kind != StretchKind::Waiting || self.is_idle(thread, stretch) {
            return None;
        }
        let at = self.session.clock.moment(Some(stretch.off), u64::MAX);
        let (span, is_taken) = self.tasks.span(thread.pid, thread.tid, at);
        let space = span.task.space;
        if !*is_taken || !self.filter.takes_time(Some(stretch.off)) {
            return None;
        }
        let wake = thread.wake(stretch);
        let place = stretch.sample().and_then(|time| self.places.switch(index, time));
        let place = place.unwrap_or_default();
        let waker = wake.map(|wake| self.waker(index, wake, &place)).unwrap_or_default();
        let is_join = wake.is_some_and(|wake| self.is_exiting(wake));
        let object = self.object(place.object, is_join, space);
        let until = wake.map_or(stretch.on, |wake| wake.time.clamp(stretch.off, stretch.on));
        let is_unfinished = wake.is_none() && stretch.on >= self.waits.between.1;
        let has_wake = wake.is_some();
        Some(ChosenWait {
            thread: index,
            stretch,
            until,
            has_wake,
            is_unfinished,
            place,
            object,
            waker,
        })
    }

    /// Returns whether a thread has nothing to do, in a recording of all CPUs whose filters do not
    /// choose it.
    fn is_idle(&self, thread: &WaitingThread, stretch: &Stretch) -> bool {
        let times = self.session.off_cpu.as_ref().filter(|_| !self.shows_idle);
        let time = times.zip(stretch.sample());
        let activity = time.and_then(|(times, time)| times.stretch(thread.tid, time));
        activity.is_some_and(|(_, activity)| activity == Activity::Idle)
    }

    /// Returns who ended a wait.
    fn waker(&mut self, index: u32, wake: &Wake, place: &WaitPlace) -> WakerKey {
        let at = wake.sample().and_then(|offset| self.places.wake(offset));
        let task = wake.waker();
        if wake.is(Wake::INTERRUPT) || task == WakingTask::Thread(index) {
            let source = at.and_then(|at| at.interrupt);
            let is_soft = at.is_some_and(|at| at.is_soft);
            let source = source.unwrap_or_else(|| place.kind.interrupt(is_soft));
            return WakerKey {
                kind: WakerKind::Interrupt,
                name: Some(source.name().to_owned()),
                site: None,
            };
        }
        let site = at.and_then(|at| self.places.sites.get(at.site as usize));
        let site = site.filter(|site| site.is_known()).map(|site| site.name.clone());
        match task {
            WakingTask::Thread(thread) => WakerKey {
                kind: WakerKind::Thread,
                name: Some(self.label(thread)),
                site: if self.is_exiting(wake) { Some("exit".to_owned()) } else { site },
            },
            WakingTask::Stranger(tid) => WakerKey {
                kind: WakerKind::Stranger,
                name: Some(self.stranger(tid, wake.time)),
                site,
            },
        }
    }

    /// Returns whether a thread wakes as it exits.
    fn is_exiting(&self, wake: &Wake) -> bool {
        let WakingTask::Thread(thread) = wake.waker() else { return false };
        let at = wake.sample().and_then(|offset| self.places.wake(offset));
        let exit = self.waits.thread(thread).and_then(|thread| thread.exit);
        exit.is_some_and(|exit| exit <= wake.time)
            || at.is_some_and(|at| at.is_exit)
            || wake.is(Wake::INFERRED)
    }

    /// Returns the text of a thread.
    fn label(&mut self, index: u32) -> String {
        let (session, waits) = (self.session, self.waits);
        let label = self.labels.entry(index).or_insert_with(|| {
            let Some(thread) = waits.thread(index) else { return "[unknown]".to_owned() };
            let last = thread.stretches.last().map_or(thread.known, |stretch| stretch.off);
            text_of(session, thread.pid, thread.tid, last)
        });
        label.clone()
    }

    fn stranger(&self, tid: u32, time: u64) -> String {
        if tid == 0 {
            return "[kernel]".to_owned();
        }
        text_of(self.session, -1, tid.cast_signed(), time)
    }

    /// Returns the text of what is waited for.
    fn object(
        &mut self,
        object: WaitObject,
        is_join: bool,
        space: Option<SpaceId>,
    ) -> Option<String> {
        match object {
            WaitObject::None => None,
            WaitObject::Futex(_) if is_join => Some("join".to_owned()),
            WaitObject::Futex(address) => Some(self.objects.name(space, address)),
            WaitObject::Descriptor(descriptor) => Some(format!("fd {descriptor}")),
            WaitObject::Child(pid) if pid > 0 => Some(format!("pid {pid}")),
            WaitObject::Child(_) => Some("any child".to_owned()),
        }
    }

    fn key(&mut self, wait: &ChosenWait<'_>, by: &[WaitsBy]) -> WaitKey {
        let is_by = |one: WaitsBy| by.contains(&one);
        let by_object = by.is_empty() || is_by(WaitsBy::Object);
        let ChosenWait { thread, place, object, waker, .. } = wait;
        let site = self.places.sites.get(place.site as usize);
        WaitKey {
            kind: by_object.then_some(place.kind),
            behind_fault: place.behind_fault.filter(|_| by_object),
            object: object.clone().filter(|_| by_object),
            site: site.filter(|_| by.is_empty() || is_by(WaitsBy::Site)).cloned(),
            thread: is_by(WaitsBy::Thread).then(|| self.label(*thread)),
            waker: is_by(WaitsBy::Waker).then(|| waker.clone()),
        }
    }
}

/// Returns name and number of a thread, as it was named at a time.
fn text_of(session: &Session<'_>, pid: i32, tid: i32, time: u64) -> String {
    let at = session.clock.moment(Some(time), u64::MAX);
    let task = session.timeline.span(pid, tid, at).task;
    format!("{tid}:{}", session.timeline.comm(task.comm))
}

/// Names of futexes: symbols of the data of modules.
struct FutexNames<'s> {
    functions: Option<&'s Functions<'s>>,
    timeline: &'s Timeline,
    segments: FxHashMap<ModuleId, FileSegments>,
    known: FxHashMap<(Option<SpaceId>, u64), String>,
}

impl FutexNames<'_> {
    fn name(&mut self, space: Option<SpaceId>, address: u64) -> String {
        if let Some(known) = self.known.get(&(space, address)) {
            return known.clone();
        }
        let symbol = space.and_then(|space| self.symbol(space, address));
        let name = symbol.unwrap_or_else(|| format!("{address:#x}"));
        self.known.insert((space, address), name.clone());
        name
    }

    /// Returns the symbol of an address in the data of a module. Only code is recorded as mapped, so
    /// the module is one whose data is there beside its code.
    fn symbol(&mut self, space: SpaceId, address: u64) -> Option<String> {
        for part in self.timeline.shown(space) {
            let Some(module) = part.mapping.module else { continue };
            let loaded = self.functions.and_then(|functions| functions.loaded(module.0 as usize));
            let Some(loaded) = loaded else { continue };
            let segments = self.segments.entry(module).or_insert_with(|| loaded.segments());
            let distance = address.wrapping_sub(part.mapping.start);
            let Some(at) = segments.offset_behind(part.mapping.first, distance) else { continue };
            if let Some(symbol) = loaded.table.lookup(at).filter(|symbol| symbol.end > at) {
                return Some(loaded.shown(symbol.name).into_owned());
            }
        }
        None
    }
}
