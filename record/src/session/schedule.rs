//! Where and how urgently rec itself runs (`-r`, `--affinity`).
//!
//! What is lost is lost because rec is not run in time: on a busy machine the kernel lets a thread that was woken wait for a
//! few milliseconds, which small rings do not last. So rec asks for the shortest time slice, whose turn comes soonest (Linux
//! 6.12), and, where this user may, for the least niceness: it then runs when it is woken. It needs little of a CPU, and gives up
//! both again when the draining is over.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::getpriority_process;
use rustix::thread::CpuSet;

use crate::kernel::counters::Counters;
use crate::kernel::sys;
use crate::machine::cpus;
use crate::messages::error::{Error, Result};
use crate::plan::config::{Affinity, Config};
use crate::target;

/// The shortest slice that the kernel grants.
const SLICE: Duration = Duration::from_micros(100);
/// The least niceness.
const LEAST_NICE: i32 = -20;

/// That this thread runs soon when it is woken, until this is dropped.
#[derive(Debug)]
pub(super) struct Urgent {
    nice: i32,
}

/// Makes this thread urgent, or gives it the priority that was asked for. The command was forked before, and keeps its own.
pub(super) fn apply(config: &Config) -> Result<Option<Urgent>> {
    let Some(priority) = config.rings.realtime else {
        let nice = getpriority_process(None).unwrap_or(0);
        // Who may not is not worse off than with any other recorder.
        let _ = sys::set_share(LEAST_NICE, SLICE).or_else(|_| sys::set_share(nice, SLICE));
        return Ok(Some(Urgent { nice }));
    };
    sys::set_fifo(priority).map(|()| None).map_err(|why| {
        Error::io(format!("cannot run with real-time priority {priority} (-r; 1 to 99, needs CAP_SYS_NICE)"), why)
    })
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // A slice of nothing is the kernel's own choice.
        let _ = sys::set_share(self.nice, Duration::ZERO);
    }
}

/// The CPUs on which each ring is drained; nothing where it does not matter.
pub(super) fn places(affinity: Affinity, counters: &Counters) -> Vec<CpuSet> {
    if affinity == Affinity::System {
        return Vec::new();
    }
    let owners = counters.owners.iter().filter_map(|owner| counters.all.get(*owner));
    let nodes = if affinity == Affinity::Node { cpus::nodes(Path::new("/sys")) } else { Vec::new() };
    let of = |cpu: Option<u32>| {
        // A ring of a thread is drained anywhere.
        let Some(cpu) = cpu else { return online() };
        cpus::set(nodes.iter().find(|node| node.contains(&cpu)).unwrap_or(&vec![cpu]))
    };
    owners.map(|owner| of(owner.place.cpu)).collect()
}

fn online() -> CpuSet {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    cpus::set(&target::parse_cpus(&list).unwrap_or_default())
}
