//! Text of a record: its first line, its bytes, and lines of fields (`name: value, name: value`),
//! indented by two spaces.

use std::fmt::{self, Display};
use std::io::Write;

use recrep_format::abi::{AuxtraceKind, CpuMode, RecordType, RegsArch, misc};
use recrep_format::feature::{Arch, NrCpus};
use recrep_format::fields::{Fields, Value};
use recrep_format::read::File;
use recrep_format::record::{Body, RawRecord, Record, SampleId};

use crate::terminal::digits;
use crate::terminal::escape::escape;

/// Facts about the file that are needed to print the fields of its records.
pub(super) struct FileFacts<'f> {
    pub(super) file: &'f File<'f>,
    /// Names of the events, escaped.
    pub(super) events: Vec<String>,
    /// Architecture of the recorded machine, if its registers are known.
    pub(super) registers: Option<RegsArch>,
    /// Number of CPUs of the recorded machine; 0 if unknown.
    pub(super) cpus: u32,
    /// Kind of the traces; `None` if it is not known, or not needed.
    pub(super) trace: Option<AuxtraceKind>,
}

impl<'f> FileFacts<'f> {
    pub(super) fn of(file: &'f File<'f>) -> Self {
        let entries = file.attrs.entries().iter();
        let arch = file.feature::<Arch<'_>>().and_then(Result::ok);
        let cpus = file.feature::<NrCpus>().and_then(Result::ok).map_or(0, |cpus| cpus.available);
        let registers = arch.and_then(|arch| RegsArch::of(&arch.0.to_text()));
        Self {
            file,
            events: entries.map(|entry| escape(&entry.event_name()).into_owned()).collect(),
            registers,
            cpus,
            trace: None,
        }
    }

    /// Returns the same facts with the kind of the traces.
    pub(super) fn with_trace(self, records: impl Iterator<Item = RawRecord<'f>>) -> Self {
        let mut infos = records.filter(|raw| raw.header.kind == RecordType::AUXTRACE_INFO);
        let trace = infos.find_map(|raw| match self.file.attrs.decode(&raw).ok()?.body {
            Body::AuxtraceInfo(info) => Some(info.kind),
            _ => None,
        });
        Self { trace, ..self }
    }
}

/// Text of records of a file.
pub(super) struct RecordLines<'k> {
    pub(super) known: &'k FileFacts<'k>,
    pub(super) out: Vec<u8>,
    /// Text before the next field of the current line; `None` if the line is empty.
    separator: Option<&'static str>,
}

impl<'k> RecordLines<'k> {
    /// Replaces the text in `out`.
    pub(super) fn new(known: &'k FileFacts<'k>, mut out: Vec<u8>) -> Self {
        out.clear();
        Self { known, out, separator: None }
    }

    /// Writes the first line of a record; `stream` stands before its offset.
    pub(super) fn head(&mut self, raw: &RawRecord<'_>, stream: &str) {
        let (header, known) = (raw.header, self.known);
        self.write(format_args!(
            "{stream}{:#x} [{:#x}] PERF_RECORD_{}",
            raw.offset, header.size, header.kind
        ));
        if header.kind.name().is_none() {
            self.write(format_args!(" type {}", header.kind.0));
        }
        self.write(format_args!(" misc {:#x}", header.misc));
        for name in misc_names(header.kind, header.misc) {
            self.write(format_args!(" {name}"));
        }
        if header.kind == RecordType::SAMPLE {
            let name = known.file.attrs.event_of(raw).and_then(|index| known.events.get(index.0));
            self.write(format_args!(" event {}", name.map_or("not known", String::as_str)));
        }
        self.write(format_args!("\n"));
    }

    /// Writes the fields of a record, its trailer, and the number of bytes that are not decoded.
    pub(super) fn record(&mut self, raw: &RawRecord<'_>, record: &Record<'_>) {
        match &record.body {
            Body::Sample(fields) => self.sample(fields),
            body => self.body(raw, body),
        }
        self.end();
        if record.trailer != SampleId::default() {
            self.begin("sample_id:").shared_fields(&record.trailer).end();
        }
        if !record.rest.is_empty() {
            self.field("rest", format_args!("{} bytes", record.rest.len())).end();
        }
    }

    /// Writes a field to the current line.
    pub(super) fn field(&mut self, name: &str, value: impl Display) -> &mut Self {
        let before = self.separator.replace(", ").unwrap_or("  ");
        self.write(format_args!("{before}{name}: {value}"))
    }

