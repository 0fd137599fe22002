//! The name of an event whose file does not say it, from its attr: as `perf report` makes it up.

use recrep_format::abi::{AttrFlags, EventType};
use recrep_format::attr::Attr;

const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
const CACHE_OPS: [[&str; 2]; 3] =
    [["loads", "load-misses"], ["stores", "store-misses"], ["prefetches", "prefetch-misses"]];

/// The event's name with its modifiers.
#[must_use]
pub fn event_name(attr: &Attr) -> String {
    let by = |names: &[&str], what: &str| match usize::try_from(attr.config).ok().and_then(|i| names.get(i)) {
        Some(name) => (*name).to_owned(),
        None => format!("unknown-{what}"),
    };
    let base = match attr.kind {
        EventType::HARDWARE => by(&HARDWARE, "hardware"),
        EventType::SOFTWARE => by(&SOFTWARE, "software"),
        EventType::HW_CACHE => cache_name(attr.config),
        EventType::RAW => format!("raw 0x{:x}", attr.config),
        EventType::TRACEPOINT => return "unknown tracepoint".into(),
        EventType::BREAKPOINT => format!("mem:0x{:x}", attr.config1),
        EventType(other) => return format!("unknown attr type: {other}"),
    };
    base + &modifiers(attr)
}

fn cache_name(config: u64) -> String {
    let part = |shift: u32| usize::try_from(config >> shift & 0xff).unwrap_or(usize::MAX);
    let op = CACHE_OPS.get(part(8)).and_then(|ops| ops.get(part(16)));
    match (CACHES.get(part(0)), op) {
        (Some(cache), Some(op)) => format!("{cache}-{op}"),
        _ => "invalid-cache".into(),
    }
}

fn modifiers(attr: &Attr) -> String {
    let excludes = |flag| attr.flags.contains(flag);
    let mut letters = String::new();
    let levels = [(AttrFlags::EXCLUDE_KERNEL, 'k'), (AttrFlags::EXCLUDE_USER, 'u'), (AttrFlags::EXCLUDE_HV, 'h')];
    if levels.iter().any(|(flag, _)| excludes(*flag)) {
        letters.extend(levels.iter().filter(|(flag, _)| !excludes(*flag)).map(|(_, letter)| letter));
    }
    letters.extend(std::iter::repeat_n('p', usize::from(attr.flags.precise_ip())));
    if letters.is_empty() { letters } else { format!(":{letters}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_modifiers() {
        let attr = Attr { kind: EventType::SOFTWARE, config: 2, ..Attr::default() };
        assert_eq!(event_name(&attr), "page-faults");
        let user = AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
        let attr = Attr { kind: EventType::HARDWARE, flags: user.with_precise_ip(2), ..Attr::default() };
        assert_eq!(event_name(&attr), "cycles:upp");
        let attr = Attr { kind: EventType::HW_CACHE, config: 0x1_0002, ..Attr::default() };
        assert_eq!(event_name(&attr), "LLC-load-misses");
        let attr = Attr { kind: EventType::HARDWARE, config: 99, ..Attr::default() };
        assert_eq!(event_name(&attr), "unknown-hardware");
    }
}
