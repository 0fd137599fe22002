//! Lists on the command line.

use std::collections::HashSet;
use std::str::FromStr;

/// Words apart by commas.
#[must_use]
pub fn names(list: &str) -> HashSet<String> {
    list.split(',').map(str::to_owned).collect()
}

/// Numbers apart by commas; `flag` is named where they are none.
///
/// # Errors
/// What is no number.
pub fn numbers<N: FromStr + Eq + std::hash::Hash>(
    flag: &str,
    list: Option<&str>,
) -> Result<Option<HashSet<N>>, String> {
    let read = |n: &str| n.trim().parse().map_err(|_| format!("{flag} takes numbers apart by commas, not `{n}`"));
    list.map(|list| list.split(',').map(read).collect()).transpose()
}

/// A list of CPUs and ranges of them, such as `0,2-4`.
///
/// # Errors
/// What is no CPU.
pub fn cpus(list: &str) -> Result<HashSet<u32>, String> {
    /// More than any machine has; a longer range is a slip of the hand.
    const MOST: u32 = 1 << 16;
    let mut all = HashSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return Err(format!("--cpu takes CPUs and ranges such as 0,2-4, not `{part}`"));
        };
        if first > last || last >= MOST {
            return Err(format!("--cpu: `{part}` is not a range of CPUs"));
        }
        all.extend(first..=last);
    }
    Ok(all)
}
