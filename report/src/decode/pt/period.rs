//! Distances between samples of instructions.

use super::info::PtInfo;

/// Distance between two samples of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstructionPeriod {
    Instructions(u64),
    Nanoseconds(u64),
    /// Of the time stamp counter.
    Ticks(u64),
}

/// Instructions of a part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// Number of instructions since the last sample, or since the begin.
    pub instructions: u64,
    /// There was a sample.
    pub has_sample: bool,
}

impl Tail {
    /// Returns the instructions since the last sample in front of this and what follows it.
    pub(super) fn followed_by(self, next: Self) -> Self {
        let before = if next.has_sample { 0 } else { self.instructions };
        Self { instructions: before + next.instructions, has_sample: true }
    }
}

/// Counts instructions from one sample to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct InstructionCounter {
    period: InstructionPeriod,
    /// Instructions since the last sample.
    since: u64,
    /// Number of the period of time of the last sample.
    slot: u64,
    /// Instructions of the step up to its sample, where samples have a time.
    left: u64,
}

impl InstructionCounter {
    /// Returns the number of the period of time that a time stamp is in.
    fn slot(period: InstructionPeriod, info: &PtInfo, stamp: u64) -> u64 {
        match period {
            InstructionPeriod::Instructions(_) => 0,
            InstructionPeriod::Nanoseconds(period) => info.time(stamp) / period,
            InstructionPeriod::Ticks(period) => stamp / period,
        }
    }

    /// Creates a counter for a part that begins at this time stamp, behind so many instructions.
    pub(super) fn new(period: InstructionPeriod, tail: Tail, info: &PtInfo, stamp: u64) -> Self {
        let since = match period {
            InstructionPeriod::Instructions(period) => tail.instructions % period,
            _ => tail.instructions,
        };
        Self { period, since, slot: Self::slot(period, info, stamp), left: 0 }
    }

    /// Returns whether samples have a time.
    pub(super) fn is_of_time(&self) -> bool {
        !matches!(self.period, InstructionPeriod::Instructions(_))
    }

    /// Returns the instructions since the last sample.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// Forgets the instructions: the last of them was a sample.
    pub(super) fn restart(&mut self) {
        self.since = 0;
    }

    /// Counts the instructions of a step if none of them is a sample. Else they are left to be
    /// counted one by one, and `true` is returned.
    #[inline]
    pub(super) fn is_due(&mut self, instructions: u64, info: &PtInfo, stamp: u64) -> bool {
        let is_due = match self.period {
            InstructionPeriod::Instructions(period) => self.since + instructions >= period,
            period => {
                let slot = Self::slot(period, info, stamp);
                let is_new = instructions > 0 && slot != self.slot;
                if is_new {
                    (self.slot, self.left) = (slot, instructions);
                }
                is_new
            }
        };
        if !is_due {
            self.since += instructions;
        }
        is_due
    }

    /// Counts an instruction of a step that is due. If it is a sample, returns the number of
    /// instructions since the one before.
    pub(super) fn pass(&mut self) -> Option<u64> {
        self.since += 1;
        self.left = self.left.saturating_sub(1);
        let is_sample = match self.period {
            InstructionPeriod::Instructions(period) => self.since >= period,
            _ => self.left == 0,
        };
        is_sample.then(|| std::mem::take(&mut self.since))
    }
}
