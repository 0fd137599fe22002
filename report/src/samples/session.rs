//! A file with all that is known before its samples are decoded: the start of every view.
//!
//! ```text
//!   OpenedInput: File (parts), Streams (unpacked where compressed) ─► Split (one pass) ─► SideBand ─► Timeline (frozen)
//! ```

use std::borrow::Cow;
use std::sync::LazyLock;

use recrep_console::units;
use recrep_format::abi::SampleType;
use recrep_format::feature::{SampleTime, SimpleperfInitMap};
use recrep_format::read::{self, File, Frames};
use recrep_format::record::RawRecord;

use super::pass::{PieceWorker, by_piece, for_each_sample};
use crate::callchain::StackUnwinder;
use crate::input::Input;
use crate::input::split::{Piece, Split};
use crate::input::streams::{OpenedInput, Streams};
use crate::input::unpack::UnpackBuffer;
use crate::query::{Mode, Steps, TimeSteps, Warning};
use crate::symbols::{Functions, Resolver};
use crate::terminal::progress;
use crate::timeline::{Clock, OffCpu, SideBand, Timeline};

/// A file with its side-band frozen.
#[derive(Debug)]
pub(crate) struct Session<'f> {
    pub input: &'f Input,
    /// The parsed file.
    pub file: &'f File<'f>,
    /// The records, cut into pieces.
    pub split: Split<'f>,
    /// Moments at which records take effect.
    pub clock: Clock<'f>,
    /// Mapped modules and lost records; the changes are moved to the timeline.
    pub side_band: SideBand,
    /// Threads and mappings over time, built when it is first used: not all queries need it. The
    /// first use must not be by one of several workers, as the others could not help to build it.
    pub timeline: LazyLock<Timeline, Box<dyn FnOnce() -> Timeline + Send>>,
    /// Names of the events.
    pub events: Vec<String>,
    /// Times of threads off and on their CPUs, if they are counted.
    pub off_cpu: Option<OffCpu>,
    streams: &'f Streams<'f>,
}

impl<'f> Session<'f> {
    /// Reads what comes before the samples, with all that counting in this mode needs. With a
    /// `resolver`, the code of JITs has the names of its time, and text that was moved to anonymous
    /// memory those of its file.
    pub(crate) fn open(
        opened: &'f OpenedInput<'f>,
        mode: Mode,
        resolver: Option<&Resolver>,
    ) -> Self {
        let OpenedInput { input, file, streams } = opened;
        let split = streams.split(file.endian);
        let clock = Clock::new(&file.attrs, file.mode, &split.pieces, split.first_round);
        let records = with_earlier(file, &split.side_band);
        let mut side_band = SideBand::read(file, &records, &clock, input.written());
        let off_cpu = mode.is_of_time().then(|| OffCpu::read(&file.attrs, &split.pieces));
        if off_cpu.is_some() {
            side_band.add_stand_ins();
        }
        if let Some(resolver) = resolver {
            side_band.find_moved_text(resolver);
            side_band.add_jit_code(resolver);
        }
        let changes = std::mem::take(&mut side_band.changes);
        let timeline = LazyLock::new(
            Box::new(move || Timeline::build(changes)) as Box<dyn FnOnce() -> _ + Send>
        );
        let entries = file.attrs.entries().iter();
        let events = entries.map(|entry| entry.event_name().into_owned()).collect();
        drop(records);
        Self { input, file, split, clock, side_band, timeline, events, off_cpu, streams }
    }

