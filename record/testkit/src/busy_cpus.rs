//! Loops that keep all CPUs busy.
//!
//! An idle task that was left with the mark of being amid a sample gives perf events no samples of
//! interrupts any more, `perf record -a` none either, until the machine starts again (seen on Linux
//! 6.18, on one of two CPUs). Interrupts of a task that runs give samples on any machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::process::nice;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A loop on each CPU that this thread may use, until this is dropped. All else goes before.
#[derive(Debug)]
pub struct BusyCpus {
    is_over: Arc<AtomicBool>,
    loops: Vec<JoinHandle<()>>,
}

impl BusyCpus {
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let allowed = sched_getaffinity(None).unwrap();
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let loops = cpus.map(|cpu| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                let mut place = CpuSet::new();
                place.set(cpu);
                sched_setaffinity(None, &place).unwrap();
                nice(19).unwrap();
                while !is_over.load(Ordering::Relaxed) {}
            })
        });
        Self { loops: loops.collect(), is_over }
    }
}

impl Drop for BusyCpus {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for one in self.loops.drain(..) {
            one.join().unwrap();
        }
    }
}
