//! The walk over the records, and into the compressed ones.

use std::io::{self, Write};

use recrep_format::abi::RecordType;
use recrep_format::error::Error;
use recrep_format::read::{File, Frames, Unpacker};
use recrep_format::record::{Body, RawRecord};

use super::known::Known;
use super::query::DumpQuery;
use super::{hex, record};
use crate::warning::Warning;

/// How many times its own size a file may unpack to, beyond what any recording does.
const MOST: usize = 40;
/// What even the smallest file may unpack to.
const LEAST: usize = 16 << 20;

/// The listing.
pub(super) struct Dump<'f, 'q, W> {
    known: Known<'f>,
    query: &'q DumpQuery,
    out: &'q mut W,
    warnings: Vec<Warning>,
    /// How many records cannot be decoded, and what is wrong with the first.
    malformed: Option<(u64, Warning)>,
    printed: u64,
}

/// A stream of records: what its places are told by, and where the unpacking of its compressed records stands.
struct Stream<'n> {
    name: &'n str,
    bytes: usize,
    unpacking: Option<Unpacking>,
}

/// Where the unpacking of compressed records stands.
struct Unpacking {
    unpacker: Unpacker,
    /// What is unpacked and not yet a whole record.
    pending: Vec<u8>,
    /// Where in the unpacked stream `pending` begins.
    offset: u64,
    /// How many bytes more may come.
    left: usize,
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

    /// Prints the records of a stream; `name` stands before their places.
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

    /// What was wrong.
    pub(super) fn warnings(mut self) -> Vec<Warning> {
        if let Some((count, first)) = self.malformed {
            let message = format!("{count} records are not what their type says; the first: {}", first.message);
            self.warnings.push(Warning { code: "bad-record", message, ..first });
        }
        if self.known.file.attrs.entries().is_empty() {
            let message = "the file describes no events, so its samples cannot be decoded";
            self.warnings.push(Warning::new("no-events", message));
        }
        self.warnings
    }

    /// A record of the file itself, and the ones in it.
    fn outer(&mut self, raw: &RawRecord<'_>, stream: &mut Stream<'_>) -> io::Result<Next> {
        if self.record(raw, stream.name)? == Next::End {
            return Ok(Next::End);
        }
        if !matches!(raw.header.kind, RecordType::COMPRESSED | RecordType::COMPRESSED2) {
            return Ok(Next::Record);
        }
        match self.known.file.attrs.decode(raw).map(|record| record.body) {
            Ok(Body::Compressed(piece)) => self.inner(piece.data, raw.offset, stream),
            Ok(Body::Compressed2(piece)) => self.inner(piece.stream(), raw.offset, stream),
            _ => Ok(Next::Record),
        }
    }

    /// The records that a piece of the compressed stream ends.
    fn inner(&mut self, piece: &[u8], offset: u64, stream: &mut Stream<'_>) -> io::Result<Next> {
        let unpacking = match stream.unpacking.take() {
            Some(unpacking) => Ok(unpacking),
            None => Unpacking::new(stream.bytes),
        };
        let mut unpacking = match unpacking {
            Ok(unpacking) => unpacking,
            Err(error) => return Ok(self.end(&error, stream.name)),
        };
        let outcome = unpacking.feed(piece, offset);
        let mut frames = Frames::new(&unpacking.pending, unpacking.offset, self.known.file.endian);
        let name = format!("{}unpacked:", stream.name);
        let mut next = Next::Record;
        let mut whole = unpacking.offset;
        while let Some(Ok(raw)) = frames.next() {
            whole = frames.offset();
            next = self.record(&raw, &name)?;
            if next == Next::End {
                break;
            }
        }
        let done = usize::try_from(whole - unpacking.offset).unwrap_or(usize::MAX).min(unpacking.pending.len());
        unpacking.pending.drain(..done);
        unpacking.offset = whole;
        if next == Next::Record {
            stream.unpacking = Some(unpacking);
            if let Err(error) = outcome {
                next = self.end(&error, stream.name);
            }
        }
        Ok(next)
    }

    fn end(&mut self, error: &Error, name: &str) -> Next {
        self.warnings.push(located(error, name));
        Next::End
    }

    /// Tells of what the compressed records leave unfinished.
    fn unfinished(&mut self, stream: &Stream<'_>) {
        let Some(unpacking) = &stream.unpacking else { return };
        let mut frames = Frames::new(&unpacking.pending, unpacking.offset, self.known.file.endian);
        if let Some(Err(error)) = frames.next() {
            self.end(&error, &format!("{}unpacked:", stream.name));
        }
    }

    /// Prints a record, if it is asked for.
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

/// A warning of an error in the stream with this name.
fn located(error: &Error, name: &str) -> Warning {
    let warning = Warning::from(error);
    let name = if name.is_empty() { String::new() } else { format!("{name} ") };
    Warning { message: format!("{name}{}", warning.message), ..warning }
}

impl Unpacking {
    fn new(data: usize) -> Result<Self, Error> {
        let left = data.saturating_mul(MOST).max(LEAST);
        Ok(Self { unpacker: Unpacker::new()?, pending: Vec::new(), offset: 0, left })
    }

    fn feed(&mut self, piece: &[u8], offset: u64) -> Result<(), Error> {
        let before = self.pending.len();
        let outcome = self.unpacker.unpack(piece, offset, self.left, &mut self.pending);
        self.left = self.left.saturating_sub(self.pending.len() - before);
        outcome
    }
}
