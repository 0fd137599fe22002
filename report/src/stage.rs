//! Everything that is known of a file before its samples are looked at: what every view begins with.
//!
//! ```text
//!   bytes ─► File (parts) ─► [unpacked] ─► Split (one pass) ─► SideBand ─► Timeline (frozen)
//! ```

use anyhow::Context as _;
use recrep_format::attrs::AttrEntry;
use recrep_format::error::Error;
use recrep_format::read::{File, Mode};

use crate::clock::Clock;
use crate::event_name::event_name;
use crate::input::Input;
use crate::sideband::SideBand;
use crate::split::Split;
use crate::timeline::Timeline;
use crate::unpack;
use crate::warning::Warning;

/// A file with its side-band frozen.
#[derive(Debug)]
pub struct Stage<'f> {
    /// Its parts.
    pub file: &'f File<'f>,
    /// Its records, cut into pieces.
    pub split: &'f Split<'f>,
    /// When records take effect.
    pub clock: Clock<'f>,
    /// What was mapped, what was lost; its changes are in the timeline.
    pub side_band: SideBand,
    /// Who was what, what was mapped where.
    pub timeline: Timeline,
    /// The names of the events.
    pub events: Vec<String>,
    /// Why what was unpacked ends early.
    unpacking: Option<&'f Error>,
}

/// Sets the stage for `input` and gives what `act` makes of it.
///
/// # Errors
/// The input is not a perf.data file; what `act` gives.
pub fn on<R>(input: &Input, act: impl FnOnce(&Stage<'_>) -> anyhow::Result<R>) -> anyhow::Result<R> {
    let file = File::parse(input.bytes()).with_context(|| format!("cannot read {}", input.name))?;
    let unpacked = unpack::is_compressed(file.records()).then(|| unpack::unpack(file.records(), &file.attrs));
    let (data, offset) = unpacked.as_ref().map_or((file.data_bytes(), file.data.offset), |u| (&u.bytes, 0));
    let split = Split::of(data, offset, file.endian);
    let clock = Clock::new(&file.attrs, file.mode, &split.pieces, split.first_round);
    let mut side_band = SideBand::read(&file, &split.side_band, &clock);
    let timeline = Timeline::build(std::mem::take(&mut side_band.changes));
    let events = file.attrs.entries().iter().map(name_of).collect();
    let unpacking = unpacked.as_ref().and_then(|u| u.damage.as_ref());
    act(&Stage { file: &file, split: &split, clock, side_band, timeline, events, unpacking })
}

/// The name of an event: the file's, else one made of its attr.
fn name_of(entry: &AttrEntry) -> String {
    entry.name.clone().unwrap_or_else(|| event_name(&entry.attr))
}

impl Stage<'_> {
    /// Whether the file is whole: its recorder finished it, and nothing was cut off since.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let file = self.file;
        let mended = file.warnings.iter().any(|w| matches!(w.code, "truncated" | "no-data-size"));
        // A recorder writes the data's size and the features last.
        let ended = file.mode == Mode::Pipe || file.header.data.size > 0 || !file.features.is_empty();
        ended && !mended && self.split.damage.is_none() && self.unpacking.is_none()
    }

    /// What is wrong with the file.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut all: Vec<Warning> = self.file.warnings.iter().cloned().map(Warning::from).collect();
        let ends = |error: &Error| {
            let warning = Warning::from(error);
            Warning { message: format!("{}; what is before it is reported", warning.message), ..warning }
        };
        all.extend(self.unpacking.map(ends));
        all.extend(self.split.damage.as_ref().map(ends));
        if let Some((count, first)) = &self.side_band.malformed {
            let message =
                format!("{count} records are not what their type says and are left out; the first: {}", first.kind);
            all.push(Warning { code: "bad-record", message, offset: Some(first.offset) });
        }
        if self.file.attrs.entries().is_empty() {
            all.push(Warning::new("no-events", "the file describes no events, so its samples cannot be read"));
        }
        all
    }
}
