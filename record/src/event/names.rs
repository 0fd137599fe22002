//! Names of generalized events, with perf's spellings and aliases.

use recrep_format::abi::{EventType, HwEvent, SwEvent};

/// Generalized hardware events: `enum perf_hw_id`.
pub(super) const HARDWARE: &[(&str, u64)] = &[
    ("cycles", HwEvent::CPU_CYCLES.0),
    ("cpu-cycles", HwEvent::CPU_CYCLES.0),
    ("instructions", HwEvent::INSTRUCTIONS.0),
    ("cache-references", HwEvent::CACHE_REFERENCES.0),
    ("cache-misses", HwEvent::CACHE_MISSES.0),
    ("branches", HwEvent::BRANCH_INSTRUCTIONS.0),
    ("branch-instructions", HwEvent::BRANCH_INSTRUCTIONS.0),
    ("branch-misses", HwEvent::BRANCH_MISSES.0),
    ("bus-cycles", HwEvent::BUS_CYCLES.0),
    ("stalled-cycles-frontend", HwEvent::STALLED_CYCLES_FRONTEND.0),
    ("idle-cycles-frontend", HwEvent::STALLED_CYCLES_FRONTEND.0),
    ("stalled-cycles-backend", HwEvent::STALLED_CYCLES_BACKEND.0),
    ("idle-cycles-backend", HwEvent::STALLED_CYCLES_BACKEND.0),
    ("ref-cycles", HwEvent::REF_CPU_CYCLES.0),
];

/// Software events: `enum perf_sw_ids`.
pub(super) const SOFTWARE: &[(&str, u64)] = &[
    ("cpu-clock", SwEvent::CPU_CLOCK.0),
    ("task-clock", SwEvent::TASK_CLOCK.0),
    ("page-faults", SwEvent::PAGE_FAULTS.0),
    ("faults", SwEvent::PAGE_FAULTS.0),
    ("context-switches", SwEvent::CONTEXT_SWITCHES.0),
    ("cs", SwEvent::CONTEXT_SWITCHES.0),
    ("cpu-migrations", SwEvent::CPU_MIGRATIONS.0),
    ("migrations", SwEvent::CPU_MIGRATIONS.0),
    ("minor-faults", SwEvent::PAGE_FAULTS_MIN.0),
    ("major-faults", SwEvent::PAGE_FAULTS_MAJ.0),
    ("alignment-faults", SwEvent::ALIGNMENT_FAULTS.0),
    ("emulation-faults", SwEvent::EMULATION_FAULTS.0),
    ("dummy", SwEvent::DUMMY.0),
    ("bpf-output", SwEvent::BPF_OUTPUT.0),
    ("cgroup-switches", SwEvent::CGROUP_SWITCHES.0),
];

/// Caches of cache events; the index of a row is the number (`enum perf_hw_cache_id`).
const CACHES: &[&[&str]] = &[
    &["L1-dcache", "l1-d", "l1d", "L1-data"],
    &["L1-icache", "l1-i", "l1i", "L1-instruction"],
    &["LLC", "L2"],
    &["dTLB", "d-tlb", "Data-TLB"],
    &["iTLB", "i-tlb", "Instruction-TLB"],
    &["branch", "bpu", "btb", "bpc"],
    &["node"],
];

/// Operations of cache events (`enum perf_hw_cache_op_id`).
const OPS: &[&[&str]] = &[
    &["loads", "load", "read"],
    &["stores", "store", "write"],
    &["prefetches", "prefetch", "speculative-read", "speculative-load"],
];

/// Results of cache events (`enum perf_hw_cache_op_result_id`).
const RESULTS: &[&[&str]] = &[&["refs", "Reference", "ops", "access"], &["misses", "miss"]];

