//! Queries of `rep info` and `rep evlist`.

use crate::query::{Format, Source};

/// Query of `rep info`.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoQuery {
    /// Input file.
    pub source: Source,
    /// Output format.
    pub format: Format,
}

/// Details that `rep evlist` prints of each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventDetail {
    /// Name.
    Name,
    /// Name, and frequency or period.
    Rate,
    /// Name and attr.
    Attr,
    /// Names of all events of a group, on one line.
    Group,
}

/// Query of `rep evlist`.
#[derive(Clone, Debug, PartialEq)]
pub struct EvlistQuery {
    /// Input file.
    pub source: Source,
    /// Details to print.
    pub detail: EventDetail,
}
