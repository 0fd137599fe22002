//! Tracepoints by name or by pattern: `sched:sched_switch`, `syscalls:sys_enter_*`, `*:*`.

use recrep_console::glob;
use recrep_console::nearest::nearest;
use recrep_format::abi::EventType;

use super::error::Problem;
use super::spec::EventSpec;
use super::text::{Span, Wrong};
use crate::machine::sources::EventSources;
use crate::machine::tracepoint::{NOT_MOUNTED, Tracefs, Unreadable};

/// Returns the tracepoints that match a name or a pattern, sorted by name within a group.
pub(super) fn find(
    sources: &EventSources,
    system: Span<'_>,
    name: Span<'_>,
) -> Result<Vec<EventSpec>, Wrong> {
    let Some(tracefs) = sources.tracefs() else {
        return Err((system.at, Problem::Tracefs(NOT_MOUNTED.to_owned())));
    };
    let unreadable = |why| unreadable(tracefs, why, system, name);
    if !glob::is_pattern(system.text) && !glob::is_pattern(name.text) {
        let id = tracefs.id(system.text, name.text).map_err(unreadable)?;
        return Ok(vec![event(system.text, name.text, id)]);
    }
    let mut events = Vec::new();
    let systems = tracefs.systems().map_err(unreadable)?;
    for of in systems.iter().filter(|of| glob::matches(system.text, of)) {
        for found in tracefs
            .names(of)
            .map_err(unreadable)?
            .iter()
            .filter(|found| glob::matches(name.text, found))
        {
            // ftrace's own events have no number and cannot be counted.
            match tracefs.id(of, found) {
                Ok(id) => events.push(event(of, found, id)),
                Err(Unreadable::Absent) => {}
                Err(why @ Unreadable::Forbidden) => return Err(unreadable(why)),
            }
        }
    }
    if events.is_empty() { Err(unreadable(Unreadable::Absent)) } else { Ok(events) }
}

fn event(system: &str, name: &str, id: u64) -> EventSpec {
    let full = format!("{system}:{name}");
    EventSpec {
        tracepoint: Some(full.clone()),
        ..EventSpec::numbered(&full, EventType::TRACEPOINT, id)
    }
}

fn unreadable(tracefs: &Tracefs, why: Unreadable, system: Span<'_>, name: Span<'_>) -> Wrong {
    let full = format!("{}:{}", system.text, name.text);
    if why == Unreadable::Forbidden {
        let root = tracefs.root().display();
        let advice = format!(
            "cannot look up '{full}', as this user may not read {root}; be root, or allow it: \
             mount -o remount,mode=755 {root}"
        );
        return (system.at, Problem::Tracefs(advice));
    }
    match tracefs.names(system.text) {
        Ok(names) if !names.is_empty() => {
            let near = nearest(name.text, names.iter().map(String::as_str));
            let near = near.map(|near| format!("{}:{near}", system.text));
            (name.at, Problem::UnknownTracepoint { name: full, near })
        }
        _ => {
            let systems = tracefs.systems().unwrap_or_default();
            let near = nearest(system.text, systems.iter().map(String::as_str));
            let near = near.map(|near| format!("{near}:{}", name.text));
            (system.at, Problem::UnknownTracepoint { name: full, near })
        }
    }
}
