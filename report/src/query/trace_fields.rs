//! The names of sort keys for the fields of tracepoints: `[event.]field[/raw]`.

/// Which field of which events is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// The event: all of its name, a part of it, or `%` and its place in the file; none means all events that have the field.
    pub event: Option<String>,
    /// The field; `*`, or `trace_fields` without an event, is all of them.
    pub field: String,
    /// Whether it is told as it lies in the raw bytes, not as the kernel prints it.
    pub is_raw: bool,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceColumn {
    /// What the kernel would print.
    Text,
    /// All fields as they lie in the raw bytes (`--raw-trace`).
    RawText,
    /// A field, or all of them.
    Field(FieldSpec),
}

/// A key that names no event clearly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is a part of the names of several events: {events}")]
pub struct Ambiguous {
    /// The part of a name that was typed.
    pub name: String,
    /// The events that have it in their names.
    pub events: String,
}

/// perf's keys that mean something else there and nothing here: they are not taken for fields.
const OTHERS: [&str; 6] = ["ipc_null", "ipc_lbr", "simd", "type", "typeoff", "typecln"];

impl FieldSpec {
    /// Reads a name; `None` where it cannot be a field's.
    #[must_use]
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
        let is_other = event.is_none() && OTHERS.iter().any(|other| field.eq_ignore_ascii_case(other));
        let is_field = (is_name(field) || is_all) && !is_other;
        is_field.then(|| Self { event, field: field.to_owned(), is_raw })
    }

    /// Whether it means all fields of its events.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.field == "*" || self.field == "trace_fields"
    }

    /// Which of these events are meant.
    ///
    /// # Errors
    /// A part of a name that several events have: their names.
    pub fn events(&self, names: &[String]) -> Result<Vec<usize>, Vec<String>> {
        let Some(event) = self.event.as_ref().filter(|_| self.field != "trace_fields") else {
            return Ok((0..names.len()).collect());
        };
        if let Some(place) = event.strip_prefix('%') {
            // Counted from one.
            let place = place.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
            return Ok(place.filter(|place| *place < names.len()).into_iter().collect());
        }
        let is_whole = event.contains(':');
        let fits = |name: &String| if is_whole { name == event } else { name.contains(event.as_str()) };
        let found: Vec<usize> = (0..).zip(names).filter(|(_, name)| fits(name)).map(|(place, _)| place).collect();
        if found.len() > 1 && !is_whole {
            return Err(found.iter().filter_map(|place| names.get(*place).cloned()).collect());
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_they_mean() {
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
    fn events_are_named_in_whole_in_part_or_by_place() {
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
