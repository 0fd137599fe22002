//! Profiles of pprof as recordings: all that rep can do with a recording, it can do with them, but
//! for what needs single samples.
//!
//! ```text
//!   profile ─► decoded ─► frames: a line of a location ─► addresses, mappings, functions ─┐
//!                    └──► samples, labels ─► tasks ──────────────────────────────────────┴─► recording in memory
//! ```
//!
//! The recording has the names of its frames itself, as one of `rep bundle` does, so that there is
//! one way from records to a report. What it has that no other has: each record of a sample stands
//! for several samples; STREAM_ID is their number.
//!
//! A profile that rep wrote gives the recording's rows again: its inlined functions are what debug
//! information says of an address. Of other profiles, each line of a location is a frame, as in
//! pprof.

mod decoded;
mod events;
mod layout;
mod names;
mod points;
mod records;
mod tasks;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use self::decoded::Decoded;
pub(super) use self::decoded::ProfileError;

/// A recording made of a profile.
pub(super) struct ProfileRecording {
    /// A perf.data file.
    pub(super) bytes: Vec<u8>,
    /// Number of samples of all events.
    pub(super) samples: u64,
    /// `true` if inlined functions are frames unless the user asks otherwise.
    pub(super) shows_inlined: bool,
    /// Time at which the recording that the profile was made of was last written, if it is known.
    pub(super) written: Option<SystemTime>,
    /// Reason for which the profile has not all samples, if so.
    pub(super) torn: Option<String>,
}

/// Most bytes of records for each byte of a profile: a sample's stack may be one number there, of a
/// location with many lines.
const MAX_GROWTH: usize = 64;
/// Bytes that are always allowed.
const ALWAYS_ALLOWED: usize = 16 << 20;

/// Most bytes to which one of a packed profile may unpack: what is made of them takes more than they
/// do.
const MAX_RATIO: usize = 64;

/// Makes a recording of the bytes of a profile, which were `packed` bytes.
pub(super) fn recording(profile: &[u8], packed: usize) -> Result<ProfileRecording, ProfileError> {
    if profile.len() > packed.saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED) {
        return Err(ProfileError::Bomb(profile.len()));
    }
    let decoded = Decoded::read(profile)?;
    let most = profile.len().saturating_mul(MAX_GROWTH).max(ALWAYS_ALLOWED);
    let events = events::of(&decoded)?;
    let mut points = points::Points::of(&decoded)?;
    let layout = layout::AddressLayout::of(&decoded, &mut points)?;
    let tasks = tasks::ProfileTasks::of(&decoded)?;
    let (bytes, samples) = records::RecordWriter {
        decoded: &decoded,
        events: &events,
        points: &points,
        layout: &layout,
    }
    .recording(tasks, most)?;
    let facts = decoded.facts.as_ref();
    let incomplete = facts.is_some_and(|facts| facts.incomplete);
    let written = facts.and_then(|facts| facts.written);
    Ok(ProfileRecording {
        bytes,
        samples,
        shows_inlined: facts.is_some_and(|facts| facts.inlined),
        written: written.and_then(|time| UNIX_EPOCH.checked_add(Duration::from_nanos(time))),
        torn: incomplete
            .then(|| "the recording that the profile was made of was incomplete".into()),
    })
}

#[cfg(test)]
mod tests;
