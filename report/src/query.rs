//! What was asked, compiled: pure data, no command line and no file in it.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::sort_key::{Mode, SortKey};

/// A sort key as the user spelt it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name that was typed: it names the key in JSON.
    pub typed: String,
    /// What it means.
    pub key: SortKey,
}

/// A sort key that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing is called so.
    #[error("no sort key is called `{0}`; there are: {list}", list = SortKey::list())]
    Unknown(String),
    /// Only branches have it.
    #[error("`{0}` is a key of branches: it needs -b (--branch-stack)")]
    OfBranch(String),
}

impl Column {
    /// Reads a list such as `comm,dso,sym`. As in perf, case does not count, and a key named twice counts once.
    ///
    /// # Errors
    /// A key has no meaning, or none in this mode.
    pub fn parse_list(list: &str, mode: Mode) -> Result<Vec<Self>, KeyError> {
        let mut columns: Vec<Self> = Vec::new();
        for name in list.split(',').map(str::trim) {
            let key = SortKey::named(name).ok_or_else(|| KeyError::Unknown(name.into()))?;
            if key.is_of_branch() && mode != Mode::Branches {
                return Err(KeyError::OfBranch(name.into()));
            }
            if columns.iter().all(|c| c.key != key) {
                columns.push(Self { typed: name.into(), key });
            }
        }
        Ok(columns)
    }
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A table for people.
    #[default]
    Text,
    /// JSON, `recrep-report/1`.
    Json,
}

/// Where the bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file.
    Path(PathBuf),
}

impl Source {
    /// What the user called it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "-".into(),
            Self::Path(path) => path.display().to_string(),
        }
    }
}

/// Which samples make rows. What is left out still counts in the event's totals, as in perf, except by CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Only threads of these names.
    pub comms: Option<HashSet<String>>,
    /// Only modules of these names or paths.
    pub dsos: Option<HashSet<String>>,
    /// Only functions of these names.
    pub symbols: Option<HashSet<String>>,
    /// Only these processes.
    pub pids: Option<HashSet<i32>>,
    /// Only these threads.
    pub tids: Option<HashSet<i32>>,
    /// Only these CPUs: what is sampled elsewhere does not count at all.
    pub cpus: Option<HashSet<u32>>,
}

/// Everything that was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The inputs; together one profile.
    pub sources: Vec<Source>,
    /// What is counted.
    pub mode: Mode,
    /// The columns.
    pub columns: Vec<Column>,
    /// The filters.
    pub filters: Filters,
    /// The form of the answer.
    pub format: Format,
    /// At most so many rows for each event.
    pub limit: Option<usize>,
    /// Only rows with at least this share, in percent.
    pub percent_limit: Option<f64>,
    /// Text: a column with the number of samples.
    pub show_samples: bool,
    /// Text: fields apart by this, without padding.
    pub separator: Option<String>,
    /// Only the counts of records, no histogram.
    pub stats: bool,
    /// Only the tasks, no histogram.
    pub tasks: bool,
    /// Only the tasks with what they mapped, no histogram.
    pub mmaps: bool,
}

impl Query {
    /// Whether this column is asked for.
    #[must_use]
    pub fn has(&self, key: SortKey) -> bool {
        self.columns.iter().any(|c| c.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_order_and_spelling() {
        let columns = Column::parse_list("Comm,sym,dso,symbol", Mode::Samples).unwrap();
        let typed: Vec<_> = columns.iter().map(|c| c.typed.as_str()).collect();
        assert_eq!(typed, ["Comm", "sym", "dso"]);
        assert_eq!(columns[1].key, SortKey::Symbol);
    }

    #[test]
    fn what_is_no_key_is_named() {
        let error = Column::parse_list("comm,nope", Mode::Samples).unwrap_err();
        assert!(error.to_string().contains("`nope`"), "{error}");
        assert!(Column::parse_list("", Mode::Samples).is_err());
    }
}
