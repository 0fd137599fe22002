//! When the kernel refuses a counter: the next attr to try, or what would help. A pure function.
//!
//! The kernel says little (one errno for many reasons), so that each refusal is answered by giving up the newest
//! thing asked for that explains it, one at a time, until the kernel agrees or nothing is left to give up.

use recrep_format::abi::{AttrFlags, EventType, ReadFormat, hw, sw};
use rustix::io::Errno;

use crate::plan::PlannedEvent;
use crate::target::Target;

/// What the answer depends on besides the attr.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// Whom the counter is for.
    pub target: &'a Target,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: i64,
}

/// What to do about a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask for this instead; once it works, [`GivenUp::note`] is said.
    Retry {
        /// The event as it is to be now.
        event: Box<PlannedEvent>,
        /// What was given up, where the user must know of it.
        given_up: Option<GivenUp>,
    },
    /// There is nothing else to try: what was tried, why not, and what would help.
    GiveUp(String),
}

/// Something asked for that the kernel did not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The cycle counter, for the clock.
    Cycles,
    /// The kernel, for user space.
    Kernel,
    /// The kernel's count of lost samples.
    LostCount,
}

impl GivenUp {
    /// What the user must know: `asked` became `given`.
    #[must_use]
    pub fn note(self, asked: &PlannedEvent, given: &PlannedEvent, with: Circumstances<'_>) -> String {
        match self {
            Self::Cycles => {
                format!("this machine has no counter for {}: sampling {} instead", asked.full_name(), given.name)
            }
            Self::Kernel => format!(
                "sampling user space only ({}): kernel.perf_event_paranoid is {}, which keeps the kernel from users without \
                 CAP_PERFMON{}",
                given.full_name(),
                with.paranoid,
                if is_of_kernel_only(given) {
                    "; this event happens in the kernel, so there will be no samples of it"
                } else {
                    ""
                },
            ),
            Self::LostCount => {
                "this kernel does not count lost samples (Linux 6.0 does); LOST records tell of losses".to_owned()
            }
        }
    }
}

fn is_of_kernel_only(event: &PlannedEvent) -> bool {
    event.attr.kind == EventType::SOFTWARE
        && matches!(event.attr.config, sw::CONTEXT_SWITCHES | sw::CPU_MIGRATIONS | sw::CGROUP_SWITCHES)
}

/// The answer to `errno` for `event`.
#[must_use]
pub fn next(event: &PlannedEvent, errno: Errno, circumstances: Circumstances<'_>) -> Step {
    less_precise(event, errno)
        .or_else(|| clock_for_cycles(event, errno))
        .or_else(|| user_only(event, errno, circumstances))
        .or_else(|| older_kernel(event, errno))
        .unwrap_or_else(|| Step::GiveUp(advice(event, errno, circumstances)))
}

fn retry(event: PlannedEvent, given_up: Option<GivenUp>) -> Option<Step> {
    Some(Step::Retry { event: Box::new(event), given_up })
}

/// `P`: as exact as the machine can, so one level less.
fn less_precise(event: &PlannedEvent, errno: Errno) -> Option<Step> {
    let level = event.attr.flags.precise_ip();
    let refused = matches!(errno, Errno::NOENT | Errno::OPNOTSUPP | Errno::INVAL | Errno::NODEV);
    (event.max_precise && level > 0 && refused).then_some(())?;
    let mut event = event.clone();
    event.attr.flags = event.attr.flags.with_precise_ip(level - 1);
    retry(event, None)
}

/// A machine without a cycle counter (as most virtual ones) still has a clock.
fn clock_for_cycles(event: &PlannedEvent, errno: Errno) -> Option<Step> {
    let attr = &event.attr;
    let cycles = attr.kind == EventType::HARDWARE && attr.config == hw::CPU_CYCLES;
    (cycles && matches!(errno, Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV)).then_some(())?;
    let mut event = event.clone();
    event.attr.kind = EventType::SOFTWARE;
    event.attr.config = sw::CPU_CLOCK;
    event.attr.flags = event.attr.flags.with_precise_ip(0);
    event.name = "cpu-clock".to_owned();
    event.modifiers.retain(|c| !matches!(c, 'p' | 'P'));
    event.max_precise = false;
    retry(event, Some(GivenUp::Cycles))
}

