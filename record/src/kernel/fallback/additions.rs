//! What the kernel learnt after `perf_event_open`: since when, and what it means to do without.
//!
//! The order is perf's: newest first, as what was learnt later is missing more often. Sources: the kernel's
//! `include/uapi/linux/perf_event.h` and its history.

use recrep_format::abi::{AttrFlags as F, BranchSampleType as B, ReadFormat, SampleType as S};
use recrep_format::attr::Attr;

use crate::plan::PlannedEvent;

/// A version of Linux.
type Version = (u16, u16);

/// Something that older kernels, or some PMUs, refuse with EINVAL.
struct Addition {
    /// The first kernel that has it; 0, 0: it is a matter of the PMU, whatever the kernel.
    since: Version,
    /// Whether the event asks for it.
    asked: fn(&PlannedEvent) -> bool,
    /// Takes it away.
    without: fn(&mut Attr),
    /// What that means; none: nothing that would be missed.
    means: Option<&'static str>,
}

/// What rec can do without.
const ADDITIONS: &[Addition] = &[
    Addition {
        since: (6, 8),
        asked: |e| e.attr.branch_sample_type.contains(B::COUNTERS),
        without: |a| a.branch_sample_type -= B::COUNTERS,
        means: Some("this kernel has no counters in branch stacks (Linux 6.8 has): recording branches without them"),
    },
    Addition {
        since: (6, 0),
        asked: |e| e.attr.read_format.contains(ReadFormat::LOST),
        without: |a| a.read_format -= ReadFormat::LOST,
        means: Some("this kernel does not count lost samples (Linux 6.0 does); LOST records tell of losses"),
    },
    Addition {
        since: (5, 12),
        asked: |e| e.attr.sample_type.contains(S::WEIGHT_STRUCT),
        without: |a| a.sample_type = (a.sample_type - S::WEIGHT_STRUCT) | S::WEIGHT,
        means: Some("this kernel gives one weight with each sample, not three (Linux 5.12 does)"),
    },
    Addition {
        since: (5, 12),
        asked: |e| e.attr.flags.contains(F::BUILD_ID),
        without: |a| a.flags -= F::BUILD_ID,
        means: Some(
            "this kernel records no build IDs of mappings (Linux 5.12 does): they are read from the files, as with --no-buildid-mmap",
        ),
    },
    Addition {
        since: (5, 9),
        asked: |e| e.attr.flags.contains(F::TEXT_POKE),
        without: |a| a.flags -= F::TEXT_POKE,
        means: Some(
            "this kernel does not tell how it changes its own code (Linux 5.9 does): traces of it may not be decoded",
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
        means: Some("this kernel does not tell of BPF programs (Linux 5.1 does): samples in them will have no names"),
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
            "the kernel does not take the clock that -k names for this event: times are those of CLOCK_MONOTONIC",
        ),
    },
    Addition {
        since: (4, 1),
        asked: |e| e.attr.flags.contains(F::USE_CLOCKID),
        without: |a| (a.flags, a.clockid) = (a.flags - F::USE_CLOCKID, 0),
        means: Some(
            "this kernel cannot be told which clock to use (-k; Linux 4.1 can): times are those of its own clock",
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
        means: Some("this PMU cannot leave guests out: what virtual machines do is counted too"),
    },
    Addition {
        since: (4, 4),
        asked: |e| e.attr.branch_sample_type.intersects(B::NO_FLAGS | B::NO_CYCLES),
        without: |a| a.branch_sample_type -= B::NO_FLAGS | B::NO_CYCLES,
        means: None,
    },
];

/// `CLOCK_MONOTONIC`, which every event takes.
const MONOTONIC: i32 = 1;

/// Takes the newest feature away that a kernel of this version may not have. None: there is none; else what it means.
pub(super) fn without_newest(event: &mut PlannedEvent, kernel: Version) -> Option<Option<&'static str>> {
    let may_lack = |feature: &&Addition| feature.since == (0, 0) || kernel < feature.since;
    let newest = ADDITIONS.iter().filter(may_lack).find(|feature| (feature.asked)(event))?;
    (newest.without)(&mut event.attr);
    Some(newest.means)
}

/// Something that a flag asked for, which rec does not give up on its own.
struct Asked {
    since: Version,
    flag: &'static str,
    asked: fn(&Attr) -> bool,
}

const ASKED: &[Asked] = &[
    Asked { since: (6, 3), flag: "config3=", asked: |a| a.config3 != 0 },
    Asked { since: (5, 11), flag: "--code-page-size", asked: |a| a.sample_type.contains(S::CODE_PAGE_SIZE) },
    Asked { since: (5, 11), flag: "--data-page-size", asked: |a| a.sample_type.contains(S::DATA_PAGE_SIZE) },
    Asked {
        since: (5, 7),
        flag: "--all-cgroups",
        asked: |a| a.flags.contains(F::CGROUP) || a.sample_type.contains(S::CGROUP),
    },
    Asked { since: (5, 5), flag: "--aux-sample", asked: |a| a.aux_sample_size != 0 },
    Asked { since: (5, 4), flag: "aux-output", asked: |a| a.flags.contains(F::AUX_OUTPUT) },
    Asked { since: (4, 14), flag: "--phys-data", asked: |a| a.sample_type.contains(S::PHYS_ADDR) },
    Asked { since: (4, 12), flag: "--namespaces", asked: |a| a.flags.contains(F::NAMESPACES) },
    Asked { since: (4, 8), flag: "--max-stack", asked: |a| a.sample_max_stack != 0 },
    Asked { since: (4, 7), flag: "--overwrite", asked: |a| a.flags.contains(F::WRITE_BACKWARD) },
    Asked { since: (4, 3), flag: "--switch-events", asked: |a| a.flags.contains(F::CONTEXT_SWITCH) },
    Asked { since: (3, 19), flag: "-I", asked: |a| a.sample_type.contains(S::REGS_INTR) },
    Asked { since: (3, 13), flag: "--transaction", asked: |a| a.sample_type.contains(S::TRANSACTION) },
    Asked { since: (3, 7), flag: "--call-graph dwarf", asked: |a| a.sample_type.contains(S::STACK_USER) },
];

/// The flags that a kernel of this version is too old for, each with the first that is not.
pub(super) fn too_new(attr: &Attr, kernel: Version) -> Vec<String> {
    let lacks = |asked: &&Asked| kernel != (0, 0) && kernel < asked.since && (asked.asked)(attr);
    let told = |asked: &Asked| format!("{} (Linux {}.{})", asked.flag, asked.since.0, asked.since.1);
    ASKED.iter().filter(lacks).map(told).collect()
}

/// The flags whose part of an attr this one has, whatever the kernel.
pub(super) fn asked(attr: &Attr) -> Vec<&'static str> {
    ASKED.iter().filter(|asked| (asked.asked)(attr)).map(|asked| asked.flag).collect()
}
