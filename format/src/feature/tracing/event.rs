//! A `format` text: what an event's raw bytes hold, and how the kernel would print them.
//!
//! ```text
//!  name: sched_switch
//!  ID: 372
//!  format:
//!    field:unsigned short common_type;  offset:0;  size:2;  signed:0;
//!    …                                                       an empty line ends what all events have
//!    field:char prev_comm[16];  offset:8;  size:16;  signed:0;
//!
//!  print fmt: "prev_comm=%s …", REC->prev_comm, …
//! ```

use super::field::{EventField, shown};
use crate::error::{Error, Result};

/// The format of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// Its subsystem.
    pub system: String,
    /// Its name in it.
    pub name: String,
    /// Its number: the attr's `config`, and the first two bytes of its raw bytes.
    pub id: u64,
    /// The fields that all events have.
    pub common: Vec<EventField>,
    /// Its own fields.
    pub fields: Vec<EventField>,
    /// The kernel's print format: a string and its arguments, in a subset of C. Empty if absent.
    pub print_fmt: String,
}

impl EventFormat {
    /// Reads a text that begins at byte `offset` of the file.
    ///
    /// # Errors
    /// Returns an error if it has no name, no number, or a field that cannot be read.
    pub fn parse(system: &str, text: &[u8], offset: u64) -> Result<Self> {
        const NAME: &str = "the name of a tracepoint";
        let mut lines = Lines { left: text, offset };
        let head = |line: Option<(&[u8], u64)>,
                    mark: &[u8],
                    what: &'static str|
         -> Result<(String, u64)> {
            let (line, at) = line.ok_or_else(|| Error::truncated(offset, what, 1, 0))?;
            let value = line.strip_prefix(mark).ok_or_else(|| {
                let detail =
                    format!("`{}` stands where `{}` should", shown(line), mark.escape_ascii());
                Error::invalid(at, what, detail)
            })?;
            Ok((String::from_utf8_lossy(value.trim_ascii()).into_owned(), at))
        };
        let (name, _) = head(lines.next(), b"name:", NAME)?;
        let (id, at) = head(lines.next(), b"ID:", "the number of a tracepoint")?;
        let id = id.parse().map_err(|_| {
            Error::invalid(
                at,
                "the number of a tracepoint",
                format!("`{}` is no number", id.escape_debug()),
            )
        })?;
        let mut event = Self {
            system: system.to_owned(),
            name,
            id,
            common: Vec::new(),
            fields: Vec::new(),
            print_fmt: String::new(),
        };
        event.read_fields(&mut lines)?;
        Ok(event)
    }

    fn read_fields(&mut self, lines: &mut Lines<'_>) -> Result<()> {
        let mut is_common = true;
        loop {
            let rest = lines.left;
            let Some((line, at)) = lines.next() else { return Ok(()) };
            let line = line.trim_ascii();
            if let Some(text) = rest.trim_ascii_start().strip_prefix(b"print fmt:") {
                self.print_fmt = String::from_utf8_lossy(text.trim_ascii()).into_owned();
                return Ok(());
            }
            if line.starts_with(b"field") {
                let field = EventField::parse(line, at)?;
                if is_common { &mut self.common } else { &mut self.fields }.push(field);
            } else if line.is_empty() {
                is_common &= self.common.is_empty();
            }
        }
    }

    /// Returns a field by its name; those that all events have come first.
    pub fn field(&self, name: &str) -> Option<&EventField> {
        self.common.iter().chain(&self.fields).find(|field| field.name == name)
    }
}

/// Lines with their places.
struct Lines<'a> {
    left: &'a [u8],
    offset: u64,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (&'a [u8], u64);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let len = self.left.iter().position(|byte| *byte == b'\n').unwrap_or(self.left.len());
        let (line, rest) = self.left.split_at_checked(len)?;
        let at = self.offset;
        self.left = rest.get(1..).unwrap_or_default();
        self.offset += len as u64 + 1;
        Some((line, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"prev_comm=%s\",\n REC->prev_comm\n";

    #[test]
    fn the_parts_of_a_text() {
        let event = EventFormat::parse("sched", SWITCH.as_bytes(), 0).unwrap();
        assert_eq!(event.system.as_str(), "sched");
        assert_eq!(event.name.as_str(), "sched_switch");
        assert_eq!(event.id, 372);
        let names = |fields: &[EventField]| {
            fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&event.common), ["common_type", "common_pid"]);
        assert_eq!(names(&event.fields), ["prev_comm", "name"]);
        assert_eq!(event.print_fmt, "\"prev_comm=%s\",\n REC->prev_comm");
        assert_eq!(event.field("common_pid").map(|field| field.offset), Some(4));
        assert!(event.field("nope").is_none());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let error = |text: &str| EventFormat::parse("s", text.as_bytes(), 50).unwrap_err();
        assert_eq!(error("").offset, 50);
        assert_eq!(error("nome: x\n").offset, 50);
        assert_eq!(
            error("name: x\nID: y\n").to_string(),
            "the number of a tracepoint: `y` is no number, at byte 58"
        );
        let field = SWITCH.find("\tfield:int").unwrap() as u64;
        let damaged = SWITCH.replace("offset:4", "offset:?");
        assert_eq!(error(&damaged).offset, 50 + field);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(at in 0usize..400, byte: u8, len in 0usize..500) {
            let mut text = SWITCH.as_bytes().to_vec();
            if let Some(old) = text.get_mut(at) {
                *old = byte;
            }
            text.truncate(len);
            if let Err(error) = EventFormat::parse("s", &text, 0) {
                prop_assert!(error.offset <= text.len() as u64);
            }
        }
    }
}
