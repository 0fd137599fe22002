//! Types of the fallbacks: circumstances, next step, given-up features.

use recrep_format::abi::{EventType, SwEvent};

use crate::machine::Machine;
use crate::machine::registers::Arch;
use crate::plan::PlannedEvent;
use crate::tasks::Target;

/// Facts that the next step depends on, besides the attr.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    pub target: &'a Target,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: i64,
    /// Version of the kernel; 0, 0 if unknown.
    pub kernel: (u16, u16),
    /// Architecture, which has rules for breakpoints.
    pub arch: Arch,
    /// `true` if events are counted without samples, and those that the machine lacks are listed in
    /// the table of counts.
    pub counting: bool,
}

impl<'a> Circumstances<'a> {
    pub(crate) fn new(target: &'a Target, machine: &Machine) -> Self {
        Self {
            target,
            paranoid: machine.paranoid,
            kernel: machine.kernel,
            arch: machine.arch,
            counting: false,
        }
    }
}

/// Next step after a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// Try this event instead; if it works, [`GivenUp::note`] is printed.
    Retry {
        event: Box<PlannedEvent>,
        /// Ability that was given up, if the user needs to know.
        given_up: Option<GivenUp>,
    },
    /// Go on without the event: what that means.
    LeaveOut(String),
    /// Go on without the event, which this machine does not have.
    NotSupported,
    /// Nothing is left to try. Contains the error message with advice.
    GiveUp(String),
}

/// Something requested that the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// The cycle counter, replaced by cpu-clock. Of the things given up earlier for the counter,
    /// only [`GivenUp::Kernel`] still applies.
    Cycles,
    /// Sampling of the kernel.
    Kernel,
    /// Counting of guests.
    Guests,
    /// A feature that this kernel or PMU lacks. Contains the consequence for the user.
    Addition(&'static str),
}

impl GivenUp {
    /// Returns the note for the user: `asked` was replaced by `given`.
    pub(crate) fn note(
        self,
        asked: &PlannedEvent,
        given: &PlannedEvent,
        with: Circumstances<'_>,
    ) -> String {
        match self {
            Self::Cycles => {
                format!(
                    "no hardware counter for {} here (virtual machine?): sampling CPU time ({}) \
                     instead",
                    asked.full_name(),
                    given.name
                )
            }
            Self::Kernel if with.counting => format!(
                "counting user space only (:u): kernel.perf_event_paranoid is {}, which hides the \
                 kernel from users without CAP_PERFMON; what occurs only there, such as context \
                 switches, is 0",
                with.paranoid
            ),
            Self::Kernel => format!(
                "sampling user space only ({}): kernel.perf_event_paranoid is {}, which hides the \
                 kernel from users without CAP_PERFMON{}",
                given.full_name(),
                with.paranoid,
                if is_of_kernel_only(given) {
                    "; this event occurs only in the kernel, so there will be no samples of it"
                } else {
                    ""
                },
            ),
            Self::Guests => {
                format!(
                    "{} the host only ({}): this machine cannot count its guests",
                    if with.counting { "counting" } else { "sampling" },
                    given.full_name()
                )
            }
            Self::Addition(means) => means.to_owned(),
        }
    }
}

fn is_of_kernel_only(event: &PlannedEvent) -> bool {
    event.attr.kind == EventType::SOFTWARE
        && matches!(
            SwEvent(event.attr.config),
            SwEvent::CONTEXT_SWITCHES | SwEvent::CPU_MIGRATIONS | SwEvent::CGROUP_SWITCHES
        )
}
