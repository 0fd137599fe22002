//! Columns as the user spelt them.

use super::request::Format;
use super::sort_key::{Mode, SortKey};
use super::trace_fields::{Ambiguous, FieldSpec, TraceColumn};

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
    /// Nothing is called so, no field of a tracepoint either.
    #[error("no sort key is called `{0}`, nor is a field of the tracepoints in the file; there are: {list}", list = SortKey::list())]
    NoField(String),
    /// Nothing is called so, and of fields nothing is known, because the file cannot be read: the name is the likelier slip.
    #[error("no sort key is called `{0}`, and which fields tracepoints have cannot be told: {1}")]
    NoFile(String, String),
    /// It could mean several things.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// Only branches have it.
    #[error("`{0}` is a key of branches: it needs -b (--branch-stack)")]
    OfBranch(String),
}

impl Column {
    /// Reads a key; as in perf, case does not count.
    ///
    /// # Errors
    /// It has no meaning, or none in this mode.
    pub fn parse(name: &str, mode: Mode) -> Result<Self, KeyError> {
        let field = || FieldSpec::parse(name).map(|_| SortKey::TraceField(0));
        let key = SortKey::named(name).or_else(field).ok_or_else(|| KeyError::Unknown(name.into()))?;
        if key.is_of_branch() && !mode.is_of_branches() {
            return Err(KeyError::OfBranch(name.into()));
        }
        Ok(Self { typed: name.into(), key })
    }

    /// Adds the companions of columns, behind all of them, where the answer is data.
    #[must_use]
    pub fn with_companions(mut columns: Vec<Self>, format: Format) -> Vec<Self> {
        if matches!(format, Format::Json | Format::Csv) {
            let mut more: Vec<Self> = Vec::new();
            for (name, key) in columns.iter().flat_map(|column| column.key.companions()) {
                if more.iter().all(|have| have.key != *key) {
                    more.push(Self { typed: (*name).into(), key: *key });
                }
            }
            columns.extend(more);
        }
        columns
    }

    /// The heading of the column: of a field, its name.
    #[must_use]
    pub fn heading(&self) -> &str {
        match self.key {
            SortKey::TraceField(_) => {
                let field = self.typed.rsplit_once('.').map(|(_, field)| field).filter(|field| !field.starts_with('*'));
                let field = field.unwrap_or(&self.typed);
                field.split_once('/').map_or(field, |(field, _)| field)
            }
            key => key.heading(),
        }
    }

    /// What it asks of tracepoints.
    pub(super) fn of_trace(&self, is_raw: bool) -> Option<(SortKey, TraceColumn)> {
        let column = match self.key {
            SortKey::Trace if is_raw => TraceColumn::RawText,
            SortKey::Trace => TraceColumn::Text,
            SortKey::TraceField(_) => {
                let spec = FieldSpec::parse(&self.typed)?;
                TraceColumn::Field(FieldSpec { is_raw: spec.is_raw || is_raw, ..spec })
            }
            _ => return None,
        };
        Some((self.key, column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_spelling() {
        let column = Column::parse("Sym", Mode::Samples).unwrap();
        assert_eq!((column.typed.as_str(), column.key), ("Sym", SortKey::Symbol));
    }

    #[test]
    fn what_is_no_key_is_named() {
        let error = Column::parse("no-pe", Mode::Samples).unwrap_err();
        assert!(error.to_string().contains("`no-pe`"), "{error}");
        assert!(Column::parse("", Mode::Samples).is_err());
    }
}
