//! Patterns of function names.

use std::str::FromStr;

use regex_lite::Regex;

#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Returns whether it matches anywhere in `text`.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Regex::new(text).map(Self).map_err(|error| format!("`{text}` is not a regular expression: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_anywhere() {
        let pattern: Pattern = "^sys_|page_fault$".parse().unwrap();
        assert!(pattern.matches("sys_read") && pattern.matches("do_page_fault") && !pattern.matches("do_sys_read"));
        assert!("(".parse::<Pattern>().is_err());
    }
}
