//! Everything that is known of a file before its samples are looked at: what views of single records begin with.

use anyhow::Context as _;
use indexmap::IndexSet;
use recrep_format::attrs::AttrEntry;
use recrep_format::error::Error;
use recrep_format::read::File;

use crate::clock::Clock;
use crate::event_name::event_name;
use crate::input::Input;
use crate::resolve::Module;
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
    /// Who was what, what was mapped where.
    pub timeline: Timeline,
    /// What was mapped; a module's number is a place in here.
    pub modules: IndexSet<Module>,
    /// The names of the events.
    pub events: Vec<String>,
}

/// Sets the stage for `input` and gives what `act` makes of it, and what was wrong with the file.
///
/// # Errors
/// The input is not a perf.data file; what `act` gives.
pub fn on<R>(input: &Input, act: impl FnOnce(&Stage<'_>) -> anyhow::Result<R>) -> anyhow::Result<(R, Vec<Warning>)> {
    let file = File::parse(input.bytes()).with_context(|| format!("cannot read {}", input.name))?;
    let unpacked = unpack::is_compressed(file.records()).then(|| unpack::unpack(file.records(), &file.attrs));
    let (data, offset) = unpacked.as_ref().map_or((file.data_bytes(), file.data.offset), |u| (&u.bytes, 0));
    let split = Split::of(data, offset, file.endian);
    let clock = Clock::new(&file.attrs, file.mode, &split.pieces, split.first_round);
    let mut side_band = SideBand::read(&file, &split.side_band, &clock);
    let timeline = Timeline::build(std::mem::take(&mut side_band.changes));
    let events = file.attrs.entries().iter().map(name_of).collect();
    let stage = Stage { file: &file, split: &split, clock, timeline, modules: side_band.modules, events };
    let answer = act(&stage)?;
    let damage = [unpacked.as_ref().and_then(|u| u.damage.as_ref()), split.damage.as_ref()];
    let ends = |error: &Error| Warning::from(error);
    let all = file.warnings.iter().cloned().map(Warning::from).chain(damage.into_iter().flatten().map(ends));
    Ok((answer, all.collect()))
}

/// The name of an event: the file's, else one made of its attr.
#[must_use]
pub fn name_of(entry: &AttrEntry) -> String {
    entry.name.clone().unwrap_or_else(|| event_name(&entry.attr))
}
