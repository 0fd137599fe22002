//! Columns: sort keys with the names that the user typed, tracepoint fields, and numbers. `-F`
//! takes all of them.

use recrep_console::nearest::did_you_mean;

use super::{Availability, Mode, Needs, SortKey};

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
    #[error("unknown sort key `{0}`{advice}", advice = advice(.0))]
    Unknown(String),
    /// Neither a sort key nor a field of the file's tracepoints.
    #[error(
        "unknown sort key `{0}`, and no tracepoint in the file has such a field{advice}",
        advice = advice(.0)
    )]
    NoField(String),
    /// Not a sort key, and whether it is a field is unknown, because the file cannot be read.
    /// Reported instead of the read error alone, because a mistyped key is more likely.
    #[error(
        "unknown sort key `{0}`{advice}; the file could not be searched for such a tracepoint \
         field: {1}",
        advice = advice(.0)
    )]
    NoFile(String, String),
    /// A part of an event's name, as typed, and the events whose names contain it.
    #[error("`{0}` matches several events: {1}")]
    Ambiguous(String, String),
    #[error("sort key `{0}` is only for branches: it needs -b (--branch-stack)")]
    OfBranch(String),
    #[error("sort key `{0}` is only for times: it needs --off-cpu, --wall or --critical-path")]
    OfTime(String),
}

/// Returns the end of a message about an unknown sort key or column: what it could mean, and where
/// all are listed.
fn advice(name: &str) -> String {
    let numbers = ALL.iter().map(|(_, name, ..)| *name);
    let near = did_you_mean(name, SortKey::names().chain(numbers));
    let mark = if near.is_empty() { ";" } else { "" };
    format!("{near}{mark} `rep help keys` lists all")
}

impl Column {
    /// Parses a sort key. As in perf, case is ignored.
    ///
    /// # Errors
    /// Returns an error if the key is unknown or not available in this mode.
    pub fn parse(name: &str, mode: Mode) -> Result<Self, KeyError> {
        let field = || FieldSpec::parse(name).map(|_| SortKey::TraceField(0));
        let key =
            SortKey::named(name).or_else(field).ok_or_else(|| KeyError::Unknown(name.into()))?;
        match key.declared().availability {
            Availability::OfBranches if !mode.is_of_branches() => {
                return Err(KeyError::OfBranch(name.into()));
            }
            Availability::OfTime if !mode.is_of_time() => {
                return Err(KeyError::OfTime(name.into()));
            }
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

    /// Appends the companions of the columns if the output needs them.
    pub fn with_companions(mut columns: Vec<Self>, needs: Needs) -> Vec<Self> {
        if needs.companions {
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
                let field = self
                    .typed
                    .rsplit_once('.')
                    .map(|(_, field)| field)
                    .filter(|field| !field.starts_with('*'));
                let field = field.unwrap_or(&self.typed);
                field.split_once('/').map_or(field, |(field, _)| field)
            }
            SortKey::Input(_) => &self.typed,
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

/// A tracepoint field, and the events that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// Event: its name, a part of its name, or `%` and its number in the file, from 1. `None` means
    /// all events with the field.
    pub event: Option<String>,
    /// Field; `*` means all fields, and `trace_fields` all fields of all events.
    pub field: String,
    /// `true` if the field is shown raw, not as the kernel prints it.
    pub is_raw: bool,
}

/// A tracepoint column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceColumn {
    /// The text that the kernel would print.
    Text,
    /// All fields, raw (`--raw-trace`).
    RawText,
    /// One field or all fields.
    Field(FieldSpec),
}

/// Sort keys of perf that rep does not support. They are not taken for fields.
const UNSUPPORTED: [&str; 7] =
    ["ipc_null", "ipc_lbr", "latency", "simd", "type", "typeoff", "typecln"];

impl FieldSpec {
    /// Parses a key. Returns `None` if it cannot be a field.
    pub fn parse(name: &str) -> Option<Self> {
        let (event, field) = match name.split_once('.') {
            Some((event, field)) if !event.is_empty() => (Some(event.to_owned()), field),
            Some(_) => return None,
            None => (None, name),
        };
        let (field, is_raw) = match field.split_once('/') {
            Some((field, "raw")) => (field, true),
            Some(_) => return None,
            None => (field, false),
        };
        let is_name = |text: &str| {
            !text.starts_with(|c: char| c.is_ascii_digit())
                && !text.is_empty()
                && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let is_all = field == "*" && event.is_some();
        let is_unsupported =
            event.is_none() && UNSUPPORTED.iter().any(|key| field.eq_ignore_ascii_case(key));
        let is_field = (is_name(field) || is_all) && !is_unsupported;
        is_field.then(|| Self { event, field: field.to_owned(), is_raw })
    }

    /// Returns whether this means all fields of its events.
    pub fn is_all(&self) -> bool {
        self.field == "*" || self.field == "trace_fields"
    }

    /// Returns the indexes of the events that are meant.
    ///
    /// # Errors
    /// Returns the names of the matching events if a part of a name matches several.
    pub fn events(&self, names: &[String]) -> Result<Vec<usize>, Vec<String>> {
        let Some(event) = self.event.as_ref().filter(|_| self.field != "trace_fields") else {
            return Ok((0..names.len()).collect());
        };
        if let Some(place) = event.strip_prefix('%') {
            // The number counts from 1.
            let place = place.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
            return Ok(place.filter(|place| *place < names.len()).into_iter().collect());
        }
        let is_whole = event.contains(':');
        let fits =
            |name: &String| if is_whole { name == event } else { name.contains(event.as_str()) };
        let found: Vec<usize> =
            (0..).zip(names).filter(|(_, name)| fits(name)).map(|(place, _)| place).collect();
        if found.len() > 1 && !is_whole {
            return Err(found.iter().filter_map(|place| names.get(*place).cloned()).collect());
        }
        Ok(found)
    }
}

/// A numeric column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// Share of the event's period.
    Overhead,
    /// Share including callees.
    Children,
    /// Share of the samples in the kernel.
    OverheadSys,
    /// Share of the samples in user code.
    OverheadUs,
    /// Share of the samples in guest kernels.
    OverheadGuestSys,
    /// Share of the samples in guest user code.
    OverheadGuestUs,
    Samples,
    Period,
    /// The period in seconds, of events that count nanoseconds.
    Seconds,
    /// The same including callees.
    ChildrenSeconds,
    /// Mean weight.
    Weight1,
    /// Mean of the second part of the weight.
    Weight2,
    /// Mean of the third part of the weight.
    Weight3,
}

/// Names, headings and minimum widths, as in perf.
const ALL: [(Number, &str, &str, usize); 13] = [
    (Number::Overhead, "overhead", "Overhead", 8),
    (Number::Children, "overhead_children", "Children", 8),
    (Number::OverheadSys, "overhead_sys", "sys", 8),
    (Number::OverheadUs, "overhead_us", "usr", 8),
    (Number::OverheadGuestSys, "overhead_guest_sys", "guest sys", 9),
    (Number::OverheadGuestUs, "overhead_guest_us", "guest usr", 9),
    (Number::Samples, "sample", "Samples", 12),
    (Number::Period, "period", "Period", 12),
    (Number::Seconds, "seconds", "Seconds", 9),
    (Number::ChildrenSeconds, "seconds_children", "Seconds", 9),
    (Number::Weight1, "weight1", "Weight1", 8),
    (Number::Weight2, "weight2", "Weight2", 8),
    (Number::Weight3, "weight3", "Weight3", 8),
];

impl Number {
    /// Returns the number with this name. As in perf, case is ignored.
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|(_, have, ..)| have.eq_ignore_ascii_case(name)).map(|(number, ..)| *number)
    }

