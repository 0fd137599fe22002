//! Columns, with the names that the user typed.

use super::trace_fields::FieldSpec;
use super::{Availability, Format, Mode, SortKey, TraceColumn};

/// A sort key, with the name that the user typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name as typed; it is the name in JSON too.
    pub typed: String,
    /// The key that the name means.
    pub key: SortKey,
}

/// Error of an unusable sort key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("unknown sort key `{0}`; known keys: {list}", list = SortKey::list())]
    Unknown(String),
    /// Neither a sort key nor a field of the file's tracepoints.
    #[error(
        "unknown sort key `{0}`, and no tracepoint in the file has such a field; known keys: {list}",
        list = SortKey::list()
    )]
    NoField(String),
    /// Not a sort key, and whether it is a field is unknown, because the file cannot be read. Reported instead of the
    /// read error alone, because a mistyped key is more likely.
    #[error("unknown sort key `{0}`, and the file cannot be searched for such a tracepoint field: {1}")]
    NoFile(String, String),
    /// A part of an event's name, as typed, and the events whose names contain it.
    #[error("`{0}` matches several events: {1}")]
    Ambiguous(String, String),
    #[error("sort key `{0}` is only for branches: it needs -b (--branch-stack)")]
    OfBranch(String),
    #[error("sort key `{0}` is only for times: it needs --off-cpu or --wall")]
    OfTime(String),
}

impl Column {
    /// Parses a sort key. As in perf, case is ignored.
    ///
    /// # Errors
    /// Returns an error if the key is unknown or not available in this mode.
    pub fn parse(name: &str, mode: Mode) -> Result<Self, KeyError> {
        let field = || FieldSpec::parse(name).map(|_| SortKey::TraceField(0));
        let key = SortKey::named(name).or_else(field).ok_or_else(|| KeyError::Unknown(name.into()))?;
        match key.declared().availability {
            Availability::OfBranches if !mode.is_of_branches() => return Err(KeyError::OfBranch(name.into())),
            Availability::OfTime if !mode.is_of_time() => return Err(KeyError::OfTime(name.into())),
            _ => {}
        }
        Ok(Self { typed: name.into(), key })
    }

    /// Returns the columns with these names, separated by commas.
    ///
    /// # Errors
    /// Returns the errors of [`Self::parse`].
    pub fn list(names: &str, mode: Mode) -> Result<Vec<Self>, KeyError> {
        names.split(',').map(|name| Self::parse(name, mode)).collect()
    }

    /// Appends the companions of the columns if the output is JSON or CSV.
    pub fn with_companions(mut columns: Vec<Self>, format: Format) -> Vec<Self> {
        if matches!(format, Format::Json | Format::Csv) {
            let mut more: Vec<Self> = Vec::new();
            for (name, key) in columns.iter().flat_map(|column| column.key.declared().companions) {
                if more.iter().all(|have| have.key != *key) {
                    more.push(Self { typed: (*name).into(), key: *key });
                }
            }
            columns.extend(more);
        }
        columns
    }

    /// Returns the heading of the column; for a tracepoint field, the field's name.
    pub fn heading(&self) -> &str {
        match self.key {
            SortKey::TraceField(_) => {
                let field = self.typed.rsplit_once('.').map(|(_, field)| field).filter(|field| !field.starts_with('*'));
                let field = field.unwrap_or(&self.typed);
                field.split_once('/').map_or(field, |(field, _)| field)
            }
            key => key.declared().heading,
        }
    }

    /// Returns the tracepoint column that this key needs, if any.
    pub(super) fn trace_column(&self, is_raw: bool) -> Option<(SortKey, TraceColumn)> {
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
