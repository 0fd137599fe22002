//! AUX areas of a recording: mapping, draining, snapshots.

use std::io::IoSlice;
use std::os::fd::AsFd as _;

use recrep_format::abi::{AttrFlags, Cpu, Tid};
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::feature::AuxtraceIndex;
use recrep_format::record::{
    Auxtrace, AuxtraceInfo, Body, IdIndex, IdIndexEntry, Record, TimeConv, TimeConvShort,
};
use recrep_format::write::FeatureWriter;
use rustc_hash::FxHashMap;
use rustix::io::Errno;

use super::info::{self, Switches, TraceSetup};
use super::kind::TraceKind;
use super::pmu_values::PmuValues;
use super::snapshot::Seen;
use crate::kernel::counters::{Counter, Counters};
use crate::kernel::ring::{self, AuxRing, Clock, Ring};
use crate::kernel::{Kernel, RingKey};
use crate::machine::Machine;
use crate::messages::Messages;
use crate::messages::error::{Error, Result};
use crate::output::Output;
use crate::plan::config::Config;
use crate::plan::{Plan, PlannedEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The whole trace is written to the file.
    Full,
    /// Areas are overwritten, and their newest bytes are written on a signal (`-S`).
    Snapshot {
        /// Maximum bytes of each area.
        size: usize,
        /// `true` if a snapshot is also taken at the end (`-Se`).
        at_end: bool,
    },
    /// Areas are overwritten, and samples include pieces of them (`--aux-sample`).
    Sample,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full => f.write_str("written whole"),
            Self::Snapshot { size, at_end: false } => {
                write!(f, "snapshots of {size} bytes on SIGUSR2")
            }
            Self::Snapshot { size, at_end: true } => {
                write!(f, "snapshots of {size} bytes on SIGUSR2 and at the end")
            }
            Self::Sample => f.write_str("parts of it in samples"),
        }
    }
}

impl Mode {
    fn of(config: &Config, plan: &Plan) -> Self {
        match &config.aux.snapshot {
            Some(text) => {
                let size = usize::try_from(plan.snapshot_size).unwrap_or(usize::MAX);
                Self::Snapshot { size, at_end: text.starts_with('e') }
            }
            None if plan.events.iter().any(|event| event.attr.aux_sample_size > 0) => Self::Sample,
            None => Self::Full,
        }
    }
}

/// All AUX areas of a recording; empty if no event has one.
#[derive(Debug, Default)]
pub(crate) struct Areas {
    all: Vec<Area>,
    mode: Option<Mode>,
    kind: Option<TraceKind>,
    clock: Option<Clock>,
    /// `true` if counters are stopped finally, and not enabled again.
    stopped: bool,
    /// `true` if counters are stopped by `-D` or `--control`, so that draining must not enable
    /// them.
    held: bool,
    /// Counters are stopped for the moment in which a file ends.
    paused: bool,
}

#[derive(Debug)]
struct Area {
    ring: AuxRing,
    /// Indices of the counters that write to it, which are enabled again after a drain.
    writers: Vec<usize>,
    idx: u32,
    tid: Tid,
    cpu: Cpu,
    seen: Seen,
}

/// Bytes of an AUXTRACE record without its trace.
const HEADER: u64 = 48;
/// Maximum entries of an ID_INDEX record.
const IDS: usize = 2000;

