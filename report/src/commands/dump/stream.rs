//! Prints the records of a stream, and those inside compressed ones.

use std::io::{self, Write};

use recrep_format::error::Error;
use recrep_format::read::{File, Frames};
use recrep_format::record::RawRecord;

use super::known::Known;
use super::query::DumpQuery;
use super::{hex, record};
use crate::input::unpack;
use crate::input::unpack::Unpacking;
use crate::query::warning::Warning;

/// Printer of records.
pub(super) struct Dump<'f, 'q, W> {
    known: Known<'f>,
    query: &'q DumpQuery,
    out: &'q mut W,
    warnings: Vec<Warning>,
    /// Number of records that cannot be decoded, and a warning about the first.
    malformed: Option<(u64, Warning)>,
    printed: u64,
}

/// A stream of records, with the state of unpacking its compressed records.
struct Stream<'n> {
    /// Prefix of its offsets.
    name: &'n str,
    bytes: usize,
    unpacking: Option<Unpacking>,
}

/// Whether the listing goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Record,
    End,
}

impl<'f, 'q, W: Write> Dump<'f, 'q, W> {
    pub(super) fn new(file: &'f File<'f>, query: &'q DumpQuery, out: &'q mut W) -> Self {
        let known = Known::of(file);
        let warnings = file.warnings.iter().cloned().map(Warning::from).collect();
        Self { known, query, out, warnings, malformed: None, printed: 0 }
    }

    /// Prints the records of a stream, with `name` before their offsets.
    pub(super) fn stream(&mut self, records: Frames<'_>, name: &str) -> io::Result<()> {
        let mut stream = Stream { name, bytes: records.left().len(), unpacking: None };
        for raw in records {
            let next = match raw {
                Ok(raw) => self.outer(&raw, &mut stream)?,
                Err(error) => self.end(&error, name),
            };
            if next == Next::End {
                break;
            }
        }
        self.unfinished(&stream);
        Ok(())
    }

    /// Returns the warnings.
    pub(super) fn warnings(mut self) -> Vec<Warning> {
        if let Some((count, first)) = self.malformed {
            let message = format!("{count} records do not have the layout of their type; the first: {}", first.message);
            self.warnings.push(Warning { code: "bad-record", message, ..first });
        }
        if self.known.file.attrs.entries().is_empty() {
            let message = "the file describes no events, so its samples cannot be decoded";
            self.warnings.push(Warning::new("no-events", message));
        }
        self.warnings
    }

    /// Prints a record of the file itself, then the records inside it.
    fn outer(&mut self, raw: &RawRecord<'_>, stream: &mut Stream<'_>) -> io::Result<Next> {
        if self.record(raw, stream.name)? == Next::End {
            return Ok(Next::End);
        }
        match unpack::piece(raw, &self.known.file.attrs) {
            Some(Ok(piece)) => self.inner(piece, raw.offset, stream),
            Some(Err(error)) => Ok(self.end(&error, stream.name)),
            None => Ok(Next::Record),
        }
    }

    /// Prints the records that a piece of the compressed stream completes.
    fn inner(&mut self, piece: &[u8], offset: u64, stream: &mut Stream<'_>) -> io::Result<Next> {
        let unpacking = match stream.unpacking.take() {
            Some(unpacking) => Ok(unpacking),
            None => Unpacking::new(stream.bytes, self.known.file.endian),
        };
        let mut unpacking = match unpacking {
            Ok(unpacking) => unpacking,
            Err(error) => return Ok(self.end(&error, stream.name)),
        };
        let outcome = unpacking.feed(piece, offset);
        let name = format!("{}unpacked:", stream.name);
        let mut whole = 0;
        for raw in unpacking.records().map_while(Result::ok) {
            whole += raw.bytes.len() + raw.payload.len();
            if self.record(&raw, &name)? == Next::End {
                return Ok(Next::End);
            }
        }
        drop(unpacking.take(whole));
        let is_stuck = unpacking.is_stuck();
        stream.unpacking = Some(unpacking);
        Ok(match outcome {
            Err(error) => self.end(&error, stream.name),
            Ok(()) if is_stuck => Next::End,
            Ok(()) => Next::Record,
        })
    }

    fn end(&mut self, error: &Error, name: &str) -> Next {
        self.warnings.push(located(error, name));
        Next::End
    }

    /// Warns of an incomplete record at the end of the unpacked stream.
    fn unfinished(&mut self, stream: &Stream<'_>) {
        let Some(unpacking) = &stream.unpacking else { return };
        if let Some(Err(error)) = unpacking.records().next() {
            self.end(&error, &format!("{}unpacked:", stream.name));
        }
    }

    /// Prints a record, if it is asked for and the limit is not reached.
    fn record(&mut self, raw: &RawRecord<'_>, name: &str) -> io::Result<Next> {
        if self.query.types.as_ref().is_some_and(|types| !types.contains(&raw.header.kind)) {
            return Ok(Next::Record);
        }
        if self.printed >= self.query.limit {
            return Ok(Next::End);
        }
        self.printed += 1;
        record::head(&self.known, raw, name, self.out)?;
        if self.query.raw {
            hex::print(raw.bytes, usize::MAX, self.out)?;
        }
        match self.known.file.attrs.decode(raw) {
            Ok(record) => record::body(&self.known, raw, &record, self.out)?,
            Err(error) => {
                writeln!(self.out, "  malformed: {error}")?;
                self.malformed.get_or_insert_with(|| (0, located(&error, name))).0 += 1;
            }
        }
        if !raw.payload.is_empty() {
            let at = raw.offset + u64::from(raw.header.size);
            writeln!(self.out, "  payload: {} bytes at {name}{at:#x}", raw.payload.len())?;
            hex::print(raw.payload, self.query.payload, self.out)?;
        }
        Ok(Next::Record)
    }
}

/// Returns a warning of an error in the stream with this name.
fn located(error: &Error, name: &str) -> Warning {
    let warning = Warning::from(error);
    let name = if name.is_empty() { String::new() } else { format!("{name} ") };
    Warning { message: format!("{name}{}", warning.message), ..warning }
}
