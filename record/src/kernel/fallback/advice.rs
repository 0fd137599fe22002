//! What is said when a counter cannot be had: what was tried, why the kernel refuses, and the setting or flag that would allow it.

use recrep_format::abi::{AttrFlags, EventType, SampleType};
use rustix::io::Errno;

use super::additions;
use super::step::Circumstances;
use crate::plan::PlannedEvent;
use crate::target::Target;

/// "process 7", or "processes 7, 8".
fn listed(one: &str, several: &str, ids: &[u32]) -> String {
    let list: Vec<String> = ids.iter().map(u32::to_string).collect();
    format!("{} {}", if list.len() == 1 { one } else { several }, list.join(", "))
}

/// The sentence.
pub(super) fn of(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> String {
    let whom = match with.target {
        _ if event.system_wide => "all that runs on a CPU".to_owned(),
        Target::Command => "the command".to_owned(),
        Target::System => "all that runs on a CPU".to_owned(),
        Target::Processes(pids) => format!("{} (-p)", listed("process", "processes", pids)),
        Target::Threads(tids) => format!("{} (-t)", listed("thread", "threads", tids)),
        Target::User(uid) => format!("the processes of user {uid} (-u)"),
    };
    let why = match errno {
        Errno::ACCESS | Errno::PERM => no_permission(event, errno, with),
        Errno::NOENT | Errno::NODEV | Errno::NXIO | Errno::OPNOTSUPP => unsupported(event, errno),
        Errno::INVAL => invalid(event, with),
        Errno::TOOBIG => too_big(event),
        Errno::OVERFLOW => "callchains may not be that deep; raise kernel.perf_event_max_stack, or ask for less with \
                            --max-stack"
            .to_owned(),
        Errno::SRCH => "it has ended already; nothing is left to record".to_owned(),
        Errno::BUSY => busy(event),
        Errno::NOSPC => full(event),
        Errno::MFILE | Errno::NFILE => {
            "there are more counters than files may be open; raise the hard limit (ulimit -Hn), or record \
             fewer events, CPUs (-C) or threads"
                .to_owned()
        }
        Errno::NOMEM => "the kernel is out of memory for counters; try fewer events or CPUs (-C)".to_owned(),
        Errno::NOSYS => "this kernel has no perf events; it needs CONFIG_PERF_EVENTS".to_owned(),
        other => crate::messages::error::why_words(&other.into()),
    };
    format!("cannot count {} for {whom}: {why}", event.full_name())
}

fn no_permission(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> String {
    let (attr, sysctl) = (&event.attr, format!("kernel.perf_event_paranoid is {}", with.paranoid));
    if (*with.target == Target::System || event.system_wide) && with.paranoid > 0 {
        return format!(
            "{sysctl}, which allows it to root and CAP_PERFMON only; be one of them, set kernel.perf_event_paranoid to 0 or \
             less, or record a command"
        );
    }
    for (asked, flag) in [
        (attr.flags.contains(AttrFlags::NAMESPACES), "--namespaces"),
        (attr.sample_type.contains(SampleType::PHYS_ADDR) && with.paranoid > 1, "--phys-data"),
    ] {
        if asked {
            return format!("{flag} is for root and CAP_PERFMON only; be one of them, or leave it out ({sysctl})");
        }
    }
    if event.probe.is_some() {
        return "probes change the code that runs, for whoever runs it: they are for root and CAP_PERFMON only"
            .to_owned();
    }
    if attr.kind == EventType::TRACEPOINT && with.paranoid > -1 {
        return format!(
            "{sysctl}, which keeps what tracepoints tell of the kernel from users without CAP_PERFMON; be root, or set \
             kernel.perf_event_paranoid to -1"
        );
    }
    if attr.flags.contains(AttrFlags::EXCLUDE_USER) && with.paranoid > 1 {
        return format!(
            "{sysctl}, which keeps the kernel from users without CAP_PERFMON; be root, set kernel.perf_event_paranoid to 1 or \
             less, or sample user space ({}:u)",
            event.name
        );
    }
    if let (true, Errno::ACCESS) = (with.target.is_attached(), errno) {
        let it = match with.target {
            Target::Processes(ids) | Target::Threads(ids) if ids.len() == 1 => "it",
            _ => "one of them",
        };
        return format!(
            "{it} belongs to another user, or is protected from ptrace; be its user, root, or have CAP_PERFMON"
        );
    }
    format!(
        "the kernel does not allow it ({sysctl}); in a container, its seccomp profile may forbid perf_event_open: allow that \
         call, or add CAP_PERFMON; outside, be root or set kernel.perf_event_paranoid to 2 or less"
    )
}

fn unsupported(event: &PlannedEvent, errno: Errno) -> String {
    let attr = &event.attr;
    let hardware = matches!(attr.kind, EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW);
    if attr.flags.precise_ip() > 0 && !event.max_precise {
        return format!("the machine cannot count it that exactly; leave out the p ({})", event.name);
    }
    if attr.sample_type.contains(SampleType::BRANCH_STACK) && (errno == Errno::OPNOTSUPP || !hardware) {
        return "its samples cannot have branch stacks, which need branch records in the machine and a hardware event; leave -b, \
                -j and --call-graph lbr out (--call-graph dwarf finds callchains everywhere)"
            .to_owned();
    }
    if attr.flags.contains(AttrFlags::AUX_OUTPUT) {
        return "its samples cannot go to an AUX area on this machine; leave aux-output out".to_owned();
    }
    match attr.kind {
        EventType::BREAKPOINT => "this machine has no breakpoints of that kind, or none that are this long; perf events know 1, 2, \
                                  4 and 8 bytes (mem:ADDR/LEN:rwx)"
            .to_owned(),
        EventType::SOFTWARE | EventType::TRACEPOINT => {
            "this kernel does not know it; -e cpu-clock works everywhere".to_owned()
        }
        _ if hardware || errno != Errno::OPNOTSUPP => {
            "this machine has no such counter, as most virtual machines have none; -e cpu-clock works everywhere".to_owned()
        }
        _ => "its PMU cannot interrupt, so it cannot be sampled; count it with -n, in a group that another event samples \
              ({cpu-clock,EVENT}:S)"
            .to_owned(),
    }
}

fn invalid(event: &PlannedEvent, with: Circumstances<'_>) -> String {
    let too_new = additions::too_new(&event.attr, with.kernel);
    if !too_new.is_empty() {
        return format!("this kernel is too old for {}; leave it out", too_new.join(", "));
    }
    let flags = additions::asked(&event.attr);
    let asked = if flags.is_empty() { String::new() } else { format!(", without {}", flags.join(", ")) };
    format!(
        "the kernel does not take this combination of event, modifiers and flags; try it without modifiers{asked}, without -g or \
         -d, or with -e cpu-clock"
    )
}

fn too_big(event: &PlannedEvent) -> String {
    let flags = additions::asked(&event.attr);
    match flags.first() {
        Some(flag) => format!("this kernel's struct perf_event_attr has no room for what {flag} needs; leave it out"),
        None => {
            "this kernel's struct perf_event_attr is shorter than what the event needs; use a newer kernel".to_owned()
        }
    }
}

fn busy(event: &PlannedEvent) -> String {
    if event.has_aux {
        return format!(
            "another recording has {} already, or a virtual machine does; end that, or try again when it is over",
            event.pmu.as_deref().unwrap_or("its PMU")
        );
    }
    "the counter is in use by another, exclusive event; try again when that is over, or another event".to_owned()
}

fn full(event: &PlannedEvent) -> String {
    if event.attr.kind == EventType::BREAKPOINT {
        return "all of the CPU's breakpoints (4 on most) are taken, by this recording or by a debugger; watch fewer addresses"
            .to_owned();
    }
    "all counters of this kind are taken; try fewer events".to_owned()
}
