//! Error messages for counters that cannot be opened: what was tried, why the kernel refuses, which
//! setting or flag helps. Each errno of perf_event_open(2) has a sentence of its own.

use std::ffi::CStr;

use recrep_format::abi::{AttrFlags, EventType, SampleType};
use rustix::io::Errno;

use super::diagnosis::Culprit;
use super::step::Circumstances;
use super::{additions, breakpoint};
use crate::plan::{AddedBy, PlannedEvent};
use crate::tasks::Target;

/// Formats "process 7" or "processes 7, 8".
fn listed(one: &str, several: &str, ids: &[u32]) -> String {
    let list: Vec<String> = ids.iter().map(u32::to_string).collect();
    format!("{} {}", if list.len() == 1 { one } else { several }, list.join(", "))
}

/// Returns the error message.
pub(super) fn of(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> String {
    let why = match errno {
        Errno::ACCESS | Errno::PERM => no_permission(event, errno, with),
        Errno::NOENT | Errno::NODEV | Errno::NXIO | Errno::OPNOTSUPP => unsupported(event, errno),
        Errno::INVAL => invalid(event, with),
        Errno::TOOBIG => too_big(event),
        Errno::OVERFLOW => "callchains cannot be that deep; raise kernel.perf_event_max_stack, or \
                            lower --max-stack"
            .to_owned(),
        Errno::SRCH => "it has ended already; nothing is left to record".to_owned(),
        Errno::BUSY => busy(event),
        Errno::NOSPC => full(event),
        Errno::MFILE => {
            "the counters exceed the limit on open files of a process; raise the hard limit \
             (ulimit -Hn), or record fewer events, CPUs (-C) or threads"
                .to_owned()
        }
        Errno::NFILE => {
            "all files that the whole machine may have open are open; raise fs.file-max (sysctl), \
             or record fewer events, CPUs (-C) or threads"
                .to_owned()
        }
        Errno::NOMEM => {
            "the kernel is out of memory for counters; try fewer events or CPUs (-C)".to_owned()
        }
        Errno::NOSYS => not_built_in(event),
        Errno::INTR => interrupted(event),
        Errno::BADF => {
            "the kernel does not know the leader of its group, or the cgroup (-G) was removed; \
             start rec again, and report it if that does not help"
                .to_owned()
        }
        Errno::FAULT => {
            "the kernel could not read the request from rec's memory, which is an error of rec: \
             please report it"
                .to_owned()
        }
        Errno::IO => {
            "the counter's hardware or firmware failed; the kernel's log (dmesg) may say more; \
             try another event"
                .to_owned()
        }
        Errno::AGAIN => "the kernel cannot do it at the moment; try again".to_owned(),
        other => crate::messages::error::why_words(&other.into()),
    };
    let instead = match event.added {
        Some(AddedBy::Waits) => format!("; {}", crate::plan::WITHOUT_WAKERS),
        _ => String::new(),
    };
    format!("{}: {why}{instead}", cannot_count(event, with))
}

/// Returns the error message of a refusal of which trials showed the culprit.
pub(super) fn of_culprit(
    event: &PlannedEvent,
    culprit: Culprit,
    with: Circumstances<'_>,
) -> String {
    let why = match culprit {
        Culprit::Sampling => cannot_sample(event),
        Culprit::Group => "the kernel takes it alone, but not in its group: the members' PMUs \
                           differ, or the PMU has too few counters for all at once; take it out of \
                           the group, or let rec do that where it must ({a,b}:W)"
            .to_owned(),
        Culprit::Flag(flag) => format!("the kernel takes it without {flag}; leave that out"),
    };
    format!("{}: {why}", cannot_count(event, with))
}

fn cannot_count(event: &PlannedEvent, with: Circumstances<'_>) -> String {
    let whom = match with.target {
        _ if event.system_wide => "all processes on a CPU".to_owned(),
        Target::Command => "the command".to_owned(),
        Target::System => "all processes on a CPU".to_owned(),
        Target::Processes(pids) => format!("{} (-p)", listed("process", "processes", pids)),
        Target::Threads(tids) => format!("{} (-t)", listed("thread", "threads", tids)),
        Target::User(uid) => format!("the processes of user {uid} (-u)"),
    };
    format!("cannot count {} for {whom}", event.full_name())
}

fn no_permission(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> String {
    let (attr, sysctl) = (&event.attr, format!("kernel.perf_event_paranoid is {}", with.paranoid));
    if let Some(why) = needs_administrator(event) {
        return why.to_owned();
    }
    if (*with.target == Target::System || event.system_wide) && with.paranoid > 0 {
        return format!(
            "{sysctl}; run as root or with CAP_PERFMON, set kernel.perf_event_paranoid to 0 or \
             less, or record a command"
        );
    }
    for (asked, flag) in [
        (attr.flags.contains(AttrFlags::NAMESPACES), "--namespaces"),
        (attr.sample_type.contains(SampleType::PHYS_ADDR) && with.paranoid > 1, "--phys-data"),
    ] {
        if asked {
            return format!(
                "{flag} is for root and CAP_PERFMON ({sysctl}); run as root or with CAP_PERFMON, \
                 or leave it out"
            );
        }
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
            "{it} belongs to another user, or is protected from ptrace; be its user, root, or \
             have CAP_PERFMON"
        );
    }
    if errno == Errno::ACCESS {
        return format!(
            "this user has no right to ({sysctl}), or a security module (SELinux, lockdown) \
             forbids it; be root, or set kernel.perf_event_paranoid to 2 or less; the kernel's log \
             (dmesg) tells of security modules"
        );
    }
    format!(
        "the kernel does not allow it ({sysctl}); in a container, its seccomp profile may forbid \
         perf_event_open: allow that call, or add CAP_PERFMON; outside, be root or set \
         kernel.perf_event_paranoid to 2 or less"
    )
}

/// Returns why an event is for administrators only, whatever the sysctl allows.
fn needs_administrator(event: &PlannedEvent) -> Option<&'static str> {
    if event.probe.is_some() {
        return Some(
            "probes change code for all its users; run as root or with CAP_SYS_ADMIN (CAP_PERFMON \
             is enough for some kernels only)",
        );
    }
    let attr = &event.attr;
    let is_of_kernel = attr.kind == EventType::BREAKPOINT && breakpoint::is_of_kernel(attr.config1);
    is_of_kernel.then_some(
        "the address is the kernel's; run as root or with CAP_SYS_ADMIN, or watch an address of \
         the program",
    )
}