pub(super) fn find(name: &str) -> Option<(EventType, u64)> {
    let known =
        |table: &[(&str, u64)]| table.iter().find(|(n, _)| *n == name).map(|(_, config)| *config);
    known(SOFTWARE)
        .map(|config| (EventType::SOFTWARE, config))
        .or_else(|| known(TOOL).map(|config| (TOOL_KIND, config)))
        .or_else(|| known(HARDWARE).map(|config| (EventType::HARDWARE, config)))
        .or_else(|| cache(name).map(|config| (EventType::HW_CACHE, config)))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownEvent {
    /// All names; perf's own first.
    pub names: Vec<String>,
    /// `perf_event_attr.type`.
    pub kind: EventType,
    /// `perf_event_attr.config`.
    pub config: u64,
}

/// Returns all generalized events: hardware, software, cache.
pub(crate) fn known() -> Vec<KnownEvent> {
    let mut all: Vec<KnownEvent> = Vec::new();
    for (table, kind) in [(HARDWARE, EventType::HARDWARE), (SOFTWARE, EventType::SOFTWARE)] {
        for (name, config) in table {
            match all.iter_mut().find(|event| (event.kind, event.config) == (kind, *config)) {
                Some(event) => event.names.push((*name).to_owned()),
                None => {
                    all.push(KnownEvent { names: vec![(*name).to_owned()], kind, config: *config });
                }
            }
        }
    }
    all.extend(caches());
    all
}

/// Returns whether a cache has such operations: no stores go through instruction caches, and
/// instruction TLBs and the branch predictor have loads only.
const fn is_sensible(cache: u64, op: u64) -> bool {
    match cache {
        1 => op != 1,
        4 | 5 => op == 0,
        _ => true,
    }
}

/// Returns the reason why a name is of no event, though it is spelled like one of a cache.
pub(super) fn contradiction(name: &str) -> Option<String> {
    let config = cache(name)?;
    let (cache, op) = (config & 0xff, config >> 8 & 0xff);
    let first =
        |rows: &[&[&'static str]], row: u64| Some(*rows.get(usize::try_from(row).ok()?)?.first()?);
    let (cache_name, op_name) = (first(CACHES, cache)?, first(OPS, op)?);
    let sensible: Vec<&str> = (0..)
        .zip(OPS)
        .filter(|(op, _)| is_sensible(cache, *op))
        .filter_map(|(_, row)| row.first().copied())
        .collect();
    (!is_sensible(cache, op))
        .then(|| format!("{cache_name} has no {op_name}, only {}", sensible.join(" and ")))
}

fn caches() -> impl Iterator<Item = KnownEvent> {
    let all = numbered(CACHES).flat_map(move |cache| numbered(OPS).map(move |op| (cache, op)));
    let sensible = all.filter(|((cache, _), (op, _))| is_sensible(*cache, *op));
    sensible.flat_map(|((cache, cache_name), (op, op_name))| {
        let one = op_name.trim_end_matches('s').replace("prefetche", "prefetch");
        let names = [format!("{cache_name}-{op_name}"), format!("{cache_name}-{one}-misses")];
        (0u64..).zip(names).map(move |(result, name)| KnownEvent {
            names: vec![name],
            kind: EventType::HW_CACHE,
            config: cache | op << 8 | result << 16,
        })
    })
}

fn numbered(rows: &'static [&'static [&'static str]]) -> impl Iterator<Item = (u64, &'static str)> {
    (0u64..).zip(rows).filter_map(|(n, row)| Some((n, *row.first()?)))
}

/// Returns all names of events of the hardware, the kernel and the tool.
pub(super) fn all<'a>() -> impl Iterator<Item = &'a str> {
    SOFTWARE.iter().chain(HARDWARE).chain(TOOL).map(|(name, _)| -> &str { name })
}

/// Parses `rNNN`: a raw code for the CPU's PMU, in hexadecimal.
pub(super) fn raw(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('r')?;
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// Kind of the events that no kernel counts: their values are times that `rec stat` measures. The
/// kind and the numbers are perf's.
pub(crate) const TOOL_KIND: EventType = EventType(u32::MAX - 1);
pub(crate) const DURATION_TIME: u64 = 1;
pub(crate) const USER_TIME: u64 = 2;
pub(crate) const SYSTEM_TIME: u64 = 3;

/// Events of that kind, in nanoseconds.
const TOOL: &[(&str, u64)] =
    &[("duration_time", DURATION_TIME), ("user_time", USER_TIME), ("system_time", SYSTEM_TIME)];

/// Parses `cache[-op][-result]`: cache, then operation (default: loads) and result (default:
/// accesses) in any order, each at most once.
fn cache(name: &str) -> Option<u64> {
    let (cache, mut rest) = prefix(CACHES, name)?;
    let (mut op, mut result) = (None, None);
    while let Some(word) = rest.strip_prefix('-') {
        if let Some((number, after)) = prefix(OPS, word).filter(|_| op.is_none()) {
            (op, rest) = (Some(number), after);
        } else if let Some((number, after)) = prefix(RESULTS, word).filter(|_| result.is_none()) {
            (result, rest) = (Some(number), after);
        } else {
            return None;
        }
    }
    (rest.is_empty() && (op.is_some() || result.is_some()))
        .then(|| cache | op.unwrap_or(0) << 8 | result.unwrap_or(0) << 16)
}

/// Returns the row with the longest spelling that is a prefix of `text`, and the rest of the text.
fn prefix<'a>(rows: &[&[&str]], text: &'a str) -> Option<(u64, &'a str)> {
    let spellings =
        rows.iter().zip(0u64..).flat_map(|(row, number)| row.iter().map(move |s| (*s, number)));
    spellings
        .filter_map(|(spelling, number)| {
            let head = text.get(..spelling.len())?;
            let rest = text.get(spelling.len()..)?;
            let whole = rest.is_empty() || rest.starts_with('-');
            (whole && head.eq_ignore_ascii_case(spelling)).then_some((spelling.len(), number, rest))
        })
        .max_by_key(|(len, _, _)| *len)
        .map(|(_, number, rest)| (number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_names_in_all_their_forms() {
        assert_eq!(cache("L1-dcache-loads"), Some(0));
        assert_eq!(cache("l1d-read-miss"), Some(0x10000));
        assert_eq!(cache("LLC-misses"), Some(0x10002));
        assert_eq!(cache("iTLB-load-misses"), Some(0x10004));
        assert_eq!(cache("node-stores"), Some(0x106));
        assert_eq!(cache("L1-dcache"), None);
        assert_eq!(cache("L1-dcache-loads-loads"), None);
        assert_eq!(cache("L1-dcache-loadsx"), None);
    }

    #[test]
    fn caches_that_have_no_such_operation() {
        let why = |name| contradiction(name);
        assert_eq!(
            why("L1-icache-stores").as_deref(),
            Some("L1-icache has no stores, only loads and prefetches")
        );
        assert_eq!(
            why("l1i-write-misses").as_deref(),
            Some("L1-icache has no stores, only loads and prefetches")
        );
        assert_eq!(why("iTLB-prefetches").as_deref(), Some("iTLB has no prefetches, only loads"));
        assert_eq!(
            [why("iTLB-loads"), why("L1-icache-prefetches"), why("cycles")],
            [None, None, None]
        );
    }

    #[test]
    fn branch_events_are_hardware_not_cache() {
        assert_eq!(find("branch-misses"), Some((EventType::HARDWARE, HwEvent::BRANCH_MISSES.0)));
        assert_eq!(find("branch-load-misses"), Some((EventType::HW_CACHE, 0x10005)));
    }

    #[test]
    fn raw_events_are_hexadecimal() {
        assert_eq!(raw("r1a8"), Some(0x1a8));
        assert_eq!(raw("r0x1A8"), Some(0x1a8));
        assert_eq!(raw("rffffffffffffffff"), Some(u64::MAX));
        for wrong in ["rxyz", "r", "r10000000000000000", "a8"] {
            assert_eq!(raw(wrong), None, "{wrong}");
        }
    }
}
