//! Patterns of names: `*` stands for any text, `?` for one character, `\*` for a star.

/// A pattern of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    parts: Vec<GlobPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GlobPart {
    Char(char),
    /// One character.
    One,
    /// Any number of characters.
    Many,
}

impl Glob {
    /// Creates a pattern from its text. Every text is one.
    pub(crate) fn new(text: &str) -> Self {
        let (mut parts, mut rest) = (Vec::new(), text.chars().peekable());
        while let Some(next) = rest.next() {
            parts.push(match next {
                '*' => GlobPart::Many,
                '?' => GlobPart::One,
                // Other backslashes are themselves.
                '\\' => GlobPart::Char(rest.next_if(|next| "*?\\".contains(*next)).unwrap_or('\\')),
                other => GlobPart::Char(other),
            });
        }
        Self { parts }
    }

    /// Returns whether it may stand for several names.
    pub(crate) fn is_wild(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, GlobPart::Char(_)))
    }

    /// Returns whether it stands for `name`.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let (mut parts, mut rest) = (self.parts.as_slice(), name);
        // Where to go on after the last star took one more character: earlier ones need not.
        let mut retry: Option<(&[GlobPart], &str)> = None;
        loop {
            let (first, next) = (rest.chars().next(), parts.split_first());
            match (next, first) {
                (None, None) => return true,
                (Some((GlobPart::Many, after)), _) => {
                    (parts, retry) = (after, Some((after, rest)));
                    continue;
                }
                (Some((GlobPart::One, after)), Some(one)) => {
                    (parts, rest) = (after, rest.get(one.len_utf8()..).unwrap_or_default());
                    continue;
                }
                (Some((GlobPart::Char(char), after)), Some(one)) if *char == one => {
                    (parts, rest) = (after, rest.get(one.len_utf8()..).unwrap_or_default());
                    continue;
                }
                _ => {}
            }
            let Some((after, from)) = retry else { return false };
            let Some(taken) = from.chars().next() else { return false };
            let from = from.get(taken.len_utf8()..).unwrap_or_default();
            (parts, rest, retry) = (after, from, Some((after, from)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(Glob::new(glob).matches(name), expected, "{glob} {name}");
        }
        assert!(Glob::new("a*").is_wild() && Glob::new("?").is_wild());
        assert!(!Glob::new("operator\\*").is_wild());
    }

    #[test]
    fn many_stars_do_not_take_forever() {
        assert!(!Glob::new(&"*a".repeat(200)).matches(&"a".repeat(199)));
        assert!(!Glob::new(&format!("{}b", "*a".repeat(100))).matches(&"a".repeat(10_000)));
    }
}
