//! `--off-cpu`: samples where threads leave the CPU, with callchains, besides the SWITCH records
//! that show when they run again.

use std::ops::Range;

use recrep_format::abi::{AttrFlags, BranchSampleType, EventType, SwEvent};

use super::event::{AddedBy, PlannedEvent};
use super::notes::Notes;
use crate::event::EventSpec;
use crate::event::sampling::{Callchain, Rate};
use crate::messages::error::{Error, Result};
use crate::plan::config::{Config, Only};

/// Makes every context switch a sample: of the user's own event if there is one, else of an event
/// that it adds.
pub(super) fn sample_switches(specs: &mut Vec<EventSpec>, config: &Config, notes: &mut Notes) {
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
    sample_all(&mut spec, config);
    spec
}

/// Makes each occurrence of an added event a sample, with a callchain.
pub(super) fn sample_all(spec: &mut EventSpec, config: &Config) {
    spec.terms.rate = Some(Rate::Period(1));
    // The kernel takes branch records when a counter of the PMU overflows, not when it switches.
    spec.terms.branches = Some(BranchSampleType::empty());
    if config.sample.callchain == Some(Callchain::Lbr) {
        spec.terms.callchain = Some(Some(Callchain::Fp));
        spec.terms.max_stack = config.sample.max_stack;
    }
}

/// Counts the event that was added (one of `added`) in the cgroup of the others (`-G`), and
/// lets it carry the SWITCH records there: the tracking event would report every thread. Returns
/// whether it carries them.
pub(super) fn share_cgroup(
    events: &mut [PlannedEvent],
    added: Range<usize>,
    config: &Config,
) -> Result<bool> {
    for added in events.get_mut(added).unwrap_or_default() {
        added.added = Some(AddedBy::OffCpu);
        let mut cgroups = config.cgroups.iter();
        added.cgroup = cgroups.next().cloned().flatten();
        if cgroups.any(|other| *other != added.cgroup) {
            return Err(Error::Usage(
                "--off-cpu: all events must be counted in the same cgroup; name one with -G after \
                 the last -e, or record each cgroup on its own"
                    .to_owned(),
            ));
        }
    }
    for event in events.iter_mut().filter(|_| config.off_cpu) {
        if event.cgroup.is_some() && event.is_context_switches() {
            event.attr.flags |= AttrFlags::CONTEXT_SWITCH;
            return Ok(true);
        }
    }
    Ok(false)
}
