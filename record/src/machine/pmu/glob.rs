//! Patterns as in the shell: `*`, `?`, `[a-z]`, `[!a-z]`.

/// Returns whether the text has special characters of patterns.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns whether the pattern matches the whole `text`.
///
/// On a mismatch, the last star takes one more character. Earlier stars never need to, so the time
/// is at most the product of the lengths.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.as_bytes(), text.as_bytes());
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            retry = Some((rest, text));
            pattern = rest;
            continue;
        }
        let step = match (pattern, text) {
            ([], []) => return true,
            (_, [byte, after @ ..]) => one(pattern, *byte).map(|rest| (rest, after)),
            _ => None,
        };
        match (step, retry) {
            (Some((rest, after)), _) => (pattern, text) = (rest, after),
            (None, Some((rest, [_, after @ ..]))) => {
                retry = Some((rest, after));
                (pattern, text) = (rest, after);
            }
            (None, _) => return false,
        }
    }
}

/// Returns the rest of the pattern, if its first element matches this byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', class @ ..] => {
            let (negated, class) = match class {
                [b'!' | b'^', class @ ..] => (true, class),
                class => (false, class),
            };
            // A closing bracket at the beginning belongs to the class.
            let end = class.iter().skip(1).position(|b| *b == b']')? + 1;
            let (class, rest) = (class.get(..end)?, class.get(end + 1..)?);
            (in_class(class, byte) != negated).then_some(rest)
        }
        [first, rest @ ..] => (*first == byte).then_some(rest),
        [] => None,
    }
}

fn in_class(mut class: &[u8], byte: u8) -> bool {
    loop {
        class = match class {
            [from, b'-', to, ..] if (*from..=*to).contains(&byte) => return true,
            [_, b'-', _, rest @ ..] => rest,
            [single, rest @ ..] if *single != byte => rest,
            [] => return false,
            _ => return true,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, matched) in [
            ("sched_*", "sched_switch", true),
            ("sched_*", "sched", false),
            ("*", "", true),
            ("sys_enter_open*", "sys_enter_openat2", true),
            ("*open*at", "sys_open_openat", true),
            ("*open*at", "sys_open_openat2", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("cpu[0-9]", "cpu7", true),
            ("cpu[!0-9]", "cpu7", false),
            ("cpu[]x]", "cpu]", true),
            ("cpu[x", "cpu[x", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
        ] {
            assert_eq!(matches(pattern, text), matched, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        assert!(!matches(&"*a".repeat(40), &format!("{}b", "a".repeat(200))));
    }
}
