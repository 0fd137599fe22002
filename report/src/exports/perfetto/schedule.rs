//! Scheduling: switches and wakings of each CPU, as ftrace has them.
//!
//! ```text
//!   OUT a (next b), IN b        ─► switch a → b
//!   OUT a          …    IN b    ─► switch a → idle, switch idle → b      of recorded threads only
//! ```

use std::collections::BTreeMap;

use super::messages::{FtraceBundle, FtraceEvent, SchedSwitch, SchedWaking};
use crate::engine::schedule::{Activity, Schedule, ThreadSwitch, Waking};

/// Number of events in a packet.
const AT_ONCE: usize = 512;
/// Thread that runs on a CPU without work.
const IDLE: i32 = 0;
/// Priority of most threads: records do not have it.
const PRIORITY: i32 = 120;
/// State of a thread that waits; which kind of wait it is, is not recorded.
const SLEEPS: i64 = 1;
/// CPU of records that do not have it.
const NO_CPU: u32 = u32::MAX;

/// An event of a CPU.
#[derive(Clone, Copy)]
enum CpuEvent {
    Switch(ThreadSwitch),
    Waking(Waking),
}

impl CpuEvent {
    fn time(&self) -> u64 {
        match self {
            Self::Switch(switch) => switch.time,
            Self::Waking(waking) => waking.time,
        }
    }
}

/// Calls `write` with the events of all CPUs, some at a time.
pub(super) fn for_each_bundle<E>(
    schedule: &Schedule,
    mut write: impl FnMut(FtraceBundle) -> Result<(), E>,
) -> Result<(), E> {
    let mut cpus = BTreeMap::<u32, Vec<CpuEvent>>::new();
    for switch in &schedule.switches {
        cpus.entry(switch.cpu).or_default().push(CpuEvent::Switch(*switch));
    }
    for waking in &schedule.wakings {
        cpus.entry(waking.cpu).or_default().push(CpuEvent::Waking(*waking));
    }
    cpus.remove(&NO_CPU);
    for (cpu, mut events) in cpus {
        events.sort_by_key(CpuEvent::time);
        let mut of_cpu = CpuSchedule { schedule, running: None };
        for events in events.chunks(AT_ONCE) {
            let events: Vec<FtraceEvent> =
                events.iter().filter_map(|event| of_cpu.event(event)).collect();
            if !events.is_empty() {
                write(FtraceBundle { cpu: Some(cpu), events })?;
            }
        }
    }
    Ok(())
}

/// A CPU over time.
struct CpuSchedule<'s> {
    schedule: &'s Schedule,
    /// Thread that runs, if that is known.
    running: Option<i32>,
}

impl CpuSchedule<'_> {
    /// Returns the event as ftrace has it; `None` if the one before says the same.
    fn event(&mut self, event: &CpuEvent) -> Option<FtraceEvent> {
        let (tid, switch, waking) = match event {
            CpuEvent::Switch(switch) => {
                let switch = self.switch(switch)?;
                (switch.prev_tid, Some(switch), None)
            }
            CpuEvent::Waking(waking) => (Some(waking.waker), None, Some(self.waking(waking))),
        };
        let tid = tid.map(i32::cast_unsigned);
        Some(FtraceEvent { timestamp: Some(event.time()), tid, switch, waking })
    }

    fn switch(&mut self, switch: &ThreadSwitch) -> Option<SchedSwitch> {
        let (prev, state, next) = match switch.activity() {
            Activity::Running if self.running == Some(switch.tid) => return None,
            Activity::Running => {
                let before = self.running.or(switch.other).unwrap_or(IDLE);
                (before, 0, switch.tid)
            }
            Activity::Preempted => (switch.tid, 0, switch.other.unwrap_or(IDLE)),
            Activity::Waiting | Activity::Idle | Activity::Runnable | Activity::Unknown => {
                (switch.tid, SLEEPS, switch.other.unwrap_or(IDLE))
            }
        };
        self.running = Some(next);
        Some(SchedSwitch {
            prev_comm: Some(self.name(prev)),
            prev_tid: Some(prev),
            prev_priority: Some(PRIORITY),
            prev_state: Some(state),
            next_comm: Some(self.name(next)),
            next_tid: Some(next),
            next_priority: Some(PRIORITY),
        })
    }

    fn waking(&self, waking: &Waking) -> SchedWaking {
        SchedWaking {
            comm: Some(self.name(waking.tid)),
            tid: Some(waking.tid),
            priority: Some(PRIORITY),
            success: Some(1),
            target_cpu: i32::try_from(waking.target).ok(),
        }
    }

    fn name(&self, tid: i32) -> String {
        let known = self.schedule.lives.get(&tid).map(|life| life.name.as_str());
        match known.filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None if tid == IDLE => "swapper".to_owned(),
            None => format!(":{tid}"),
        }
    }
}
