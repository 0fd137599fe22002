//! A file with all that is known before its samples are decoded: the start of every view.
//!
//! ```text
//!   OpenedInput: File (parts), Streams (unpacked where compressed) ─► Split (one pass) ─► SideBand ─► Timeline (frozen)
//! ```

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use recrep_format::abi::SampleType;
use recrep_format::feature::{Cmdline, HeaderString, SampleTime, SimpleperfInitMap};
use recrep_format::read::{File, Frames};
use recrep_format::record::RawRecord;

use super::pass::{PieceWorker, by_piece, for_each_sample};
use super::wakes::RecordedWakes;
use crate::callchain::StackUnwinder;
use crate::input::Input;
use crate::input::split::{Piece, Split};
use crate::input::streams::{OpenedInput, Streams};
use crate::input::unpack::UnpackBuffer;
use crate::query::{Mode, Steps, TimeSteps};
use crate::symbols::{Functions, Resolver};
use crate::terminal::progress;
use crate::timeline::{Clock, OffCpu, Parallelism, Recorder, SideBand, Timeline, Waits};

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
    /// Waits of threads and who ended them, if the critical path is counted.
    pub waits: Option<Waits>,
    /// Numbers of threads that ran, once they were asked for.
    parallelism: OnceLock<Parallelism>,
    pub(super) streams: &'f Streams<'f>,
    /// Times of the first and the last sample, once they were asked for: that may read all samples.
    sampled_between: OnceLock<(u64, u64)>,
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
        let clock = Clock::new(&file.attrs, file.mode, &split);
        let records = with_earlier(file, &split.side_band);
        let mut side_band = SideBand::read(file, &records, &clock, input.written());
        let recorder = recorder(file);
        let wakes = RecordedWakes::read(file, mode);
        let (off_cpu, waits) = match &wakes {
            Some(wakes) => {
                let fields = wakes.fields();
                let (off_cpu, facts, in_interrupts) =
                    OffCpu::read_lives(&file.attrs, &split.pieces, &recorder, &fields);
                (Some(off_cpu), Some((Waits::of(facts), in_interrupts)))
            }
            None if mode.is_of_time() => {
                (Some(OffCpu::read(&file.attrs, &split.pieces, &recorder)), None)
            }
            None => (None, None),
        };
        if off_cpu.is_some() {
            side_band.add_stand_ins(mode == Mode::CriticalPath);
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
        let sampled_between = OnceLock::new();
        let mut session = Self {
            input,
            file,
            split,
            clock,
            side_band,
            timeline,
            events,
            off_cpu,
            waits: None,
            parallelism: OnceLock::new(),
            streams,
            sampled_between,
        };
        if let (Some(wakes), Some((mut waits, in_interrupts))) = (&wakes, waits) {
            if let Some(resolver) = resolver.filter(|_| !in_interrupts.is_empty()) {
                let (timeline, functions) = (&session.timeline, session.functions(resolver));
                wakes.tell_own_interrupts(timeline, &functions, &mut waits, &in_interrupts);
            }
            session.waits = Some(waits);
        }
        session
    }

    /// Returns the records of what was mapped before the recording, where they are in a section of
    /// their own.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = RawRecord<'f>> + use<'f> {
        earlier(self.file)
    }

    /// Returns a finder of functions in the modules of the file.
    pub(crate) fn functions<'s>(&'s self, resolver: &'s Resolver) -> Functions<'s> {
        Functions::new(self.side_band.modules.iter().collect(), resolver)
    }

    /// Returns the unwinder of copied stacks, if samples of the file have any.
    pub(crate) fn unwinding<'s>(&'s self, resolver: &'s Resolver) -> Option<StackUnwinder<'s>> {
        StackUnwinder::new(self.file, &self.timeline, &self.side_band.modules, resolver)
    }

    /// Returns how many threads ran over time. The first use must not be by one of several workers,
    /// as the others could not help to read it.
    pub(crate) fn parallelism(&self) -> &Parallelism {
        self.parallelism.get_or_init(|| match &self.off_cpu {
            // Beside waits, lives are read in place of times.
            Some(times) if self.waits.is_none() => times.parallelism(),
            _ => OffCpu::read(&self.file.attrs, &self.split.pieces, &Recorder::default())
                .parallelism(),
        })
    }

    /// Returns the times of the first and the last sample: from the header, else from the samples.
    pub(crate) fn sampled_between(&self) -> (u64, u64) {
        *self.sampled_between.get_or_init(|| match self.file.feature::<SampleTime>() {
            Some(Ok(SampleTime { first, last })) if (first, last) != (0, 0) => (first, last),
            _ => self.sample_times().unwrap_or_default(),
        })
    }

    /// Returns the number of samples: those of the file, and those of traces that were decoded so
    /// far.
    pub(crate) fn samples(&self) -> u64 {
        self.split.samples() + self.streams.decoded_samples()
    }

    /// Returns whether each record of an event stands for several samples; STREAM_ID is their number.
    pub(crate) fn are_sums(&self, event: usize) -> bool {
        self.input.profile_samples().is_some() || self.streams.are_sums(event)
    }

    /// Returns the steps in which times are shown.
    pub(crate) fn steps(&self, asked: TimeSteps) -> Steps {
        match asked {
            TimeSteps::Length(length) => Steps { origin: 0, length },
            TimeSteps::Fitting => {
                let (first, last) = self.sampled_between();
                Steps::fitting(first, last, self.samples())
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

    /// Returns whether wakes of threads were recorded.
    pub(crate) fn has_wakes(&self) -> bool {
        self.events.iter().any(|name| name.split(':').take(2).eq(["sched", "sched_waking"]))
    }

    /// Returns whether the samples of any event have one of these fields.
    pub(crate) fn samples_have(&self, fields: SampleType) -> bool {
        self.file.attrs.entries().iter().any(|entry| entry.attr.sample_type.intersects(fields))
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

/// Returns what the file says of the recording program.
fn recorder(file: &File<'_>) -> Recorder {
    let Some(Ok(Cmdline { args })) = file.feature() else { return Recorder::default() };
    let mut names = args.0.iter().map(thread_name);
    let name = names.next().unwrap_or_default();
    Recorder { name, words: names.collect() }
}

/// Returns the name that a program has as a thread when it is executed by this path.
fn thread_name(path: &HeaderString<'_>) -> Vec<u8> {
    /// Most bytes of a thread's name.
    const MOST: usize = 15;
    let path = path.to_text();
    let name = path.rsplit('/').next().unwrap_or_default();
    name.bytes().take(MOST).collect()
}

/// Returns the side-band with the records of what was mapped before the recording.
fn with_earlier<'r, 'a>(
    file: &File<'a>,
    side_band: &'r [RawRecord<'a>],
) -> Cow<'r, [RawRecord<'a>]> {
    let mut earlier = earlier(file).peekable();
    match earlier.peek() {
        Some(_) => earlier.chain(side_band.iter().copied()).collect(),
        None => Cow::Borrowed(side_band),
    }
}

/// Returns the records of what was mapped before the recording, which simpleperf keeps apart. What
/// has no time comes before all other records: they are at offset 0 and after it.
fn earlier<'a>(file: &File<'a>) -> impl Iterator<Item = RawRecord<'a>> + use<'a> {
    let section = file.feature().and_then(Result::ok);
    let records = section.map_or(&[][..], |SimpleperfInitMap { records }| records);
    Frames::new(records, 0, file.endian).map_while(Result::ok)
}
