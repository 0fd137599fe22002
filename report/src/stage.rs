//! Everything that is known of a file before its samples are looked at: what every view begins with.
//!
//! ```text
//!   bytes ─► File (parts) ─► Streams (unpacked where compressed) ─► Split (one pass) ─► SideBand ─► Timeline (frozen)
//! ```

use anyhow::Context as _;
use recrep_format::attrs::AttrEntry;
use recrep_format::read::{File, Mode};

use crate::clock::Clock;
use crate::event_name::event_name;
use crate::input::Input;
use crate::sideband::SideBand;
use crate::split::Split;
use crate::streams::Streams;
use crate::timeline::Timeline;
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
    streams: &'f Streams<'f>,
}

/// Sets the stage for `input` and gives what `act` makes of it.
///
/// # Errors
/// The input is not a perf.data file; what `act` gives.
pub fn on<R>(input: &Input, act: impl FnOnce(&Stage<'_>) -> anyhow::Result<R>) -> anyhow::Result<R> {
    let file = File::parse(input.bytes()).with_context(|| format!("cannot read {}", input.name))?;
    let streams = Streams::of(input, &file);
    let split = &streams.split(file.endian);
    let clock = Clock::new(&file.attrs, file.mode, &split.pieces, split.first_round);
    let mut side_band = SideBand::read(&file, &split.side_band, &clock);
    let timeline = Timeline::build(std::mem::take(&mut side_band.changes));
    let events = file.attrs.entries().iter().map(name_of).collect();
    act(&Stage { file: &file, split, clock, side_band, timeline, events, streams: &streams })
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
        ended && !mended && self.split.damage.is_empty() && self.streams.unpacking().next().is_none()
    }

    /// What is wrong with the file.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut all: Vec<Warning> = self.file.warnings.iter().cloned().map(Warning::from).collect();
        let damage = self.split.damage.iter().map(|error| self.streams.located(error.into()));
        let ends = self.streams.unpacking().chain(damage);
        all.extend(ends.map(|w| Warning { message: format!("{}; what is before it is reported", w.message), ..w }));
        if let Some((count, first)) = &self.side_band.malformed {
            let message =
                format!("{count} records are not what their type says and are left out; the first: {}", first.kind);
            let offset = Some(first.offset);
            all.push(self.streams.located(Warning { code: "bad-record", message, offset }));
        }
        if self.file.attrs.entries().is_empty() {
            all.push(Warning::new("no-events", "the file describes no events, so its samples cannot be read"));
        }
        all
    }
}
