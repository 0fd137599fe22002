//! The events of a file that tell of wakes.

use recrep_format::abi::AttrFlags;
use recrep_format::attr::AttrEntry;
use recrep_format::read::File;

use crate::query::Mode;
use crate::symbols::Functions;
use crate::timeline::{InterruptWakes, Timeline, Waits, WakeFields};
use crate::tracepoints::{Formats, KernelTexts, RecordedKernel};

/// The events of a file, with the formats of those that tell of wakes.
pub(super) struct RecordedWakes {
    formats: Formats,
    /// For each event, whether it tells of wakes, and of those of new threads.
    kinds: Vec<Option<WakeEvent>>,
}

/// Meaning of an event's samples.
#[derive(Clone, Copy, Debug)]
struct WakeEvent {
    is_new: bool,
    is_of_cpu: bool,
}

impl WakeEvent {
    fn of(entry: &AttrEntry) -> Option<Self> {
        let name = entry.event_name();
        let is_of_cpu = !entry.attr.flags.contains(AttrFlags::INHERIT);
        match name.split(':').take(2).collect::<Vec<_>>().as_slice() {
            ["sched", "sched_waking"] => Some(Self { is_new: false, is_of_cpu }),
            ["sched", "sched_wakeup_new"] => Some(Self { is_new: true, is_of_cpu }),
            _ => None,
        }
    }
}

/// Returns whether an event tells of wakes.
pub(crate) fn tells_of_wakes(entry: &AttrEntry) -> bool {
    WakeEvent::of(entry).is_some()
}

impl RecordedWakes {
    /// Reads the formats of the events, if the mode needs wakes.
    pub(super) fn read(file: &File<'_>, mode: Mode) -> Option<Self> {
        if mode != Mode::CriticalPath {
            return None;
        }
        let kinds = file.attrs.entries().iter().map(WakeEvent::of);
        Some(Self { kinds: kinds.collect(), formats: Formats::read(file) })
    }

    /// Returns where the samples of each event have what is needed.
    pub(super) fn fields(&self) -> Vec<Option<WakeFields>> {
        let fields = self.kinds.iter().enumerate().map(|(place, kind)| {
            let WakeEvent { is_new, is_of_cpu } = (*kind)?;
            let format = self.formats.event(place)?;
            Some(WakeFields {
                is_new,
                is_of_cpu: is_of_cpu && !is_new,
                flags: format.place("common_flags")?,
                waker: format.place("common_pid")?,
                target: format.place("pid")?,
                endian: format.endian(),
            })
        });
        fields.collect()
    }

    /// Tells which wakes in interrupts are by threads that ran a soft interrupt themselves.
    pub(super) fn tell_own_interrupts(
        &self,
        timeline: &Timeline,
        functions: &Functions<'_>,
        waits: &mut Waits,
        found: &InterruptWakes,
    ) {
        let kernel = RecordedKernel { formats: &self.formats, timeline, functions };
        let own = found.own(|address| Some(kernel.function(address)?.0));
        waits.clear_interrupts(&own);
    }
}
