//! The names of events, perf's own spellings and aliases.

use recrep_format::abi::{EventType, hw, sw};

/// Generalized hardware events: `enum perf_hw_id`.
const HARDWARE: &[(&str, u64)] = &[
    ("cycles", hw::CPU_CYCLES),
    ("cpu-cycles", hw::CPU_CYCLES),
    ("instructions", hw::INSTRUCTIONS),
    ("cache-references", hw::CACHE_REFERENCES),
    ("cache-misses", hw::CACHE_MISSES),
    ("branches", hw::BRANCH_INSTRUCTIONS),
    ("branch-instructions", hw::BRANCH_INSTRUCTIONS),
    ("branch-misses", hw::BRANCH_MISSES),
    ("bus-cycles", hw::BUS_CYCLES),
    ("stalled-cycles-frontend", hw::STALLED_CYCLES_FRONTEND),
    ("idle-cycles-frontend", hw::STALLED_CYCLES_FRONTEND),
    ("stalled-cycles-backend", hw::STALLED_CYCLES_BACKEND),
    ("idle-cycles-backend", hw::STALLED_CYCLES_BACKEND),
    ("ref-cycles", hw::REF_CPU_CYCLES),
];

/// The kernel's own events: `enum perf_sw_ids`.
const SOFTWARE: &[(&str, u64)] = &[
    ("cpu-clock", sw::CPU_CLOCK),
    ("task-clock", sw::TASK_CLOCK),
    ("page-faults", sw::PAGE_FAULTS),
    ("faults", sw::PAGE_FAULTS),
    ("context-switches", sw::CONTEXT_SWITCHES),
    ("cs", sw::CONTEXT_SWITCHES),
    ("cpu-migrations", sw::CPU_MIGRATIONS),
    ("migrations", sw::CPU_MIGRATIONS),
    ("minor-faults", sw::PAGE_FAULTS_MIN),
    ("major-faults", sw::PAGE_FAULTS_MAJ),
    ("alignment-faults", sw::ALIGNMENT_FAULTS),
    ("emulation-faults", sw::EMULATION_FAULTS),
    ("dummy", sw::DUMMY),
    ("bpf-output", sw::BPF_OUTPUT),
    ("cgroup-switches", sw::CGROUP_SWITCHES),
];

/// The caches of cache events; the position of a row is the number (`enum perf_hw_cache_id`).
const CACHES: &[&[&str]] = &[
    &["L1-dcache", "l1-d", "l1d", "L1-data"],
    &["L1-icache", "l1-i", "l1i", "L1-instruction"],
    &["LLC", "L2"],
    &["dTLB", "d-tlb", "Data-TLB"],
    &["iTLB", "i-tlb", "Instruction-TLB"],
    &["branch", "bpu", "btb", "bpc"],
    &["node"],
];

/// The operations of cache events (`enum perf_hw_cache_op_id`).
const OPS: &[&[&str]] = &[
    &["loads", "load", "read"],
    &["stores", "store", "write"],
    &["prefetches", "prefetch", "speculative-read", "speculative-load"],
];

/// The results of cache events (`enum perf_hw_cache_op_result_id`).
const RESULTS: &[&[&str]] = &[&["refs", "Reference", "ops", "access"], &["misses", "miss"]];

/// The type and config of a named event.
pub(super) fn find(name: &str) -> Option<(EventType, u64)> {
    let known = |table: &[(&str, u64)]| table.iter().find(|(n, _)| *n == name).map(|(_, config)| *config);
    known(SOFTWARE)
        .map(|config| (EventType::SOFTWARE, config))
        .or_else(|| known(HARDWARE).map(|config| (EventType::HARDWARE, config)))
        .or_else(|| cache(name).map(|config| (EventType::HW_CACHE, config)))
}

/// The known name that is nearest to a mistyped one, if any is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let names = SOFTWARE.iter().chain(HARDWARE).map(|(n, _)| *n);
    names
        .map(|known| (strsim::normalized_damerau_levenshtein(known, name), known))
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

/// `cache[-op][-result]`: cache, then operation (loads) and result (accesses) in any order, each at most once.
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

/// The row with the longest spelling that `text` starts with, and what follows it.
fn prefix<'a>(rows: &[&[&str]], text: &'a str) -> Option<(u64, &'a str)> {
    let spellings = rows.iter().zip(0u64..).flat_map(|(row, number)| row.iter().map(move |s| (*s, number)));
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
    fn branch_events_are_hardware_not_cache() {
        assert_eq!(find("branch-misses"), Some((EventType::HARDWARE, hw::BRANCH_MISSES)));
        assert_eq!(find("branch-load-misses"), Some((EventType::HW_CACHE, 0x10005)));
    }

    #[test]
    fn near_names() {
        assert_eq!(nearest("page-fault"), Some("page-faults"));
        assert_eq!(nearest("instuctions"), Some("instructions"));
        assert_eq!(nearest("sched"), None);
    }
}
