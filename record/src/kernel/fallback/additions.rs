//! Features that the kernel added after `perf_event_open`: their versions, and the consequences of
//! giving them up.
//!
//! Newest first, as in perf, because newer features are missing more often. Sources: the kernel's
//! `include/uapi/linux/perf_event.h` and its history.

use recrep_format::abi::{AttrFlags as F, BranchSampleType as B, ReadFormat, SampleType as S};
use recrep_format::attr::Attr;

use crate::plan::PlannedEvent;

type Version = (u16, u16);

/// A feature that older kernels, or some PMUs, refuse with EINVAL.
struct Addition {
    /// First kernel version with it; 0, 0 if it depends on the PMU instead.
    since: Version,
    asked: fn(&PlannedEvent) -> bool,
    without: fn(&mut Attr),
    /// Consequence for the user; `None` if there is none.
    means: Option<&'static str>,
}

/// Features that rec can give up.
const ADDITIONS: &[Addition] = &[
    Addition {
        since: (6, 13),
        asked: |e| {
            e.attr.flags.contains(F::INHERIT) && e.attr.read_format.contains(ReadFormat::GROUP)
        },
        without: |a| a.flags -= F::INHERIT,
        means: Some(
            "groups that are read with each sample (:S) leave out threads and children that start \
             from now on, as this kernel is older than Linux 6.13: leave :S out to have them",
        ),
    },
    Addition {
        since: (6, 8),
        asked: |e| e.attr.branch_sample_type.contains(B::COUNTERS),
        without: |a| a.branch_sample_type -= B::COUNTERS,
        means: Some(
            "recording branch stacks without counters: this kernel is older than Linux 6.8",
        ),
    },
    Addition {
        since: (6, 0),
        asked: |e| e.attr.read_format.contains(ReadFormat::LOST),
        without: |a| a.read_format -= ReadFormat::LOST,
        means: Some(
            "lost samples are reported by LOST records only: this kernel is older than Linux 6.0",
        ),
    },
    Addition {
        since: (5, 12),
        asked: |e| e.attr.sample_type.contains(S::WEIGHT_STRUCT),
        without: |a| a.sample_type = (a.sample_type - S::WEIGHT_STRUCT) | S::WEIGHT,
        means: Some(
            "samples have one weight instead of three: this kernel is older than Linux 5.12",
        ),
    },
    Addition {
        since: (5, 12),
        asked: |e| e.attr.flags.contains(F::BUILD_ID),
        without: |a| a.flags -= F::BUILD_ID,
        means: Some(
            "this kernel records no build IDs of mappings (Linux 5.12 does): they are read from \
             the files, as with --no-buildid-mmap",
        ),
    },
    Addition {
        since: (5, 9),
        asked: |e| e.attr.flags.contains(F::TEXT_POKE),
        without: |a| a.flags -= F::TEXT_POKE,
        means: Some(
            "kernel traces may not be decodable, as changes of its code are not recorded before \
             Linux 5.9",
        ),
    },
    Addition {
        since: (5, 7),
        asked: |e| e.attr.branch_sample_type.contains(B::HW_INDEX),
        without: |a| a.branch_sample_type -= B::HW_INDEX,
        means: None,
    },
    Addition {
        since: (5, 1),
        asked: |e| e.attr.flags.contains(F::BPF_EVENT),
        without: |a| a.flags -= F::BPF_EVENT,
        means: Some(
            "samples in BPF programs will have no symbols: this kernel is older than Linux 5.1",
        ),
    },
    Addition {
        since: (5, 1),
        asked: |e| e.attr.flags.contains(F::KSYMBOL),
        without: |a| a.flags -= F::KSYMBOL,
        means: None,
    },
    Addition {
        since: (0, 0),
        asked: |e| e.attr.flags.contains(F::USE_CLOCKID) && e.attr.clockid != MONOTONIC,
        without: |a| a.clockid = MONOTONIC,
        means: Some(
            "timestamps are those of CLOCK_MONOTONIC: the kernel refuses the clock of -k for this \
             event",
        ),
    },
    Addition {
        since: (4, 1),
        asked: |e| e.attr.flags.contains(F::USE_CLOCKID),
        without: |a| (a.flags, a.clockid) = (a.flags - F::USE_CLOCKID, 0),
        means: Some(
            "timestamps are those of the kernel's own clock, without -k: this kernel is older \
             than Linux 4.1",
        ),
    },
    Addition {
        since: (3, 16),
        asked: |e| e.attr.flags.intersects(F::MMAP2 | F::COMM_EXEC),
        without: |a| a.flags -= F::MMAP2 | F::COMM_EXEC,
        means: None,
    },
    Addition {
        since: (0, 0),
        asked: |e| e.attr.flags.intersects(F::EXCLUDE_GUEST | F::EXCLUDE_HOST) && !e.guests_named,
        without: |a| a.flags -= F::EXCLUDE_GUEST | F::EXCLUDE_HOST,
        means: Some("virtual machines (guests) are counted too: this PMU cannot exclude them"),
    },
    Addition {
        since: (4, 4),
        asked: |e| e.attr.branch_sample_type.intersects(B::NO_FLAGS | B::NO_CYCLES),
        without: |a| a.branch_sample_type -= B::NO_FLAGS | B::NO_CYCLES,
        means: None,
    },
];

