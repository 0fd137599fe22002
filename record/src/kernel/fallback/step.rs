//! The words of the answers: what they depend on, what to try next, what was given up.

use recrep_format::abi::{EventType, SwEvent};

use crate::plan::PlannedEvent;
use crate::target::Target;

/// What the answer depends on besides the attr.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// Whom the counter is for.
    pub target: &'a Target,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: i64,
    /// The kernel's version; 0, 0: unknown.
    pub kernel: (u16, u16),
}

/// What to do about a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask for this instead; once it works, [`GivenUp::note`] is said.
    Retry {
        /// The event as it is to be now.
        event: Box<PlannedEvent>,
        /// What was given up, where the user must know of it.
        given_up: Option<GivenUp>,
    },
    /// Go on without the event: what that means.
    LeaveOut(String),
    /// There is nothing else to try: what was tried, why not, and what would help.
    GiveUp(String),
}

/// Something asked for that the kernel did not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The cycle counter, for the clock: of what was given up before, which was about the counter, only [`GivenUp::Kernel`] still holds.
    Cycles,
    /// The kernel, for user space.
    Kernel,
    /// What guests do.
    Guests,
    /// Something that this kernel or PMU does not know; in words, what that means for the recording.
    Addition(&'static str),
}

impl GivenUp {
    /// What the user must know: `asked` became `given`.
    #[must_use]
    pub fn note(self, asked: &PlannedEvent, given: &PlannedEvent, with: Circumstances<'_>) -> String {
        match self {
            Self::Cycles => {
                format!("this machine has no counter for {}: sampling {} instead", asked.full_name(), given.name)
            }
            Self::Kernel => format!(
                "sampling user space only ({}): kernel.perf_event_paranoid is {}, which keeps the kernel from users without \
                 CAP_PERFMON{}",
                given.full_name(),
                with.paranoid,
                if is_of_kernel_only(given) {
                    "; this event happens in the kernel, so there will be no samples of it"
                } else {
                    ""
                },
            ),
            Self::Guests => {
                format!("sampling the host only ({}): this machine cannot count its guests", given.full_name())
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