fn unsupported(event: &PlannedEvent, errno: Errno) -> String {
    let attr = &event.attr;
    let hardware = matches!(attr.kind, EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW);
    if event.probe.is_some() {
        return no_probe(event, errno);
    }
    if attr.flags.precise_ip() > 0 && !event.max_precise {
        return format!(
            "the machine does not support that precision; leave out the p ({})",
            event.name
        );
    }
    if attr.sample_type.contains(SampleType::BRANCH_STACK)
        && (errno == Errno::OPNOTSUPP || !hardware)
    {
        return "its samples cannot have branch stacks, which require hardware support and a \
                hardware event; leave out -b, -j and --call-graph lbr (--call-graph dwarf works on \
                all machines)"
            .to_owned();
    }
    if attr.flags.contains(AttrFlags::AUX_OUTPUT) {
        return "this machine cannot write its samples to an AUX area; leave out aux-output"
            .to_owned();
    }
    match (attr.kind, errno) {
        (EventType::BREAKPOINT, Errno::NODEV | Errno::NXIO) => {
            "this machine has no registers for breakpoints".to_owned()
        }
        (EventType::BREAKPOINT, _) => {
            "this machine has no breakpoints of that kind or length; try \
                                       a length of 1, 2, 4 or 8 bytes (mem:ADDR/LEN:rwx)"
                .to_owned()
        }
        (EventType::TRACEPOINT, Errno::NOENT) => {
            "the kernel has no tracepoint of that number any more: its module was unloaded, or \
             the probe removed; see rec list"
                .to_owned()
        }
        (EventType::SOFTWARE | EventType::TRACEPOINT, _) => {
            "this kernel does not have it; -e cpu-clock works everywhere".to_owned()
        }
        (_, Errno::NXIO) => {
            "its PMU is there, but the hardware behind it does not answer, as on a \
                             CPU that went offline; try other CPUs (-C), or -e cpu-clock, which \
                             works everywhere"
                .to_owned()
        }
        (_, Errno::NODEV) if !hardware => "its PMU does not count on that CPU, or lacks what the \
            event takes; try another event (rec list pmu), or -e cpu-clock, which works everywhere"
            .to_owned(),
        _ if hardware || errno != Errno::OPNOTSUPP => {
            "this machine has no such counter, like most virtual machines; -e cpu-clock works \
             everywhere"
                .to_owned()
        }
        _ => cannot_sample(event),
    }
}

