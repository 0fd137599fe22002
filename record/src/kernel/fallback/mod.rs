//! Fallbacks for counters that the kernel refuses: a pure function from the refusal to the next
//! attr to try, or to advice.
//!
//! ```text
//!  (event, errno, circumstances) ──▶ Retry with less ── a note once it works
//!                                ├─▶ LeaveOut: an event of --off-cpu, whose switches are recorded anyway
//!                                └─▶ GiveUp: why, and what would allow it
//! ```
//!
//! One errno can have many reasons, so after each refusal the newest feature that may be the reason
//! is given up, one at a time, until the kernel accepts the attr or nothing is left to give up:
//!
//! | errno | given up, in this order |
//! |---|---|
//! | ENOENT ENODEV EOPNOTSUPP EINVAL | `precise_ip`, level by level, with the modifier `P` (maximum precision) |
//! | EOPNOTSUPP | guests, as some PMUs cannot count them |
//! | ENOENT ENODEV EOPNOTSUPP | with `rec stat`, the event: the table of counts says so |
//! | ENOENT ENODEV EOPNOTSUPP | cycles, in favor of cpu-clock |
//! | EACCES EPERM | the kernel (`:u`), where it was not named and `perf_event_paranoid` explains the refusal; samples of switches |
//! | EINVAL | what `features` lists, newest first: only what a kernel of this version may not know |
//!
//! What the user requested (by a flag or a modifier) is never given up: `advice` says which flag to
//! leave out.

mod additions;
mod advice;
mod breakpoint;
mod diagnosis;
mod step;

use recrep_format::abi::{AttrFlags, EventType, HwEvent, SwEvent};
use recrep_format::attr::Attr;
use rustix::io::Errno;

use crate::plan::{AddedBy, PlannedEvent};
use crate::tasks::Target;

pub(crate) use step::{Circumstances, Fallback, GivenUp};

/// Returns the next step after the kernel refused `event` with `errno`.
pub(crate) fn next(
    event: &PlannedEvent,
    errno: Errno,
    circumstances: Circumstances<'_>,
) -> Fallback {
    less_precise(event, errno)
        .or_else(|| no_guests(event, errno))
        .or_else(|| not_supported(event, errno, circumstances))
        .or_else(|| clock_for_cycles(event, errno))
        .or_else(|| switch_records_alone(event, errno, circumstances))
        .or_else(|| user_only(event, errno, circumstances))
        .or_else(|| older_kernel(event, errno, circumstances))
        .unwrap_or_else(|| Fallback::GiveUp(advice::of(event, errno, circumstances)))
}

/// Returns the error message of a refusal that gives no reason (EINVAL) and that nothing could be
/// given up for, once trials have shown the reason. `takes`: whether the kernel takes an attr, in
/// the event's group or alone.
pub(crate) fn diagnose(
    event: &PlannedEvent,
    circumstances: Circumstances<'_>,
    takes: impl Fn(&Attr, bool) -> bool,
) -> Option<String> {
    if advice::broken_rule(event, circumstances).is_some() {
        return None;
    }
    diagnosis::find(event, takes).map(|culprit| advice::of_culprit(event, culprit, circumstances))
}

fn retry(event: PlannedEvent, given_up: Option<GivenUp>) -> Option<Fallback> {
    Some(Fallback::Retry { event: Box::new(event), given_up })
}

/// Lowers the precision by one level, for the modifier `P`.
fn less_precise(event: &PlannedEvent, errno: Errno) -> Option<Fallback> {
    let level = event.attr.flags.precise_ip();
    let refused = matches!(
        errno,
        Errno::NOENT | Errno::OPNOTSUPP | Errno::INVAL | Errno::NODEV | Errno::NXIO
    );
    (event.max_precise && level > 0 && refused).then_some(())?;
    let mut event = event.clone();
    event.attr.flags = event.attr.flags.with_precise_ip(level - 1);
    retry(event, None)
}

