//! The part of an attr that the kernel refuses (EINVAL), found by trials: each opens the counter
//! without one feature, and closes it again.

use recrep_format::abi::{AttrFlags as F, BranchSampleType, SampleType as S};
use recrep_format::attr::Attr;

use crate::plan::PlannedEvent;

/// The thing without which the kernel takes a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Culprit {
    /// Its samples: it can only be counted.
    Sampling,
    Group,
    Flag(&'static str),
}

/// Flags, whether an attr has what they ask for, and the attr without it.
struct Trial {
    flag: &'static str,
    asked: fn(&Attr) -> bool,
    without: fn(&mut Attr),
}

const TRIALS: &[Trial] = &[
    Trial {
        flag: "-b, -j and --call-graph lbr",
        asked: |a| a.sample_type.contains(S::BRANCH_STACK),
        without: |a| {
            (a.sample_type, a.branch_sample_type) =
                (a.sample_type - S::BRANCH_STACK, BranchSampleType::empty());
        },
    },
    Trial {
        flag: "--call-graph dwarf",
        asked: |a| a.sample_type.contains(S::STACK_USER),
        without: |a| {
            a.sample_type -= S::STACK_USER | S::REGS_USER;
            (a.sample_stack_user, a.sample_regs_user) = (0, 0);
        },
    },
    Trial {
        flag: "--user-regs",
        asked: |a| a.sample_type.contains(S::REGS_USER),
        without: |a| (a.sample_type, a.sample_regs_user) = (a.sample_type - S::REGS_USER, 0),
    },
    Trial {
        flag: "-I",
        asked: |a| a.sample_type.contains(S::REGS_INTR),
        without: |a| (a.sample_type, a.sample_regs_intr) = (a.sample_type - S::REGS_INTR, 0),
    },
    Trial {
        flag: "-g and --max-stack",
        asked: |a| a.sample_type.contains(S::CALLCHAIN),
        without: |a| (a.sample_type, a.sample_max_stack) = (a.sample_type - S::CALLCHAIN, 0),
    },
    Trial {
        flag: "--aux-sample",
        asked: |a| a.aux_sample_size != 0,
        without: |a| (a.sample_type, a.aux_sample_size) = (a.sample_type - S::AUX, 0),
    },
    Trial {
        flag: "-W",
        asked: |a| a.sample_type.intersects(WEIGHTS),
        without: |a| a.sample_type -= WEIGHTS,
    },
    Trial {
        flag: "-d",
        asked: |a| a.sample_type.intersects(DATA),
        without: |a| a.sample_type -= DATA,
    },
    Trial {
        flag: "--transaction",
        asked: |a| a.sample_type.contains(S::TRANSACTION),
        without: |a| a.sample_type -= S::TRANSACTION,
    },
    Trial {
        flag: "the inheritance by threads and children (add -i)",
        asked: |a| a.flags.contains(F::INHERIT),
        without: |a| a.flags -= F::INHERIT | F::INHERIT_STAT,
    },
    Trial {
        flag: "-k",
        asked: |a| a.flags.contains(F::USE_CLOCKID),
        without: |a| (a.flags, a.clockid) = (a.flags - F::USE_CLOCKID, 0),
    },
    Trial {
        flag: "the p of its modifiers",
        asked: |a| a.flags.precise_ip() > 0,
        without: |a| a.flags = a.flags.with_precise_ip(0),
    },
    Trial {
        flag: "the modifiers u k h I G H",
        asked: |a| a.flags.intersects(EXCLUSIONS),
        without: |a| a.flags -= EXCLUSIONS,
    },
    Trial {
        flag: "the modifiers D and e",
        asked: |a| a.flags.intersects(ALONE),
        without: |a| a.flags -= ALONE,
    },
];

const WEIGHTS: S = S::WEIGHT.union(S::WEIGHT_STRUCT);
const DATA: S = S::ADDR.union(S::DATA_SRC);
const ALONE: F = F::PINNED.union(F::EXCLUSIVE);
const EXCLUSIONS: F = F::EXCLUDE_USER
    .union(F::EXCLUDE_KERNEL)
    .union(F::EXCLUDE_HV)
    .union(F::EXCLUDE_IDLE)
    .union(F::EXCLUDE_HOST)
    .union(F::EXCLUDE_GUEST);

/// Finds the culprit. `takes`: whether the kernel takes an attr, in the event's group or alone.
pub(super) fn find(event: &PlannedEvent, takes: impl Fn(&Attr, bool) -> bool) -> Option<Culprit> {
    let attr = &event.attr;
    let grouped = event.leader.is_some();
    if attr.sample_period != 0 {
        let counting = Attr { sample_period: 0, flags: attr.flags - F::FREQ, ..attr.clone() };
        if takes(&counting, grouped) {
            return Some(Culprit::Sampling);
        }
    }
    if grouped && takes(attr, false) {
        return Some(Culprit::Group);
    }
    TRIALS
        .iter()
        .find(|trial| {
            let mut less = attr.clone();
            (trial.without)(&mut less);
            (trial.asked)(attr) && takes(&less, grouped)
        })
        .map(|trial| Culprit::Flag(trial.flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(leader: Option<usize>) -> PlannedEvent {
        let attr = Attr {
            sample_period: 1,
            sample_type: S::CALLCHAIN | S::ADDR | S::REGS_INTR,
            flags: F::PINNED | F::INHERIT,
            ..Attr::default()
        };
        PlannedEvent { attr, leader, ..PlannedEvent::default() }
    }

    #[test]
    fn the_culprit_is_what_the_kernel_does_not_take() {
        for (takes, culprit) in [
            ((|a, _| a.sample_period == 0) as fn(&Attr, bool) -> bool, Some(Culprit::Sampling)),
            (|_, grouped| !grouped, Some(Culprit::Group)),
            (
                |a, _| !a.sample_type.contains(S::CALLCHAIN),
                Some(Culprit::Flag("-g and --max-stack")),
            ),
            (|a, _| !a.sample_type.contains(S::REGS_INTR), Some(Culprit::Flag("-I"))),
            (|a, _| !a.sample_type.contains(S::ADDR), Some(Culprit::Flag("-d"))),
            (|a, _| !a.flags.contains(F::PINNED), Some(Culprit::Flag("the modifiers D and e"))),
            (|_, _| false, None),
        ] {
            assert_eq!(find(&event(Some(0)), takes), culprit);
        }
    }

    /// A feature that was not requested is not tried: the attr would be the same.
    #[test]
    fn only_what_was_asked_for_is_tried() {
        let tried = std::cell::Cell::new(0);
        let count = |_: &Attr, _| {
            tried.set(tried.get() + 1);
            false
        };
        assert_eq!(find(&event(None), count), None);
        assert_eq!(tried.get(), 6, "samples, -I, -g, -d, inheritance, D");
    }
}
