//! Times of threads in one worker: samples count with the time that they stand for.

use recrep_format::abi::{CpuMode, context};
use recrep_format::attr::AttrIndex;
use recrep_format::bytes::U64s;
use recrep_format::record::{Sample, SampleFields};

use super::common::EventTraits;
use super::worker::{Point, Worker};
use crate::count::Count;
use crate::query::{Field, Key, Mode, NO_KEY};
use crate::timeline::{
    Activity, OffCpu, PathShares, Role, SampleContext, StandIn, Unsampled, WaitKind,
};

/// Index of the only event that times are counted for.
const EVENT: u16 = 0;

/// Innermost frame of a counted time.
#[derive(Clone, Copy)]
enum InnerFrame {
    /// The sampled one.
    Sampled,
    /// That of the program, which waits in the kernel.
    User(u64),
    /// One in place of the kernel's.
    StandIn(StandIn),
}

/// What a thread did, and for how long.
#[derive(Clone, Copy)]
struct Did {
    length: u64,
    activity: Activity,
    /// What it waited for, if that is needed.
    wait: Option<WaitKind>,
}

impl InnerFrame {
    /// Returns a sample's point with this frame.
    fn point(self, sampled: Point) -> Point {
        match self {
            Self::Sampled => sampled,
            Self::User(ip) => Point { mode: CpuMode::User, ip, ..sampled },
            Self::StandIn(StandIn { address: ip, .. }) => {
                Point { mode: CpuMode::Kernel, ip, ..sampled }
            }
        }
    }
}

impl Did {
    const fn running(length: u64) -> Self {
        Self { length, activity: Activity::Running, wait: None }
    }
}

