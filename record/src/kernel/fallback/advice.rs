//! Error messages for counters that cannot be opened: what was tried, why the kernel refuses, which setting or flag
//! helps.

use recrep_format::abi::{AttrFlags, EventType, SampleType};
use rustix::io::Errno;

use super::additions;
use super::step::Circumstances;
use crate::plan::PlannedEvent;
use crate::target::Target;

/// Formats "process 7" or "processes 7, 8".
fn listed(one: &str, several: &str, ids: &[u32]) -> String {
    let list: Vec<String> = ids.iter().map(u32::to_string).collect();
    format!("{} {}", if list.len() == 1 { one } else { several }, list.join(", "))
}

/// Returns the error message.
pub(super) fn of(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> String {
    let whom = match with.target {
        _ if event.system_wide => "all processes on a CPU".to_owned(),
        Target::Command => "the command".to_owned(),
        Target::System => "all processes on a CPU".to_owned(),
        Target::Processes(pids) => format!("{} (-p)", listed("process", "processes", pids)),
        Target::Threads(tids) => format!("{} (-t)", listed("thread", "threads", tids)),
        Target::User(uid) => format!("the processes of user {uid} (-u)"),
    };
    let why = match errno {
        Errno::ACCESS | Errno::PERM => no_permission(event, errno, with),
        Errno::NOENT | Errno::NODEV | Errno::NXIO | Errno::OPNOTSUPP => unsupported(event, errno),
        Errno::INVAL => invalid(event, with),
        Errno::TOOBIG => too_big(event),
        Errno::OVERFLOW => "callchains cannot be that deep; raise kernel.perf_event_max_stack, or lower \
                            --max-stack"
            .to_owned(),
        Errno::SRCH => "it has ended already; nothing is left to record".to_owned(),
        Errno::BUSY => busy(event),
        Errno::NOSPC => full(event),
        Errno::MFILE | Errno::NFILE => {
            "the counters exceed the limit on open files; raise the hard limit (ulimit -Hn), or record \
             fewer events, CPUs (-C) or threads"
                .to_owned()
        }
        Errno::NOMEM => "the kernel is out of memory for counters; try fewer events or CPUs (-C)".to_owned(),
        Errno::NOSYS => "this kernel has no perf events; use one built with CONFIG_PERF_EVENTS".to_owned(),
        other => crate::messages::error::why_words(&other.into()),
    };
    format!("cannot count {} for {whom}: {why}", event.full_name())
}

fn no_permission(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> String {
    let (attr, sysctl) = (&event.attr, format!("kernel.perf_event_paranoid is {}", with.paranoid));
    if (*with.target == Target::System || event.system_wide) && with.paranoid > 0 {
        return format!(
            "{sysctl}, which requires root or CAP_PERFMON; get either, set kernel.perf_event_paranoid to 0 or \
             less, or record a command"
        );
    }
    for (asked, flag) in [
        (attr.flags.contains(AttrFlags::NAMESPACES), "--namespaces"),
        (attr.sample_type.contains(SampleType::PHYS_ADDR) && with.paranoid > 1, "--phys-data"),
    ] {
        if asked {
            return format!("{flag} requires root or CAP_PERFMON ({sysctl}); get either, or leave it out");
        }
    }
    if event.probe.is_some() {
        return "probes require root or CAP_PERFMON, as they modify code for all its users; get either".to_owned();
    }
    if attr.kind == EventType::TRACEPOINT && with.paranoid > -1 {
        return format!(
            "{sysctl}, which hides tracepoint data from users without CAP_PERFMON; be root, or set \
             kernel.perf_event_paranoid to -1"
        );
    }
    if attr.flags.contains(AttrFlags::EXCLUDE_USER) && with.paranoid > 1 {
        return format!(
            "{sysctl}, which hides the kernel from users without CAP_PERFMON; be root, set \
             kernel.perf_event_paranoid to 1 or less, or sample user space ({}:u)",
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
        return format!("the machine does not support that precision; leave out the p ({})", event.name);
    }
    if attr.sample_type.contains(SampleType::BRANCH_STACK) && (errno == Errno::OPNOTSUPP || !hardware) {
        return "its samples cannot have branch stacks, which require hardware support and a hardware event; leave out \
                -b, -j and --call-graph lbr (--call-graph dwarf works on all machines)"
            .to_owned();
    }
    if attr.flags.contains(AttrFlags::AUX_OUTPUT) {
        return "this machine cannot write its samples to an AUX area; leave out aux-output".to_owned();
    }
    match attr.kind {
        EventType::BREAKPOINT => "this machine has no breakpoints of that kind or length; try a length of 1, 2, \
                                  4 or 8 bytes (mem:ADDR/LEN:rwx)"
            .to_owned(),
        EventType::SOFTWARE | EventType::TRACEPOINT => {
            "this kernel does not have it; -e cpu-clock works everywhere".to_owned()
        }
        _ if hardware || errno != Errno::OPNOTSUPP => {
            "this machine has no such counter, like most virtual machines; -e cpu-clock works everywhere".to_owned()
        }
        _ => "its PMU has no interrupts, so it cannot be sampled; count it with -n, or in a group that another \
              event samples ({cpu-clock,EVENT}:S)"
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
        "the kernel refuses this combination of event, modifiers and flags; try it without modifiers{asked}, without \
         -g or -d, or with -e cpu-clock"
    )
}

fn too_big(event: &PlannedEvent) -> String {
    let flags = additions::asked(&event.attr);
    match flags.first() {
        Some(flag) => format!("this kernel's struct perf_event_attr is too short for {flag}; leave it out"),
        None => "this kernel's struct perf_event_attr is too short for the event; use a newer kernel".to_owned(),
    }
}

fn busy(event: &PlannedEvent) -> String {
    if event.has_aux {
        return format!(
            "another recording or a virtual machine uses {}; end that, or try again when it has ended",
            event.pmu.as_deref().unwrap_or("its PMU")
        );
    }
    "an exclusive event uses the counter; try again when that has ended, or use another event".to_owned()
}

fn full(event: &PlannedEvent) -> String {
    if event.attr.kind == EventType::BREAKPOINT {
        return "all breakpoints of the CPU (usually 4) are in use, here or by a debugger; watch fewer addresses"
            .to_owned();
    }
    "all counters of this kind are in use; try fewer events".to_owned()
}
