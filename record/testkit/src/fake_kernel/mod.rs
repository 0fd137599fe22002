//! Fake kernel for tests: counters whose rings and AUX areas are memfds, written by threads in the
//! kernel's order.
//!
//! ```text
//!   open ──▶ eventfd (to poll)                 enable ──▶ one thread per area: executes its script
//!   map ───▶ memfd: page, data, AUX area       disable ─▶ returns when the thread has stopped writing
//! ```
//!
//! A script is a list of [`Step`]s. Trace is written to the AUX area, then an AUX record to the
//! data ring, then `aux_head` is moved (`perf_aux_output_end`). If not all of its trace fits, a
//! thread either waits, or drops the rest: then the AUX record has the flag TRUNCATED, and the
//! counter is stopped until it is enabled again, as in the kernel.

mod buffer;
mod producer;
mod step;

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use recrep_format::attr::Attr;
use recrep_record::parts::{AuxRing, BpfProgram, Clock, Kernel, Place, Ring};
use rustix::io::Errno;

use buffer::Buffer;
use producer::Producer;
use step::lock;
pub use step::{Step, Traced};

/// Function that returns the script for an area's counter.
pub type Script = dyn Fn(&Attr, Place) -> Vec<Step> + Send + Sync;

pub struct FakeKernel {
    script: Arc<Script>,
    /// `true` if `aux_head` of an overwritten area is an offset in it, as with Intel PT.
    heads_are_places: bool,
    clock: Option<Clock>,
    /// Maximum pages of a ring and of an area; more exceed the limit on locked memory.
    most_pages: (usize, usize),
    /// Error for stopping a counter, if any.
    unstoppable: Option<Errno>,
    /// `true` if starting a counter takes until the scripts that run have ended.
    slow_start: bool,
    bpf_programs: Result<Vec<BpfProgram>, Errno>,
    counters: Mutex<HashMap<RawFd, Opened>>,
    next: Mutex<u64>,
}

struct Opened {
    attr: Attr,
    place: Place,
    id: u64,
    buffer: Option<Arc<Mutex<Buffer>>>,
    producer: Option<Producer>,
    pollable: Arc<OwnedFd>,
}

impl Opened {
    fn is_busy(&self) -> bool {
        self.producer.as_ref().is_some_and(|producer| !producer.is_done())
    }
}

impl FakeKernel {
    /// Creates a kernel whose counters with an AUX area execute the script.
    pub fn new(script: impl Fn(&Attr, Place) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let counters = Mutex::default();
        Self {
            script: Arc::new(script),
            heads_are_places: true,
            clock: None,
            most_pages: (usize::MAX, usize::MAX),
            unstoppable: None,
            slow_start: false,
            bpf_programs: Ok(Vec::new()),
            counters,
            next: Mutex::new(100),
        }
    }

    /// Makes `aux_head` only grow, even in overwritten areas.
    pub fn with_growing_heads(self) -> Self {
        Self { heads_are_places: false, ..self }
    }

    /// Sets the clock fields of all control pages.
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Limits the pages of rings and areas.
    pub fn with_most_pages(self, ring: usize, area: usize) -> Self {
        Self { most_pages: (ring, area), ..self }
    }

    /// Makes stopping a counter fail.
    pub fn with_unstoppable_counters(self, errno: Errno) -> Self {
        Self { unstoppable: Some(errno), ..self }
    }

    /// Makes starting a counter wait for the scripts of those that were started before, up to ten
    /// seconds.
    pub fn with_slow_start(self) -> Self {
        Self { slow_start: true, ..self }
    }

    /// A kernel with these BPF programs, or one that refuses to list them.
    pub fn with_bpf_programs(self, programs: Result<Vec<BpfProgram>, Errno>) -> Self {
        Self { bpf_programs: programs, ..self }
    }

    /// Returns the trace written to each area, with the place of its counter.
    pub fn traced(&self) -> Vec<(Place, Traced)> {
        let counters = self.counters();
        let mut all: Vec<_> = counters
            .values()
            .filter_map(|opened| {
                let buffer = lock(opened.buffer.as_ref()?);
                buffer.has_aux().then(|| (opened.place, buffer.traced.clone()))
            })
            .collect();
        all.sort_by_key(|(place, _)| (place.cpu, place.thread));
        all
    }

    /// Returns whether the scripts of all areas have started and ended.
    pub fn is_done(&self) -> bool {
        let counters = self.counters();
        let has_aux =
            |opened: &&Opened| opened.buffer.as_ref().is_some_and(|buffer| lock(buffer).has_aux());
        let mut areas = counters.values().filter(has_aux).peekable();
        areas.peek().is_some()
            && areas.all(|area| area.producer.as_ref().is_some_and(Producer::is_done))
    }