impl Worker<'_> {
    /// Counts what a sample stands for, and times without samples of their own for which this is
    /// the nearest one.
    pub(super) fn times(
        &mut self,
        off_cpu: &OffCpu,
        index: AttrIndex,
        event: EventTraits,
        sample: &Sample<'_, '_>,
    ) {
        let point = Point::of(sample);
        let (tid, time) = (point.tid, point.time.unwrap_or(0));
        let role = off_cpu.role(index);
        if let Some(path) = &self.scan.path {
            return self.path_times(path, role, event, sample);
        }
        match role {
            Role::None => {}
            Role::Switch => {
                if let Some((length, activity)) = off_cpu.stretch(tid, time) {
                    let inner = self.inner_frame(sample);
                    let wait = self.wait_kind(sample, activity);
                    let what = Did { length, activity, wait };
                    self.time(&point, event, sample, inner, what);
                }
            }
            Role::Clock | Role::Cycles => {
                let Some((share, unsampled)) = off_cpu.run(tid, time, point.offset) else { return };
                if self.counts_activity(Activity::Running) {
                    let length = if role == Role::Clock {
                        sample.period().unwrap_or(event.period)
                    } else {
                        share
                    };
                    let what = Did::running(self.latency(length, time));
                    self.time(&point, event, sample, InnerFrame::Sampled, what);
                }
                for one in unsampled {
                    self.unsampled(one, [point.pid, point.tid], Some((point, event, sample)));
                }
            }
        }
    }

    /// Counts what a sample stands for on the critical path.
    fn path_times(
        &mut self,
        path: &PathShares,
        role: Role,
        event: EventTraits,
        sample: &Sample<'_, '_>,
    ) {
        let point = Point::of(sample);
        let (tid, time) = (point.tid, point.time.unwrap_or(0));
        match role {
            Role::Switch => {
                let Some(share) = path.switch(tid, time) else { return };
                let both = [(share.stopped, share.activity), (share.runnable, Activity::Runnable)];
                for (length, activity) in both.into_iter().filter(|(length, _)| *length > 0) {
                    let wait = self.wait_kind(sample, activity);
                    let named = wait.filter(|_| self.scan.query.names_waits());
                    let inner = match named.and_then(WaitKind::stand_in) {
                        Some(frame) => InnerFrame::StandIn(frame),
                        None => self.inner_frame(sample),
                    };
                    let what = Did { length, activity, wait };
                    self.time(&point, event, sample, inner, what);
                }
            }
            Role::Clock | Role::Cycles => {
                if let Some(length) = path.run(tid, time, point.offset) {
                    self.time(&point, event, sample, InnerFrame::Sampled, Did::running(length));
                }
            }
            Role::None => {
                for share in path.at_wake(point.offset) {
                    let nearest = Some((point, event, sample));
                    self.unsampled(&share.time, [share.pid, share.tid], nearest);
                }
            }
        }
    }

    /// Returns where the thread of a switch waits: in user code, unless waits are shown in the
    /// kernel, or there is no user code.
    fn inner_frame(&self, sample: &Sample<'_, '_>) -> InnerFrame {
        if self.scan.query.chains.kernel_waits {
            return InnerFrame::Sampled;
        }
        let chain = sample.callchain().ok().flatten();
        let mut words = chain.iter().flat_map(U64s::iter).skip_while(|word| *word != context::USER);
        let ip = words.nth(1).filter(|word| *word < context::MAX);
        ip.map_or(InnerFrame::Sampled, InnerFrame::User)
    }

    /// Returns what the thread of a switch waits for, if it waits and that is needed.
    fn wait_kind(&mut self, sample: &Sample<'_, '_>, activity: Activity) -> Option<WaitKind> {
        let is_wait = matches!(activity, Activity::Waiting | Activity::Idle);
        self.waits.as_mut().filter(|_| is_wait).map(|waits| waits.kind(sample))
    }

    /// Returns whether time of this activity counts.
    fn counts_activity(&self, activity: Activity) -> bool {
        match activity {
            Activity::Running => self.scan.query.mode != Mode::OffCpu,
            _ if self.scan.query.mode == Mode::Latency => false,
            Activity::Idle => self.scan.query.shows_idle(),
            Activity::Waiting | Activity::Preempted | Activity::Runnable | Activity::Unknown => {
                true
            }
        }
    }

    /// Returns the part of a running time that one thread's share of the latency is.
    fn latency(&self, length: u64, time: u64) -> u64 {
        let parallelism = self.scan.parallelism.filter(|_| self.scan.query.mode == Mode::Latency);
        length / parallelism.map_or(1, |parallelism| parallelism.at(time).into())
    }

    /// Counts the times that have no sample of their own and no CPU sample of their thread before.
    pub(super) fn times_before_samples(&mut self) {
        if let Some(path) = &self.scan.path {
            for share in &path.rest {
                self.unsampled(&share.time, [share.pid, share.tid], None);
            }
        } else if let Some(off_cpu) = self.scan.session.off_cpu.as_ref() {
            for (pid, tid, all) in off_cpu.before_samples() {
                for unsampled in all {
                    self.unsampled(unsampled, [pid, tid], None);
                }
            }
        }
    }

    /// Counts the time that a sample stands for.
    fn time(
        &mut self,
        sampled: &Point,
        event: EventTraits,
        sample: &Sample<'_, '_>,
        inner: InnerFrame,
        what: Did,
    ) {
        let is_filtered = !self.scan.filter.counts_time(sampled.cpu, sampled.time.unwrap_or(0));
        if is_filtered || !self.counts_activity(what.activity) {
            return;
        }
        let point = &inner.point(*sampled);
        let mut fields = SampleFields::default();
        if self.scan.layout.last.is_some() && sample.walk(self.last, &mut fields).is_err() {
            self.dropped.malformed += 1;
            return;
        }
        let count = Count { samples: 1, period: what.length };
        self.histogram.count_total(EVENT.into(), count);
        let mut key = NO_KEY;
        let found = self.key_at(EVENT, point, &mut key);
        let Some(at) = found else { return };
        if self.scan.layout.has(Field::Chain) {
            let origin = event.origin;
            *Field::Chain.of_mut(&mut key) = match inner {
                InnerFrame::Sampled => self.chains.of(sample, origin, at, None),
                InnerFrame::User(ip) => self.chains.of_user(sample, origin, at, ip),
                InnerFrame::StandIn(frame) => self.chains.of_wait(sample, origin, at, frame),
            };
        }
        if self.scan.layout.last.is_some() {
            self.extras(event, &mut key, found, sample, &fields);
        }
        self.put_activity(&mut key, point.time.unwrap_or(0), what);
        self.add(&key, count);
    }

    /// Puts what a thread did into a key. A CPU sample is a moment.
    fn put_activity(&self, key: &mut Key, start: u64, Did { length, activity, wait }: Did) {
        *Field::Switch.of_mut(key) = activity.pack();
        *Field::Wait.of_mut(key) = wait.map_or(0, WaitKind::pack);
        if self.scan.layout.has(Field::Extent) {
            let length = if activity == Activity::Running { 0 } else { length };
            let extent = self.scan.steps.extent(start, length, activity.byte());
            *Field::Extent.of_mut(key) = extent.pack();
        }
    }

    /// Counts time of a thread without a sample of its own, at the nearest one if there is one.
    fn unsampled(
        &mut self,
        unsampled: &Unsampled,
        [pid, tid]: [i32; 2],
        nearest: Option<(Point, EventTraits, &Sample<'_, '_>)>,
    ) {
        let Unsampled { at: start, length, cpu, activity } = *unsampled;
        let cpu = (cpu != u32::MAX).then_some(cpu);
        if !self.counts_activity(activity) || !self.scan.filter.counts_time(cpu, start) {
            return;
        }
        let count = Count { samples: 1, period: self.latency(length, start) };
        self.histogram.count_total(EVENT.into(), count);
        let frame = match (activity, nearest) {
            (Activity::Unknown, _) => StandIn::UNKNOWN,
            (_, Some(_)) => StandIn::NEAREST_SAMPLE,
            (_, None) => StandIn::NO_SAMPLE,
        };
        let (ip, time, offset) =
            (frame.address, Some(start), nearest.map_or(0, |(point, ..)| point.offset));
        let point = Point { mode: CpuMode::Kernel, ip, cpu, time, offset, pid, tid };
        let mut key = NO_KEY;
        let Some(context) = self.key_at(EVENT, &point, &mut key) else { return };
        if self.scan.layout.has(Field::Chain) {
            *Field::Chain.of_mut(&mut key) = match nearest {
                Some((nearest, event, sample)) => {
                    // The addresses are those of its own moment.
                    let at = self.clock.moment(nearest.time, nearest.offset);
                    let (task, _) = self.task(nearest.pid, nearest.tid, at);
                    let own = SampleContext { space: task.space, moment: at };
                    self.chains.of(sample, event.origin, own, Some(frame))
                }
                None => self.chains.alone(frame, context.moment),
            };
        }
        let is_wait = matches!(activity, Activity::Waiting | Activity::Idle);
        let wait = is_wait.then_some(WaitKind::Unknown);
        self.put_activity(&mut key, start, Did { length, activity, wait });
        self.add(&key, count);
    }
}