/// Goes on without an event that the machine lacks, if events are only counted.
fn not_supported(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> Option<Fallback> {
    let generalized = matches!(event.attr.kind, EventType::HARDWARE | EventType::HW_CACHE);
    let missing = match errno {
        Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::NXIO | Errno::NOSYS => true,
        // Some PMUs say so of a generalized event that they have no number for.
        Errno::INVAL => generalized && event.leader.is_none(),
        _ => false,
    };
    (with.counting && missing).then_some(Fallback::NotSupported)
}

/// Replaces cycles by cpu-clock, for machines without a cycle counter (most virtual machines).
fn clock_for_cycles(event: &PlannedEvent, errno: Errno) -> Option<Fallback> {
    let attr = &event.attr;
    let cycles = attr.kind == EventType::HARDWARE && attr.config == HwEvent::CPU_CYCLES.0;
    (cycles && matches!(errno, Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV | Errno::NXIO))
        .then_some(())?;
    let mut event = event.clone();
    event.attr.kind = EventType::SOFTWARE;
    event.attr.config = SwEvent::CPU_CLOCK.0;
    event.attr.flags = event.attr.flags.with_precise_ip(0);
    event.name = "cpu-clock".to_owned();
    let guests_named = event.guests_named;
    event.modifiers.retain(|c| !matches!(c, 'p' | 'P') && (c != 'H' || guests_named));
    event.max_precise = false;
    retry(event, Some(GivenUp::Cycles))
}

/// Leaves out the samples of switches for users who may not sample the kernel: SWITCH records report
/// the switches, too.
fn switch_records_alone(
    event: &PlannedEvent,
    errno: Errno,
    with: Circumstances<'_>,
) -> Option<Fallback> {
    (event.added == Some(AddedBy::OffCpu) && is_kernel_kept(event, errno, with)).then(|| {
        Fallback::LeaveOut(format!(
            "recording context switches without callchains: kernel.perf_event_paranoid is {}, \
             which keeps the kernel from users without CAP_PERFMON; times off the CPU are exact, \
             with the callchain of the thread's nearest sample",
            with.paranoid
        ))
    })
}

/// Returns whether the refusal is explained by the user's not being allowed to look into the
/// kernel.
fn is_kernel_kept(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM)
        && with.paranoid > 1
        && *with.target != Target::System
        && !event.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)
}

/// Excludes the kernel, for users who may sample only user space.
fn user_only(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> Option<Fallback> {
    let watches_kernel =
        event.attr.kind == EventType::BREAKPOINT && breakpoint::is_of_kernel(event.attr.config1);
    let possible = is_kernel_kept(event, errno, with)
        && !event.system_wide
        && !watches_kernel
        && !event.attr.flags.contains(AttrFlags::EXCLUDE_USER);
    possible.then_some(())?;
    let mut event = event.clone();
    event.attr.flags |= AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
    event.modifiers = format!("u{}", event.modifiers.replace(['u', 'k', 'h'], ""));
    retry(event, Some(GivenUp::Kernel))
}

/// Excludes guests, for PMUs that count only the host and require that flag.
fn no_guests(event: &PlannedEvent, errno: Errno) -> Option<Fallback> {
    let counts = !event.attr.flags.contains(AttrFlags::EXCLUDE_GUEST) && !event.guests_named;
    // Features such as branch stacks are the more likely reason for other events, and those are not
    // given up.
    let hardware = !matches!(
        event.attr.kind,
        EventType::SOFTWARE | EventType::TRACEPOINT | EventType::BREAKPOINT
    );
    (errno == Errno::OPNOTSUPP && counts && hardware).then_some(())?;
    let mut event = event.clone();
    event.attr.flags |= AttrFlags::EXCLUDE_GUEST;
    event.modifiers.push('H');
    retry(event, Some(GivenUp::Guests))
}

/// Gives up the newest feature that an older kernel may lack.
fn older_kernel(event: &PlannedEvent, errno: Errno, with: Circumstances<'_>) -> Option<Fallback> {
    (errno == Errno::INVAL).then_some(())?;
    let mut event = event.clone();
    let means = additions::without_newest(&mut event, with.kernel)?;
    retry(event, means.map(GivenUp::Addition))
}

#[cfg(test)]
mod tests;
