//! What was asked, compiled: pure data, no command line and no file in it.

use std::collections::HashSet;
use std::path::PathBuf;

/// A column by which samples are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortKey {
    /// The thread's name at the sample's moment.
    Comm,
    /// The thread, as perf's `pid` column reads: `tid:name`.
    Pid,
    /// The thread; the same column.
    Tid,
    /// The module.
    Dso,
    /// The function, with the level before it.
    Symbol,
    /// The sampled address.
    Ip,
    /// The CPU.
    Cpu,
    /// The event.
    Event,
}

/// A sort key as the user spelt it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name that was typed: it names the key in JSON.
    pub typed: String,
    /// What it means.
    pub key: SortKey,
}

/// A sort key that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no sort key is called `{name}`; there are: comm, pid, tid, dso, symbol (sym), ip, cpu, event")]
pub struct UnknownKey {
    /// What was typed.
    pub name: String,
}

impl Column {
    /// Reads a list such as `comm,dso,sym`. As in perf, case does not count, and a key named twice counts once.
    ///
    /// # Errors
    /// A key has no meaning.
    pub fn parse_list(list: &str) -> Result<Vec<Self>, UnknownKey> {
        let mut columns: Vec<Self> = Vec::new();
        for name in list.split(',').map(str::trim) {
            let key = match name.to_ascii_lowercase().as_str() {
                "comm" => SortKey::Comm,
                "pid" => SortKey::Pid,
                "tid" => SortKey::Tid,
                "dso" => SortKey::Dso,
                "sym" | "symbol" => SortKey::Symbol,
                "ip" => SortKey::Ip,
                "cpu" => SortKey::Cpu,
                "event" => SortKey::Event,
                _ => return Err(UnknownKey { name: name.into() }),
            };
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

    /// Whether samples must be resolved to functions.
    #[must_use]
    pub fn needs_symbols(&self) -> bool {
        self.has(SortKey::Symbol) || self.filters.symbols.is_some()
    }

    /// Whether samples must be placed in modules.
    #[must_use]
    pub fn needs_modules(&self) -> bool {
        self.has(SortKey::Dso) || self.filters.dsos.is_some() || self.needs_symbols()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_order_and_spelling() {
        let columns = Column::parse_list("Comm,sym,dso,symbol").unwrap();
        let typed: Vec<_> = columns.iter().map(|c| c.typed.as_str()).collect();
        assert_eq!(typed, ["Comm", "sym", "dso"]);
        assert_eq!(columns[1].key, SortKey::Symbol);
    }

    #[test]
    fn what_is_no_key_is_named() {
        let error = Column::parse_list("comm,nope").unwrap_err();
        assert!(error.to_string().contains("`nope`"), "{error}");
        assert!(Column::parse_list("").is_err());
    }
}
