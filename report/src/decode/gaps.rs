//! What could not be decoded, by reason.

use std::collections::BTreeMap;

use super::samples::is_kernel;
use crate::query::Warning;

/// Reason for which a part of a trace gave no samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GapReason {
    /// The kernel wrote that the data has gaps.
    Partial,
    /// Samples of the hardware collided with others.
    Collision,
    /// Bytes of the AUX area are not in the file.
    Missing,
    /// Bytes that are no packet.
    BadPacket,
    /// The trace ends within a record.
    CutRecord,
    /// The processor lost packets.
    Overflow,
    /// Code of the kernel that no image has.
    KernelCode,
    /// Code that no file has.
    NoCode,
    /// Bytes of a file that are no instruction.
    NoInstruction,
    /// The trace does not fit the code.
    Mismatch,
}

impl GapReason {
    /// Returns the reason of a gap at an address whose code is not at hand.
    pub(super) fn of_missing_code(address: u64) -> Self {
        if is_kernel(address) { Self::KernelCode } else { Self::NoCode }
    }

    /// Returns what one gap and several are called.
    fn texts(self) -> [&'static str; 2] {
        match self {
            Self::Partial => ["piece of trace with gaps", "pieces of trace with gaps"],
            Self::Collision => [
                "piece of trace in which the hardware dropped colliding samples",
                "pieces of trace in which the hardware dropped colliding samples",
            ],
            Self::Missing => {
                ["piece of the trace is not in the file", "pieces of the trace are not in the file"]
            }
            Self::BadPacket => {
                ["place with bytes that are no packet", "places with bytes that are no packet"]
            }
            Self::CutRecord => ["record that is cut short", "records that are cut short"],
            Self::Overflow => [
                "place where the processor lost packets",
                "places where the processor lost packets",
            ],
            Self::KernelCode => [
                "stretch of kernel code that is in no file of this machine (--vmlinux)",
                "stretches of kernel code that are in no file of this machine (--vmlinux)",
            ],
            Self::NoCode => [
                "stretch of code that is in no file of this machine",
                "stretches of code that are in no file of this machine",
            ],
            Self::NoInstruction => [
                "place where the file has no instruction",
                "places where the file has no instruction",
            ],
            Self::Mismatch => [
                "place where the trace does not fit the code",
                "places where the trace does not fit the code",
            ],
        }
    }
}

/// Number of gaps for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps(BTreeMap<GapReason, u64>);

impl Gaps {
    /// Counts a gap.
    pub(crate) fn add(&mut self, reason: GapReason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Adds the gaps of another part.
    pub(crate) fn append(&mut self, other: &Self) {
        for (reason, count) in &other.0 {
            *self.0.entry(*reason).or_default() += count;
        }
    }

    /// Returns the warning about all gaps.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let told = self.0.iter().map(|(reason, count)| {
            let [one, many] = reason.texts();
            format!("{count} {}", if *count == 1 { one } else { many })
        });
        let told: Vec<String> = told.collect();
        let message = format!("not all of the trace is decoded: {}", told.join("; "));
        (!told.is_empty()).then(|| Warning::new("trace-gaps", message))
    }
}