    /// Writes a field if it has a value.
    pub(super) fn maybe(&mut self, name: &str, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Writes a number in hexadecimal, if there is one.
    pub(super) fn hex(&mut self, name: &str, number: impl Into<Option<u64>>) -> &mut Self {
        match number.into() {
            Some(number) => self.field(name, format_args!("{number:#x}")),
            None => self,
        }
    }

    /// Writes text from the file, escaped.
    pub(super) fn text(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        self.field(name, escape(&String::from_utf8_lossy(bytes)))
    }

    /// Writes each field of a structure.
    pub(super) fn fields(&mut self, fields: &dyn Fields) -> &mut Self {
        fields.each(&mut |name, value| _ = self.value(name, &value));
        self
    }

    /// Writes a field by its kind of value: bytes as their number. Lists are not part of the line.
    pub(super) fn value(&mut self, name: &'static str, value: &Value<'_>) -> &mut Self {
        match value {
            Value::Number(number) => self.field(name, number),
            Value::Hex(number) => self.hex(name, *number),
            Value::Real(number) => self.field(name, number),
            Value::Named(number, of) => self.field(name, named(number, *of)),
            Value::Text(text) => self.text(name, text),
            Value::Bytes(bytes) => self.field(name, bytes.len()),
            Value::Fields(fields) => self.fields(*fields),
            _ => self,
        }
    }

    /// Begins a line with a word that names the group of its fields.
    pub(super) fn begin(&mut self, word: &str) -> &mut Self {
        self.end().write(format_args!("  {word}"));
        self.separator = Some(" ");
        self
    }

    /// Writes an item of the group on a line of its own, indented further.
    pub(super) fn item(&mut self, item: impl Display) -> &mut Self {
        self.end().write(format_args!("    {item}\n"))
    }

    /// Writes an item for each of these.
    pub(super) fn items<T>(
        &mut self,
        all: impl IntoIterator<Item = T>,
        item: impl Fn(T) -> String,
    ) -> &mut Self {
        all.into_iter().fold(self, |lines, of| lines.item(item(of)))
    }

    /// Ends the current line, if there is one.
    pub(super) fn end(&mut self) -> &mut Self {
        let end = if self.separator.take().is_some() { "\n" } else { "" };
        self.write(format_args!("{end}"))
    }

    pub(super) fn write(&mut self, text: fmt::Arguments<'_>) -> &mut Self {
        let outcome = self.out.write_fmt(text);
        debug_assert!(outcome.is_ok(), "a vector takes everything");
        self
    }
}

/// Formats a number with its name, if it has one.
pub(super) fn named(number: impl Display, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{number} {name}"),
        None => number.to_string(),
    }
}

/// Returns fields as text: `name: value, name: value`.
pub(super) fn flat(fields: &dyn Fields) -> String {
    let mut parts = Vec::new();
    fields.each(&mut |name, value| match value {
        Value::Number(number) => parts.push(format!("{name}: {number}")),
        Value::Hex(number) => parts.push(format!("{name}: {number:#x}")),
        Value::Fields(inner) => parts.push(flat(inner)),
        _ => {}
    });
    parts.join(", ")
}

/// Returns the names of the `misc` bits that are set and have a meaning in a record of this type.
fn misc_names(kind: RecordType, bits: u16) -> impl Iterator<Item = &'static str> {
    let mode = match CpuMode::of(bits) {
        CpuMode::Unknown => None,
        CpuMode::Kernel => Some("KERNEL"),
        CpuMode::User => Some("USER"),
        CpuMode::Hypervisor => Some("HYPERVISOR"),
        CpuMode::GuestKernel => Some("GUEST_KERNEL"),
        CpuMode::GuestUser => Some("GUEST_USER"),
        CpuMode::Reserved => Some("RESERVED"),
    };
    type R = RecordType;
    let named: [(u16, &str, &[R]); 9] = [
        (misc::MMAP_DATA, "MMAP_DATA", &[R::MMAP, R::MMAP2]),
        (misc::MMAP_BUILD_ID, "MMAP_BUILD_ID", &[R::MMAP2]),
        (misc::PROC_MAP_PARSE_TIMEOUT, "PROC_MAP_PARSE_TIMEOUT", &[R::MMAP, R::MMAP2]),
        (misc::COMM_EXEC, "COMM_EXEC", &[R::COMM]),
        (misc::FORK_EXEC, "FORK_EXEC", &[R::FORK]),
        (misc::SWITCH_OUT, "SWITCH_OUT", &[R::SWITCH, R::SWITCH_CPU_WIDE]),
        (misc::SWITCH_OUT_PREEMPT, "SWITCH_OUT_PREEMPT", &[R::SWITCH, R::SWITCH_CPU_WIDE]),
        (misc::EXACT_IP, "EXACT_IP", &[R::SAMPLE]),
        (misc::BUILD_ID_SIZE, "BUILD_ID_SIZE", &[R::BUILD_ID]),
    ];
    let mode = mode.filter(|_| kind.is_kernel() || kind == R::BUILD_ID);
    let set =
        named.into_iter().filter(move |(bit, _, kinds)| bits & bit != 0 && kinds.contains(&kind));
    mode.into_iter().chain(set.map(|(_, name, _)| name))
}

/// Number of bytes on a line of a hex dump.
const BYTES_PER_LINE: usize = 16;

/// Prints at most `most` of the bytes, with their characters.
pub(super) fn hex_dump(bytes: &[u8], most: usize, out: &mut Vec<u8>) {
    let shown = bytes.get(..most).unwrap_or(bytes);
    for (place, line) in (0u64..).zip(shown.chunks(BYTES_PER_LINE)) {
        out.extend_from_slice(b"  ");
        digits::hex_zeros(out, place * BYTES_PER_LINE as u64, 4);
        out.push(b' ');
        for byte in line {
            out.push(b' ');
            out.extend_from_slice(&digits::hex_byte(*byte));
        }
        out.resize(out.len() + 3 * (BYTES_PER_LINE - line.len()) + 2, b' ');
        out.extend(
            line.iter()
                .map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { *byte } else { b'.' }),
        );
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_keeps_its_columns() {
        let mut out = Vec::new();
        hex_dump(b"0123456789abcdef\x1b[", usize::MAX, &mut out);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "  0000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef"
        );
        assert_eq!(lines[1], format!("  0010  1b 5b{:42}  .[", ""));
        let mut cut = Vec::new();
        hex_dump(&[0; 40], 3, &mut cut);
        assert_eq!(cut.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}
