//! AUX areas of a recording: mapping, draining, snapshots.
//!
//! The counters that write to areas are in one of three states, and some calls stop them for a
//! moment in between:
//!
//! ```text
//!                  follow(false): -D, --control
//!       Running ──────────────────────────────────▶ Held
//!        │   ▲  ◀──────────────────────────────────  │
//!        │   │     follow(true)                      │
//!        │   └── pause … resume: the end of a file   │
//!        │   └── snapshot                            │
//!        └────────────▶ Stopped ◀────────────────────┘
//!                stop: the end of the recording
//!
//!            drain writes              then the counters
//!  Running   multiples of 8 bytes      are enabled: the kernel stopped those whose area was full
//!  Held      multiples of 8 bytes      stay as they are
//!  Stopped   all, padded               stay as they are
//!  (pause)   all, padded               stay stopped until resume, which enables them if Running
//! ```

use std::io::IoSlice;
use std::os::fd::AsFd as _;

use recrep_format::abi::{Cpu, Tid};
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::feature::AuxtraceIndex;
use recrep_format::record::{Auxtrace, Body};
use recrep_format::write::FeatureWriter;
use rustc_hash::FxHashMap;
use rustix::io::Errno;

use super::info::put;
use super::kind::TraceKind;
use super::snapshot::LastSnapshot;
use crate::kernel::counters::{Counter, Counters};
use crate::kernel::ring::{self, AuxRing, Clock, Ring};
use crate::kernel::{Kernel, RingKey};
use crate::messages::Messages;
use crate::messages::error::{Error, Result};
use crate::output::Output;
use crate::plan::Plan;
use crate::plan::config::Config;

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
        match config.aux.snapshots {
            Some(snapshots) => {
                let size = usize::try_from(plan.snapshot_size).unwrap_or(usize::MAX);
                Self::Snapshot { size, at_end: snapshots.at_end }
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
    pub(super) kind: Option<TraceKind>,
    pub(super) clock: Option<Clock>,
    writers: Writers,
}

/// State of the counters that write to areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Writers {
    #[default]
    Running,
    /// Stopped by the user.
    Held,
    /// Stopped for good.
    Stopped,
}

#[derive(Debug)]
struct Area {
    ring: AuxRing,
    /// Indices of the counters that write to it, which are enabled again after a drain.
    writers: Vec<usize>,
    idx: u32,
    tid: Tid,
    cpu: Cpu,
    /// Bytes that trace is cut to multiples of ([`TraceKind::unit`]).
    unit: usize,
    seen: LastSnapshot,
}

