//! Events that threads and children of the target must not inherit as they are: their forks would
//! fail.
//!
//! The kernel opens the event anew in the task that forks, from the attr that rec passed. With most
//! events that is no more than a copy. But
//!
//! - the attr of a probe points to a text in rec's memory (`uprobe_path`, `kprobe_func`), and its
//!   PMU is for administrators only: `fork` fails with EFAULT, or EACCES. As a tracepoint, the same
//!   probe has neither;
//! - a breakpoint on an address of the kernel is for administrators only, too: once the target gave
//!   its rights up, its `fork` fails with EPERM.

use recrep_format::abi::{AttrFlags, EventType};

use super::event::PlannedEvent;
use crate::messages::error::{Error, Result};

/// Takes inheritance away from the attr of a probe, and notes whether a tracepoint must have it;
/// `system` if counters count whole CPUs.
pub(super) fn restrict(event: &mut PlannedEvent, system: bool) -> Result<()> {
    // Per-CPU counters are never inherited.
    let by_task = !system && event.cgroup.is_none() && !event.system_wide;
    let inherits = event.attr.flags.contains(AttrFlags::INHERIT) && by_task;
    if let Some(probe) = &mut event.probe {
        event.attr.flags -= AttrFlags::INHERIT;
        probe.inherits = inherits;
    }
    if inherits && event.attr.kind == EventType::BREAKPOINT && is_in_kernel(event.attr.config1) {
        return Err(Error::Usage(format!(
            "'{}': a breakpoint in the kernel cannot follow threads and children safely, whose \
             fork would fail once they gave root's rights up; count all processes (-a), or the \
             first thread alone (-i)",
            event.name
        )));
    }
    Ok(())
}

/// Returns whether an address is in the upper half, which belongs to the kernel.
fn is_in_kernel(address: u64) -> bool {
    address >> 63 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventSpec, Probe};
    use crate::machine::Machine;
    use crate::plan::{Plan, plan};

    /// Plans a probe, with more arguments.
    fn probed(line: &str) -> Plan {
        let args = ["rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
        let mut config = crate::cli::parse(args).unwrap();
        let mut spec = EventSpec::numbered("uprobe/path=x,offset=1/", EventType(9), 0);
        spec.probe = Some(Probe { target: Some(c"/bin/x".to_owned()), ..Probe::default() });
        config.events = vec![spec];
        config.cgroups.resize(1, None);
        plan(&config, &Machine { max_rate: 100_000, ..Machine::default() }).unwrap()
    }

    #[test]
    fn the_pmu_of_a_probe_is_never_inherited() {
        for (line, inherits) in [
            ("x", true),
            ("-p 1", true),
            ("-u 1", true),
            ("-t 1 --inherit", true),
            ("-t 1", false),
            ("-i x", false),
            ("-p 1 -i", false),
            ("--per-thread x", false),
            ("-a", false),
        ] {
            let plan = probed(line);
            let event = &plan.events[0];
            assert!(!event.attr.flags.contains(AttrFlags::INHERIT), "{line}");
            assert_eq!(
                (event.inherits(), event.probe.as_ref().unwrap().inherits),
                (inherits, inherits),
                "{line}"
            );
        }
    }

    #[test]
    fn a_probe_that_a_tracepoint_lets_inherit_tracks_by_itself() {
        assert_eq!(probed("-p 1").events.len(), 1);
        assert_eq!(probed("x").events.len(), 1);
    }

    #[test]
    fn breakpoints_in_the_kernel_are_not_inherited() {
        let planned = |line: &str| {
            let args = ["rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
            plan(
                &crate::cli::parse(args).unwrap(),
                &Machine { max_rate: 100_000, ..Machine::default() },
            )
        };
        for line in ["x", "-p 1", "-u 1", "-t 1 --inherit"] {
            let error =
                planned(&format!("-e mem:0xffffffff81000000:w {line}")).unwrap_err().to_string();
            assert!(error.contains("(-a)") && error.contains("(-i)"), "{line}: {error}");
            assert!(planned(&format!("-e mem:0x404080:w {line}")).is_ok(), "{line}");
        }
        for line in ["-a", "-C 0", "-t 1", "-i -p 1", "--per-thread -p 1"] {
            assert!(planned(&format!("-e mem:0xffffffff81000000:w {line}")).is_ok(), "{line}");
        }
        assert!(planned("-a -e mem:0xffffffff81000000:w -G some").is_ok());
    }
}