/// `CLOCK_MONOTONIC`, which all events support.
const MONOTONIC: i32 = 1;

/// Removes the newest feature that a kernel of this version may lack. Returns its consequence, or
/// `None` if there is no such feature.
pub(super) fn without_newest(
    event: &mut PlannedEvent,
    kernel: Version,
) -> Option<Option<&'static str>> {
    let newest = ADDITIONS
        .iter()
        .filter(|feature| feature.since == (0, 0) || kernel < feature.since)
        .find(|feature| (feature.asked)(event))?;
    (newest.without)(&mut event.attr);
    Some(newest.means)
}

/// A feature that the user requested with a flag, which rec does not give up.
struct RequestedFeature {
    since: Version,
    flag: &'static str,
    asked: fn(&Attr) -> bool,
}

const ASKED: &[RequestedFeature] = &[
    RequestedFeature { since: (6, 18), flag: "config4=", asked: |a| a.config4 != 0 },
    RequestedFeature { since: (6, 3), flag: "config3=", asked: |a| a.config3 != 0 },
    RequestedFeature {
        since: (5, 11),
        flag: "--code-page-size",
        asked: |a| a.sample_type.contains(S::CODE_PAGE_SIZE),
    },
    RequestedFeature {
        since: (5, 11),
        flag: "--data-page-size",
        asked: |a| a.sample_type.contains(S::DATA_PAGE_SIZE),
    },
    RequestedFeature {
        since: (5, 7),
        flag: "--all-cgroups",
        asked: |a| a.flags.contains(F::CGROUP) || a.sample_type.contains(S::CGROUP),
    },
    RequestedFeature { since: (5, 5), flag: "--aux-sample", asked: |a| a.aux_sample_size != 0 },
    RequestedFeature {
        since: (5, 4),
        flag: "aux-output",
        asked: |a| a.flags.contains(F::AUX_OUTPUT),
    },
    RequestedFeature {
        since: (4, 14),
        flag: "--phys-data",
        asked: |a| a.sample_type.contains(S::PHYS_ADDR),
    },
    RequestedFeature {
        since: (4, 12),
        flag: "--namespaces",
        asked: |a| a.flags.contains(F::NAMESPACES),
    },
    RequestedFeature { since: (4, 8), flag: "--max-stack", asked: |a| a.sample_max_stack != 0 },
    RequestedFeature {
        since: (4, 7),
        flag: "--overwrite",
        asked: |a| a.flags.contains(F::WRITE_BACKWARD),
    },
    RequestedFeature {
        since: (4, 3),
        flag: "--switch-events",
        asked: |a| a.flags.contains(F::CONTEXT_SWITCH),
    },
    RequestedFeature {
        since: (3, 19),
        flag: "-I",
        asked: |a| a.sample_type.contains(S::REGS_INTR),
    },
    RequestedFeature {
        since: (3, 13),
        flag: "--transaction",
        asked: |a| a.sample_type.contains(S::TRANSACTION),
    },
    RequestedFeature {
        since: (3, 7),
        flag: "--call-graph dwarf",
        asked: |a| a.sample_type.contains(S::STACK_USER),
    },
];

/// Returns the used flags that a kernel of this version is too old for, each with the required
/// version.
pub(super) fn too_new(attr: &Attr, kernel: Version) -> Vec<String> {
    ASKED
        .iter()
        .filter(|asked| kernel != (0, 0) && kernel < asked.since && (asked.asked)(attr))
        .map(|asked| format!("{} (Linux {}.{})", asked.flag, asked.since.0, asked.since.1))
        .collect()
}

/// Returns the flags that this attr uses, regardless of the kernel's version.
pub(super) fn asked(attr: &Attr) -> Vec<&'static str> {
    ASKED.iter().filter(|asked| (asked.asked)(attr)).map(|asked| asked.flag).collect()
}
