//! Parsers of lists and patterns.

use std::collections::HashSet;
use std::convert::Infallible;

use regex_lite::Regex;

/// Error in the value of an option. The message names the option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub String);

/// Names in the order in which they are given.
pub(crate) type Names = Vec<String>;

/// Parses a comma-separated list of functions. A comma within brackets belongs to the name, as in
/// `f(int, char)`.
pub(crate) fn functions(list: &str) -> Result<HashSet<String>, Infallible> {
    let (mut all, mut from, mut depth) = (HashSet::new(), 0, 0_usize);
    for (at, c) in list.char_indices() {
        match c {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                all.extend(list.get(from..at).map(str::to_owned));
                from = at + 1;
            }
            _ => {}
        }
    }
    all.extend(list.get(from..).map(str::to_owned));
    // A bracket that stays open is an operator of C++.
    if depth > 0 { names(list) } else { Ok(all) }
}

/// Parses a comma-separated list of names.
pub(crate) fn names<L: FromIterator<String>>(list: &str) -> Result<L, Infallible> {
    Ok(list.split(',').map(str::to_owned).collect())
}

/// Parses a comma-separated list of numbers. Error messages name `flag`.
pub(crate) fn numbers(flag: &str, list: &str) -> Result<HashSet<i32>, UsageError> {
    let wrong = |n: &str| UsageError(format!("{flag} takes comma-separated numbers, not `{n}`"));
    list.split(',').map(|n| n.trim().parse().map_err(|_| wrong(n))).collect()
}

/// Parses a list of CPUs and ranges of CPUs, such as `0,2-4`.
pub(crate) fn cpus(list: &str) -> Result<HashSet<u32>, UsageError> {
    ranges("--cpu", "CPUs", list)
}

/// Parses a list of numbers of CPUs, or of threads that they run, and of ranges of these.
pub(crate) fn ranges(flag: &str, items: &str, list: &str) -> Result<HashSet<u32>, UsageError> {
    /// More than any machine has; a higher number is a typo.
    const MAX_CPUS: u32 = 1 << 16;
    let mut all = HashSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>())
        else {
            return Err(UsageError(format!(
                "{flag} takes {items} and ranges such as 0,2-4, not `{part}`"
            )));
        };
        if first > last || last >= MAX_CPUS {
            return Err(UsageError(format!("{flag}: `{part}` is not a range of {items}")));
        }
        all.extend(first..=last);
    }
    Ok(all)
}

/// Parses a pattern of function names, which may match anywhere in a name.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| format!("`{text}` is not a regular expression: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_brackets_belong_to_functions() {
        let of = |list: &str| {
            let mut all: Vec<String> = functions(list).unwrap().into_iter().collect();
            all.sort_unstable();
            all
        };
        assert_eq!(of("main,read"), ["main", "read"]);
        assert_eq!(of("f(int, char),ns::g<a, b>,h"), ["f(int, char)", "h", "ns::g<a, b>"]);
        // Operators are no brackets.
        assert_eq!(of("a->b,c"), ["a->b", "c"]);
        assert_eq!(of("std::operator<<,main"), ["main", "std::operator<<"]);
    }

    #[test]
    fn patterns_match_anywhere() {
        let pattern = pattern("^sys_|page_fault$").unwrap();
        let matches = |text: &str| pattern.is_match(text);
        assert!(matches("sys_read") && matches("do_page_fault") && !matches("do_sys_read"));
        assert!(super::pattern("(").is_err());
    }
}