/// Why a probe cannot be set: uprobes and kprobes are PMUs of the kernel, and places in files and
/// in the kernel.
fn no_probe(event: &PlannedEvent, errno: Errno) -> String {
    let pmu = event.pmu.as_deref().unwrap_or("uprobe");
    let target = event.probe.as_ref().and_then(|probe| probe.target.as_deref());
    let target = target.map(CStr::to_string_lossy).unwrap_or_default();
    match (pmu, errno) {
        ("uprobe", Errno::OPNOTSUPP) => format!(
            "code at that place cannot be probed: it is no instruction that the kernel can run \
             apart, or '{target}' lies on a file system without mappings; probe another place"
        ),
        ("uprobe", _) => format!(
            "the PMU uprobe is missing in this kernel (CONFIG_UPROBE_EVENTS), or '{target}' was \
             removed meanwhile; see rec list pmu"
        ),
        (_, Errno::OPNOTSUPP) => {
            "code at that place cannot be probed; probe another place or function".to_owned()
        }
        _ => format!(
            "the PMU {pmu} is missing in this kernel (CONFIG_KPROBE_EVENTS), or the kernel has no \
             function '{target}' that may be probed; see /proc/kallsyms"
        ),
    }
}

fn cannot_sample(event: &PlannedEvent) -> String {
    let name = event.full_name();
    format!(
        "its PMU has no interrupts, so it cannot be sampled; count it with -n, or in a group that \
         another event samples: -e '{{cpu-clock,{name}}}:S'"
    )
}

/// Returns the rule that explains EINVAL, if the event breaks one that is known.
pub(super) fn broken_rule(event: &PlannedEvent, with: Circumstances<'_>) -> Option<String> {
    let attr = &event.attr;
    let too_new = additions::too_new(attr, with.kernel);
    if !too_new.is_empty() {
        return Some(format!("this kernel is too old for {}; leave it out", too_new.join(", ")));
    }
    let of_leader = [(AttrFlags::PINNED, "D (pinned)"), (AttrFlags::EXCLUSIVE, "e (exclusive)")];
    if let (Some(_), Some((_, letter))) =
        (event.leader, of_leader.iter().find(|(flag, _)| attr.flags.contains(*flag)))
    {
        return Some(format!(
            "the modifier {letter} holds for a whole group, so that only its first event can have \
             it; write it behind the group ({{a,b}}:{})",
            letter.get(..1).unwrap_or_default()
        ));
    }
    if attr.kind == EventType::BREAKPOINT {
        return breakpoint::broken_rule(attr, with.arch);
    }
    event.probe.is_some().then(|| {
        "no probe can be set at that place: it must be the first byte of an instruction, in code \
         that is mapped from the file; check func= and offset="
            .to_owned()
    })
}

fn invalid(event: &PlannedEvent, with: Circumstances<'_>) -> String {
    if let Some(rule) = broken_rule(event, with) {
        return rule;
    }
    let flags = additions::asked(&event.attr);
    let asked =
        if flags.is_empty() { String::new() } else { format!(", without {}", flags.join(", ")) };
    format!(
        "the kernel refuses this combination of event, modifiers and flags; try it without \
         modifiers{asked}, without -g or -d, or with -e cpu-clock"
    )
}

fn too_big(event: &PlannedEvent) -> String {
    let flags = additions::asked(&event.attr);
    match flags.first() {
        Some(flag) => {
            format!("this kernel's struct perf_event_attr is too short for {flag}; leave it out")
        }
        None => {
            "this kernel's struct perf_event_attr is too short for the event; use a newer kernel"
                .to_owned()
        }
    }
}

/// ENOSYS has two reasons: no perf events at all, and no copies of user stacks.
fn not_built_in(event: &PlannedEvent) -> String {
    if event.attr.sample_type.contains(SampleType::STACK_USER) {
        return "this machine's kernel cannot copy user stacks; leave out --call-graph dwarf (-g \
                uses frame pointers)"
            .to_owned();
    }
    "this kernel has no perf events; use one built with CONFIG_PERF_EVENTS".to_owned()
}

fn busy(event: &PlannedEvent) -> String {
    if event.has_aux {
        return format!(
            "another recording or a virtual machine uses {}; end that, or try again when it has \
             ended",
            event.pmu.as_deref().unwrap_or("its PMU")
        );
    }
    "an exclusive event uses the counter; try again when that has ended, or use another event"
        .to_owned()
}

fn full(event: &PlannedEvent) -> String {
    if event.attr.kind == EventType::BREAKPOINT {
        return "all breakpoints of the CPU (usually 4) are in use, here or by a debugger; watch \
                fewer addresses"
            .to_owned();
    }
    "all counters of this kind are in use; try fewer events".to_owned()
}

/// A probe of tracefs serves either ftrace or perf, and the kernel says EINTR to the second.
fn interrupted(event: &PlannedEvent) -> String {
    match &event.tracepoint {
        Some(name) => format!(
            "the event is in use by ftrace, which perf events cannot share a probe with; disable \
             it there: echo 0 > /sys/kernel/tracing/events/{}/enable",
            name.replace(':', "/")
        ),
        None => "signals keep interrupting the kernel's work on it; try again".to_owned(),
    }
}
