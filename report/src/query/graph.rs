//! Display options of call trees (`-g`).

use std::str::FromStr;

use recrep_console::nearest::did_you_mean;

/// The form of call trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Tree with percentages of the event.
    Graph,
    /// Tree with percentages of the parent entry.
    Fractal,
    /// Callchains, one frame per line.
    Flat,
    /// Callchains, one per line.
    Folded,
}

/// The value shown for an entry of a call tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Share of the period.
    Percent,
    Period,
    Count,
}

/// The key by which frames of callchains are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FrameKey {
    #[default]
    Function,
    /// The address in its module.
    Address,
    /// The source line, or the function if the line is unknown.
    Srcline,
}

/// Display options of call trees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Graph {
    pub shape: Shape,
    /// Whether trees begin at the outermost frame; if `None`, they do with `--children`.
    pub from_caller: Option<bool>,
    /// Minimum share of an entry, in percent.
    pub percent: f64,
    /// Maximum number of entries per level; for flat and folded, of callchains per row.
    pub most: Option<usize>,
    pub value: Value,
    pub key: FrameKey,
    /// `true` if branches are frames too.
    pub branches: bool,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            shape: Shape::Graph,
            from_caller: None,
            percent: 0.5,
            most: None,
            value: Value::Percent,
            key: FrameKey::Function,
            branches: false,
        }
    }
}

/// Words of `-g`, for messages.
const WORDS: [&str; 14] = [
    "graph", "fractal", "flat", "folded", "none", "caller", "callee", "function", "address",
    "srcline", "branch", "percent", "period", "count",
];

fn unknown(word: &str) -> String {
    if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return format!(
            "`{word}` is neither a percentage from 0 to 100 nor, after one, a number of entries"
        );
    }
    let near = did_you_mean(word, WORDS);
    let all = if near.is_empty() { format!("; words are {}", WORDS.join(", ")) } else { near };
    format!("unknown word `{word}`{all}")
}

impl Graph {
    /// Returns the minimum period of the shown entries, for an event with the period `total`.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "percentages are inexact; perf rounds down"
    )]
    pub(crate) fn least(&self, total: u64) -> u64 {
        (total as f64 * (self.percent / 100.0)) as u64
    }

    /// Parses a list such as `fractal,0.5,callee`. Returns `None` for `none`. As in perf, words may
    /// be abbreviated.
    pub(crate) fn parse(list: &str) -> Result<Option<Self>, String> {
        let mut graph = Self::default();
        let mut has_percent = false;
        for word in list.split(',').filter(|word| !word.is_empty()) {
            let is = |full: &str| full.starts_with(word);
            match word {
                _ if is("none") => return Ok(None),
                _ if is("graph") => graph.shape = Shape::Graph,
                _ if is("flat") => graph.shape = Shape::Flat,
                _ if is("fractal") => graph.shape = Shape::Fractal,
                _ if is("folded") => graph.shape = Shape::Folded,
                _ if is("caller") => graph.from_caller = Some(true),
                _ if is("callee") => graph.from_caller = Some(false),
                _ if is("function") => graph.key = FrameKey::Function,
                _ if is("address") => graph.key = FrameKey::Address,
                _ if is("srcline") => graph.key = FrameKey::Srcline,
                _ if is("branch") => graph.branches = true,
                _ if is("percent") => graph.value = Value::Percent,
                _ if is("period") => graph.value = Value::Period,
                _ if is("count") => graph.value = Value::Count,
                _ if !has_percent => {
                    let percent =
                        f64::from_str(word).ok().filter(|percent| (0.0..=100.0).contains(percent));
                    graph.percent = percent.ok_or_else(|| unknown(word))?;
                    has_percent = true;
                }
                _ => graph.most = Some(word.parse().map_err(|_| unknown(word))?),
            }
        }
        Ok(Some(graph))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_abbreviated_in_any_order() {
        let graph = Graph::parse("callee,frac,2.5,10,count").unwrap().unwrap();
        let want = Graph {
            shape: Shape::Fractal,
            from_caller: Some(false),
            percent: 2.5,
            most: Some(10),
            value: Value::Count,
            ..Graph::default()
        };
        assert_eq!(graph, want);
        assert_eq!(Graph::parse("none").unwrap(), None);
        assert_eq!(Graph::parse("").unwrap(), Some(Graph::default()));
        for wrong in ["srcfile", "101", "1,x", "addresses"] {
            assert!(Graph::parse(wrong).is_err(), "{wrong}");
        }
    }
}
