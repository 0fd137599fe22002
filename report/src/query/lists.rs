//! Parsers of comma-separated lists.

use std::collections::HashSet;
use std::str::FromStr;

/// Parses a comma-separated list of names.
pub(crate) fn names(list: &str) -> HashSet<String> {
    list.split(',').map(str::to_owned).collect()
}

/// Parses a comma-separated list of numbers. Error messages name `flag`.
pub(crate) fn numbers<N: FromStr + Eq + std::hash::Hash>(
    flag: &str,
    list: Option<&str>,
) -> Result<Option<HashSet<N>>, String> {
    let read = |n: &str| n.trim().parse().map_err(|_| format!("{flag} takes comma-separated numbers, not `{n}`"));
    list.map(|list| list.split(',').map(read).collect()).transpose()
}

/// Parses a list of CPUs and ranges of CPUs, such as `0,2-4`.
pub(crate) fn cpus(list: &str) -> Result<HashSet<u32>, String> {
    /// More than any machine has; a higher number is a typo.
    const MAX_CPUS: u32 = 1 << 16;
    let mut all = HashSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return Err(format!("--cpu takes CPUs and ranges such as 0,2-4, not `{part}`"));
        };
        if first > last || last >= MAX_CPUS {
            return Err(format!("--cpu: `{part}` is not a range of CPUs"));
        }
        all.extend(first..=last);
    }
    Ok(all)
}