    pub fn name(self) -> &'static str {
        self.known().1
    }

    pub fn heading(self) -> &'static str {
        self.known().2
    }

    pub fn width(self) -> usize {
        self.known().3
    }

    /// Returns whether it needs extra fields in the packed keys (CPU mode, weights).
    pub fn is_part(self) -> bool {
        !matches!(
            self,
            Self::Overhead
                | Self::Children
                | Self::Samples
                | Self::Period
                | Self::Seconds
                | Self::ChildrenSeconds
        )
    }

    fn known(self) -> (Self, &'static str, &'static str, usize) {
        ALL.into_iter().find(|(number, ..)| *number == self).unwrap_or((self, "", "", 0))
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableColumn {
    Number(Number),
    /// A sort key: index among the query's columns.
    Key(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_headings_match() {
        for (number, name, heading, _) in ALL {
            assert_eq!(Number::named(name), Some(number));
            assert_eq!((number.name(), number.heading()), (name, heading));
        }
        assert_eq!(Number::named("comm"), None);
    }

    #[test]
    fn parses_keys() {
        let spec = |event: Option<&str>, field: &str, is_raw| {
            Some(FieldSpec { event: event.map(str::to_owned), field: field.to_owned(), is_raw })
        };
        assert_eq!(FieldSpec::parse("prev_pid"), spec(None, "prev_pid", false));
        assert_eq!(
            FieldSpec::parse("sched:sched_switch.prev_pid/raw"),
            spec(Some("sched:sched_switch"), "prev_pid", true)
        );
        assert_eq!(FieldSpec::parse("%1.*"), spec(Some("%1"), "*", false));
        assert_eq!(FieldSpec::parse("%1.type"), spec(Some("%1"), "type", false));
        for name in ["", ".x", "x.", "x/y", "x.y/", "*", "no-pe", "1x", "type", "Simd"] {
            assert_eq!(FieldSpec::parse(name), None, "{name}");
        }
    }

    #[test]
    fn finds_events_by_name_part_or_number() {
        let names = ["sched:sched_switch", "sched:sched_wakeup", "cycles"].map(str::to_owned);
        let events = |name: &str| FieldSpec::parse(name).unwrap().events(&names);
        assert_eq!(events("a"), Ok(vec![0, 1, 2]));
        assert_eq!(events("sched:sched_wakeup.a"), Ok(vec![1]));
        assert_eq!(events("switch.a"), Ok(vec![0]));
        assert_eq!(events("%2.a"), Ok(vec![1]));
        assert_eq!(events("%9.a"), Ok(vec![]));
        assert_eq!(events("nope.a"), Ok(vec![]));
        assert_eq!(events("sched_.a").unwrap_err().len(), 2);
        assert_eq!(events("x.trace_fields"), Ok(vec![0, 1, 2]));
    }
}
