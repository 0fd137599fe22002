//! The hardware and kernel side of an area: a thread that executes a script while its counter is
//! enabled.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use recrep_format::abi::AuxFlags;
use recrep_format::attr::Attr;
use recrep_format::layout::SampleIdLayout;
use recrep_format::record::{Body, ItraceStart, SampleId};
use recrep_record::parts::Place;

use super::buffer::Buffer;
use super::step::{Step, lock};

/// Sleep between checks of a waiting thread.
const PAUSE: Duration = Duration::from_micros(50);

/// Lock held from taking a record's timestamp until its reader can read the record.
///
/// The kernel is not preempted in between. A thread can be, for longer than perf tolerates late
/// records (`PERF_RECORD_FINISHED_ROUND`), so no other thread may write meanwhile.
static WRITING: Mutex<()> = Mutex::new(());

/// Origin of the records, for their trailers.
#[derive(Clone, Debug)]
pub(super) struct Who {
    layout: SampleIdLayout,
    place: Place,
    id: u64,
}

impl Who {
    pub(super) fn new(attr: &Attr, place: Place, id: u64) -> Self {
        Self { layout: SampleIdLayout::of(attr), place, id }
    }

    fn ids(&self) -> (u32, u32) {
        let tid = self.place.thread.unwrap_or(1);
        (tid, tid)
    }

    /// Returns the trailer of a record written now.
    fn trailer(&self) -> SampleId {
        static NOW: AtomicU64 = AtomicU64::new(1_000_000);
        let (pid, tid) = self.ids();
        let all = SampleId {
            tid: Some([pid, tid]),
            time: Some(NOW.fetch_add(1000, Ordering::Relaxed)),
            id: Some(self.id),
            stream_id: Some(self.id),
            cpu: Some([self.place.cpu.unwrap_or(0), 0]),
            identifier: Some(self.id),
        };
        all.shaped(&self.layout)
    }
}

/// Handle of the thread.
pub(super) struct Producer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    buffer: Arc<Mutex<Buffer>>,
    enabled: AtomicBool,
    done: AtomicBool,
    dropped: AtomicBool,
}

impl Producer {
    /// Starts the thread, which waits to be enabled.
    pub(super) fn start(
        buffer: Arc<Mutex<Buffer>>,
        steps: Vec<Step>,
        who: Who,
        places: bool,
        pollable: Arc<OwnedFd>,
    ) -> Self {
        let no = || AtomicBool::new(false);
        let shared = Arc::new(Shared { buffer, enabled: no(), done: no(), dropped: no() });
        let hardware = Hardware { shared: Arc::clone(&shared), who, places, pollable };
        let thread = std::thread::spawn(move || hardware.run(&steps));
        Self { shared, thread: Some(thread) }
    }

    /// Enables writing; or disables it, and returns when the thread has stopped writing.
    pub(super) fn enable(&self, enable: bool) {
        self.shared.enabled.store(enable, Ordering::SeqCst);
        // The thread writes only while it holds this lock, and checks the flag after taking it.
        drop(lock(&self.shared.buffer));
    }

    /// Returns whether the script has ended.
    pub(super) fn is_done(&self) -> bool {
        self.shared.done.load(Ordering::SeqCst)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.dropped.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Hardware {
    shared: Arc<Shared>,
    who: Who,
    places: bool,
    pollable: Arc<OwnedFd>,
}

impl Hardware {
    fn run(&self, steps: &[Step]) {
        let (pid, tid) = self.who.ids();
        self.when(
            |_| true,
            |buffer| buffer.record(Body::ItraceStart(ItraceStart { pid, tid }), self.who.trailer()),
        );
        for step in steps {
            self.step(step);
        }
        self.shared.done.store(true, Ordering::SeqCst);
    }

    fn step(&self, step: &Step) {
        match step {
            Step::Trace(bytes) => self.patient(bytes, AuxFlags::empty()),
            Step::Flagged(flags, bytes) => self.patient(bytes, AuxFlags::from_bits_retain(*flags)),
            Step::TraceOrStop(bytes) => self.when(
                |_| true,
                |buffer| {
                    let fits = buffer.aux_room().min(bytes.len());
                    let lost = (bytes.len() - fits) as u64;
                    let flags = if lost > 0 { AuxFlags::TRUNCATED } else { AuxFlags::empty() };
                    buffer.trace(
                        bytes.get(..fits).unwrap_or_default(),
                        flags,
                        self.places,
                        self.who.trailer(),
                    );
                    buffer.traced.lost += lost;
                    if lost > 0 {
                        self.shared.enabled.store(false, Ordering::SeqCst);
                    }
                },
            ),
            Step::Record(body) => {
                self.when(|_| true, |buffer| buffer.record(body.clone(), self.who.trailer()));
            }
            Step::BreakHead => self.when(|_| true, |buffer| buffer.break_head()),
            Step::AwaitRead(total) => self.when(|buffer| buffer.aux_read() >= *total, |_| ()),
        }
    }

    /// Writes all bytes, in pieces as space permits.
    fn patient(&self, mut bytes: &[u8], flags: AuxFlags) {
        loop {
            let mut rest = bytes;
            self.when(
                |buffer| buffer.aux_room() > 0,
                |buffer| {
                    let (now, later) = bytes.split_at(bytes.len().min(buffer.aux_room()));
                    buffer.trace(now, flags, self.places, self.who.trailer());
                    rest = later;
                },
            );
            bytes = rest;
            if bytes.is_empty() || self.shared.dropped.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Waits until the counter is enabled and `ready`, and calls `act`. Wakes pollers after
    /// writing, and while waiting for space.
    fn when(&self, ready: impl Fn(&Buffer) -> bool, act: impl FnOnce(&mut Buffer)) {
        loop {
            if self.shared.dropped.load(Ordering::SeqCst) {
                return;
            }
            let mut buffer = lock(&self.shared.buffer);
            if self.shared.enabled.load(Ordering::SeqCst) && ready(&buffer) {
                let uninterrupted = lock(&WRITING);
                act(&mut buffer);
                drop(uninterrupted);
                drop(buffer);
                self.wake();
                return;
            }
            drop(buffer);
            self.wake();
            std::thread::sleep(PAUSE);
        }
    }

    /// Wakes one poll of the counter. As in the kernel, the poll consumes the wakeup.
    fn wake(&self) {
        let _ = rustix::io::write(&*self.pollable, &1u64.to_ne_bytes());
        std::thread::sleep(PAUSE);
        let _ = rustix::io::read(&*self.pollable, &mut [0; 8]);
    }
}