/// Bytes of an AUXTRACE record without its trace.
const HEADER: u64 = 48;

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
        let event = counters.events.iter().find(|event| event.has_aux);
        let Some(event) = event.filter(|_| plan.aux_pages > 0) else {
            return Ok(Self::default());
        };
        let kind = TraceKind::of(event.pmu.as_deref().unwrap_or_default());
        let mode = Mode::of(config, plan);
        let mut pages = plan.aux_pages;
        let overwrite = mode != Mode::Full;
        let unit = kind.map_or(1, TraceKind::unit);
        let all = loop {
            match map_all(kernel, counters, rings, pages, overwrite, unit) {
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
        Ok(Self { all, mode: Some(mode), kind, clock, writers: Writers::Running })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn are_per_cpu(&self) -> bool {
        self.all.iter().any(|area| !area.cpu.is_any())
    }

    pub(crate) fn pages(&self, page_size: usize) -> usize {
        self.all.first().map_or(0, |area| area.ring.size() / page_size.max(1))
    }

    /// Warns about information that the file will lack.
    pub(crate) fn warn(&self, messages: &Messages) {
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

    /// Writes the trace that is there, and enables counters that the kernel stopped because their
    /// area was full.
    pub(crate) fn drain<K: Kernel>(
        &mut self,
        kernel: &K,
        counters: &Counters,
        output: &Output,
    ) -> Result<()> {
        // A remainder waits for the next drain, unless this is the last one.
        let unit = if self.writers == Writers::Stopped { 1 } else { 8 };
        self.write_pending(unit, output, |area, running| {
            if running { area.enable(kernel, counters) } else { Ok(()) }
        })
    }

    /// Writes the pending trace in multiples of `unit` bytes. Calls `released` for each area that
    /// had any, with whether its counters should run.
    fn write_pending(
        &mut self,
        unit: usize,
        output: &Output,
        released: impl Fn(&Area, bool) -> Result<()>,
    ) -> Result<()> {
        if self.mode != Some(Mode::Full) {
            return Ok(());
        }
        for area in &mut self.all {
            let pending = area
                .ring
                .pending(unit)
                .map_err(|e| Error::Failed(format!("cannot read an AUX area any further: {e}")))?;
            if pending.is_empty() {
                continue;
            }
            area.write(pending.first, pending.second, area.ring.position(), output)?;
            let mark = pending.mark();
            area.ring.release(mark);
            released(area, self.writers == Writers::Running)?;
        }
        Ok(())
    }

    /// Stops the counters until [`resume`](Self::resume), and writes all of their trace. The kernel
    /// writes an AUX record for it when it stops them, so draining the rings next completes a file.
    pub(crate) fn pause<K: Kernel>(
        &mut self,
        kernel: &K,
        counters: &Counters,
        output: &Output,
    ) -> Result<()> {
        if self.mode == Some(Mode::Full) {
            self.stop_writers(kernel, counters)?;
        }
        self.write_pending(1, output, |_, _| Ok(()))
    }

    /// Starts the counters that [`pause`](Self::pause) stopped.
    pub(crate) fn resume<K: Kernel>(&self, kernel: &K, counters: &Counters) -> Result<()> {
        if self.mode == Some(Mode::Full) { self.start_writers(kernel, counters) } else { Ok(()) }
    }

    fn stop_writers<K: Kernel>(&self, kernel: &K, counters: &Counters) -> Result<()> {
        if self.writers == Writers::Running {
            for counter in self.all.iter().flat_map(|area| area.writers(counters)) {
                kernel
                    .disable(counter.as_fd())
                    .map_err(|e| Error::io("cannot stop a counter to read its AUX area", e))?;
            }
        }
        Ok(())
    }

    fn start_writers<K: Kernel>(&self, kernel: &K, counters: &Counters) -> Result<()> {
        if self.writers == Writers::Running {
            for area in &self.all {
                area.enable(kernel, counters)?;
            }
        }
        Ok(())
    }

    /// Returns whether an area is half full again, so that the next round should not wait for the
    /// kernel's wakeup.
    pub(crate) fn is_pressing(&self) -> bool {
        self.mode == Some(Mode::Full)
            && self.all.iter().any(|Area { ring, .. }| {
                ring.pending(8).is_ok_and(|pending| pending.len() >= ring.size() / 2)
            })
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
        self.stop_writers(kernel, counters)?;
        for area in &mut self.all {
            let head = area.ring.head();
            let new = area.seen.new_bytes(&area.ring, head).min(size);
            if new == 0 {
                continue;
            }
            let end = if head < new as u64 { head + area.ring.size() as u64 } else { head };
            let (first, second) = area.ring.last(head, new);
            area.write(&first, &second, end - new as u64, output)?;
        }
        self.start_writers(kernel, counters)
    }

    /// Notes that the counters are stopped for good: the next drain writes the whole rest.
    pub(crate) fn stop(&mut self) {
        self.writers = Writers::Stopped;
    }

    /// Notes that the user stopped or started the counters.
    pub(crate) fn follow(&mut self, counting: bool) {
        self.writers = if counting { Writers::Running } else { Writers::Held };
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
    /// Writes an AUXTRACE record and its trace in two halves, padded to a multiple of 8 bytes.
    fn write(&self, first: &[u8], second: &[u8], offset: u64, output: &Output) -> Result<()> {
        // A branch of BTS is not cut.
        let whole = first.len() - first.len() % self.unit;
        let first = first.get(..whole).unwrap_or_default();
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
        for counter in self.writers(counters) {
            match kernel.enable(counter.as_fd()) {
                // ESRCH: all threads of the counter have ended.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => {
                    let what = "cannot enable a counter again after its AUX area was read";
                    return Err(Error::io(what, errno));
                }
            }
        }
        Ok(())
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
    unit: usize,
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
        let seen = LastSnapshot::nothing(&area);
        let cpu = cpu.map_or(Cpu::ANY, Cpu);
        all.push(Area { ring: area, writers, idx, tid, cpu, unit, seen });
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