impl Areas {
    /// Maps an area for each ring whose owner has one; smaller ones if the user's limit on locked
    /// memory requires it.
    pub(crate) fn open<K: Kernel>(
        kernel: &K,
        config: &Config,
        plan: &Plan,
        counters: &Counters,
        rings: &[Ring],
        messages: &Messages,
    ) -> Result<Self> {
        let named =
            |event: &PlannedEvent| event.has_aux.then(|| event.pmu.clone().unwrap_or_default());
        let Some(pmu) = counters.events.iter().find_map(named).filter(|_| plan.aux_pages > 0)
        else {
            return Ok(Self::default());
        };
        let (mode, kind) = (Mode::of(config, plan), TraceKind::of(&pmu));
        let mut pages = plan.aux_pages;
        let overwrite = mode != Mode::Full;
        let all = loop {
            match map_all(kernel, counters, rings, pages, overwrite) {
                Ok(all) => break all,
                Err(Errno::PERM) if pages > if overwrite { 1 } else { 2 } => pages /= 2,
                Err(errno) => return Err(Error::Failed(unmappable(errno, pages))),
            }
        };
        if pages != plan.aux_pages {
            messages.note(format_args!(
                "AUX areas have {pages} pages instead of {}, because of the limit on locked \
                 memory; raise ulimit -l, or have CAP_IPC_LOCK",
                plan.aux_pages
            ));
        }
        messages.explain(|| format!("AUX areas: {} of {pages} pages, {mode}", all.len()));
        let clock = rings.first().and_then(Ring::clock);
        Ok(Self { all, mode: Some(mode), kind, clock, stopped: false, held: false, paused: false })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn pages(&self, page_size: usize) -> usize {
        self.all.first().map_or(0, |area| area.ring.size() / page_size.max(1))
    }

    /// Warns about information that the file will lack.
    pub(crate) fn tell(&self, messages: &Messages) {
        if !self.is_empty() && self.kind.is_none_or(TraceKind::is_bare) {
            messages.note(
                "the trace is recorded without the description of the hardware that \
                           perf's decoders need",
            );
        }
    }

    /// Returns whether a snapshot is taken at the end; `None` without snapshots.
    pub(crate) fn snapshots(&self) -> Option<bool> {
        match self.mode? {
            Mode::Snapshot { at_end, .. } => Some(at_end),
            Mode::Full | Mode::Sample => None,
        }
    }

    /// Writes the records that decoders need before all others: TIME_CONV, ID_INDEX, AUXTRACE_INFO.
    pub(crate) fn write_head(
        &self,
        counters: &Counters,
        machine: &Machine,
        output: &Output,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut e = Encoder::new(Endian::NATIVE);
        if let Some(clock) = self.clock {
            put(&mut e, Body::TimeConv(time_conv(clock)));
        }
        id_index(counters, &mut e);
        if let Some(kind) = self.kind {
            let words = self.private(kind, counters, machine);
            let mut bytes = Encoder::new(Endian::NATIVE);
            words.iter().for_each(|word| bytes.u64(*word));
            let private = U64s::new(bytes.as_bytes(), Endian::NATIVE);
            put(
                &mut e,
                Body::AuxtraceInfo(AuxtraceInfo { kind: kind.number(), reserved: 0, private }),
            );
        }
        output.write(e.as_bytes())
    }

    fn private(&self, kind: TraceKind, counters: &Counters, machine: &Machine) -> Vec<u64> {
        let Some(event) = counters.events.iter().find(|event| event.has_aux) else {
            return Vec::new();
        };
        let facts = PmuValues::read(
            &machine.sysfs,
            event.pmu.as_deref().unwrap_or_default(),
            event.attr.kind.0,
        );
        let recorded = TraceSetup {
            clock: self.clock,
            snapshot: self.snapshots().is_some(),
            per_cpu: self.all.iter().any(|area| !area.cpu.is_any()),
            switches: switches(counters),
            filter: event.filter.as_deref(),
        };
        info::private(kind, &facts, &recorded)
    }

    /// Writes the trace that is there, and lets what was stopped for want of room go on.
    pub(crate) fn drain<K: Kernel>(
        &mut self,
        kernel: &K,
        counters: &Counters,
        output: &Output,
    ) -> Result<()> {
        if self.mode != Some(Mode::Full) {
            return Ok(());
        }
        let unit = self.kind.map_or(1, TraceKind::unit);
        let goes_on = !self.stopped && !self.paused;
        for area in &mut self.all {
            // Payloads are multiples of 8 bytes. A remainder waits for the next round, except in
            // the last one, which pads it.
            let pending = area.ring.pending(if goes_on { 8 } else { 1 });
            let pending = pending
                .map_err(|e| Error::Failed(format!("cannot read an AUX area any further: {e}")))?;
            if pending.is_empty() {
                continue;
            }
            let trace = (pending.first, pending.second);
            area.write(trace, area.ring.position(), unit, output)?;
            let mark = pending.mark();
            area.ring.release(mark);
            if goes_on && !self.held {
                area.enable(kernel, counters)?;
            }
        }
        Ok(())
    }

    /// Stops the counters that write to areas, until [`resume`](Self::resume). The kernel then
    /// tells of all trace that it has written, so that a drain of areas and rings gives a file
    /// whole trace.
    pub(crate) fn pause<K: Kernel>(&mut self, kernel: &K, counters: &Counters) -> Result<()> {
        if self.mode == Some(Mode::Full) {
            self.stop_writers(kernel, counters)?;
            self.paused = true;
        }
        Ok(())
    }

    /// Starts the counters that [`pause`](Self::pause) stopped.
    pub(crate) fn resume<K: Kernel>(&mut self, kernel: &K, counters: &Counters) -> Result<()> {
        if std::mem::take(&mut self.paused) && self.is_running() {
            self.all.iter().try_for_each(|area| area.enable(kernel, counters))?;
        }
        Ok(())
    }

    fn is_running(&self) -> bool {
        !self.stopped && !self.held
    }

    fn stop_writers<K: Kernel>(&self, kernel: &K, counters: &Counters) -> Result<()> {
        let mut writers =
            self.all.iter().filter(|_| self.is_running()).flat_map(|area| area.writers(counters));
        writers.try_for_each(|counter| kernel.disable(counter.as_fd())).map_err(unstoppable)
    }

    /// Returns whether an area is half full again, so that the next round should not wait for the
    /// kernel's wakeup.
    pub(crate) fn is_pressing(&self) -> bool {
        let half_full = |area: &Area| {
            area.ring.pending(8).is_ok_and(|pending| pending.len() >= area.ring.size() / 2)
        };
        self.mode == Some(Mode::Full) && self.all.iter().any(half_full)
    }

    /// Stops the counters that write to areas, writes what is new of each area up to the size of a
    /// snapshot, and lets them go on, unless they are stopped for good.
    pub(crate) fn snapshot<K: Kernel>(
        &mut self,
        kernel: &K,
        counters: &Counters,
        output: &Output,
    ) -> Result<()> {
        let Some(Mode::Snapshot { size, .. }) = self.mode else { return Ok(()) };
        let unit = self.kind.map_or(1, TraceKind::unit);
        self.stop_writers(kernel, counters)?;
        for area in &mut self.all {
            let head = area.ring.head();
            let new = area.seen.new_bytes(&area.ring, head).min(size);
            if new == 0 {
                continue;
            }
            let end = if head < new as u64 { head + area.ring.size() as u64 } else { head };
            let (first, second) = area.ring.last(head, new);
            area.write((&first, &second), end - new as u64, unit, output)?;
        }
        for area in self.all.iter().filter(|_| self.is_running()) {
            area.enable(kernel, counters)?;
        }
        Ok(())
    }

    /// Notes that counters are stopped finally: the next drain writes the whole rest, and enables
    /// no counter again.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Notes that the user stopped or started the counters that write to areas. While stopped,
    /// draining does not enable them.
    pub(crate) fn follow(&mut self, counting: bool) {
        self.held = !counting;
    }
}

/// Adds the index of the AUXTRACE records at these places to a file's features.
pub(crate) fn add_index(features: &mut FeatureWriter, places: &[u64]) {
    let mut words = Encoder::new(Endian::NATIVE);
    for at in places {
        words.u64(*at);
        words.u64(HEADER);
    }
    features.add(&AuxtraceIndex {
        total: places.len() as u64,
        words: U64s::new(words.as_bytes(), Endian::NATIVE),
    });
}

impl Area {
    /// Writes an AUXTRACE record and its trace, padded to a multiple of 8 bytes.
    fn write(
        &self,
        (first, second): (&[u8], &[u8]),
        offset: u64,
        unit: usize,
        output: &Output,
    ) -> Result<()> {
        let first = first.get(..first.len() - first.len() % unit).unwrap_or_default();
        let length = first.len() + second.len();
        let padded = length.next_multiple_of(8);
        let record = Auxtrace {
            size: padded as u64,
            offset,
            reference: ring::cycles(),
            idx: self.idx,
            tid: self.tid,
            cpu: self.cpu,
            reserved: 0,
        };
        let mut e = Encoder::new(Endian::NATIVE);
        put(&mut e, Body::Auxtrace(record));
        let padding = [0; 8];
        let padding = padding.get(..padded - length).unwrap_or_default();
        let parts = [e.as_bytes(), first, second, padding].map(IoSlice::new);
        output.write_trace(&parts)
    }

