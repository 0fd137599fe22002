//! Patterns of names: `*` stands for any text, `?` for one character.

/// A pattern of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Char(char),
    /// One character.
    One,
    /// One of these characters, or if `is_negated` one of all others.
    Class {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
    /// Any number of characters.
    Many,
}

impl Part {
    fn takes(&self, next: char) -> bool {
        match self {
            Self::Char(char) => *char == next,
            Self::One | Self::Many => true,
            Self::Class { ranges, is_negated } => {
                ranges.iter().any(|(from, to)| (from..=to).contains(&&next)) != *is_negated
            }
        }
    }
}

impl Glob {
    /// Creates a pattern of functions and files, whose names may have brackets: `\*` is a star.
    /// Every text is a pattern.
    pub fn escaped(text: &str) -> Self {
        let (mut parts, mut rest) = (Vec::new(), text.chars().peekable());
        while let Some(next) = rest.next() {
            parts.push(match next {
                '*' => Part::Many,
                '?' => Part::One,
                // Other backslashes are themselves.
                '\\' => Part::Char(rest.next_if(|next| "*?\\".contains(*next)).unwrap_or('\\')),
                other => Part::Char(other),
            });
        }
        Self { parts }
    }

    /// Creates a pattern as in the shell, with `[a-z]` and `[!a-z]`; `None` if a bracket is not
    /// closed.
    pub fn shell(text: &str) -> Option<Self> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(next) = rest.chars().next() {
            rest = rest.get(next.len_utf8()..)?;
            parts.push(match next {
                '*' => Part::Many,
                '?' => Part::One,
                '[' => class(&mut rest)?,
                other => Part::Char(other),
            });
        }
        Some(Self { parts })
    }

    /// Returns whether it may stand for several names.
    pub fn is_wild(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Char(_)))
    }

    /// Returns whether it stands for `name`.
    ///
    /// On a mismatch, the last star takes one more character. Earlier stars never need to, so the
    /// time is at most the product of the lengths.
    pub fn matches(&self, name: &str) -> bool {
        let (mut parts, mut rest) = (self.parts.as_slice(), name.chars());
        let mut retry = None;
        loop {
            match (parts.split_first(), rest.clone().next()) {
                (None, None) => return true,
                (Some((Part::Many, after)), _) => {
                    (parts, retry) = (after, Some((after, rest.clone())));
                    continue;
                }
                (Some((part, after)), Some(next)) if part.takes(next) => {
                    parts = after;
                    rest.next();
                    continue;
                }
                _ => {}
            }
            let Some((after, mut from)) = retry else { return false };
            if from.next().is_none() {
                return false;
            }
            (parts, rest, retry) = (after, from.clone(), Some((after, from)));
        }
    }
}

/// Takes a class, whose opening bracket was taken before.
fn class(rest: &mut &str) -> Option<Part> {
    let text = rest.strip_prefix(['!', '^']);
    let is_negated = text.is_some();
    let text = text.unwrap_or(rest);
    // A closing bracket at the beginning belongs to the class.
    let first = text.chars().next()?.len_utf8();
    let end = first + text.get(first..)?.find(']')?;
    let mut members = text.get(..end)?.chars().peekable();
    *rest = text.get(end + 1..)?;
    let mut ranges = Vec::new();
    while let Some(from) = members.next() {
        let mut ahead = members.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) => {
                ranges.push((from, to));
                members = ahead;
            }
            _ => ranges.push((from, from)),
        }
    }
    Some(Part::Class { ranges, is_negated })
}

/// Returns whether a text has special characters of the shell's patterns.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns whether the shell's pattern matches the whole `text`.
pub fn matches(pattern: &str, text: &str) -> bool {
    Glob::shell(pattern).is_some_and(|glob| glob.matches(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_the_shell() {
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
            ("cpu[!0-9]", "cpux", true),
            ("cpu[]x]", "cpu]", true),
            ("cpu[x-]", "cpu-", true),
            ("cpu[x", "cpu[x", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
        ] {
            assert_eq!(matches(pattern, text), matched, "{pattern} {text}");
        }
    }

    #[test]
    fn stars_and_question_marks_are_wild() {
        for (glob, name, expected) in [
            ("malloc", "malloc", true),
            ("malloc", "malloc_usable_size", false),
            ("malloc*", "malloc_usable_size", true),
            ("*alloc", "malloc", true),
            ("*a*c", "malloc", true),
            ("*a*d", "malloc", false),
            ("app::parse*", "app::parse_line", true),
            ("*", "", true),
            ("?", "", false),
            ("?", "ü", true),
            ("m?lloc", "malloc", true),
            ("**l*", "malloc", true),
            ("f(int*)", "f(int, char)", true),
            ("operator\\*", "operator*", true),
            ("operator\\*", "operator+", false),
            ("a\\b", "a\\b", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(Glob::escaped(glob).matches(name), expected, "{glob} {name}");
        }
        assert!(Glob::escaped("a*").is_wild() && Glob::escaped("?").is_wild());
        assert!(!Glob::escaped("operator\\*").is_wild());
    }

    #[test]
    fn many_stars_do_not_take_forever() {
        assert!(!Glob::escaped(&"*a".repeat(200)).matches(&"a".repeat(199)));
        assert!(!Glob::escaped(&format!("{}b", "*a".repeat(100))).matches(&"a".repeat(10_000)));
        assert!(!matches(&"*a".repeat(40), &format!("{}b", "a".repeat(200))));
    }
}
