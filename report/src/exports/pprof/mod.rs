//! A profile as pprof reads it: gzip of `profile.proto`.
//!
//! ```text
//!   call trees ─► frames ─► functions, modules ─┐ sorted by what they are, not by the order in which
//!             └─► chains ─► locations ──────────┼─ they were found: the same bytes with any number
//!                        └► samples, labels ────┘ of threads
//! ```
//!
//! Frames that were inlined into one another are one location with several lines. Values of events
//! come in pairs: number of samples, period.

mod builder;
mod labels;
mod mappings;
mod places;

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use prost::Message as _;

pub(super) use self::builder::ProfileBuilder;
pub(super) use self::labels::PROCESS_NAME;
use super::export::FileExport;
use super::frames::{self, Frames};
use crate::engine::facts::RecordingFacts;
use crate::profile::Profile;
use crate::query::Query;

pub(super) struct Pprof;

/// Adds to a query what the message of a profile needs.
pub(super) fn complete(query: &mut Query) {
    frames::complete(query);
    labels::complete(query);
}

impl FileExport for Pprof {
    fn extension(&self) -> &'static str {
        "pb.gz"
    }

    fn complete(&self, query: &mut Query) {
        complete(query);
    }

    fn write(
        &self,
        profile: &Profile,
        query: &Query,
        facts: &RecordingFacts,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let frames = Frames::of(profile);
        let message = ProfileBuilder::new(profile, query, &frames).profile(facts);
        // Without a time, so that equal profiles are equal files.
        let mut packed = GzBuilder::new().mtime(0).write(out, Compression::default());
        packed.write_all(&message.encode_to_vec())?;
        packed.finish()?.flush()
    }
}
