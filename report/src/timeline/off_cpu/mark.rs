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
