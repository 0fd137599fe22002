//! What can be asked of `rep info` and `rep evlist`.

use crate::query::{Format, Source};

/// What was asked of `rep info`.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoQuery {
    /// The input.
    pub source: Source,
    /// The form of the answer.
    pub format: Format,
}

/// What is told of each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventDetail {
    /// Its name.
    Name,
    /// Its name and its frequency or period.
    Rate,
    /// Its name and its attr.
    Attr,
    /// The names of its group.
    Group,
}

/// What was asked of `rep evlist`.
#[derive(Clone, Debug, PartialEq)]
pub struct EvlistQuery {
    /// The input.
    pub source: Source,
    /// What is told.
    pub detail: EventDetail,
}
