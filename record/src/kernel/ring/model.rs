//! The model check: loom runs both sides of an area, ours and the kernel's, in every order that the memory model allows, over the
//! very code of [`protocol`](super::protocol).
//!
//! The bytes are cells that may not be read and written at once; heads and tails are atomics. That the check sees what it must is
//! shown by weakening each of the four accesses: each time some order of events lets it fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use super::protocol::{Reader, Word, Writer};

/// One of the four accesses of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    LoadHead,
    StoreHead,
    LoadTail,
    StoreTail,
}

/// A head or a tail whose loads or stores may have lost their order.
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

impl Word for Modelled {
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(if self.weak_load { Ordering::Relaxed } else { order })
    }

    fn store(&self, value: u64, order: Ordering) {
        self.word.store(value, if self.weak_store { Ordering::Relaxed } else { order });
    }
}

/// A byte of the area; loom fails where two threads are at it at once.
struct Cell(loom::cell::Cell<u64>);

#[allow(unsafe_code, reason = "a test shares what loom watches")]
mod shared {
    // SAFETY: the model's threads run one at a time, and loom checks that the order of their accesses is given.
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

    /// The kernel writes numbers, as many as there is room for, so many times.
    fn write(&self, times: usize) {
        let mut writer = Writer::new(self.cells.len(), 0);
        for _ in 0..times {
            let now = writer.room(&self.tail);
            (0..now).for_each(|ahead| self.cells[writer.place(ahead)].0.set(writer.head() + ahead));
            writer.publish(&self.head, now);
        }
    }

    /// We read what there is; each number must be the next.
    fn read(&self, reader: &mut Reader) {
        let stretch = reader.pending(&self.head).unwrap();
        for (place, expected) in (stretch.start..).take(stretch.length).zip(reader.tail()..) {
            assert_eq!(self.cells[place % self.cells.len()].0.get(), expected);
        }
        reader.release(&self.tail, stretch.head);
    }
}

/// Numbers pass through an area of a size: so many attempts to write, and as many to read. Attempts, since a loop that waits for
/// the other side has no end of orders.
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
        assert!(reader.tail() >= size as u64 - 1, "what there was room for at the start arrives");
    });
}

#[test]
fn every_number_arrives_once_and_whole() {
    pass(2, 3, None);
    pass(4, 2, None);
}

#[test]
fn each_of_the_four_accesses_needs_its_order() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let weak = [Access::LoadHead, Access::StoreHead, Access::LoadTail, Access::StoreTail];
    let why = |access| catch_unwind(AssertUnwindSafe(|| pass(2, 3, Some(access)))).err()?.downcast::<String>().ok();
    let fails = weak.map(|access| why(access).is_some_and(|why| why.contains("Causality violation")));
    std::panic::set_hook(hook);
    assert_eq!(fails, [true; 4], "{weak:?}");
}

/// The kernel writes trace, then the AUX record that tells of it, then moves `aux_head`. We load `aux_head` first, so the
/// record is in the data ring when its trace is in the AUX area.
#[test]
fn trace_is_never_without_its_record() {
    const SIZE: usize = 4;
    loom::model(|| {
        let areas = Arc::new((ModelArea::new(SIZE, None), ModelArea::new(SIZE, None)));
        let kernel = loom::thread::spawn({
            let areas = Arc::clone(&areas);
            move || {
                let (aux, data) = &*areas;
                let (mut trace, mut records) = (Writer::new(SIZE, 0), Writer::new(SIZE, 0));
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
