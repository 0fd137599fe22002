//! The plan of counting without samples (`rec stat`): attrs of counters that are read, and have no
//! rings.

use recrep_format::abi::{AttrFlags, EventType, ReadFormat, SampleType, SwEvent};
use recrep_format::attr::Attr;

use super::event::PlannedEvent;
use super::group::Group;
use super::{Plan, attr, inheritance, own_cpus};
use crate::event::spec::Terms;
use crate::event::{EventSpec, TOOL_KIND};
use crate::messages::error::{Error, Result};
use crate::plan::config::Only;

/// Settings of the counters.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    /// CPUs to count on.
    pub cpus: Vec<u32>,
    /// Counters count whole CPUs, not threads.
    pub system: bool,
    /// Threads have a counter for each CPU, not one for all.
    pub by_cpu: bool,
    /// Future threads and children are counted too.
    pub inherits: bool,
    /// The command's exec starts the counters.
    pub starts_on_exec: bool,
    /// Restriction to the kernel or user space.
    pub only: Option<Only>,
}

/// Returns the plan for these events; `cgroups` has that of each.
pub(crate) fn plan(
    specs: &[EventSpec],
    cgroups: &[Option<String>],
    counting: Counting,
) -> Result<Plan> {
    let mut events = Vec::with_capacity(specs.len());
    for (index, spec) in specs.iter().enumerate() {
        refuse_sampling(spec)?;
        let group = Group::of(specs, index);
        let mut event = PlannedEvent::from_spec(spec, counter(spec));
        event.cpus = own_cpus(spec, &counting.cpus)?;
        event.cgroup = cgroups.get(index).cloned().flatten();
        let by_task = !counting.system && !event.system_wide && event.cgroup.is_none();
        let attr = &mut event.attr;
        attr.sample_type = SampleType::IDENTIFIER;
        attr.read_format =
            ReadFormat::ID | ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
        attr.read_format.set(ReadFormat::GROUP, group.members > 1);
        let inherits = spec.terms.inherit.unwrap_or(counting.inherits);
        attr.flags.set(AttrFlags::INHERIT, inherits && by_task);
        attr.flags.set(AttrFlags::DISABLED, group.leads);
        let on_exec = group.leads && by_task && counting.starts_on_exec;
        attr.flags.set(AttrFlags::ENABLE_ON_EXEC, on_exec);
        attr::only(attr, counting.only);
        inheritance::restrict(&mut event, counting.system)?;
        events.push(event);
    }
    Ok(Plan {
        per_thread: !counting.system && !counting.by_cpu,
        events,
        cpus: counting.cpus,
        ring_pages: 0,
        aux_pages: 0,
        snapshot_size: 0,
        notes: Vec::new(),
    })
}

/// Returns the attr of an event's counter; a dummy where the kernel has none.
fn counter(spec: &EventSpec) -> Attr {
    if spec.kind != TOOL_KIND {
        return attr::counted(spec);
    }
    let dummy = EventSpec::numbered(&spec.name, EventType::SOFTWARE, SwEvent::DUMMY.0);
    let attr = attr::counted(&dummy);
    // User space only, so that any user may open it.
    Attr { flags: attr.flags | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV, ..attr }
}

/// Refuses terms and modifiers that are about samples.
fn refuse_sampling(spec: &EventSpec) -> Result<()> {
    let terms = Terms { inherit: spec.terms.inherit, ..Terms::default() };
    if spec.terms != terms || spec.modifiers.sample_read {
        return Err(Error::Usage(format!(
            "'{}': rec stat takes no samples; leave out terms such as period=, freq=, call-graph=, \
             and the modifier S",
            spec.name
        )));
    }
    if spec.pmu.as_ref().is_some_and(|pmu| pmu.has_aux) {
        return Err(Error::Usage(format!(
            "'{}': its PMU traces, and counts nothing; record it: rec -e {}",
            spec.name, spec.name
        )));
    }
    Ok(())
}
