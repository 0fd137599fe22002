//! Event names made from the attr, for recordings without event names, as `perf report` makes them.

use super::Attr;
use crate::abi::{AttrFlags, CacheEvent, EventType};

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

impl Attr {
    /// Returns the name that perf gives the event where the recording names none: `cycles:u`,
    /// `raw 0x1a8`.
    pub fn event_name(&self) -> String {
        let base = match self.kind {
            EventType::HARDWARE => named(&HARDWARE, self.config, "unknown-hardware"),
            EventType::SOFTWARE => named(&SOFTWARE, self.config, "unknown-software"),
            EventType::HW_CACHE => cache_name(self.config),
            EventType::RAW => format!("raw 0x{:x}", self.config),
            EventType::TRACEPOINT => return "unknown tracepoint".into(),
            EventType::BREAKPOINT => breakpoint_name(self),
            EventType(other) => return format!("unknown attr type: {other}"),
        };
        base + &modifiers(self)
    }
}

fn named(names: &[&str], config: u64, unknown: &str) -> String {
    let name = usize::try_from(config).ok().and_then(|place| names.get(place));
    name.copied().unwrap_or(unknown).to_owned()
}

fn cache_name(config: u64) -> String {
    let event = CacheEvent::of(config);
    let ops =
        CACHE_OPS.get(usize::from(event.op.0)).and_then(|ops| ops.get(usize::from(event.result.0)));
    match (CACHES.get(usize::from(event.cache.0)), ops) {
        (Some(cache), Some(op)) if event.is_valid() => format!("{cache}-{op}"),
        _ => "invalid-cache".into(),
    }
}

/// Returns the name with the address and the watched accesses (`bp_type`: `HW_BREAKPOINT_R` 1, `W`
/// 2, `X` 4).
fn breakpoint_name(attr: &Attr) -> String {
    let watched =
        [(1, 'r'), (2, 'w'), (4, 'x')].into_iter().filter(|(bit, _)| attr.bp_type & bit != 0);
    format!("mem:0x{:x}:{}", attr.config1, watched.map(|(_, letter)| letter).collect::<String>())
}

fn modifiers(attr: &Attr) -> String {
    let modes = [
        (AttrFlags::EXCLUDE_KERNEL, 'k'),
        (AttrFlags::EXCLUDE_USER, 'u'),
        (AttrFlags::EXCLUDE_HV, 'h'),
    ];
    let excludes_some = modes.iter().any(|(flag, _)| attr.flags.contains(*flag));
    let mut letters = if excludes_some { included(attr, &modes) } else { String::new() };
    let precise = usize::from(attr.flags.precise_ip());
    letters.extend(std::iter::repeat_n('p', precise));
    // perf excludes guests by default, but not if there is a modifier; it prints `H` and `G` if
    // that is not so.
    let is_unusual =
        attr.flags.contains(AttrFlags::EXCLUDE_GUEST) == (excludes_some || precise > 0);
    if attr.flags.contains(AttrFlags::EXCLUDE_HOST) || is_unusual {
        let hosts = [(AttrFlags::EXCLUDE_HOST, 'H'), (AttrFlags::EXCLUDE_GUEST, 'G')];
        letters += &included(attr, &hosts);
    }
    if letters.is_empty() { letters } else { format!(":{letters}") }
}

/// Returns the letters of the modes that are not excluded.
fn included(attr: &Attr, modes: &[(AttrFlags, char)]) -> String {
    let included = modes.iter().filter(|(flag, _)| !attr.flags.contains(*flag));
    included.map(|(_, letter)| *letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_modifiers() {
        let name =
            |kind, config, flags| Attr { kind, config, flags, ..Attr::default() }.event_name();
        let (guest, user) =
            (AttrFlags::EXCLUDE_GUEST, AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV);
        assert_eq!(name(EventType::SOFTWARE, 2, guest), "page-faults");
        assert_eq!(name(EventType::SOFTWARE, 0, AttrFlags::empty()), "cpu-clock:HG");
        assert_eq!(name(EventType::HARDWARE, 0, user.with_precise_ip(2)), "cycles:upp");
        assert_eq!(name(EventType::HARDWARE, 0, guest.with_precise_ip(3)), "cycles:pppH");
        assert_eq!(name(EventType::HARDWARE, 0, AttrFlags::EXCLUDE_HOST), "cycles:G");
        assert_eq!(name(EventType::HARDWARE, 99, guest), "unknown-hardware");
        assert_eq!(name(EventType::RAW, 0x1a8, guest), "raw 0x1a8");
        assert_eq!(name(EventType::HW_CACHE, 0x1_0002, guest), "LLC-load-misses");
        assert_eq!(name(EventType::HW_CACHE, 0x1_0104, guest), "invalid-cache");
    }

    #[test]
    fn breakpoints_show_watched_accesses() {
        let watched =
            Attr { kind: EventType::BREAKPOINT, config1: 0x1000, bp_type: 3, ..Attr::default() };
        let name = Attr { flags: AttrFlags::EXCLUDE_GUEST, ..watched }.event_name();
        assert_eq!(name, "mem:0x1000:rw");
    }
}