    fn counters(&self) -> MutexGuard<'_, HashMap<RawFd, Opened>> {
        lock(&self.counters)
    }

    fn with<T>(
        &self,
        counter: BorrowedFd<'_>,
        act: impl FnOnce(&mut Opened) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        act(self.counters().get_mut(&counter.as_raw_fd()).ok_or(Errno::BADF)?)
    }
}

impl std::fmt::Debug for FakeKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeKernel")
            .field("counters", &self.counters().len())
            .finish_non_exhaustive()
    }
}

impl Kernel for FakeKernel {
    fn open(&self, attr: &Attr, place: Place, _: Option<BorrowedFd<'_>>) -> Result<OwnedFd, Errno> {
        use rustix::event::{EventfdFlags, eventfd};
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let pollable = Arc::new(rustix::io::fcntl_dupfd_cloexec(&fd, 0)?);
        let mut next = lock(&self.next);
        *next += 1;
        let opened =
            Opened { attr: attr.clone(), place, id: *next, buffer: None, producer: None, pollable };
        self.counters().insert(fd.as_raw_fd(), opened);
        Ok(fd)
    }

    fn id(&self, counter: BorrowedFd<'_>) -> Result<u64, Errno> {
        self.with(counter, |opened| Ok(opened.id))
    }

    fn enable(&self, counter: BorrowedFd<'_>) -> Result<(), Errno> {
        let begun = Instant::now();
        let is_started = self.with(counter, |opened| Ok(opened.producer.is_some()))?;
        while self.slow_start && !is_started && self.counters().values().any(Opened::is_busy) {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err(Errno::TIMEDOUT);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let script = Arc::clone(&self.script);
        let places = self.heads_are_places;
        self.with(counter, |opened| {
            let Some(buffer) = opened.buffer.as_ref().filter(|buffer| lock(buffer).has_aux())
            else {
                return Ok(());
            };
            let producer = opened.producer.get_or_insert_with(|| {
                let steps = script(&opened.attr, opened.place);
                let who = producer::Who::new(&opened.attr, opened.place, opened.id);
                Producer::start(
                    Arc::clone(buffer),
                    steps,
                    who,
                    places,
                    Arc::clone(&opened.pollable),
                )
            });
            producer.enable(true);
            Ok(())
        })
    }

    fn disable(&self, counter: BorrowedFd<'_>) -> Result<(), Errno> {
        self.unstoppable.map_or(Ok(()), Err)?;
        self.with(counter, |opened| {
            if let Some(producer) = &opened.producer {
                producer.enable(false);
            }
            Ok(())
        })
    }

    fn redirect(&self, _: BorrowedFd<'_>, _: BorrowedFd<'_>) -> Result<(), Errno> {
        Ok(())
    }

    fn read(&self, counter: BorrowedFd<'_>, numbers: &mut [u64]) -> Result<usize, Errno> {
        let id = self.id(counter)?;
        let found = [0, id, 0];
        for (to, from) in numbers.iter_mut().zip(found) {
            *to = from;
        }
        Ok(found.len().min(numbers.len()))
    }

    fn pause(&self, _: BorrowedFd<'_>, _: bool) -> Result<(), Errno> {
        Ok(())
    }

    fn bpf_programs(&self) -> Result<Vec<BpfProgram>, Errno> {
        self.bpf_programs.clone()
    }

    fn set_filter(&self, _: BorrowedFd<'_>, _: &CStr) -> Result<(), Errno> {
        Ok(())
    }

    fn map(&self, counter: BorrowedFd<'_>, pages: usize, backward: bool) -> Result<Ring, Errno> {
        if pages > self.most_pages.0 {
            return Err(Errno::PERM);
        }
        let (ring, buffer) = Buffer::new(pages, backward)?;
        if let Some(clock) = self.clock {
            buffer.set_clock(clock);
        }
        self.with(counter, |opened| {
            opened.buffer = Some(Arc::new(Mutex::new(buffer)));
            Ok(ring)
        })
    }

    fn map_aux(
        &self,
        counter: BorrowedFd<'_>,
        ring: &Ring,
        pages: usize,
        overwrite: bool,
    ) -> Result<AuxRing, Errno> {
        if pages > self.most_pages.1 {
            return Err(Errno::PERM);
        }
        self.with(counter, |opened| {
            let buffer = opened.buffer.as_ref().ok_or(Errno::INVAL)?;
            lock(buffer).map_aux(ring, pages, overwrite)
        })
    }
}