/// Who may not sample the kernel may still sample user space.
fn user_only(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> Option<Step> {
    let flags = event.attr.flags;
    let possible = matches!(errno, Errno::ACCESS | Errno::PERM)
        && with.paranoid > 1
        && *with.target != Target::System
        && !flags.intersects(AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_USER);
    possible.then_some(())?;
    let mut event = event.clone();
    event.attr.flags |= AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
    event.modifiers = format!("u{}", event.modifiers.replace(['u', 'k', 'h'], ""));
    retry(event, Some(GivenUp::Kernel))
}

/// What kernels learnt after perf_event_open: given up newest first.
fn older_kernel(event: &PlannedEvent, errno: Errno) -> Option<Step> {
    (errno == Errno::INVAL).then_some(())?;
    let mut event = event.clone();
    let attr = &mut event.attr;
    // Linux 6.0, 5.1 and 5.0.
    if attr.read_format.contains(ReadFormat::LOST) {
        attr.read_format -= ReadFormat::LOST;
        return retry(event, Some(GivenUp::LostCount));
    }
    for newer in [AttrFlags::KSYMBOL, AttrFlags::BPF_EVENT] {
        if attr.flags.contains(newer) {
            attr.flags -= newer;
            return retry(event, None);
        }
    }
    None
}

/// "process 7", or "processes 7, 8".
fn listed(one: &str, several: &str, ids: &[u32]) -> String {
    let list: Vec<String> = ids.iter().map(u32::to_string).collect();
    format!("{} {}", if list.len() == 1 { one } else { several }, list.join(", "))
}

/// What was tried, why the kernel refuses, and the setting or flag that would allow it.
fn advice(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> String {
    let name = event.full_name();
    let whom = match with.target {
        Target::Command => "the command".to_owned(),
        Target::System => "all that runs on a CPU".to_owned(),
        Target::Processes(pids) => format!("{} (-p)", listed("process", "processes", pids)),
        Target::Threads(tids) => format!("{} (-t)", listed("thread", "threads", tids)),
        Target::User(uid) => format!("the processes of user {uid} (-u)"),
    };
    let why = match errno {
        Errno::ACCESS | Errno::PERM => return no_permission(event, errno, with, &whom),
        Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP => unsupported(event),
        Errno::INVAL => {
            "the kernel does not take this combination of event, modifiers and flags; try it without modifiers, \
                         without -g or -d, or with -e cpu-clock"
                .to_owned()
        }
        Errno::SRCH => "it has ended already; nothing is left to record".to_owned(),
        Errno::BUSY => {
            "the counter is in use by another, exclusive event; try again when that is over, or another event"
                .to_owned()
        }
        Errno::NOSPC => "all counters of this kind are taken; try fewer events".to_owned(),
        Errno::MFILE | Errno::NFILE => {
            "there are more counters than files may be open; raise the hard limit (ulimit -Hn), or record \
                          fewer events, CPUs (-C) or threads"
                .to_owned()
        }
        Errno::NOMEM => "the kernel is out of memory for counters; try fewer events or CPUs (-C)".to_owned(),
        Errno::NOSYS => "this kernel has no perf events; it needs CONFIG_PERF_EVENTS".to_owned(),
        other => crate::error::why_words(&other.into()),
    };
    format!("cannot count {name} for {whom}: {why}")
}

fn no_permission(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>, whom: &str) -> String {
    let name = event.full_name();
    let sysctl = format!("kernel.perf_event_paranoid is {}", with.paranoid);
    if *with.target == Target::System && with.paranoid > 0 {
        return format!(
            "cannot count {name} for {whom}: {sysctl}, which allows it to root and CAP_PERFMON only; be one of them, set \
             kernel.perf_event_paranoid to 0 or less, or record a command"
        );
    }
    if event.attr.flags.contains(AttrFlags::EXCLUDE_USER) && with.paranoid > 1 {
        return format!(
            "cannot count {name} for {whom}: {sysctl}, which keeps the kernel from users without CAP_PERFMON; be root, set \
             kernel.perf_event_paranoid to 1 or less, or sample user space ({}:u)",
            event.name
        );
    }
    if let (Target::Processes(ids) | Target::Threads(ids), Errno::ACCESS) = (with.target, errno) {
        let it = if ids.len() == 1 { "it" } else { "one of them" };
        return format!(
            "cannot count {name} for {whom}: {it} belongs to another user, or is protected from ptrace; be its user, root, or \
             have CAP_PERFMON"
        );
    }
    format!(
        "cannot count {name} for {whom}: the kernel does not allow it ({sysctl}); in a container, its seccomp profile may \
         forbid perf_event_open: allow that call, or add CAP_PERFMON; outside, be root or set kernel.perf_event_paranoid to 2 \
         or less"
    )
}

fn unsupported(event: &PlannedEvent) -> String {
    if event.attr.flags.precise_ip() > 0 && !event.max_precise {
        return format!("the machine cannot count it that exactly; leave out the p ({})", event.name);
    }
    match event.attr.kind {
        EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW => {
            "this machine has no such counter, as most virtual machines have none; -e cpu-clock works everywhere"
                .to_owned()
        }
        _ => "this kernel does not know it; -e cpu-clock works everywhere".to_owned(),
    }
}

#[cfg(test)]
#[path = "fallback_tests.rs"]
mod tests;
