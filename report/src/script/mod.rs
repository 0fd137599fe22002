//! `rep script`: samples as text, one after another, in time order.
//!
//! Fields and their forms are `perf script`'s, so that whoever reads one can read the other:
//!
//! ```text
//!    comm     pid/tid      cpu   time        period event:  addr data_src weight   ip sym (dso) brstack phys_addr
//! ```
//!
//! With `ip` and an event that has callchains, each frame has a line, and an empty line follows. Samples are found by
//! their moments (16 bytes each) and put in order; nothing else of them is kept.

mod args;
mod fields;
mod frames;
mod line;
mod query;

pub use args::{ScriptArgs, parse};
pub use fields::{Field, Fields};
pub use query::ScriptQuery;

use std::io::{self, Write};

use rayon::prelude::*;
use recrep_format::read::Frames;
use recrep_format::record::{HEADER_SIZE, RawRecord, RecordHeader};

use crate::input::Input;
use crate::resolve::Resolver;
use crate::split::Piece;
use crate::stage::{self, Stage};
use crate::timeline::Moment;
use crate::warning::Warning;
use line::Printer;

/// Why there is no answer, or not a whole one.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The output cannot be written.
    #[error("cannot write the answer: {0}")]
    Write(#[from] io::Error),
}

/// Writes the samples; gives what was wrong with the file.
///
/// # Errors
/// The input cannot be read, or the output cannot be written ([`ScriptError::Write`]).
pub fn run(query: &ScriptQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let input = Input::open(&query.source)?;
    let resolver = Resolver::new(query.symbol_sources.clone());
    stage::on(&input, |stage| {
        let mut printer = Printer::new(stage, query, &resolver);
        let moments = moments(stage);
        for (_, piece, at) in &moments {
            let Some(raw) = record_at(stage, *piece, *at) else { continue };
            if query.limit.is_some_and(|limit| printer.lines() >= limit) {
                break;
            }
            printer.sample(raw, out).map_err(ScriptError::Write)?;
        }
        let mut warnings = stage.warnings();
        warnings.extend(printer.missing());
        Ok(warnings)
    })
}

/// The samples in the order of their moments: piece and place in it.
fn moments(stage: &Stage<'_>) -> Vec<(Moment, u32, u32)> {
    let of_piece = |(number, piece): (u32, &Piece<'_>)| {
        let frames = Frames::new(piece.bytes, piece.offset, stage.file.endian).map_while(Result::ok);
        let mut found = Vec::new();
        for raw in frames {
            let Some((event, sample)) = stage.file.attrs.sample(raw) else { continue };
            let has_time = stage.file.attrs.sample_layout(event).is_some_and(|layout| layout.time.is_some());
            let time = if has_time { sample.time() } else { None };
            let at = u32::try_from(raw.offset - piece.offset).unwrap_or(u32::MAX);
            found.push((stage.clock.moment(time, raw.offset), number, at));
        }
        found
    };
    let pieces: Vec<_> = (0u32..).zip(&stage.split.pieces).collect();
    let mut all: Vec<_> = pieces.into_par_iter().flat_map_iter(of_piece).collect();
    all.par_sort_unstable();
    all
}

fn record_at<'f>(stage: &Stage<'f>, piece: u32, at: u32) -> Option<RawRecord<'f>> {
    let piece = stage.split.pieces.get(piece as usize)?;
    let bytes = piece.bytes.get(at as usize..)?;
    let header = RecordHeader::read(*bytes.first_chunk::<HEADER_SIZE>()?, stage.file.endian);
    let bytes = bytes.get(..usize::from(header.size))?;
    Some(RawRecord { header, offset: piece.offset + u64::from(at), bytes, payload: &[] })
}
