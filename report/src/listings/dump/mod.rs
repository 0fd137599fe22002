//! `rep dump`: every record of a file, raw and decoded, in file order.
//!
//! ```text
//! 0x1f0 [0x30] PERF_RECORD_COMM misc 0x2000 COMM_EXEC         offset, size, type, bits of `misc`
//!   0000  03 00 00 00 00 20 30 00 67 01 00 00 67 01 00 00  ..... 0.g...g...
//!   pid: 359, tid: 359, comm: sleep                           fields, under their ABI names
//!   sample_id: pid: 359, tid: 359, time: 7191898190310        trailer
//! unpacked:0x40 [0x28] PERF_RECORD_SAMPLE misc 0x2 USER event cpu-clock:u
//! ```
//!
//! A record begins in the first column; indented lines belong to it. Names of types and formats of
//! values are those of `perf script -D`: addresses in hexadecimal, pids signed, times in
//! nanoseconds of the perf clock. The streams of a directory follow each other, with the file's
//! name before each offset (`data.1:0x40`).
//!
//! Bytes that are not decoded are counted: `rest: 4 bytes`.
//!
//! Runs of records are printed on all cores and written in order. Compressed records are unpacked
//! one at a time, and an incomplete record at the end of one is kept until the next. Damage ends
//! the listing after the last whole record, with a warning that names the offset; a record that is
//! too short for its type is printed as bytes, and counted.

mod args;
mod body;
mod packets;
mod record;
mod sample;
mod stream;

pub(crate) use args::{DumpOptions, DumpQuery};
pub(crate) use body::access_letters;

use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::Context as _;
use recrep_format::read::Frames;

use crate::input::Input;
use crate::query::{Source, Warning};
use crate::terminal::escape::escape;
use crate::terminal::parts::{CANNOT_WRITE, Workers, batch, in_order};
use record::FileFacts;
use stream::{Printed, Walk};

pub(crate) fn run(query: &DumpQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    print(&query.source.source(), &query.options, out)
}

/// Prints the records of a file and returns the warnings.
pub(crate) fn print(
    source: &Source,
    options: &DumpOptions,
    out: &mut impl Write,
) -> anyhow::Result<Vec<Warning>> {
    let input = Input::recording(source, "a list of records")?;
    input.unless_changed(print_input(&input, options, out))
}

fn print_input(
    input: &Input,
    options: &DumpOptions,
    out: &mut impl Write,
) -> anyhow::Result<Vec<Warning>> {
    let file = &input.parsed()?;
    let mut known = FileFacts::of(file);
    if options.packets {
        known = known.with_trace(file.records().map_while(Result::ok));
    }
    let known = &known;
    let streams = input.streams().iter().map(|stream| {
        (Frames::new(&stream.bytes, 0, file.endian), format!("{}:", escape(&stream.name)))
    });
    let mut walk =
        Walk::new(known, options, std::iter::once((file.records(), String::new())).chain(streams));
    let mut malformed: Option<(u64, Warning)> = None;
    let buffers = Workers::<Vec<u8>>::default();
    let print = |chunk| stream::print(known, options, &chunk, buffers.take(Vec::new));
    in_order(&mut walk, batch(false), print, |(text, wrong): Printed| {
        if let Some((count, first)) = wrong {
            malformed.get_or_insert((0, first)).0 += count;
        }
        out.write_all(&text)?;
        buffers.put(text);
        Ok::<_, io::Error>(ControlFlow::Continue(()))
    })
    .context(CANNOT_WRITE)?;
    let mut warnings: Vec<_> = file.warnings.iter().cloned().map(Warning::from).collect();
    warnings.extend(walk.warnings);
    if let Some((count, first)) = malformed {
        let message = format!(
            "{count} records do not have the layout of their type; the first: {}",
            first.message
        );
        warnings.push(Warning { code: "bad-record", message, ..first });
    }
    if file.attrs.entries().is_empty() {
        let message = "the file describes no events, so its samples cannot be decoded";
        warnings.push(Warning::new("no-events", message));
    }
    Ok(warnings)
}