    fn writers<'c>(&self, counters: &'c Counters) -> impl Iterator<Item = &'c Counter> {
        self.writers.iter().filter_map(|index| counters.all.get(*index))
    }

    fn enable<K: Kernel>(&self, kernel: &K, counters: &Counters) -> Result<()> {
        let enable = |counter: &Counter| match kernel.enable(counter.as_fd()) {
            // ESRCH: all threads of the counter have ended.
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => {
                Err(Error::io("cannot enable a counter again after its AUX area was read", errno))
            }
        };
        self.writers(counters).try_for_each(enable)
    }
}

fn has_aux(counters: &Counters, counter: &Counter) -> bool {
    counters.events.get(counter.event).is_some_and(|event| event.has_aux)
}

fn map_all<K: Kernel>(
    kernel: &K,
    counters: &Counters,
    rings: &[Ring],
    pages: usize,
    overwrite: bool,
) -> Result<Vec<Area>, Errno> {
    // For areas per CPU, perf writes the first recorded thread.
    let first = counters.all.iter().find_map(|counter| counter.place.thread).map_or(Tid::ANY, Tid);
    let mut all = Vec::new();
    let mut writers: FxHashMap<RingKey, Vec<usize>> = FxHashMap::default();
    for (index, counter) in
        counters.all.iter().enumerate().filter(|(_, counter)| has_aux(counters, counter))
    {
        writers.entry(counters.ring_of(counter)).or_default().push(index);
    }
    for ((idx, owner), ring) in (0u32..).zip(&counters.owners).zip(rings) {
        let Some(owner) = counters.all.get(*owner).filter(|owner| has_aux(counters, owner)) else {
            continue;
        };
        let area = kernel.map_aux(owner.as_fd(), ring, pages, overwrite)?;
        let writers = writers.remove(&counters.ring_of(owner)).unwrap_or_default();
        let cpu = owner.place.cpu;
        let tid = if cpu.is_some() { first } else { owner.place.thread.map_or(Tid::ANY, Tid) };
        let seen = Seen::nothing(&area);
        all.push(Area { ring: area, writers, idx, tid, cpu: cpu.map_or(Cpu::ANY, Cpu), seen });
    }
    Ok(all)
}

