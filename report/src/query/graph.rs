//! How call trees are shown: what `-g` says.

use std::str::FromStr;

/// The form of call trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A tree; shares are of the event.
    Graph,
    /// A tree; shares are of the part of it that they are in.
    Fractal,
    /// Each callchain, one frame below the other.
    Flat,
    /// Each callchain on a line.
    Folded,
}

/// What is shown of a part of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Its share.
    Percent,
    /// Its period.
    Period,
    /// Its samples.
    Count,
}

/// What tells the frames of callchains apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameKey {
    /// The function.
    #[default]
    Function,
    /// The address in its module.
    Address,
    /// The source line; where it is not known, the function.
    Srcline,
}

/// What is asked of call trees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Graph {
    /// The form.
    pub shape: Shape,
    /// Whether trees begin at the outermost frame; where nothing is said, they do with `--children`.
    pub from_caller: Option<bool>,
    /// Parts with a smaller share, in percent, are left out.
    pub percent: f64,
    /// At most so many parts below each row.
    pub most: Option<usize>,
    /// What is shown of a part.
    pub value: Value,
    /// What tells frames apart.
    pub key: FrameKey,
    /// Whether branches are frames too.
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

/// Words that are no part of `-g`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not known to -g; there are: graph, fractal, flat, folded, none, caller, callee, function, address, srcline, branch, percent, period, count, \
     the least share in percent, and then how many parts are printed at most"
)]
pub struct UnknownWord(String);

impl Graph {
    /// The least period of a part that is shown of an event of this period.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "shares are not exact; perf rounds down"
    )]
    pub fn least(&self, total: u64) -> u64 {
        (total as f64 * (self.percent / 100.0)) as u64
    }

    /// Reads a list such as `fractal,0.5,callee`; nothing for `none`. As in perf, words may be cut short.
    ///
    /// # Errors
    /// A word is not known.
    pub fn parse(list: &str) -> Result<Option<Self>, UnknownWord> {
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
                    let percent = f64::from_str(word).ok().filter(|percent| (0.0..=100.0).contains(percent));
                    graph.percent = percent.ok_or_else(|| UnknownWord(word.into()))?;
                    has_percent = true;
                }
                _ => graph.most = Some(word.parse().map_err(|_| UnknownWord(word.into()))?),
            }
        }
        Ok(Some(graph))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_any_order_and_may_be_short() {
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
