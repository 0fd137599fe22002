//! Sort keys of tracepoint fields: `[event.]field[/raw]`.

/// A tracepoint field, and the events that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// Event: its name, a part of its name, or `%` and its number in the file, from 1. `None` means all events with the
    /// field.
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
const UNSUPPORTED: [&str; 6] = ["ipc_null", "ipc_lbr", "simd", "type", "typeoff", "typecln"];

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
        let is_unsupported = event.is_none() && UNSUPPORTED.iter().any(|key| field.eq_ignore_ascii_case(key));
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
