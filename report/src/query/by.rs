//! `--by`: what tells the input files apart, as columns before the sort keys.

use regex_lite::Regex;

use super::{Column, SortKey};

/// What a column shows of an input's path.
#[derive(Clone, Debug)]
pub(crate) struct By {
    name: String,
    part: PathPart,
}

#[derive(Clone, Debug)]
enum PathPart {
    Whole,
    /// The first capture, or what matches where there is none.
    Capture(Regex),
}

/// What stands for a part that a path does not have.
const NO_MATCH: &str = "[no match]";

impl By {
    /// Parses `file` or `NAME=REGEX`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some((name, pattern)) = text.split_once('=') else {
            if text == "file" {
                return Ok(Self { name: text.into(), part: PathPart::Whole });
            }
            return Err("it is `file`, or NAME=REGEX for a part of the file's path".into());
        };
        if name.is_empty() || SortKey::named(name).is_some() {
            return Err(format!("`{name}` cannot be the name of a column: choose another one"));
        }
        let pattern = Regex::new(pattern).map_err(|error| format!("`{pattern}`: {error}"))?;
        Ok(Self { name: name.into(), part: PathPart::Capture(pattern) })
    }

    /// Returns the part of an input's path.
    pub(crate) fn part<'p>(&self, path: &'p str) -> &'p str {
        let PathPart::Capture(pattern) = &self.part else { return path };
        let captures = pattern.captures(path);
        let part = captures.and_then(|captures| captures.get(1).or_else(|| captures.get(0)));
        part.map_or(NO_MATCH, |part| part.as_str())
    }

    /// Returns the columns that show these parts.
    pub(crate) fn columns(all: &[Self]) -> impl Iterator<Item = Column> {
        let column = |(number, by): (u8, &Self)| Column {
            typed: by.name.clone(),
            key: SortKey::Input(number),
        };
        (0..).zip(all).map(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths() {
        let part = |by: &str, path| By::parse(by).unwrap().part(path).to_owned();
        assert_eq!(part("file", "ci/12/a.data"), "ci/12/a.data");
        assert_eq!(part(r"run=/(\d+)/", "ci/12/a.data"), "12");
        assert_eq!(part(r"run=\d+", "ci/12/a.data"), "12");
        assert_eq!(part(r"run=(x)?ci", "ci/12/a.data"), "ci", "the capture took no part");
        assert_eq!(part(r"run=\d\d\d", "ci/12/a.data"), "[no match]");
    }

    #[test]
    fn what_is_no_part_is_told() {
        for (text, told) in [
            ("", "NAME=REGEX"),
            ("files", "NAME=REGEX"),
            ("=a", "name of a column"),
            ("comm=a", "`comm`"),
            ("run=(a", "`(a`"),
        ] {
            let error = By::parse(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