    /// Returns the names of the events that are counted in a mode: those of the file, or the mode's
    /// own.
    pub(crate) fn events_of(&self, mode: Mode) -> Cow<'_, [String]> {
        mode.event()
            .map_or(Cow::Borrowed(&self.events[..]), |name| Cow::Owned(vec![name.to_owned()]))
    }

    /// Returns a finder of functions in the modules of the file.
    pub(crate) fn functions<'s>(&'s self, resolver: &'s Resolver) -> Functions<'s> {
        Functions::new(self.side_band.modules.iter().collect(), resolver)
    }

    /// Returns the unwinder of copied stacks, if samples of the file have any.
    pub(crate) fn unwinding<'s>(&'s self, resolver: &'s Resolver) -> Option<StackUnwinder<'s>> {
        StackUnwinder::new(self.file, &self.timeline, &self.side_band.modules, resolver)
    }

    /// Returns the times of the first and the last sample: from the header, else from the samples.
    pub(crate) fn sampled_between(&self) -> (u64, u64) {
        if let Some(Ok(SampleTime { first, last })) = self.file.feature::<SampleTime>()
            && (first, last) != (0, 0)
        {
            return (first, last);
        }
        self.sample_times().unwrap_or_default()
    }

    /// Returns the steps in which times are shown.
    pub(crate) fn steps(&self, asked: TimeSteps) -> Steps {
        match asked {
            TimeSteps::Length(length) => Steps { origin: 0, length },
            TimeSteps::Fitting => {
                let (first, last) = self.sampled_between();
                Steps::fitting(first, last, self.split.samples())
            }
        }
    }

    /// Returns the earliest and the latest time of a sample, from the samples.
    pub(crate) fn sample_times(&self) -> Option<(u64, u64)> {
        let pieces = &self.split.pieces;
        progress::expect(pieces.iter().map(|piece| piece.size as u64).sum());
        let workers = by_piece(pieces, |_| SampledTimes { file: self.file, range: None });
        workers.iter().filter_map(|worker| worker.range).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Returns whether the samples of any event have one of these fields.
    pub(crate) fn samples_have(&self, fields: SampleType) -> bool {
        self.file.attrs.entries().iter().any(|entry| entry.attr.sample_type.intersects(fields))
    }

    /// Returns whether the file is complete: its recorder finished it, and it was not truncated
    /// since.
    pub(crate) fn is_complete(&self) -> bool {
        let file = self.file;
        let mended = file.warnings.iter().any(|w| matches!(w.code, "truncated" | "no-data-size"));
        // A recorder writes the data's size and the features last.
        let ended =
            file.mode == read::Mode::Pipe || file.header.data.size > 0 || !file.features.is_empty();
        let torn = self.input.torn().is_some();
        ended
            && !mended
            && !torn
            && self.split.damage.is_empty()
            && self.streams.unpacking().next().is_none()
    }

    /// Returns warnings about the file's defects.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let mut all: Vec<Warning> = self.file.warnings.iter().cloned().map(Warning::from).collect();
        let damage = self.split.damage.iter().map(|error| self.streams.located(error.into()));
        let ends = self.streams.unpacking().chain(damage);
        all.extend(ends.map(|w| Warning {
            message: format!("{}; records before it are reported", w.message),
            ..w
        }));
        if let Some((count, first)) = &self.side_band.malformed {
            let message = format!(
                "{count} records do not match their type's layout and are left out; the first: {}",
                first.kind
            );
            let offset = Some(first.offset);
            all.push(self.streams.located(Warning { code: "bad-record", message, offset }));
        }
        if let Some(reason) = self.input.torn() {
            all.push(Warning::new("truncated", reason));
        }
        if let Some(error) = &self.side_band.torn_symbols {
            let message =
                format!("the names of functions in the file are not all used: {}", error.kind);
            all.push(Warning { code: error.kind.code(), message, offset: Some(error.offset) });
        }
        if self.side_band.aux_bytes > 0 {
            let size = units::bytes(self.side_band.aux_bytes);
            let message =
                format!("{size} of AUX trace is not decoded here (rep dump shows the records)");
            all.push(Warning::new("aux-not-decoded", message));
        }
        let truncated = "records of AUX trace are truncated: the trace lacks what came after \
                         (larger AUX buffers may help)";
        all.extend(Warning::counted(self.side_band.aux_truncated, "aux-truncated", truncated));
        if self.file.attrs.entries().is_empty() {
            all.push(Warning::new(
                "no-events",
                "the file describes no events, so its samples cannot be read",
            ));
        }
        all
    }
}

/// The earliest and the latest time of the samples that one worker read.
struct SampledTimes<'f> {
    file: &'f File<'f>,
    range: Option<(u64, u64)>,
}

impl PieceWorker for SampledTimes<'_> {
    fn read(&mut self, _: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        for_each_sample(piece, buffer, |raw| {
            if let Some(time) = self.file.attrs.time_of(&raw) {
                let (first, last) = self.range.unwrap_or((time, time));
                self.range = Some((first.min(time), last.max(time)));
            }
        });
    }
}

/// Returns the side-band with the records of what was mapped before the recording, which simpleperf
/// keeps apart.
fn with_earlier<'r, 'a>(
    file: &File<'a>,
    side_band: &'r [RawRecord<'a>],
) -> Cow<'r, [RawRecord<'a>]> {
    let Some(Ok(SimpleperfInitMap { records })) = file.feature() else {
        return Cow::Borrowed(side_band);
    };
    // From offset 0 on: what has no time comes before all other records.
    let earlier = Frames::new(records, 0, file.endian).map_while(Result::ok);
    earlier.chain(side_band.iter().copied()).collect()
}

/// Returns whether an event is the one that a user named, with or without its modifiers.
pub(crate) fn is_named(event: &str, wanted: &str) -> bool {
    event == wanted || event.split_once(':').is_some_and(|(bare, _)| bare == wanted)
}
