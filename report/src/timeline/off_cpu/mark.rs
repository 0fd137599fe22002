//! Facts about threads from records, packed.

use super::Activity;

/// Fact about a thread from a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It is forked: an earlier thread with its number is gone.
    Begin,
    /// It exits, but runs on for a while.
    Exit,
    /// It runs.
    Alive,
    /// It is switched in.
    In,
    /// It is switched out.
    Out(Activity),
    /// A sample of its switch out.
    Switch,
    /// The recorder found it waiting when the recording began.
    WaitsAtStart,
    /// The sample of that.
    SampleAtStart,
    /// A CPU sample.
    Cpu,
}

/// A record of a thread. There may be many millions of them, so they are small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadRecord {
    time: u64,
    /// Place, CPU and mark.
    word: u64,
}

const _: () = assert!(size_of::<ThreadRecord>() == 16);

impl ThreadRecord {
    /// Bits of a mark, and of a CPU.
    const MARK: u32 = 4;
    const CPU: u32 = 13;
    const NO_CPU: u64 = (1 << Self::CPU) - 1;
    const MARKS: [Mark; 11] = [
        Mark::Begin,
        Mark::Exit,
        Mark::Alive,
        Mark::In,
        Mark::Out(Activity::Waiting),
        Mark::Out(Activity::Preempted),
        Mark::Out(Activity::Idle),
        Mark::Switch,
        Mark::WaitsAtStart,
        Mark::SampleAtStart,
        Mark::Cpu,
    ];

    /// What the number of a switch out grows by if it stands for the sample before it, too.
    const WITH_SAMPLE: u64 = 7;

    /// Packs a record; `place` is its offset in the file, of [`Mark::Begin`] the thread that forks.
    pub(crate) fn new(time: u64, place: u64, cpu: Option<u32>, mark: Mark) -> Self {
        let number = Self::MARKS.iter().position(|known| *known == mark).unwrap_or(2) as u64;
        let cpu = cpu.map_or(Self::NO_CPU, |cpu| u64::from(cpu).min(Self::NO_CPU));
        Self { time, word: place << (Self::CPU + Self::MARK) | cpu << Self::MARK | number }
    }

    pub(crate) const fn time(self) -> u64 {
        self.time
    }

    pub(super) fn mark(self) -> Mark {
        let number = self.word & ((1 << Self::MARK) - 1);
        usize::try_from(number)
            .ok()
            .and_then(|number| Self::MARKS.get(number))
            .copied()
            .unwrap_or(Mark::Alive)
    }

    /// Returns one record in place of both a sample of a switch and the switch out that follows it,
    /// if they fit.
    pub(super) fn with_out(self, out: Self) -> Option<Self> {
        let apart = out.time.checked_sub(self.time)?;
        let fits = apart < 1 << (u64::BITS - Self::CPU - Self::MARK)
            && self.mark() == Mark::Switch
            && matches!(out.mark(), Mark::Out(_))
            && self.cpu() == out.cpu();
        let place = Self::CPU + Self::MARK;
        let low = out.word & ((1 << place) - 1);
        fits.then_some(Self { time: out.time, word: (apart << place) | (low + Self::WITH_SAMPLE) })
    }

    /// Returns the sample of the switch, if it is in this record, too; and the other record.
    pub(super) fn split(self) -> (Option<Self>, Self) {
        let number = self.word & ((1 << Self::MARK) - 1);
        if number < Self::MARKS.len() as u64 {
            return (None, self);
        }
        let out = Self { time: self.time, word: self.word - Self::WITH_SAMPLE };
        let cpu = (self.cpu() != u32::MAX).then_some(self.cpu());
        let at = self.time.saturating_sub(self.place());
        (Some(Self::new(at, 0, cpu, Mark::Switch)), out)
    }

    /// Returns the CPU; all ones if not recorded.
    pub(super) fn cpu(self) -> u32 {
        match self.word >> Self::MARK & Self::NO_CPU {
            Self::NO_CPU => u32::MAX,
            cpu => u32::try_from(cpu).unwrap_or(u32::MAX),
        }
    }

    pub(super) const fn place(self) -> u64 {
        self.word >> (Self::CPU + Self::MARK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Mark = Mark::Out(Activity::Waiting);
    const PREEMPT: Mark = Mark::Out(Activity::Preempted);

    fn fields(record: ThreadRecord) -> (u64, u32, Mark) {
        (record.time(), record.cpu(), record.mark())
    }

    #[test]
    fn a_switch_and_its_sample_fit_into_one_record() {
        for (mark, cpu) in [(WAIT, None), (PREEMPT, Some(0)), (WAIT, Some(8000))] {
            let sample = ThreadRecord::new(1_000_000, 77, cpu, Mark::Switch);
            let out = ThreadRecord::new(1_000_012, 99, cpu, mark);
            let (found, rest) = sample.with_out(out).unwrap().split();
            assert_eq!(found.map(fields), Some(fields(sample)));
            assert_eq!(fields(rest), fields(out));
        }
    }

    #[test]
    fn other_records_stay_apart() {
        let record = |time, cpu, mark| ThreadRecord::new(time, 5, Some(cpu), mark);
        let sample = record(1000, 3, Mark::Switch);
        for other in [
            record(1001, 2, WAIT),
            record(999, 3, WAIT),
            record(1001, 3, Mark::In),
            record(1000 + (1 << 47), 3, WAIT),
        ] {
            assert!(sample.with_out(other).is_none());
        }
        let both = sample.with_out(record(1001, 3, WAIT)).unwrap();
        assert!(both.with_out(record(1002, 3, WAIT)).is_none());
        for mark in ThreadRecord::MARKS {
            let (sample, same) = record(7, 3, mark).split();
            assert!(sample.is_none());
            assert_eq!((fields(same), same.place()), ((7, 3, mark), 5));
        }
    }
}