fn unmappable(errno: Errno, pages: usize) -> String {
    let why = match errno {
        Errno::PERM => {
            "that exceeds the limit on locked memory; raise ulimit -l, or have CAP_IPC_LOCK".into()
        }
        Errno::OPNOTSUPP => "this PMU has none; record other events".into(),
        Errno::NOMEM => "there is not enough memory; request smaller areas with -m ,SIZE".into(),
        Errno::BUSY => "another recording uses this PMU's AUX area; end it first".into(),
        other => crate::messages::error::why_words(&other.into()),
    };
    format!("cannot map AUX areas of {pages} pages: {why}")
}

fn unstoppable(errno: Errno) -> Error {
    Error::io("cannot stop a counter to read its AUX area", errno)
}

/// Returns the source of context switches, by which decoders assign per-CPU trace to threads.
fn switches(counters: &Counters) -> Switches {
    let tells = |event: &PlannedEvent| event.attr.flags.contains(AttrFlags::CONTEXT_SWITCH);
    let mut tellers =
        counters.all.iter().filter(|c| counters.events.get(c.event).is_some_and(tells));
    match tellers.next() {
        Some(first) if tellers.chain([first]).any(|counter| counter.place.thread.is_none()) => {
            Switches::Cpu
        }
        Some(_) => Switches::Thread,
        None if counters.events.iter().any(|event| event.name == "sched:sched_switch") => {
            Switches::Tracepoint
        }
        None => Switches::None,
    }
}

/// Writes the ID_INDEX records: ring, CPU and thread of each id.
fn id_index(counters: &Counters, e: &mut Encoder) {
    let owners = counters.owners.iter().filter_map(|owner| counters.all.get(*owner));
    let rings: FxHashMap<_, _> = owners.map(|owner| counters.ring_of(owner)).zip(0u64..).collect();
    for some in counters.all.chunks(IDS) {
        let entry = |counter: &Counter| {
            let idx = rings.get(&counters.ring_of(counter)).copied().unwrap_or(u64::MAX);
            let (cpu, tid) = (
                counter.place.cpu.map_or(Cpu::ANY, Cpu),
                counter.place.thread.map_or(Tid::ANY, Tid),
            );
            IdIndexEntry { id: counter.id, idx, cpu, tid, guest: None }
        };
        let words = IdIndex::words_of(&some.iter().map(entry).collect::<Vec<_>>(), Endian::NATIVE);
        put(
            e,
            Body::IdIndex(IdIndex {
                nr: some.len() as u64,
                words: U64s::new(&words, Endian::NATIVE),
            }),
        );
    }
}

fn time_conv(clock: Clock) -> TimeConv {
    let short = TimeConvShort {
        time_cycles: clock.cycles,
        time_mask: clock.mask,
        cap_user_time_zero: 1,
        cap_user_time_short: u8::from(clock.short),
        reserved: [0; 6],
    };
    TimeConv {
        time_shift: u64::from(clock.shift),
        time_mult: u64::from(clock.mult),
        time_zero: clock.zero,
        short: Some(short),
    }
}

fn put(e: &mut Encoder, body: Body<'_>) {
    // No record exceeds the size limit: a filter is shorter than a command line, and the number of
    // ids is limited.
    let _ = Record::new(0, body).encode(e);
}
