//! The model check: loom runs both sides of an area, rec's and the kernel's, in every order that
//! the memory model allows, with the production code of `protocol`.
//!
//! The bytes are cells that must not be accessed concurrently; heads and tails are atomics. To show
//! that the check detects errors, each of the four accesses is weakened in turn: each time the
//! check fails in some order.

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::kernel::ring::protocol::{Reader, SharedWord};
use crate::testkit::ring_writer::RingWriter;

/// One of the four accesses of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    LoadHead,
    StoreHead,
    LoadTail,
    StoreTail,
}

/// A head or a tail whose loads or stores may be weakened to relaxed order.
struct Modelled {
    word: AtomicU64,
    weak_load: bool,
    weak_store: bool,
}

impl Modelled {
    fn new(weak_load: bool, weak_store: bool) -> Self {
        Self { word: AtomicU64::new(0), weak_load, weak_store }
    }
}

impl SharedWord for Modelled {
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(if self.weak_load { Ordering::Relaxed } else { order })
    }

    fn store(&self, value: u64, order: Ordering) {
        self.word.store(value, if self.weak_store { Ordering::Relaxed } else { order });
    }
}

/// A byte of the area; loom fails if two threads access it concurrently.
struct Cell(loom::cell::Cell<u64>);

#[allow(unsafe_code, reason = "a test shares what loom watches")]
mod shared {
    // SAFETY: the model's threads run one at a time, and loom checks that their accesses are
    // ordered.
    unsafe impl Sync for super::Cell {}
}

/// An area that both sides share.
struct ModelArea {
    head: Modelled,
    tail: Modelled,
    cells: Vec<Cell>,
}

impl ModelArea {
    fn new(size: usize, weak: Option<Access>) -> Self {
        let is = |access| weak == Some(access);
        Self {
            head: Modelled::new(is(Access::LoadHead), is(Access::StoreHead)),
            tail: Modelled::new(is(Access::LoadTail), is(Access::StoreTail)),
            cells: (0..size).map(|_| Cell(loom::cell::Cell::new(u64::MAX))).collect(),
        }
    }

    /// Kernel's side: writes numbers, as many as fit, this many times.
    fn write(&self, times: usize) {
        let mut writer = RingWriter::new(self.cells.len(), 0);
        for _ in 0..times {
            let now = writer.room(&self.tail);
            (0..now).for_each(|ahead| self.cells[writer.place(ahead)].0.set(writer.head() + ahead));
            writer.publish(&self.head, now);
        }
    }

    /// Rec's side: reads the pending numbers, and checks that they are consecutive.
    fn read(&self, reader: &mut Reader) {
        let stretch = reader.pending(&self.head).unwrap();
        for (place, expected) in (stretch.start..).take(stretch.length).zip(reader.tail()..) {
            assert_eq!(self.cells[place % self.cells.len()].0.get(), expected);
        }
        reader.release(&self.tail, stretch.head);
    }
}

/// Passes numbers through an area of this size, with a fixed number of attempts to write and to
/// read, as loops that wait for the other side would have infinitely many orders.
fn pass(size: usize, attempts: usize, weak: Option<Access>) {
    loom::model(move || {
        let area = Arc::new(ModelArea::new(size, weak));
        let kernel = loom::thread::spawn({
            let area = Arc::clone(&area);
            move || area.write(attempts)
        });
        let mut reader = Reader::new("data", size, 0);
        (0..attempts).for_each(|_| area.read(&mut reader));
        kernel.join().unwrap();
        area.read(&mut reader);
        assert!(reader.tail() >= size as u64 - 1, "the numbers that fit at the start arrive");
    });
}

#[test]
fn numbers_arrive_once_and_whole_in_an_area_of_two() {
    pass(2, 3, None);
}

#[test]
fn numbers_arrive_once_and_whole_in_an_area_of_four() {
    pass(4, 2, None);
}

#[test]
fn each_of_the_four_accesses_needs_its_order() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let weak = [Access::LoadHead, Access::StoreHead, Access::LoadTail, Access::StoreTail];
    let why = |access| {
        catch_unwind(AssertUnwindSafe(|| pass(2, 3, Some(access)))).err()?.downcast::<String>().ok()
    };
    let fails =
        weak.map(|access| why(access).is_some_and(|why| why.contains("Causality violation")));
    std::panic::set_hook(hook);
    assert_eq!(fails, [true; 4], "{weak:?}");
}

/// The kernel writes trace, then its AUX record, and then moves `aux_head`. rec loads `aux_head`
/// first, so for all trace that it finds in the AUX area, the record is in the data ring.
#[test]
fn trace_is_never_without_its_record() {
    const SIZE: usize = 4;
    loom::model(|| {
        let areas = Arc::new((ModelArea::new(SIZE, None), ModelArea::new(SIZE, None)));
        let kernel = loom::thread::spawn({
            let areas = Arc::clone(&areas);
            move || {
                let (aux, data) = &*areas;
                let (mut trace, mut records) = (RingWriter::new(SIZE, 0), RingWriter::new(SIZE, 0));
                for n in 0..2 {
                    aux.cells[trace.place(0)].0.set(n);
                    data.cells[records.place(0)].0.set(n);
                    records.publish(&data.head, 1);
                    trace.publish(&aux.head, 1);
                }
            }
        });
        let (aux, data) = &*areas;
        let (mut trace, mut records) = (Reader::new("aux", SIZE, 0), Reader::new("data", SIZE, 0));
        for _ in 0..2 {
            aux.read(&mut trace);
            data.read(&mut records);
            assert!(records.tail() >= trace.tail());
        }
        kernel.join().unwrap();
    });
}
