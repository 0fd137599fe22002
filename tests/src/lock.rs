//! The lock of the CPUs: recordings come one after the other, whichever test or process they are
//! of. They would keep the CPUs from each other, and Linux would tell perf of rec's build IDs
//! (`MmapIdentity` in recrep-format), which aborts perf 6.1.

use std::cell::RefCell;
use std::env;
use std::fs::File;
use std::rc::{Rc, Weak};

use rustix::fs::{FlockOperation, flock};

/// The lock of the CPUs, held by one thread of one process at a time, until the last of what this
/// gave it is dropped.
///
/// [`start`](crate::run::start) takes it for each program that records, for as long as that runs:
/// reading what was recorded leaves the CPUs to the next recording.
#[track_caller]
pub fn cpus() -> Rc<Cpus> {
    thread_local! {
        static HELD: RefCell<Weak<Cpus>> = const { RefCell::new(Weak::new()) };
    }
    HELD.with_borrow_mut(|held| {
        held.upgrade().unwrap_or_else(|| {
            // The CPUs are the same for all checkouts and users.
            let path = env::temp_dir().join("recrep-tests.lock");
            let file = File::open(&path)
                .or_else(|_| File::create(&path))
                .unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
            flock(&file, FlockOperation::LockExclusive)
                .unwrap_or_else(|error| panic!("cannot lock {}: {error}", path.display()));
            let lock = Rc::new(Cpus(file));
            *held = Rc::downgrade(&lock);
            lock
        })
    })
}

/// A share of the lock of the CPUs.
#[derive(Debug)]
pub struct Cpus(File);

impl Drop for Cpus {
    fn drop(&mut self) {
        // The lock goes with the descriptor in any case.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}
