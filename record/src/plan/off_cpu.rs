//! `--off-cpu`: samples where threads leave the CPU, with callchains, beside the SWITCH records
//! that tell when they run again.

use recrep_format::abi::{AttrFlags, BranchSampleType, EventType, SwEvent};

use super::event::PlannedEvent;
use super::notes::Notes;
use crate::event::EventSpec;
use crate::event::sampling::{Callchain, Rate};
use crate::messages::error::{Error, Result};
use crate::plan::config::{Config, Only};

/// Maximum bytes of the stack to copy at a switch: there may be a million of them in a second.
const MOST_COPIED: u32 = 4 << 10;

/// Has every context switch sampled: by the user's own event where there is one, else by one that
/// is added.
pub(super) fn add(specs: &mut Vec<EventSpec>, config: &Config, notes: &mut Notes) {
    if !config.off_cpu {
        return;
    }
    if let Some(own) = specs.iter_mut().find(|spec| samples_switches(spec)) {
        own.terms.rate.get_or_insert(Rate::Period(1));
    } else if config.only == Some(Only::User) {
        notes.add(
            "context switches happen in the kernel, so there are no samples of them (--all-user): \
             times off the CPU are exact, with the callchain of the thread's nearest sample; leave \
             --all-user out for that of the switch"
                .to_owned(),
        );
    } else {
        specs.push(spec(config));
    }
}

/// Returns whether an event samples context switches, which happen in the kernel.
fn samples_switches(spec: &EventSpec) -> bool {
    spec.is_software(SwEvent::CONTEXT_SWITCHES.0)
        && !spec.modifiers.flags().contains(AttrFlags::EXCLUDE_KERNEL)
}

fn spec(config: &Config) -> EventSpec {
    let mut spec =
        EventSpec::numbered("context-switches", EventType::SOFTWARE, SwEvent::CONTEXT_SWITCHES.0);
    spec.terms.rate = Some(Rate::Period(1));
    // The kernel takes branch records when a counter of the PMU overflows, not when it switches.
    spec.terms.branches = Some(BranchSampleType::empty());
    let own = match config.sample.callchain {
        Some(Callchain::Lbr | Callchain::Best) => Callchain::Fp,
        Some(Callchain::Unwind { stack_size }) => {
            let stack_size = stack_size.unwrap_or(MOST_COPIED).min(MOST_COPIED);
            Callchain::Unwind { stack_size: Some(stack_size) }
        }
        _ => return spec,
    };
    spec.terms.callchain = Some(Some(own));
    spec.terms.max_stack = config.sample.max_stack;
    spec
}

/// Counts an event that was added in the cgroup of the others (`-G`).
pub(super) fn place(event: &mut PlannedEvent, config: &Config) -> Result<()> {
    event.off_cpu = true;
    let mut cgroups = config.cgroups.iter();
    event.cgroup = cgroups.next().cloned().flatten();
    if cgroups.any(|other| *other != event.cgroup) {
        return Err(Error::Usage(
            "--off-cpu: all events must be counted in the same cgroup; name one with -G after the \
             last -e, or record each cgroup on its own"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Has the event of a cgroup carry the SWITCH records, as the one that tracks would tell of all
/// threads. Returns whether it does.
pub(super) fn carry_switches(events: &mut [PlannedEvent], config: &Config) -> bool {
    let in_cgroup =
        |event: &&mut PlannedEvent| event.cgroup.is_some() && event.is_context_switches();
    let Some(event) = events.iter_mut().find(in_cgroup).filter(|_| config.off_cpu) else {
        return false;
    };
    event.attr.flags |= AttrFlags::CONTEXT_SWITCH;
    true
}
